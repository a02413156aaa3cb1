"""CSV and Parquet files hold the rows and columns of the data frame."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hostile import HOSTILE
from own_rows import made_rows

from rag_eval_integrations import Evaluations, Trace
from rag_eval_integrations.dataset import labelled_from, score_labelled
from rag_eval_integrations.errors import ConfigurationError, MissingDependencyError
from rag_eval_integrations.evaluations import _written
from rag_eval_integrations.evaluations._written import columns_of
from rag_eval_integrations.sentences import Punkt


@pytest.fixture(scope="module")
def evaluations() -> Evaluations:
    splitter = Punkt()
    rows = (labelled_from(dict(row), splitter) for row in made_rows(25))
    return Evaluations(score_labelled(row, [Trace()]) for row in rows)


def test_parquet_is_the_data_frame(
    evaluations: Evaluations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also over several groups of rows; nothing is missing but what is missing there."""
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(_written, "_GROUP", 10)
    path = evaluations.to_parquet(tmp_path / "rows.parquet")

    read, frame = pd.read_parquet(path), evaluations.to_pandas()
    assert list(read.columns) == list(frame.columns)
    for name in frame.columns:
        assert list(read[name].isna()) == list(frame[name].isna()), name
        kept = frame[name].notna()
        assert list(read[name][kept]) == list(frame[name][kept]), name
    assert str(read["adherence"].dtype) == "float64"
    assert str(read["requests"].dtype) == "int64"
    empty = Evaluations().to_parquet(tmp_path / "none.parquet")
    assert len(pd.read_parquet(empty)) == 0


def test_csv_has_the_same_columns(evaluations: Evaluations, tmp_path: Path) -> None:
    """A row per call."""
    path = evaluations.to_csv(tmp_path / "rows.csv")
    rows = list(csv.reader(io.StringIO(path.read_text("utf-8"), newline="")))
    assert rows[0] == list(columns_of(evaluations))
    assert len(rows) == 26


@pytest.mark.parametrize("name", ["to_csv", "to_parquet"])
def test_files_that_exist_are_kept(evaluations: Evaluations, tmp_path: Path, name: str) -> None:
    """Unless they may be overwritten."""
    pytest.importorskip("pyarrow")
    path = tmp_path / "rows"
    path.write_text("mine")
    with pytest.raises(ConfigurationError, match="exists"):
        getattr(evaluations, name)(path)
    assert path.read_text() == "mine"
    getattr(evaluations, name)(path, overwrite=True)
    assert path.read_bytes() != b"mine"


def test_hostile_texts_are_kept_in_parquet(tmp_path: Path) -> None:
    """Byte by byte: only a spreadsheet reads formulas."""
    pq = pytest.importorskip("pyarrow.parquet")
    splitter = Punkt()
    rows = (
        labelled_from({**dict(row), "question": text}, splitter)
        for row, text in zip(made_rows(len(HOSTILE)), HOSTILE, strict=True)
    )
    found = Evaluations(score_labelled(row, [Trace()]) for row in rows)
    table = pq.read_table(found.to_parquet(tmp_path / "rows.parquet"))
    assert table["question"].to_pylist() == [one.question for one in found]


def test_without_pyarrow_the_extra_is_named(
    evaluations: Evaluations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no file is made."""
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r"\[parquet\]"):
        evaluations.to_parquet(tmp_path / "rows.parquet")
    assert list(tmp_path.iterdir()) == []
