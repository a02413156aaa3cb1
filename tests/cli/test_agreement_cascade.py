"""`rag-eval agreement --plots DIR --cascade SECOND.jsonl`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ferries import Command, write

from .test_agreement_tables import row

Files = tuple[Path, Path, Path]


@pytest.fixture
def judged(rag_eval: Command) -> Files:
    """Eight rows, the embedded judge's evaluations of them, and a second judge that is gold's."""
    gold = write(Path("gold.jsonl"), *(row(number, f"set{number % 2}") for number in range(8)))
    first, second = Path("first.jsonl"), Path("second.jsonl")
    rag_eval("run", gold, "-o", first, code=0)
    rag_eval("score", gold, "-o", second, code=0)
    return first, gold, second


def test_the_page_goes_where_it_is_asked_for(rag_eval: Command, judged: Files) -> None:
    """`-o PAGE` writes what `--plots DIR` writes: all rows, each data set, the cascade."""
    first, gold, second = judged
    page, plots = Path("page.html"), Path("plots")
    words = ("agreement", first, gold, "--cascade", second, "--baselines")

    done = rag_eval(*words, "-o", page, "--plots", plots, code=0)
    as_json = rag_eval(*words, "-o", page, "--json", code=0)

    assert page.read_bytes() == (plots / "agreement.html").read_bytes()
    shown = page.read_text(encoding="utf-8")
    for text in (
        "Agreement of first.jsonl with gold.jsonl", "share of calls escalated", "constant",
        "all 8 rows", "set0", "set1", "not adherent", "relevant", "unsupported",
    ):  # fmt: skip
        assert text in shown
    for text in ("Scores by data set", "never", "100%", "(0."):
        assert text in done.out
    curve = json.loads(as_json.out)["cascade"]
    assert [point["share"] for point in curve] == [round(0.8 * step) / 8 for step in range(11)]
    assert curve[-1]["pooled"]["context_relevance"]["rmse"] == 0  # the second judge is gold's
    assert "agreement.html" in done.err


def test_what_cannot_be_written_is_refused_first(rag_eval: Command, judged: Files) -> None:
    """A page of others, such as an input; a failed comparison leaves no folder.

    A second judge has to have judged the same rows.
    """
    first, gold, second = judged
    before = gold.read_bytes()
    done = rag_eval("agreement", first, gold, "-o", gold, code=2)
    assert done.out == ""
    assert "--out" in done.err
    assert "was not made by this program" in done.err
    assert gold.read_bytes() == before

    Path("empty.jsonl").touch()
    rag_eval("agreement", first, "empty.jsonl", "--plots", "p", code=2)
    assert not Path("p").exists()
    onto = rag_eval("agreement", first, gold, "--plots", "empty.jsonl", code=2)
    assert "empty.jsonl" in onto.err

    Path("part.jsonl").write_text("".join(second.read_text().splitlines(keepends=True)[:5]))
    part = rag_eval("agreement", first, gold, "--cascade", "part.jsonl", code=2)
    assert part.out == ""
    assert "`--cascade` = 'part.jsonl': lacks 3 of the 8 rows" in part.err
