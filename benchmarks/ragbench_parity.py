"""Whether the recorded labels of RAGBench give its published scores, on all rows you have.

    python benchmarks/ragbench_parity.py --data DIR

DIR holds RAGBench (arXiv:2407.11005) as anyone can download it: a clone of the data set
`rungalileo/ragbench`, one folder per subset, or any files of its rows, at any depth. JSONL and JSON
are read, plain or gzipped (one row per line, a list of rows, or pages of the hub's rows API), and
Parquet, which needs pyarrow (`pip install pyarrow`).

Every row is scored twice with the `ragbench` formulas. With its key lists as they were recorded,
which is how the columns were made, each of `relevance_score`, `utilization_score`,
`completeness_score` and `adherence_score` has to be equal to 1e-9. With keys cleaned, which is the
library's default, a row may differ where its lists hold odd keys, and only there: what is odd is
counted. Stated exceptions: a column without a value, and a row without a response sentence, a
document sentence or a question, which the library does not score.

Exit codes: 0 all columns are reproduced; 1 a score differs beyond these exceptions; 2 there was
nothing to compare, a row could not be read, or pyarrow is missing.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_eval_integrations import Evaluation, Labels, Trace
from rag_eval_integrations.dataset import Labelled, labelled_from, score_labelled
from rag_eval_integrations.errors import InputError
from rag_eval_integrations.sentences import Punkt

COLUMNS = {
    "context_relevance": "relevance_score",
    "context_utilization": "utilization_score",
    "completeness": "completeness_score",
    "adherence": "adherence_score",
}
TOLERANCE = 1e-9
NOT_SCORED = {"empty_response", "no_context", "no_question"}
"""Reasons for which the library gives no score where RAGBench publishes one."""
ENDINGS = (".jsonl", ".jsonl.gz", ".json", ".json.gz", ".parquet")
SHOWN = 5
"""Rows that differ are named up to this number per file."""
PUBLISHED_ROWS = {
    "covidqa_test": 246,
    "covidqa_validation": 267,
    "delucionqa_test": 184,
    "delucionqa_validation": 182,
    "emanual_test": 132,
    "emanual_train": 1054,
    "emanual_validation": 132,
    "expertqa_test": 203,
    "expertqa_validation": 203,
    "hagrid_test": 1318,
    "hagrid_validation": 322,
    "hotpotqa_test": 390,
    "hotpotqa_validation": 424,
    "msmarco_test": 423,
    "msmarco_validation": 397,
}
"""Numbers of rows that the data set's card states, of the parts that were checked against it."""


class MissingReaderError(Exception):
    """A file needs a package that is not installed."""


@dataclass
class FileComparison:
    """Result of one file."""

    rows: int = 0
    equal: int = 0
    """Rows whose published columns are all reproduced from the recorded lists."""
    largest: float = 0.0
    """Largest error of a column, lists as recorded."""
    excepted: Counter[str] = field(default_factory=Counter)
    """Stated exceptions: why a published value was not compared."""
    differ: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    cleaned_differ: int = 0
    cleaned_largest: float = 0.0
    odd: Counter[str] = field(default_factory=Counter)
    """Oddities of the keys of the rows that differ with keys cleaned."""


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file.

    Raises:
        MissingReaderError: for Parquet without pyarrow.
        ValueError: when the file is not what its name says.
    """
    if path.name.endswith(".parquet"):
        yield from _parquet(path)
        return
    opened = gzip.open if path.name.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as lines:
        if ".jsonl" in path.name:
            yield from (json.loads(line) for line in lines if line.strip())
            return
        text = lines.read()
    try:
        content = json.loads(text)
    except json.JSONDecodeError:  # `.json` with one row per line
        content = [json.loads(line) for line in text.splitlines() if line.strip()]
    if isinstance(content, dict):
        content = content.get("rows", [content])
    for row in content if isinstance(content, list) else []:
        yield row.get("row", row) if isinstance(row, dict) else {}


def _parquet(path: Path) -> Iterator[dict[str, Any]]:
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise MissingReaderError(f"{path} is Parquet: pip install pyarrow") from error
    with ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=256):
            yield from batch.to_pylist()


def compare(labelled: Labelled, comparison: FileComparison, name: str) -> None:
    """Compare one row's scores with its published columns."""
    as_recorded = score_labelled(labelled, [Trace("ragbench")], raw_keys=True)
    cleaned = score_labelled(labelled, [Trace("ragbench")])
    comparison.rows += 1
    compared = 0
    wrong = []
    for score, column in COLUMNS.items():
        published, value = labelled.published.get(column), as_recorded.scores[score].value
        reason = as_recorded.scores[score].unscored
        if published is None:
            comparison.excepted[f"{column} has no value"] += 1
        elif value is None:
            if reason in NOT_SCORED:
                comparison.excepted[str(reason)] += 1
            else:
                wrong.append(f"{column} {published} published, not scored ({reason})")
        else:
            compared += 1
            comparison.largest = max(comparison.largest, abs(value - published))
            if abs(value - published) > TOLERANCE:
                wrong.append(f"{column} {published} published, {value} scored")
    apart = _apart(labelled, cleaned)
    if compared and not wrong:
        comparison.equal += 1
        if apart:
            comparison.cleaned_differ += 1
            comparison.cleaned_largest = max(comparison.cleaned_largest, apart)
            odd = _odd(labelled.labelling.labels, cleaned.labels)
            comparison.odd.update(odd)
            if not odd:
                wrong.append(f"with keys cleaned off by {apart}, but no key is odd")
    if wrong:
        comparison.differ.append(f"{name}: {'; '.join(wrong)}")


def _apart(labelled: Labelled, evaluation: Evaluation) -> float:
    """Return the largest difference from the columns; 0 where all are reproduced."""
    largest = 0.0
    for score, column in COLUMNS.items():
        published, value = labelled.published.get(column), evaluation.scores[score].value
        if published is not None and value is not None:
            largest = max(largest, abs(value - published))
    return largest if largest > TOLERANCE else 0.0


def _odd(recorded: Labels | None, cleaned: Labels | None) -> set[str]:
    """Say what is odd about the lists that scores are made of."""
    odd: set[str] = set()
    if recorded is None or cleaned is None:
        return odd
    for name in (
        "all_relevant_sentence_keys",
        "all_utilized_sentence_keys",
        "unsupported_response_sentence_keys",
    ):
        keys, kept = getattr(recorded, name) or (), getattr(cleaned, name) or ()
        if len(set(keys)) < len(keys):
            odd.add("repeated")
        for key in keys:
            if key not in kept:
                odd.add(
                    "with a dot or the like" if key.strip(" .,`") in kept else "no such sentence"
                )
    return odd


def check(path: Path, splitter: Punkt, parts: Counter[str]) -> FileComparison | None:
    """Compare all rows of a file; None where it holds none of RAGBench's."""
    comparison = FileComparison()
    for number, content in enumerate(rows_of(path), 1):
        if not any(column in content for column in COLUMNS.values()):
            if number == 1:
                return None
            comparison.unreadable.append(f"row {number}: has no published score")
            continue
        try:
            labelled = labelled_from(content, splitter)
        except InputError as error:
            comparison.unreadable.append(f"row {number}: {error}")
            continue
        parts[str(content.get("dataset_name", "rows without dataset_name"))] += 1
        compare(labelled, comparison, f"row {number} (id {content.get('id')})")
    return comparison


def tell(name: str, comparison: FileComparison) -> None:
    """Print one line per file, and below it what differs and why."""
    odd = ", ".join(f"{what} {count}" for what, count in comparison.odd.most_common())
    with_cleaned = f"{comparison.cleaned_differ} differ" + (
        f" by ≤ {comparison.cleaned_largest:.3f} (keys: {odd})" if comparison.cleaned_differ else ""
    )
    print(
        f"{name}: {comparison.rows} rows, {comparison.equal} equal, "
        f"largest error {comparison.largest:.1e}; "
        f"keys cleaned: {with_cleaned}"
    )
    for why, count in comparison.excepted.most_common():
        print(f"    not compared: {why} ({count} values)")
    for what, lines in (("differs", comparison.differ), ("cannot be read", comparison.unreadable)):
        for line in lines[:SHOWN]:
            print(f"    {what}: {line}")
        if len(lines) > SHOWN:
            print(f"    {what}: … and {len(lines) - SHOWN} more")


def files_in(folder: Path) -> list[Path]:
    """Return the files of rows below a folder, without what is in hidden folders."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.name.endswith(ENDINGS)
        and path.is_file()
        and not _is_hidden(path.relative_to(folder))
    ]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def main(words: Sequence[str] | None = None) -> int:
    """Compare every file and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of RAGBench's files")
    folder: Path = parser.parse_args(words).data
    splitter, started = Punkt(), time.perf_counter()
    total, parts, broken = FileComparison(), Counter[str](), 0
    for path in files_in(folder):
        try:
            comparison = check(path, splitter, parts)
        except MissingReaderError as error:
            print(error, file=sys.stderr)
            return 2
        except (OSError, ValueError) as error:
            print(f"{path.relative_to(folder)}: cannot be read: {error}")
            broken += 1
            continue
        if comparison is None:
            print(f"{path.relative_to(folder)}: holds no rows with published scores, left out")
            continue
        tell(str(path.relative_to(folder)), comparison)
        broken += len(comparison.unreadable)
        total.rows += comparison.rows
        total.equal += comparison.equal
        total.largest = max(total.largest, comparison.largest)
        total.cleaned_differ += comparison.cleaned_differ
        total.excepted += comparison.excepted
        total.differ += comparison.differ
    if not total.rows:
        print(f"no rows with published scores in {folder}", file=sys.stderr)
        return 2
    for name, count in sorted(parts.items()):
        published = PUBLISHED_ROWS.get(name)
        if published is not None and count != published:
            print(f"{name}: {count} of the {published} rows that are published")
    compared = 4 * total.rows - sum(total.excepted.values())
    print(
        f"all: {total.rows} rows, {compared} published values compared, {total.equal} rows equal, "
        f"largest error {total.largest:.1e}; keys cleaned: {total.cleaned_differ} rows differ "
        f"({time.perf_counter() - started:.0f} s)"
    )
    if broken or not compared:
        return 2
    return 1 if total.differ else 0


if __name__ == "__main__":
    sys.exit(main())
