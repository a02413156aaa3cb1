"""`Evaluations`: a list of evaluations that can be looked at, summed up, saved and compared."""

# Imported in a method is what it alone needs: pandas and tables, and from the rooms above, files
# (`dataset`) and pages (`report`).
# ruff: noqa: PLC0415

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from rag_eval_integrations._visible import LogOnce, counted, logger_of, one_line
from rag_eval_integrations.errors import ConfigurationError, extra
from rag_eval_integrations.evaluations.summary import ScoreFigures, Summary
from rag_eval_integrations.records import Evaluation, Run
from rag_eval_integrations.records.mean import Interval
from rag_eval_integrations.records.score import score_hint

if TYPE_CHECKING:
    import pandas as pd

    from rag_eval_integrations.evaluations._groups import Groups
    from rag_eval_integrations.evaluations.comparison import Comparison


_COUNTED = LogOnce(logger_of("rag_eval_integrations.evaluations"))
_LONGEST_ID = 200
"""Characters of an id that may have been misspelt."""


@dataclass(frozen=True)
class MeanOf:
    """The mean of one score over evaluations that were all made in the same way."""

    name: str
    """Name of the score."""
    value: float | None
    """The mean, in [0, 1]; None when no evaluation has a value."""
    interval: Interval | None
    """Its 95 % interval; None for fewer than two values."""
    n: int
    """Evaluations with a value."""
    total: int
    """Evaluations with the score, with or without a value."""

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.name} – (0 of {self.total:,})"
        interval = f"95 %: {self.interval:.3f}, " if self.interval else ""
        return f"{self.name} {self.value:.3f} ({interval}{self.n:,} of {self.total:,})"


class Evaluations(Sequence[Evaluation]):
    """A list of evaluations; it cannot be changed, and slices of it are `Evaluations`, too.

    `print` shows the figures, and a notebook's cell the calls with highlighted sentences.

    Args:
        evaluations: any iterable of evaluations, such as the stream of `evaluate_calls` in
            synchronous code; in async code write `await stream.collect()`. All are held in memory,
            about 50 kB for a call with four documents.

    Raises:
        ConfigurationError: something in it is not an `Evaluation`.
    """

    __slots__ = ("_items", "_pending")

    def __init__(self, evaluations: Iterable[Evaluation] = ()) -> None:
        if isinstance(evaluations, str | os.PathLike):
            why = "should be evaluations; use Evaluations.load(path) to read a file"
            raise ConfigurationError("evaluations", os.fspath(evaluations), why)
        given: object = evaluations
        if isinstance(given, Evaluation) or not isinstance(given, Iterable):
            why = "should be an iterable of evaluations"
            if hasattr(given, "__aiter__"):
                why = "is an async iterable: use Evaluations([one async for one in …])"
            raise ConfigurationError("evaluations", given, why)
        self._items = tuple(evaluations)
        self._pending = 0  # calls that a handler has not judged yet
        for place, item in enumerate(self._items):
            if not isinstance(item, Evaluation):
                raise ConfigurationError(
                    f"evaluations[{place}]", item, "should be an Evaluation, as an evaluator gives"
                )

    # --- A sequence

    def __len__(self) -> int:
        if self._pending:
            _COUNTED.log("length", "these are not all: %s%s", self._counted(), self._missing())
        return len(self._items)

    @overload
    def __getitem__(self, place: int) -> Evaluation: ...
    @overload
    def __getitem__(self, place: slice) -> Evaluations: ...

    def __getitem__(self, place: int | slice) -> Evaluation | Evaluations:
        try:
            items = self._items[place]
        except IndexError:
            raise IndexError(f"index {place} of {self._counted()}{self._missing()}") from None
        return Evaluations(items) if isinstance(items, tuple) else items

    def __iter__(self) -> Iterator[Evaluation]:
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        # Also to a list or tuple of the same, which results and `handler.evaluations` used to be.
        if isinstance(other, Evaluations | list | tuple):
            return self._items == tuple(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # nor have evaluations a hash

    def __add__(self, other: Iterable[Evaluation]) -> Evaluations:
        return Evaluations((*self._items, *other))

    def __reduce__(self) -> tuple[type[Evaluations], tuple[tuple[Evaluation, ...]]]:
        return Evaluations, (self._items,)

    def by_id(self, id: str) -> Evaluation:
        """Look up the evaluation of the call with an id.

        Raises:
            ConfigurationError: none or several have it; an id may repeat.
        """
        matching = [evaluation for evaluation in self._items if evaluation.id == id]
        if len(matching) == 1:
            return matching[0]
        why = f"{len(matching)} evaluations have it; select them yourself"
        if not matching:
            # Comparing long ids takes quadratic time, and shows nothing that helps.
            ids = [each.id for each in self._items[:1_000] if len(each.id) <= _LONGEST_ID]
            near = get_close_matches(str(id)[:_LONGEST_ID], ids, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            why = f"none of {counted(len(self), 'evaluation')} has it{hint}"
        raise ConfigurationError("id", id, why)

    def _counted(self) -> str:
        return counted(len(self._items), "evaluation")

    def _missing(self) -> str:
        """Say, behind a count, how many calls are still being judged; empty for none."""
        if not self._pending:
            return ""
        verb, those = ("is", "it") if self._pending == 1 else ("are", "them")
        return f"; {self._pending:,} {verb} being judged: `handler.flush()` waits for {those}"

    # --- Figures

    def summary(self) -> Summary:
        """Sum up: scores, patterns, retrieval, failures and cost; the figures of every report."""
        return Summary.of(self._items)

    def mean(self, name: str) -> MeanOf:
        """Compute the mean of one score, with its 95 % interval and how many calls it is over.

        Args:
            name: name of the score, such as `adherence`.

        Raises:
            ConfigurationError: no evaluation has this score; or it was made in different ways (by
                other judges, prompts, formulas or estimators), so that it has no common mean: the
                message says which.
        """
        figures = [score for score in self.summary().scores if score.name == name]
        if not figures:
            hint = score_hint(name, (key for each in self._items for key in each.scores))
            why = f"is a score of none of {counted(len(self), 'evaluation')}; {hint}"
            raise ConfigurationError("name", name, why)
        scored = [score for score in figures if score.scored]
        if len(scored) > 1:
            raise ConfigurationError("name", name, _no_common_mean(scored))
        score = (scored or figures)[0]
        total = sum(each.total for each in figures)
        return MeanOf(name, score.mean, score.interval, score.scored, total)

    def by(self, field: str) -> Groups:
        """Sum up apart by the values of a field, the worst group first; `print` shows the means.

        Args:
            field: a field as `--where` names it: `metadata.route`, `model` (the judge's),
                `pattern`, `conversation`, `tags` …

        Raises:
            ConfigurationError: no call has the field, or it has more than 25,000 values.
        """
        from rag_eval_integrations.evaluations._groups import Groups

        groups = Groups(field)
        for evaluation in self._items:
            groups.add(evaluation)
        return groups.ranked()

    # --- Files

    def save(
        self, path: str | os.PathLike[str], *, overwrite: bool = False, run: Run | None = None
    ) -> Path:
        """Write an EVALS file, a line of JSON per evaluation, which `load` reads back.

        Args:
            path: the file; gzipped if its name ends in `.gz`, and Parquet if it ends in
                `.parquet`. It is private to its owner, and is there whole or not at all.
            overwrite: replace a file that exists.
            run: the run that every row is going to name; by default each names its own, if any.

        Returns:
            The path.

        Raises:
            ConfigurationError: the file exists and `overwrite` is not set, or it is not a regular
                file; `run` is not a `Run`.
            MissingDependencyError: it would be Parquet, and pyarrow is not installed.
            OSError: it cannot be written.
        """
        from rag_eval_integrations.dataset.files import evaluations_to

        if not isinstance(run, Run | None):
            raise ConfigurationError("run", run, "should be a `Run`, such as Run(id=…, start=…)")
        with evaluations_to(Path(path).absolute(), overwrite=overwrite, field="path") as write:
            for evaluation in self._items:
                write(evaluation.model_copy(update={"run": run}) if run else evaluation)
        return Path(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Evaluations:
        """Read an EVALS file, plain or gzipped, into memory; of an empty one, no evaluations.

        Args:
            path: what `save`, `rag-eval run`, `score`, `out=` or `JsonlSink` has written; also
                Parquet, or a folder of Parquet, with a column `evaluation`.

        Raises:
            InputError: a line is not an evaluation; the message says which line and why.
            ConfigurationError: another version of the library wrote it, or it is neither a file
                nor a folder of evaluations.
            MissingDependencyError: it is Parquet, and pyarrow is not installed.
            OSError: it cannot be read.
        """
        from rag_eval_integrations.evaluations._pairing import EvaluationsFile

        return cls(EvaluationsFile(path))

    def to_pandas(self) -> pd.DataFrame:
        """Make a pandas data frame with a row per evaluation; `docs/evaluations.md` lists columns.

        A score that has no value is missing, never 0, and its column `NAME:unscored` says why.

        Raises:
            MissingDependencyError: pandas is not installed.
        """
        with extra("pandas", "pandas"):
            import pandas as pd
        from rag_eval_integrations.evaluations._formats import columns_of, row_of

        columns = columns_of(self._items)
        frame = pd.DataFrame([row_of(each, columns) for each in self._items], columns=list(columns))
        return frame.astype({name: each.dtype for name, each in columns.items() if each.dtype})

    def to_csv(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write a CSV file with a row per evaluation and the columns of `to_pandas`.

        A missing value is an empty cell; texts are on one line, and none is read as a formula.

        Args:
            path: the file; gzipped if its name ends in `.gz`.
            overwrite: replace a file that exists.

        Returns:
            The path.

        Raises:
            ConfigurationError, OSError: as for `save`.
        """
        from rag_eval_integrations.dataset.files import rows_to
        from rag_eval_integrations.evaluations import _formats

        target = _checked_path(path, ".csv", ".txt")
        with rows_to(target, overwrite=overwrite, field="path") as out:
            for piece in _formats.csv_of(self._items, _formats.columns_of(self._items)):
                out.write(piece.encode("utf-8"))
        return Path(path)

    def to_parquet(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write a Parquet file with a row per evaluation and the columns of `to_pandas`.

        Args:
            path: the file.
            overwrite: replace a file that exists.

        Returns:
            The path.

        Raises:
            MissingDependencyError: pyarrow is not installed.
            ConfigurationError, OSError: as for `save`.
        """
        from rag_eval_integrations.dataset.files import rows_to
        from rag_eval_integrations.evaluations import _formats

        _formats.check_parquet()
        target = _checked_path(path, ".parquet", ".pq")
        with rows_to(target, overwrite=overwrite, field="path") as out:
            _formats.write_parquet(self._items, _formats.columns_of(self._items), out)
        return Path(path)

    def to_ragbench(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write rows in RAGBench's columns, as lines of JSON; `docs/evaluations.md` lists them.

        Scores in them are by RAGBench's formulas. Evaluations without labels have no row.

        Args:
            path: the file; gzipped if its name ends in `.gz`.
            overwrite: replace a file that exists.

        Returns:
            The path.

        Raises:
            ConfigurationError, OSError: as for `save`.
        """
        from rag_eval_integrations.dataset.files import rows_to
        from rag_eval_integrations.dataset.rows import ragbench_line

        target = _checked_path(path, ".jsonl", ".json")
        with rows_to(target, overwrite=overwrite, field="path") as out:
            for line in filter(None, map(ragbench_line, self._items)):
                out.write(line.encode("ascii"))
        return Path(path)

    def report(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write an HTML page with the figures and the calls.

        Args:
            path: the page; an earlier page of this program is replaced.
            **options: of `report.write_report`: `title`, `calls`, `overwrite`.

        Returns:
            The path.

        Raises:
            ConfigurationError: there is a file that this program did not make, and `overwrite` is
                not set; the name ends as another format's, such as `.xlsx`.
            OSError: it cannot be written.
        """
        from rag_eval_integrations.report.html import write_report

        return write_report(self, path, **options)

    def compare(
        self, *others: Sequence[Evaluation] | str | os.PathLike[str], **options: Any
    ) -> Comparison:
        """Compare later runs of the same calls with this one, pair by pair.

        Args:
            *others: evaluations, or paths of EVALS files.
            **options: of `report.compare`.

        Raises:
            ConfigurationError: the calls cannot be paired, or scores were made differently.
        """
        from rag_eval_integrations.evaluations.comparison import compare

        return compare(self, *others, **options)

    # --- As a person reads them

    def __repr__(self) -> str:
        scores = [score for score in self.summary().scores if score.mean is not None]
        ways = Counter(score.name for score in scores)
        values = {score.name: f"{score.name} {score.mean:.2f}" for score in scores}
        means = [
            values[name] if count == 1 else f"{name} made in {count} ways"
            for name, count in ways.items()
        ]
        more = [", ".join([*means[:6], *["…"][: len(means) - 6]])] if means else []
        text = one_line(": ".join([counted(len(self._items), "call"), *more]), 240)
        return f"<Evaluations of {text}{self._missing()}>"

    def __str__(self) -> str:
        verdict, *more = str(self.summary()).split("\n", 1)
        return "\n".join([verdict + self._missing(), *more])

    def _repr_html_(self) -> str:
        from rag_eval_integrations.evaluations._notebook import evaluations_html

        return evaluations_html(self._items, self._missing())


def _checked_path(path: str | os.PathLike[str], *endings: str) -> Path:
    """Return the absolute path of a file to write; refuse the name of another format."""
    given = Path(path)
    ending = given.with_suffix("").suffix if given.suffix == ".gz" else given.suffix
    if ending.lower() not in ("", *endings):
        raise ConfigurationError("path", str(path), f"let the name end in {endings[0]}")
    return given.absolute()


def _differs(field: str, makers: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether the makers differ in a field of their provenance."""
    return len({str(maker[field]) for maker in makers}) > 1


def _no_common_mean(figures: Sequence[ScoreFigures]) -> str:
    """Say why a score has no common mean: what its makers differ in."""
    makers = [score.by.model_dump() | {"method": score.method} for score in figures]
    differing = [name for name in makers[0] if _differs(name, makers)]
    ways: dict[str, None] = {}
    for score, maker in zip(figures, makers, strict=True):
        fields = ", ".join(f"{name} {maker[name]}" for name in differing)
        ways[f"{fields}: {score.scored} calls"] = None
    return (
        f"was made in {len(figures)} ways, which have no common mean ({'; '.join(ways)}); "
        "select those of one maker, such as Evaluations(e for e in evaluations if …)"
    )
