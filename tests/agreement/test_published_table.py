"""The baselines of RAGBench as `agree` finds them, beside the paper's Table 3 (arXiv:2407.11005)."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_eval_integrations import Trace
from rag_eval_integrations.agreement import Gold, agree, match
from rag_eval_integrations.agreement.matching import BASELINE_COLUMNS
from rag_eval_integrations.dataset import labelled_from, score_labelled
from rag_eval_integrations.dataset._input import read_lines
from rag_eval_integrations.sentences import Punkt

TABLE_3 = {
    "delucionqa": {
        "gpt3_adherence": 0.57, "gpt3_context_relevance": 0.18, "gpt35_utilization": 0.10,
        "ragas_faithfulness": 0.70, "ragas_context_relevance": 0.22,
        "trulens_groundedness": 0.55, "trulens_context_relevance": 0.64,
    },
    "emanual": {
        "gpt3_adherence": 0.54, "gpt3_context_relevance": 0.17, "gpt35_utilization": 0.11,
        "ragas_faithfulness": 0.57, "ragas_context_relevance": 0.27,
        "trulens_groundedness": 0.61, "trulens_context_relevance": 0.64,
    },
}  # fmt: skip
"""AUROC of not adherent, and RMSE of relevance and utilization, to the two digits printed."""


def test_published_predictions_are_worth_what_the_paper_says(ragbench: list[Path]) -> None:
    """AUROC and RMSE of three rivals on two test sets, within .012 of what is printed."""
    compared = 0
    for path in ragbench:
        if not path.name.endswith("_test.jsonl.gz"):
            continue
        predicted, gold = [], []
        for line in read_lines(path, lambda content: (content, labelled_from(content, Punkt()))):
            assert line.value is not None
            row, labelled = line.value
            evaluation = score_labelled(labelled, [Trace("ragbench")], raw_keys=True)
            predicted.append(evaluation)
            gold.append(Gold.from_row(evaluation, row))
        (dataset,) = {each.dataset for each in gold}
        blocks = agree(match(predicted, gold), baselines=True, resamples=0).pooled.blocks
        for column, printed in TABLE_3[str(dataset)].items():
            figures = blocks["baselines", column, BASELINE_COLUMNS[column].score].figures
            statistic = "auroc" if BASELINE_COLUMNS[column].score == "adherence" else "rmse"
            assert figures[statistic].value == pytest.approx(printed, abs=0.012), column
            compared += 1
    assert compared == 14
