"""`benchmarks/ragbench_parity.py` on files of our own rows: what it compares, and what it says."""

from __future__ import annotations

import gzip
import json
import runpy
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from ferries import Done
from naive import GPT_LABELING
from own_rows import HAND_MADE, made_rows
from pages import ROOT

from rag_eval_integrations import Evaluation, Trace
from rag_eval_integrations.dataset import Labelled, score_labelled

MADE = made_rows(30)
HAND = [made.row for made in HAND_MADE if "relevance_score" in made.row]


MAIN = runpy.run_path(str(ROOT / "benchmarks" / "ragbench_parity.py"))["main"]


@pytest.fixture
def parity(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[], Done]:
    """Run the benchmark on the test's folder."""
    return lambda: Done(MAIN(["--data", str(tmp_path)]), *capsys.readouterr())


def lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def test_every_form_of_file_is_read_and_reproduced(
    parity: Callable[[], Done], tmp_path: Path
) -> None:
    """JSONL, JSON, gzip, pages of the rows API, folders per subset; other files are left out."""
    (tmp_path / "orchard").mkdir()
    (tmp_path / ".cache").mkdir()
    (tmp_path / "orchard" / "test.jsonl").write_bytes(lines(MADE))
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(lines(HAND)))
    (tmp_path / "c.json").write_text(json.dumps(MADE[:4]))
    (tmp_path / "d.json").write_bytes(lines(MADE[:3]))
    (tmp_path / "e.json.gz").write_bytes(gzip.compress(json.dumps(MADE[:2]).encode()))
    (tmp_path / "page.json").write_text(json.dumps({"rows": [{"row": row} for row in MADE[:5]]}))
    (tmp_path / "infos.json").write_text('{"homepage": "none"}')
    (tmp_path / ".cache" / "x.jsonl").write_text("not looked at")

    done = parity()

    rows = 30 + len(HAND) + 4 + 3 + 2 + 5
    assert done.code == 0, done.out
    assert f"all: {rows} rows, {4 * rows} published values compared, {rows} rows equal" in done.out
    assert "orchard/test.jsonl: 30 rows, 30 equal" in done.out
    assert "infos.json: holds no rows with published scores, left out" in done.out
    assert "(keys: " in done.out


OPPOSITE = not MADE[1]["adherence_score"]
LISTED = next(made.row for made in HAND_MADE if made.shows == "a sentence without an entry")
UNLISTED = {key: LISTED[key] for key in LISTED if key != "unsupported_response_sentence_keys"}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (MADE[1] | {"relevance_score": 0.123}, "(id 1): relevance_score 0.123 published"),
        (MADE[1] | {"utilization_score": 0.123}, "(id 1): utilization_score 0.123 published"),
        (MADE[1] | {"completeness_score": 0.123}, "(id 1): completeness_score 0.123 published"),
        (MADE[1] | {"adherence_score": OPPOSITE}, f"adherence_score {float(OPPOSITE)} published"),
        # Only a row without text to judge may go unscored.
        (UNLISTED, "adherence_score 1.0 published, not scored (unlabelled_sentences)"),
    ],
)
def test_a_column_that_differs_is_named(
    parity: Callable[[], Done], tmp_path: Path, row: Mapping[str, Any], said: str
) -> None:
    """Exit 1, with the row, the column and both values."""
    (tmp_path / "a.jsonl").write_bytes(lines([MADE[0], row, MADE[2]]))

    done = parity()

    assert done.code == 1
    assert "a.jsonl: 3 rows, 2 equal" in done.out
    assert "differs: row 2 " in done.out
    assert said in done.out


def test_a_difference_of_a_billionth_is_one(parity: Callable[[], Done], tmp_path: Path) -> None:
    """Beyond 1e-9 exit 1, within it exit 0."""
    share = MADE[0]["relevance_score"]
    (tmp_path / "a.jsonl").write_bytes(lines([{**MADE[0], "relevance_score": share + 1e-8}]))
    assert parity().code == 1

    (tmp_path / "a.jsonl").write_bytes(lines([{**MADE[0], "relevance_score": share + 1e-11}]))
    assert parity().code == 0


def test_stated_exceptions_are_counted_and_pass(parity: Callable[[], Done], tmp_path: Path) -> None:
    """No value, no response, no documents: not compared, and said so."""
    shares = {"relevance_score": 0.5, "utilization_score": 0.0, "completeness_score": 0.0}
    by_name = {made.shows: made.row for made in HAND_MADE}
    rows = [
        {**MADE[0], "completeness_score": None},
        {**by_name["an empty response"], **shares},
        {**by_name["no documents"], **shares},
    ]
    (tmp_path / "a.jsonl").write_bytes(lines(rows))

    done = parity()

    assert done.code == 0
    assert "3 rows, 1 equal" in done.out
    assert "completeness_score has no value (1 values)" in done.out
    assert "empty_response (3 values)" in done.out
    assert "no_context (3 values)" in done.out
    assert "3 published values compared" in done.out


def test_cleaned_keys_that_differ_without_an_odd_key_are_a_difference(
    parity: Callable[[], Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were the library to clean plain keys wrongly, exit 1 would say so."""

    def wrong_when_cleaned(
        labelled: Labelled, metrics: Sequence[Trace], *, raw_keys: bool = False
    ) -> Evaluation:
        metrics = metrics if raw_keys else [Trace(GPT_LABELING)]  # type: ignore[arg-type]
        return score_labelled(labelled, metrics, raw_keys=raw_keys)

    monkeypatch.setitem(MAIN.__globals__, "score_labelled", wrong_when_cleaned)
    (row,) = (made.row for made in HAND_MADE if made.shows == "everything relevant is used")
    (tmp_path / "a.jsonl").write_bytes(lines([row]))

    done = parity()

    assert done.code == 1
    assert "with keys cleaned off by 0.5, but no key is odd" in done.out


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.jsonl", lines([{**MADE[1], "documents": 3}]), "row 1: field `documents`"),
        ("a.jsonl", lines([MADE[0], {"id": "x"}]), "cannot be read: row 2: has no published score"),
        ("b.jsonl.gz", b"not gzip", "b.jsonl.gz: cannot be read"),
        ("c.parquet", b"PAR1", "pip install pyarrow"),
    ],
)
def test_what_cannot_be_read_is_said(
    parity: Callable[[], Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    name: str, content: bytes, said: str,
) -> None:  # fmt: skip
    """Exit 2, whatever the other files hold; also where there is no file, or no pyarrow."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    none = parity()
    assert (none.code, "no rows with published scores in" in none.err) == (2, True)

    (tmp_path / "good.jsonl").write_bytes(lines(MADE[:3]))
    (tmp_path / name).write_bytes(content)
    done = parity()
    assert (done.code, said in done.out + done.err) == (2, True)


def test_parts_of_a_published_file_are_said(parity: Callable[[], Done], tmp_path: Path) -> None:
    """Whoever has half of a part sees it."""
    rows = [{**row, "dataset_name": "covidqa_test"} for row in MADE]
    (tmp_path / "a.jsonl").write_bytes(lines(rows))

    assert "covidqa_test: 30 of the 246 rows that are published" in parity().out


def test_parquet_is_read_where_pyarrow_is(parity: Callable[[], Done], tmp_path: Path) -> None:
    """The hub's own files: nested lists and null verdicts come back as they were."""
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow, which is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(MADE), tmp_path / "a.parquet")

    done = parity()

    assert done.code == 0, done.out
    assert "30 rows, 30 equal" in done.out


def test_all_recorded_rows_are_reproduced(
    parity: Callable[[], Done], tmp_path: Path, ragbench: list[Path]
) -> None:
    """Where the recorded rows are: one whole part, by the command that anyone can run."""
    (source,) = (path for path in ragbench if path.name == "emanual_test.jsonl.gz")
    (tmp_path / source.name).symlink_to(source)

    done = parity()

    assert done.code == 0
    assert "132 rows, 528 published values compared, 132 rows equal" in done.out
