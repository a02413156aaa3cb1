"""Measure the embedded judge on minimal pairs made from supported sentences of labelled rows.

    python training/substitutions.py --data ../shared/data [--half kept] [--every 3]

Changes one detail of a sentence that gold says is supported (RAGBench) or that no human marked
(RAGTruth), judges the whole call again, and prints for each kind of change: the share that ranks
below its original by P(supported), that is labelled unsupported, and that names the changed word;
the same of near copies, of which one document sentence (with the question) holds four fifths of
the content words; in both, of all wrong details together. The same changes are made to document
sentences, up to 25 of a row, one of each kind: the share of these that are said to be contradicted
when they are the answer, and of the sentences as they stand. Then the share of gold-supported
sentences that are said to be contradicted, and the AUROC of not adherent by the shipped
coefficients. Rules are chosen on one half of the questions, by a hash, and reported on the other.
`--misses KIND` shows the pairs that fail. Nothing is random; needs nothing but the library.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from embedded_training.minimal_pairs import CONTROLS, WRONG, Change, Material, changes, material

from rag_eval_integrations._recent import Recent
from rag_eval_integrations.judges.embedded._features import says_documents_do_not_tell
from rag_eval_integrations.judges.embedded._near_copies import read
from rag_eval_integrations.judges.embedded._words import words
from rag_eval_integrations.judges.embedded.judge import label_call
from rag_eval_integrations.records import Labels, RagCall, Sentence, Sentences, SentencizedCall
from rag_eval_integrations.sentences import Punkt
from rag_eval_integrations.sentences._sentencize import letters

HALVES = {"development": 0, "kept": 1, "all": None}
NEAR = 0.8
"""Share of content words that one document sentence and the question hold of a near copy."""


class Item(NamedTuple):
    """One labelled call."""

    of: str
    question: str
    documents: list[list[str]]
    response: list[str]
    supported: list[bool]
    adherent: bool


def half_of(question: str) -> int:
    return crc32(question.encode()) // 7 % 2


def items(data: Path) -> Iterator[Item]:
    for path in sorted((data / "ragbench").glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                bad = {key.strip(". ") for key in row["unsupported_response_sentence_keys"]}
                yield Item(
                    row["_subset"],
                    row["question"],
                    [[text for _, text in part] for part in row["documents_sentences"]],
                    [text for _, text in row["response_sentences"]],
                    [key not in bad for key, _ in row["response_sentences"]],
                    bool(row["adherence_score"]),
                )
    splitter = Punkt()
    with gzip.open(data / "ragtruth" / "qa_train.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            passages = [re.sub(r"^passage \d+:", "", p.strip())
                        for p in row["passages"].split("\n\n") if p.strip()]  # fmt: skip
            spans = list(splitter.spans(row["response"]))
            if spans:
                yield Item(
                    "ragtruth",
                    row["question"],
                    [[text[a:b] for a, b in splitter.spans(text)] for text in passages],
                    [row["response"][a:b] for a, b in spans],
                    [not any(s["start"] < b and a < s["end"] for s in row["labels"])
                     for a, b in spans],
                    not row["hallucinated"],
                )  # fmt: skip


KNOWN, READ = Recent(words, 20_000, 2_000), Recent(read, 20_000, 2_000)


def judged(item: Item, response: list[str]) -> Labels:
    documents = tuple(
        Sentence(f"{number}{letters(at)}", text)
        for number, part in enumerate(item.documents)
        for at, text in enumerate(part)
    )
    call = RagCall(
        question=item.question,
        documents=[" ".join(part) for part in item.documents],
        response=" ".join(response),
    )
    own = tuple(Sentence(letters(at), text) for at, text in enumerate(response))
    sentences = Sentences(documents=documents, response=own)
    keyed = SentencizedCall(call=call, sentences=sentences, splitter="recorded")
    labels = label_call(keyed, KNOWN, READ).labels
    assert labels is not None
    return labels


def near(item: Item, sentence: str) -> bool:
    own, asked = words(sentence).bag, words(item.question).bag
    return bool(own) and any(
        len(own & (KNOWN(text).bag | asked)) >= NEAR * len(own)
        for part in item.documents
        for text in part
    )


COPIED, PLAIN = 25, 2
"""Document sentences of a row in which changes are looked for, and that are judged unchanged."""


def copies(item: Item, of: Material) -> Iterator[tuple[str, bool]]:
    """Judge document sentences as answers: yield the kind of change, and if it was named."""
    texts = {text for part in item.documents for text in part if 25 <= len(text) <= 300}
    chosen = sorted(texts, key=lambda text: crc32(text.encode()))[:COPIED]
    made: dict[str, str] = {}
    for text in chosen:
        for change in changes(text, of):
            if change.kind in WRONG:
                made[change.kind] = change.text
    for kind, text in [*made.items(), *(("unchanged", text) for text in chosen[:PLAIN])]:
        yield kind, bool(judged(item, [text]).contradictions)


class Result(NamedTuple):
    """What the judge makes of one changed sentence."""

    below: bool
    unsupported: bool
    before: bool
    """Whether the original was unsupported already."""
    named: bool
    near: bool
    of: str


def measure(item: Item, number: int, change: Change, before: Labels, close: bool) -> Result:
    response = [*item.response[:number], change.text, *item.response[number + 1 :]]
    after, key = judged(item, response), letters(number)
    p, q = (labels.supported_probabilities[key] for labels in (before, after))
    named_details = " ".join(after.contradictions.get(key, ()))
    return Result(
        q < p,
        after.support(key) != "full",
        before.support(key) != "full",
        any(re.search(rf"\b{re.escape(word)}\b", named_details) for word in change.words),
        close,
        item.of,
    )


def share(values: list[bool]) -> str:
    return f"{sum(values) / len(values):.2f}" if values else "  – "


def table(results: dict[str, list[Result]], of: str) -> None:
    print(f"\n{of}\n  {'':14}{'pairs':>6} below unsupp. named   original unsupp.")
    every = [entry for kind in WRONG for entry in results[kind]]
    for kind, group in [*results.items(), ("wrong details", every)]:
        if group:
            print(f"  {kind:14}{len(group):6} " + "   ".join([
                share([r.below for r in group]), share([r.unsupported for r in group]),
                share([r.named for r in group]), share([r.before for r in group])]))  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--half", choices=list(HALVES), default="kept")
    parser.add_argument("--every", type=int, default=1, help="take every n-th row only")
    parser.add_argument("--misses", help="print pairs of this kind that fail")
    arguments = parser.parse_args()
    half = HALVES[arguments.half]
    results: dict[str, list[Result]] = {kind: [] for kind in (*WRONG, *CONTROLS)}
    copied: dict[str, list[bool]] = defaultdict(list)
    gold: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    ranks: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for at, item in enumerate(items(arguments.data)):
        if at % arguments.every or half not in (None, half_of(item.question)):
            continue
        before = judged(item, item.response)
        ranks[item.of][item.adherent].append(before.adherence_probability() or 0.0)
        of = material([text for part in item.documents for text in part])
        for kind, named in copies(item, of):
            copied[kind].append(named)
        taken: set[str] = set()
        for number, sentence in enumerate(item.response):
            if not item.supported[number]:
                continue
            key = letters(number)
            gold[item.of].append((key in before.contradictions, before.support(key) != "full"))
            if says_documents_do_not_tell(sentence):
                continue
            for change in changes(sentence, of):
                if change.kind not in taken:
                    taken.add(change.kind)
                    close = near(item, sentence)
                    result = measure(item, number, change, before, close)
                    results[change.kind].append(result)
                    if change.kind == arguments.misses:
                        show(item, sentence, change, result)
    table(results, f"All sentences, {arguments.half} half")
    table({kind: [r for r in group if r.near] for kind, group in results.items()}, "Near copies")
    print("\nDocument sentences as answers: number, contradicted")
    for kind, named in copied.items():
        print(f"  {kind:12}{len(named):6} {sum(named) / len(named):.4f}")
    print("\nGold-supported sentences: number, contradicted, unsupported; AUROC of not adherent")
    for name, group in gold.items():
        print(f"  {name:12}{len(group):6} {sum(c for c, _ in group) / len(group):.4f} "
              f"{sum(u for _, u in group) / len(group):.4f}  {area(*ranks[name]):.3f}")  # fmt: skip


def area(bad: list[float], good: list[float]) -> float:
    """Compute the share of pairs in which the response that is not adherent ranks lower."""
    higher = sum((g > b) + 0.5 * (g == b) for b in bad for g in good)
    return higher / (len(bad) * len(good))


def show(item: Item, sentence: str, change: Change, result: Result) -> None:
    wrong = change.kind in WRONG
    if not result.near or (
        (result.below and result.unsupported)
        if wrong
        else (not result.unsupported or result.before)
    ):
        return
    print(f"{result}\n  {sentence!r}\n  {change.text!r}")
    from rag_eval_integrations.judges.embedded._overlap import overlap

    o = overlap(item.question, item.documents, [change.text])
    texts = [text for part in item.documents for text in part]
    for match in o.matches[0][:2]:
        print(f"      {texts[match.sentence][:300]!r}")


if __name__ == "__main__":
    main()
