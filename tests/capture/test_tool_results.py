"""What tools found, kept for later turns: a bounded number of texts."""

from __future__ import annotations

from rag_eval_integrations.capture._calls import Snapshot
from rag_eval_integrations.capture._tool_results import ToolResults


def test_the_text_that_was_used_longest_ago_goes() -> None:
    """Of more than 1,024; one that is shown again stays."""
    results, documents = ToolResults(), [Snapshot("text", "id", {}, None)]
    for number in range(1_024):
        results.keep("kb", f"text {number}", documents)
    assert results.lookup("text 0") == ("kb", documents)

    results.keep("kb", "another text", documents)

    assert results.lookup("text 1") is None
    assert results.lookup("text 0") == results.lookup("another text") == ("kb", documents)
