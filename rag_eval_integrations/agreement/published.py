"""The predictions of other judges that RAGBench published with its rows, as baselines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple


class Baseline(NamedTuple):
    """The score that a published column predicts."""

    score: str
    """Name of the score."""
    orientation: Literal["value", "not_adherent"]
    """`value`: the column predicts the score and is compared by RMSE. `not_adherent`: 1 - column
    ranks the rows that are not adherent and is compared by AUROC."""


BASELINE_COLUMNS: Mapping[str, Baseline] = {
    "gpt3_adherence": Baseline("adherence", "not_adherent"),
    "ragas_faithfulness": Baseline("adherence", "not_adherent"),
    "trulens_groundedness": Baseline("adherence", "not_adherent"),
    "gpt3_context_relevance": Baseline("context_relevance", "value"),
    "ragas_context_relevance": Baseline("context_relevance", "value"),
    "trulens_context_relevance": Baseline("context_relevance", "value"),
    "gpt35_utilization": Baseline("context_utilization", "value"),
}
"""Published columns of RAGBench (arXiv:2407.11005, Table 3). `gpt3_adherence` is 0 or 1;
`gpt3_context_relevance` and `gpt35_utilization` exceed 1 where GPT-3.5 listed more keys than
there are sentences, and are compared unchanged, as in the paper."""
