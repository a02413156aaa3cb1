"""A Ray on this machine; only with RAG_EVAL_RAY=1, see docs/test-environments.md."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

collect_ignore_glob = ["test_dataset.py"]
if os.environ.get("RAG_EVAL_RAY") == "1":
    collect_ignore_glob = []
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")


@pytest.fixture(scope="module")
def started_ray() -> Iterator[Any]:
    """Two CPUs, 200 MB of shared memory; nothing stays."""
    import ray
    import ray.data

    support = str(Path(__file__).parent.parent / "support")  # where actors find test judges
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", support, prepend=os.pathsep)
        yield from _started(ray)


def _started(ray: Any) -> Iterator[Any]:
    ray.init(
        num_cpus=2, include_dashboard=False, object_store_memory=200 * 2**20, log_to_driver=False,
        logging_level="ERROR", _node_ip_address="127.0.0.1",
    )  # fmt: skip
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield ray
    ray.shutdown()
