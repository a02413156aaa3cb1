"""Evaluates data sets on many machines, by Ray Data; needs the extra `ray`.

    ray.data.Dataset ─▶ batches ─▶ actors, each with an evaluator ─▶ rows ─▶ Parquet or JSON
                                     └── permits of one shared limit per minute

In `dataset`: `EvaluatorConfig`, what each actor makes its evaluator of; `evaluate_dataset` over
`ray.data.Dataset`, `done_keys` to go on, `summary_of` the result; the limit that all actors share.
"""

from typing import TYPE_CHECKING

from rag_eval_integrations._lazy import lazy

if TYPE_CHECKING:
    from rag_eval_integrations.ray.dataset import (
        EvaluatorConfig,
        done_keys,
        evaluate_dataset,
        summary_of,
    )

__all__ = ["EvaluatorConfig", "done_keys", "evaluate_dataset", "summary_of"]

__getattr__, __dir__ = lazy(__name__, {"dataset": __all__})
