"""Fit the embedded judge and report its agreement with gold on data unseen in fitting.

    python training/embedded_judge.py --data ../shared/data [--plots DIR] [--ablations | --nested]

Reads `ragbench/*.jsonl.gz` (gold sentence keys by GPT-4; CC-BY-4.0) and
`ragtruth/qa_train.jsonl.gz` (spans that humans marked; MIT), makes features with the library's own
code, prints two cross-validations — grouped by question within data sets, and every domain judged
by a model that never saw it — and writes `rag_eval_integrations/judges/embedded/model.json`:
numbers and single words, no text of the rows. Nothing is random. Needs the `training` dependency
group (numpy, scipy, scikit-learn, matplotlib for `--plots`); some minutes on one core,
`--ablations` and `--nested` half an hour each.

docs/embedded-judge.md describes the method, docs/embedded-judge-figures.md gives its figures.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from embedded_training.fits import rounded
from embedded_training.judges import Choice, HeldOut, Judge
from embedded_training.measures import numbers_of, short, table, thresholds
from embedded_training.nested import nested, nested_levels
from embedded_training.rows import SCORES, Data

from rag_eval_integrations.judges.embedded._features import DOCUMENT_FEATURES, RESPONSE_FEATURES
from rag_eval_integrations.judges.embedded._model import (
    ADHERENCE_FEATURES,
    LEVEL_FEATURES,
    MODEL_FILE,
    TOPIC_FEATURES,
)

VERSION = "12"
ABOUT = {
    "data": "RAGBench (covidqa, delucionqa, emanual, hagrid, hotpotqa; labels by GPT-4) and "
    "RAGTruth QA train (spans by humans)",
    "licence": "Coefficients fitted on CC-BY-4.0 (RAGBench, arXiv:2407.11005) and MIT (RAGTruth, "
    "arXiv:2401.00396) data; this file holds no text of theirs.",
}
ABLATIONS = {
    "as shipped": Choice(),
    "no word weights": Choice(words=False),
    "words in 3 data sets or more": Choice(in_sets=3),
    "words in 2 or more, 50 times": Choice(in_sets=2, least=50),
    "RAGTruth weighs 1": Choice(truth=1.0),
    "RAGTruth weighs 2": Choice(truth=2.0),
    "no RAGTruth": Choice(truth=0.0),
    "sets not balanced": Choice(balanced=False),
    "least and mean alone": Choice(level=(0, 1)),
    "joint alone": Choice(level=(2,)),
    "no lengths": Choice(
        without=numbers_of("length", "new_length", "response_sentences", "document_sentences")
    ),
    "no bigrams": Choice(without=numbers_of("bigrams", "bigrams_in_1", "run")),
    "regularised less": Choice(support_c=0.02),
    "regularised more": Choice(support_c=0.001),
}


def ablations(data: Data) -> None:
    """Print the effect of each change on adherence."""
    print("\nAdherence: AUROC of responses and sentences, mean of five sets; then RAGTruth's two"
          f"\n  {'':32}{'unseen domain':28}unseen question")  # fmt: skip
    for name, choice in ABLATIONS.items():
        figures = [short(data, HeldOut(data, data.masks(by), choice, adherence_alone=True))
                   for by in ("domain", "question")]  # fmt: skip
        print(f"  {name:32}{figures[0]:28}{figures[1]}", flush=True)


def write(data: Data, held_out: dict[str, HeldOut], path: Path) -> None:
    """Fit on all rows and write the model file."""
    final = Judge(data, np.ones(len(data.rows), bool))
    support = final.supported
    cut = len(support.present.stems)
    weights = rounded(support.fit.of_words)
    # On domains unseen in fitting, as in use.
    every, domain = np.ones(data.bench, bool), held_out["domain"]
    levels = {name: domain.regression(data, name, every) for name in SCORES}
    content = {
        "version": VERSION,
        **ABOUT,
        "relevant": final.relevant.plain(DOCUMENT_FEATURES),
        "utilized": final.utilized.plain(DOCUMENT_FEATURES),
        "relevant_alone": final.alone.plain(DOCUMENT_FEATURES),
        "topic": final.topic.plain(TOPIC_FEATURES),
        "supported": support.fit.plain(RESPONSE_FEATURES),
        "present": dict(zip(support.present.stems, weights[:cut], strict=True)),
        "new": dict(zip(support.new.stems, weights[cut:], strict=True)),
        "adherent": final.adherent.plain(ADHERENCE_FEATURES),
        "levels": {name: level.plain(LEVEL_FEATURES) for name, level in levels.items() if level},
        "scores": {
            name: domain.errors(data, name, domain.means(name, level), every)
            for name, level in levels.items()
        },
        "thresholds": thresholds(data, domain),
    }
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(f"\nthresholds: {content['thresholds']}\nwrote {path} ({path.stat().st_size} bytes)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=MODEL_FILE)
    parser.add_argument("--plots", type=Path, help="folder for reliability and ROC plots")
    parser.add_argument("--ablations", action="store_true", help="only the table of changes")
    parser.add_argument("--nested", action="store_true", help="only the choices made anew inside")
    arguments = parser.parse_args()
    data = Data(arguments.data)
    print(f"{data.bench} RAGBench rows, {len(data.rows) - data.bench} RAGTruth rows")
    if arguments.ablations:
        ablations(data)
        return
    if arguments.nested:
        nested_levels(data)
        nested(data, ABLATIONS)
        return
    held_out = {}
    for by, title in (
        ("question", "Grouped by question within data sets"),
        ("domain", "Every domain judged by a model that never saw it"),
    ):
        held_out[by] = HeldOut(data, data.masks(by))
        table(data, title, held_out[by])
    if arguments.plots:
        from embedded_training.plots import plots

        for path in plots(data, held_out, arguments.plots):
            print(f"wrote {path}")
    write(data, held_out, arguments.out)


if __name__ == "__main__":
    main()
