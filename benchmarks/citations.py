"""Are citation markers mapped to the documents that they mean? On ExpertQA's claims.

    uv run python benchmarks/citations.py --data FOLDER [--half 0|1]

FOLDER holds `expertqa.jsonl.gz`. Each claim with a numeric marker is read as published, and in the
forms that `FORMS` writes its marker in. Rules were chosen on half 0, figures are of half 1.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rag_eval_integrations.records import Document, RagCall
from rag_eval_integrations.sentences import Punkt, sentencize
from rag_eval_integrations.sentences._citations import citations_of

_MARK = re.compile(r"\[(\d{1,2}(?:\s?,\s?\d{1,2})*)\]")
_SUPER = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def _numbers(match: re.Match[str]) -> list[int]:
    return [int(number) for number in match[1].split(",")]


def _joined(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


FORMS: dict[str, Callable[[list[int]], str]] = {
    "as published": lambda numbers: f"[{_joined(numbers)}]",
    "from 0": lambda numbers: f"[{_joined([n - 1 for n in numbers])}]",
    "superscripts": lambda numbers: ",".join(str(n).translate(_SUPER) for n in numbers),
    "【n】": lambda numbers: "".join(f"【{n}】" for n in numbers),
    "[^n]": lambda numbers: "".join(f"[^{n}]" for n in numbers),
    "ids": lambda numbers: "".join(f"[source: page-{n}.html]" for n in numbers),
    "ranges": lambda numbers: f"[{min(numbers)}-{max(numbers)}]",
    "permuted": lambda numbers: f"[{_joined(numbers)}]",
    "20 % dangling": lambda numbers: f"[{_joined(numbers)}]",
}


def answers(path: Path, half: int) -> Iterator[tuple[str, list[str]]]:
    """Yield answers with markers, and the texts of the documents from 1, of every second row."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    for row in rows[half::2]:
        texts: dict[int, str] = {}
        for source in [*row["attribution"], *_evidence(row)]:
            label = re.match(r"\[(\d{1,2})\]\s*", source)
            if label:
                number = int(label[1])
                texts[number] = max(texts.get(number, ""), source[label.end() :], key=len)
        used = {n for m in _MARK.finditer(row["answer"]) for n in _numbers(m)}
        if used and used <= texts.keys() and set(texts) == set(range(1, len(texts) + 1)):
            yield row["answer"], [texts[n] for n in sorted(texts)]


def _evidence(row: dict[str, Any]) -> Iterator[str]:
    for claim in row["claims"]:
        yield from claim["evidence"]


def mapped(answer: str, texts: list[str], form: str) -> tuple[int, int, str]:
    """Count the sentences with markers that are mapped right, and all; and say what went wrong."""
    chance = random.Random(answer)
    order = list(range(len(texts)))
    if form == "permuted":
        chance.shuffle(order)
    place = {number: order.index(number) for number in range(len(texts))}
    wanted: list[tuple[int, ...]] = []

    def write(match: re.Match[str]) -> str:
        numbers = _numbers(match)
        if form == "20 % dangling" and chance.random() < 0.2:
            wanted.append(())
            return f"[{len(texts) + 1 + chance.randrange(5)}]"
        shown = [place[n - 1] + 1 for n in numbers]
        if form == "ranges":
            wanted.append(tuple(range(min(shown) - 1, max(shown))))
        else:
            wanted.append(tuple(n - 1 for n in shown))
        return FORMS[form](shown)

    response = _MARK.sub(write, answer)
    documents = [Document(texts[n], id=f"page-{i + 1}.html") for i, n in enumerate(order)]
    if form != "ids":
        documents = [document.model_copy(update={"id": None}) for document in documents]
    call = sentencize(RagCall("Why?", documents, response), Punkt())
    read = citations_of(call)
    got = sorted(n for c in read.citations for n in c.documents or (-1,))
    want = sorted(n for numbers in wanted for n in numbers or (-1,))
    total = len(wanted)
    if got == want and read.unclear is None:
        return total, total, ""
    lost = max(len(want) - sum(map(min, map(got.count, {*want}), map(want.count, {*want}))), 0)
    right = 0 if read.unclear else max(total - max(lost, len(got) - len(want)), 0)
    return right, total, read.unclear or f"{got} for {want}: {response[:70]!r}"


def main() -> None:
    """Print the share that is mapped right, by form."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--half", type=int, choices=(0, 1), default=1)
    parser.add_argument("--list", action="store_true", help="list what is not mapped right")
    given = parser.parse_args()
    rows = list(answers(given.data / "expertqa.jsonl.gz", given.half))
    for form in FORMS:
        results = [mapped(answer, texts, form) for answer, texts in rows]
        right, total = sum(r for r, _, _ in results), sum(t for _, t, _ in results)
        sys.stdout.write(f"{form:14} {right / total:.3f}  {right} of {total} markers\n")
        for *_, wrong in results if given.list else ():
            if wrong:
                sys.stdout.write(f"    {wrong}\n")


if __name__ == "__main__":
    main()
