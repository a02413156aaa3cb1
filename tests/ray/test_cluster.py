"""What is asked of Ray itself, as far as that needs no Ray."""

from __future__ import annotations

import socket
from contextlib import closing

import pytest

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.ray._cluster import connect


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_a_cluster_that_nobody_runs_is_told_at_once(scheme: str) -> None:
    """Before Ray is imported, which would try for minutes."""
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]

    with pytest.raises(ConfigurationError, match="no Ray cluster can be used there"):
        connect(f"{scheme}127.0.0.1:{port}")
