"""`benchmarks/ragbench_parity.py` on files of our own rows: what it compares, and what it says."""

from __future__ import annotations

import gzip
import importlib.util
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from naive import GPT_LABELING
from own_rows import HAND_MADE, made_rows

from rag_eval_integrations import Evaluation, Trace
from rag_eval_integrations.dataset import Labelled, score_labelled

MADE = made_rows(30)
HAND = [made.row for made in HAND_MADE if "relevance_score" in made.row]


class Done(NamedTuple):
    """Exit code and output of a run."""

    code: int
    out: str
    err: str


@pytest.fixture
def parity(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[[], Done]:
    """Run the benchmark on the test's folder."""
    path = root / "benchmarks" / "ragbench_parity.py"
    spec = importlib.util.spec_from_file_location("ragbench_parity", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "ragbench_parity", module)  # its dataclasses look there
    spec.loader.exec_module(module)

    def run() -> Done:
        return Done(module.main(["--data", str(tmp_path)]), *capsys.readouterr())

    return run


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


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("relevance_score", 0.123),
        ("utilization_score", 0.123),
        ("completeness_score", 0.123),
        ("adherence_score", None),
    ],
)
def test_a_column_that_differs_is_named(
    parity: Callable[[], Done], tmp_path: Path, column: str, value: float | None
) -> None:
    """Exit 1, with the row, the column and both values."""
    published = not MADE[1]["adherence_score"] if value is None else value
    wrong = {**MADE[1], column: published}
    (tmp_path / "a.jsonl").write_bytes(lines([MADE[0], wrong, MADE[2]]))

    done = parity()

    assert done.code == 1
    assert "a.jsonl: 3 rows, 2 equal" in done.out
    assert f"differs: row 2 (id 1): {column} {float(published)} published" in done.out


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


def test_a_published_value_without_a_score_is_a_difference(
    parity: Callable[[], Done], tmp_path: Path
) -> None:
    """Only a row without text to judge may go unscored: exit 1 for any other reason."""
    (row,) = (made.row for made in HAND_MADE if made.shows == "a sentence without an entry")
    unlisted = {key: row[key] for key in row if key != "unsupported_response_sentence_keys"}
    (tmp_path / "a.jsonl").write_bytes(lines([MADE[0], unlisted]))

    done = parity()

    assert done.code == 1
    assert "adherence_score 1.0 published, not scored (unlabelled_sentences)" in done.out


def test_cleaned_keys_that_differ_without_an_odd_key_are_a_difference(
    parity: Callable[[], Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were the library to clean plain keys wrongly, exit 1 would say so."""

    def wrong_when_cleaned(
        labelled: Labelled, metrics: Sequence[Trace], *, raw_keys: bool = False
    ) -> Evaluation:
        metrics = metrics if raw_keys else [Trace(GPT_LABELING)]  # type: ignore[arg-type]
        return score_labelled(labelled, metrics, raw_keys=raw_keys)

    monkeypatch.setattr(sys.modules["ragbench_parity"], "score_labelled", wrong_when_cleaned)
    (row,) = (made.row for made in HAND_MADE if made.shows == "everything relevant is used")
    (tmp_path / "a.jsonl").write_bytes(lines([row]))

    done = parity()

    assert done.code == 1
    assert "with keys cleaned off by 0.5, but no key is odd" in done.out


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([MADE[0], {**MADE[1], "documents": 3}], "cannot be read: row 2: field `documents`"),
        ([MADE[0], {"id": "x"}], "cannot be read: row 2: has no published score"),
        ([{"id": "x"}], "holds no rows with published scores, left out"),
    ],
)
def test_what_cannot_be_read_is_said(
    parity: Callable[[], Done], tmp_path: Path, rows: Sequence[Mapping[str, Any]], said: str
) -> None:
    """Exit 2: a row that was left out is not a row that is right."""
    (tmp_path / "a.jsonl").write_bytes(lines(rows))

    done = parity()

    assert done.code == 2
    assert said in done.out


def test_a_broken_file_or_none_is_said(parity: Callable[[], Done], tmp_path: Path) -> None:
    """Exit 2, whatever the other files hold."""
    done = parity()
    assert (done.code, "no rows with published scores in" in done.err) == (2, True)

    (tmp_path / "a.jsonl").write_bytes(lines(MADE))
    (tmp_path / "b.jsonl.gz").write_bytes(b"not gzip")
    done = parity()
    assert (done.code, "b.jsonl.gz: cannot be read" in done.out) == (2, True)


def test_parts_of_a_published_file_are_said(parity: Callable[[], Done], tmp_path: Path) -> None:
    """Whoever has half of a part sees it."""
    rows = [{**row, "dataset_name": "covidqa_test"} for row in MADE]
    (tmp_path / "a.jsonl").write_bytes(lines(rows))

    assert "covidqa_test: 30 of the 246 rows that are published" in parity().out


def test_parquet_without_pyarrow_says_what_to_install(
    parity: Callable[[], Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 2 with the command, not a traceback."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (tmp_path / "test-00000-of-00001.parquet").write_bytes(b"PAR1")

    done = parity()

    assert done.code == 2
    assert "pip install pyarrow" in done.err


def test_parquet_is_read_where_pyarrow_is(parity: Callable[[], Done], tmp_path: Path) -> None:
    """The hub's own files: nested lists and null verdicts come back as they were."""
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow, which is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "orchard").mkdir()
    parquet.write_table(
        pyarrow.Table.from_pylist(MADE), tmp_path / "orchard" / "test-00000-of-00001.parquet"
    )

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
