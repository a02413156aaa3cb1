"""Agreement of the embedded judge with gold labels on data unseen in fitting, and its speed.

    python benchmarks/embedded_judge.py --data ../shared/data [--quick | --published]

Agreement: every domain is judged by coefficients fitted without it (the two sets of manuals are
one domain), and, second, by coefficients fitted without the question (5 folds). Beside it stand the
response's length, a constant (the mean of the other sets) and, on the rows that have them, the
published columns of RAGBench: GPT-3.5, RAGAS and TruLens. Means are over data sets, not pooled:
pooled AUROC mostly tells which data set a row is from. Speed: the shipped judge, one core,
sentences already split. `--quick` measures speed alone and needs no numpy, `--published` compares
with the published columns alone.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from rag_eval_integrations.judges.embedded.judge import label_call
from rag_eval_integrations.records import RagCall, Sentence, Sentences, SentencizedCall
from rag_eval_integrations.sentences._sentencize import letters

TRAINING = Path(__file__).resolve().parent.parent / "training"


def read(data: Path) -> list[dict]:
    rows = []
    for path in sorted((data / "ragbench").glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            rows += map(json.loads, lines)
    return rows


def sentencized(row: dict) -> SentencizedCall:
    return SentencizedCall(
        call=RagCall(
            question=row["question"], documents=row["documents"], response=row["response"]
        ),
        sentences=Sentences(
            documents=tuple(
                Sentence(key, text) for part in row["documents_sentences"] for key, text in part
            ),
            response=tuple(Sentence(key, text) for key, text in row["response_sentences"]),
        ),
        splitter="recorded",
    )


def speed(rows: list[dict]) -> None:
    calls = [sentencized(row) for row in rows]
    label_call(calls[0])
    spent = []
    for _ in range(3):
        start = time.process_time()
        for call in calls:
            label_call(call)
        spent.append((time.process_time() - start) / len(calls))
    print(
        f"\nSpeed: {1e3 * min(spent):.2f} ms per row, {1 / min(spent):.0f} rows/s "
        f"({len(calls)} rows, one core, best of {len(spent)} passes, "
        f"slowest {1e3 * max(spent):.2f} ms)"
    )
    for name, documents, sentences in (
        ("2 MB document", 20_000, 5),
        ("long response", 50, 2_000),
        ("both", 20_000, 2_000),
    ):
        call = big_call(documents, sentences)
        start = time.process_time()
        label_call(call)
        print(f"  {name}: {documents} document and {sentences} response sentences: "
              f"{time.process_time() - start:.1f} s")  # fmt: skip


def big_call(documents: int, sentences: int) -> SentencizedCall:
    """Make a call of random sentences of about 100 characters, with Zipf-like word frequencies."""

    def sentence(seed: int) -> str:
        state = seed * 2_654_435_761 % 2**32
        words = ["The"]
        for _ in range(15):
            state = (state * 1_664_525 + 1_013_904_223) % 2**32
            words.append(f"word{int(20_000 ** (state / 2**32))}")
        return " ".join(words) + "."

    return SentencizedCall(
        call=RagCall(question="What of the word7?", documents=["…"], response="…"),
        sentences=Sentences(
            documents=tuple(Sentence("0" + letters(i), sentence(i)) for i in range(documents)),
            response=tuple(Sentence(letters(i), sentence(-1 - i)) for i in range(sentences)),
        ),
        splitter="made up",
    )


def agreement(data: Path, rows: list[dict], *, published: bool) -> None:
    sys.path.insert(0, str(TRAINING))
    import numpy as np
    from embedded_training.judges import HeldOut
    from embedded_training.measures import rmse, table
    from embedded_training.rows import Data
    from sklearn.metrics import roc_auc_score

    prepared = Data(data)
    held_out = HeldOut(prepared, prepared.masks("domain"))
    if not published:
        table(prepared, "Unseen domain", held_out)
        by_question = HeldOut(prepared, prepared.masks("question"))
        table(prepared, "Unseen question", by_question)

    print("\nPublished columns, on the rows that have them (test splits)")
    ours = {
        "adherence": held_out.adherent,
        "relevance": held_out.calibrated[:, 0],
        "utilization": held_out.calibrated[:, 1],
    }
    columns = (
        ("GPT-3.5", "gpt3_adherence", "gpt3_context_relevance", "gpt35_utilization"),
        ("RAGAS", "ragas_faithfulness", "ragas_context_relevance", None),
        ("TruLens", "trulens_groundedness", "trulens_context_relevance", None),
    )
    print("  theirs / ours / response length (AUROC) or the mean of the other sets (RMSE)")
    print(f"  {'set':12}{'judge':10}{'rows':>6}{'AUROC':>24}{'RMSE relevance':>24}"
          f"{'RMSE utilization':>24}")  # fmt: skip
    gold = {"relevance": prepared.gold[:, 0], "utilization": prepared.gold[:, 1]}
    for name in prepared.sets:
        for judge, *names in columns:
            cells = []
            sizes = []
            for score, column in zip(ours, names, strict=True):
                has = np.array(
                    [
                        row["_subset"] == name
                        and column is not None
                        and row.get(column) is not None
                        # Their faithfulness stands on the test files only.
                        and (judge == "GPT-3.5" or row["_split"] == "test")
                        for row in rows
                    ]
                )
                sizes.append(int(has.sum()))
                if not has.any():
                    cells.append("–")
                    continue
                theirs = np.array([float(r[column]) for r, h in zip(rows, has, strict=True) if h])
                own = ours[score][: prepared.bench][has]
                if score == "adherence":
                    bad = ~prepared.adherent[: prepared.bench][has]
                    length = prepared.length[: prepared.bench][has]
                    figures = [roc_auc_score(bad, values) for values in (-theirs, -own, length)]
                else:
                    constant = held_out.constant[has, list(ours).index(score) - 1]
                    figures = [rmse(values, gold[score][has]) for values in (theirs, own, constant)]
                cells.append(" / ".join(f"{value:.3f}" for value in figures))
            if max(sizes):
                print(f"  {name:12}{judge:10}{max(sizes):6}{cells[0]:>24}{cells[1]:>24}"
                      f"{cells[2]:>24}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--quick", action="store_true", help="speed alone")
    parser.add_argument("--published", action="store_true", help="the published columns alone")
    arguments = parser.parse_args()
    if not arguments.quick and find_spec("sklearn") is None:
        sys.exit("agreement needs the group `training`: uv sync --group training, or --quick")
    rows = read(arguments.data)
    if not arguments.quick:
        agreement(arguments.data, rows, published=arguments.published)
    if not arguments.published:
        speed(rows)


if __name__ == "__main__":
    main()
