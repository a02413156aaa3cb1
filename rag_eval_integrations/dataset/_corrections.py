"""Evaluations beside a file of people's labels: the draw that is whole, and the means it corrects.

A draw is whole where each of its calls was labelled whole for it, by one person or by several
together; of several people's labels of a call, the latest count. Other labels of the file, single
corrections too, are left out. Of several whole draws from the same calls, the largest one counts.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from rag_eval_integrations._visible import counted
from rag_eval_integrations.dataset._labels_file import (
    Draw,
    LabelsFile,
    Population,
    asked,
    random_order,
)
from rag_eval_integrations.dataset.rows import labelled_from, score_gold, trace_of
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations._corrected import CorrectedMeans, LabelledCall, corrected
from rag_eval_integrations.evaluations._filters import metadata_of
from rag_eval_integrations.metrics import Trace
from rag_eval_integrations.records import Evaluation, Means
from rag_eval_integrations.records._conversation import conversation_in
from rag_eval_integrations.sentences import Punkt

CORRECTED = ("adherence", "supported_fraction", "context_relevance")
"""Scores that people's labels tell of."""


class Corrections:
    """Means corrected by people's labels: `add` each evaluation, then ask for `means`.

    Args:
        path: a file of people's labels.

    Raises:
        ConfigurationError: it holds something else.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = LabelsFile(path)
        if self._file.bad:
            why = "a line that was cut off is taken away where `rag-eval review` goes on"
            raise self._error(f"{self._file.bad[0].error} ({why})")
        self._rows: dict[Draw, dict[str, dict[str, Any]]] = {}
        """Random order of a population → row key → the latest row with all labels."""
        self._draws: list[Draw] = []
        self._count = 0
        for call in self._file.calls.values():
            self._count += max(1, len(call.draws))
            for draw, row in call.draws.items():
                if draw.pick == "random":
                    self._rows.setdefault(draw._replace(n=None), {})[call.row_key] = row
                    self._draws += [] if draw in self._draws else [draw]
        self._keys: list[str] = []
        self._judged = Means()
        self._labelled: dict[int, Evaluation] = {}

    def add(self, evaluation: Evaluation) -> None:
        """Add an evaluation; one with nothing to ask people about is not in the population."""
        if asked(evaluation):
            if any(evaluation.row_key in rows for rows in self._rows.values()):
                self._labelled[len(self._keys)] = evaluation
            self._keys.append(evaluation.row_key)
            self._judged.add(evaluation)

    @property
    def is_full(self) -> bool:
        """Whether there are as many calls as in the largest population that was drawn from."""
        sizes = (draw.population.size for draw in self._draws)
        return len(self._keys) >= max(sizes, default=0)

    @cached_property
    def means(self) -> CorrectedMeans:
        """The corrected means of the evaluations that were added.

        Raises:
            ConfigurationError: no draw is whole, or it is of other calls; or the judge's scores
                have no common mean.
        """
        draw = self._draw()
        drawn = [self._labelled[place] for place in self._places(draw)]
        splitter, people = Punkt(), []
        for evaluation in drawn:
            labelled = labelled_from(self._rows_of(draw)[evaluation.row_key], splitter)
            people.append(score_gold(labelled, trace_of(evaluation.scores) or Trace()))
        means = {}
        for name in CORRECTED:
            pairs = []
            for place, (evaluation, by_people) in enumerate(zip(drawn, people, strict=True)):
                judge, labels = (_value(each, name) for each in (evaluation, by_people))
                if judge is not None and labels is not None:
                    conversation = conversation_in(metadata_of(evaluation))
                    pairs.append(LabelledCall(judge, labels, conversation or place))
            try:
                judged = self._judged.mean(name)
            except ValueError as error:
                raise self._error(str(error)) from error
            if pairs and judged is not None and judged.mean is not None:
                means[name] = corrected(judged.mean, judged.n, pairs)
        if not means:
            raise self._error(f"people's labels tell of {', '.join(CORRECTED)}: none is here")
        others = self._count - len({evaluation.row_key for evaluation in drawn})
        return CorrectedMeans(means, len(drawn), len(self._keys), draw.seed, others)

    def _draw(self) -> Draw:
        """Return the largest random draw from the evaluations that is whole."""
        if not self._draws:
            raise self._error("has no call that `rag-eval review --pick random` drew")
        population = Population.of(self._keys)
        ours = [draw for draw in self._draws if draw.population == population]
        if not ours:
            other = self._draws[-1].population
            drawn = f"{counted(other.size, 'call')} (digest {other.digest:.8})"
            these = f"{counted(population.size, 'call')} (digest {population.digest:.8})"
            why = f"its labels were drawn from {drawn}, and these are {these}"
            raise self._error(f"{why}; use the evaluations that were reviewed, all of them")
        ours.sort(key=lambda draw: (-(draw.n or 0), draw.seed))
        for draw in ours:
            if all(self._keys[place] in self._rows_of(draw) for place in self._places(draw)):
                return draw
        done = sum(self._keys[place] in self._rows_of(ours[0]) for place in self._places(ours[0]))
        why = f"has labels of {done:,} of the {counted(ours[0].n or 0, 'call')} of its draw"
        raise self._error(f"{why}: go on with `rag-eval review` until all of them are labelled")

    def _rows_of(self, draw: Draw) -> dict[str, dict[str, Any]]:
        """Return the labelled rows of a draw's random order, which a larger draw continues."""
        return self._rows[draw._replace(n=None)]

    def _places(self, draw: Draw) -> list[int]:
        """Return the places of a draw's calls among all."""
        return random_order(self._keys, draw.seed)[: draw.n]

    def _error(self, why: str) -> ConfigurationError:
        """Make the error for a file of labels that cannot be used."""
        return ConfigurationError("--labels", str(self._path), why)


def _value(evaluation: Evaluation, name: str) -> float | None:
    """Return the value of a score; None without one."""
    score = evaluation.scores.get(name)
    return None if score is None else score.value
