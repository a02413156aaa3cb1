"""Evaluations apart by a field: the figures of each group, and which groups are the worst."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from rag_eval_integrations._visible import counted, one_line
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations._filters import metadata_of, values_of
from rag_eval_integrations.evaluations._paired import MIN_PAIRS
from rag_eval_integrations.evaluations.summary import Summary, aligned
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.records.mean import RunningMean

MOST_GROUPS = 25_000
"""Groups that are held, at some 10 kB each."""
_MOST_LISTED = 100
_NAME = 80


class Groups(dict[str, Summary]):
    """Evaluations apart by the values of a field: value → the figures of its calls.

    `ranked` puts the group with the lowest mean of adherence first (without adherence, of the first
    score), and those that are too small to tell last. A call with several values, such as tags, is
    in the group of each. `print` shows the means with their intervals.

    Args:
        field: a field as `--where` names it: `metadata.route`, `model`, `pattern`, `conversation`.
        least: calls with a value below which a group is too small to tell; by default 10, and 1
            for conversations.
        option: name of the argument, for errors.
    """

    def __init__(self, field: str, *, least: int | None = None, option: str = "field") -> None:
        super().__init__()
        self.field, self._option = field, option
        self.least = least or (1 if field == "conversation" else MIN_PAIRS)
        self.without = 0
        """Number of calls without the field, which are in no group."""
        self._without: Evaluation | None = None

    def add(self, evaluation: Evaluation) -> None:
        """Count an evaluation in its groups.

        Raises:
            ConfigurationError: the field has more than 25,000 values.
        """
        values = dict.fromkeys(values_of(evaluation, self.field))
        for value in values:
            self.setdefault(value, Summary()).add(evaluation)
        if len(self) > MOST_GROUPS:
            why = f"has more than {MOST_GROUPS:,} values; use a field with fewer"
            raise ConfigurationError(self._option, self.field, why)
        if not values:
            self.without += 1
            self._without = evaluation

    def ranked(self) -> Groups:
        """Put the worst group first, and return these groups.

        Raises:
            ConfigurationError: there are calls, and none has the field.
        """
        if self._without and not self:
            known = one_line(", ".join(chain(*metadata_of(self._without))), 200) or "no metadata"
            why = f"is a field of none of {counted(self.without, 'call')}; the last has {known}"
            raise ConfigurationError(self._option, self.field, why)
        lead = "adherence" if "adherence" in (names := self._scores()) else "".join(names[:1])
        groups = sorted(self.items(), key=lambda item: self._rank(means_of(item[1], lead)))
        self.clear()
        self.update(groups)
        return self

    def _rank(self, means: list[RunningMean]) -> tuple[bool, float]:
        """Return the sort key of a group: too small ones last, the lowest mean first."""
        few = sum(mean.n for mean in means) < self.least
        return few, min((mean.mean or 0.0 for mean in means), default=2.0)

    def _scores(self) -> list[str]:
        """List the names of the scores that any group has."""
        return list(dict.fromkeys(name for group in self.values() for name in group.means.total))

    def rows(self) -> list[list[str]]:
        """Write the table: headings, and a row for each of the first 100 groups."""
        names = self._scores()
        rows = [[self.field, "calls", *names]]
        for value, group in list(self.items())[:_MOST_LISTED]:
            few = " (too few to tell)" if group.calls < self.least else ""
            cells = (_figure(means_of(group, name)) for name in names)
            rows.append([value, f"{group.calls:,}{few}", *cells])
        return [_narrow_cells(row) for row in rows]

    def remarks(self) -> list[str]:
        """Say what the table leaves out, and which scores have no common mean."""
        lines = []
        if len(self) > _MOST_LISTED:
            lines.append(f"{len(self) - _MOST_LISTED:,} more groups are not listed.")
        if self.without:
            lines.append(f"{counted(self.without, 'call')} without {one_line(self.field, _NAME)}.")
        makers = {maker for group in self.values() for maker in group.means.made}
        if len(makers) > len({maker.name for maker in makers}):
            lines.append("Scores were made in different ways: such groups cannot be compared.")
        return lines

    def __str__(self) -> str:
        return "\n".join([*aligned(self.rows()), *self.remarks()])


def means_of(group: Summary, name: str) -> list[RunningMean]:
    """Return the means of a score, one per maker."""
    return [mean for maker, mean in group.means.made.items() if maker.name == name]


def _narrow_cells(row: Sequence[str]) -> list[str]:
    """Write the cells of a row on one line each, of at most 80 characters."""
    return [one_line(cell, _NAME) for cell in row]


def _figure(means: list[RunningMean]) -> str:
    """Write the mean of a score and its 95 % interval; a dash without a value."""
    if len(means) != 1:
        return "made in several ways" if means else "–"
    mean, ends = f"{means[0].mean:.3f}", means[0].interval
    return mean if ends is None else f"{mean}, {ends.low:.2f} to {ends.high:.2f}"
