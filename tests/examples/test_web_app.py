"""The web app of the examples: replies at once, scores every query, loses none at its end."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


# The oldest FastAPI's test client uses names that its own dependencies deprecate by now.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_query_is_scored_before_the_app_ends(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody flushes: the end of the lifespan drains what waits."""
    from fastapi.testclient import TestClient

    web = SimpleNamespace(**runpy.run_path(str(EXAMPLES / "web_app.py"), run_name="web_app"))

    with TestClient(web.app) as client:
        replies = [client.get("/ask", params={"question": f"Reset {n}?"}) for n in range(20)]

    assert {reply.status_code for reply in replies} == {200}
    assert web.app.state.scores.counters.scored == 20
    assert capsys.readouterr().out.count("/ask adherence: 1.0") == 20
