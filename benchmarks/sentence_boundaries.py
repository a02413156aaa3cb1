"""Agreement of our sentences with those published in RAGBench, and the speed of splitting.

    python benchmarks/sentence_boundaries.py [--data ../shared/data] [--limit N]

For every data set: F1 of the sentence boundaries inside its documents (response sentences and the
ends of documents are left out; a boundary is the number of characters before it that are not white
space), for `Punkt()` and for NLTK's punkt_tab English data on the same documents, once on the
whole text and once on each line by itself. Then megabytes of text split per second. punkt_tab is
read from llama-index-core's wheel; without it only our own column is printed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

from rag_eval_integrations.sentences.punkt import Punkt

Spans = Callable[[str], Iterable[tuple[int, int]]]
Documents = list[tuple[str, list[str]]]

TOLERANCE = 0.005


def documents(file: Path, limit: int | None) -> Documents:
    """Return the distinct documents of the first *limit* rows, each with its sentences."""
    found: dict[str, list[str]] = {}
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if limit is not None and number >= limit:
                break
            row = json.loads(line)
            for text, keyed in zip(row["documents"], row["documents_sentences"], strict=True):
                found[text] = [sentence for _, sentence in keyed]
    return list(found.items())


def boundaries(sentences: Iterable[str]) -> set[int]:
    """Return the boundaries between *sentences*, counted in characters without white space."""
    found, at = [0], 0
    for sentence in sentences:
        at += len("".join(sentence.split()))
        found.append(at)
    return set(found) - {0, at}


def f1(rows: Documents, spans: Spans) -> float | None:
    """Return the F1 of the boundaries over all *rows* together; None without boundaries."""
    both = either = 0
    for text, published in rows:
        expected = boundaries(published)
        actual = boundaries(text[start:end] for start, end in spans(text))
        both += len(expected & actual)
        either += len(expected) + len(actual)
    return 2 * both / either if either else None


def punkt_tab() -> Spans | None:
    """Return NLTK's Punkt with the punkt_tab English data; None when that is not installed."""
    from nltk.tokenize.punkt import (  # type: ignore[import-untyped]  # nltk has no stubs
        PunktParameters,
        PunktSentenceTokenizer,
    )

    spec = find_spec("llama_index")
    folder = Path("core/_static/nltk_cache/tokenizers/punkt_tab/english")
    roots = [Path(root, folder) for root in (spec and spec.submodule_search_locations) or ()]
    for root in filter(Path.is_dir, roots):
        read = {file.name: file.read_text(encoding="utf-8").split("\n") for file in root.iterdir()}
        parameters = PunktParameters()
        parameters.abbrev_types = set(filter(None, read["abbrev_types.txt"]))
        parameters.sent_starters = set(filter(None, read["sent_starters.txt"]))
        parameters.collocations = {tuple(x.split("\t")) for x in read["collocations.tab"] if x}
        pairs = (line.split("\t") for line in read["ortho_context.tab"] if line)
        parameters.ortho_context = defaultdict(int, {word: int(flags) for word, flags in pairs})
        return PunktSentenceTokenizer(parameters).span_tokenize  # type: ignore[no-any-return]
    return None


def by_line(spans: Spans) -> Spans:
    """Return *spans* applied to each line by itself."""

    def found(text: str) -> Iterator[tuple[int, int]]:
        at = 0
        for line in text.split("\n"):
            yield from ((at + start, at + end) for start, end in spans(line))
            at += len(line) + 1

    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--limit", type=int, help="read only the first rows of each file")
    arguments = parser.parse_args()
    files = sorted((arguments.data / "ragbench").glob("*.jsonl.gz"))
    if not files:
        print(f"skipped: no RAGBench data (ragbench/*.jsonl.gz) in {arguments.data}")
        return
    ours, theirs = Punkt(), punkt_tab()
    ours.spans("The first call reads the parameters. It is not timed.")
    print(f"{'data set':<24}{'documents':>10}{ours.name:>14}", end="")
    print(f"{'punkt_tab':>11}{'by line':>9}{'difference':>12}" if theirs else "")
    size = seconds = 0.0
    for file in files:
        rows = documents(file, arguments.limit)
        begun = time.perf_counter()
        for text, _ in rows:
            ours.spans(text)
        seconds += time.perf_counter() - begun
        size += sum(len(text.encode("utf-8", "surrogatepass")) for text, _ in rows)
        mine = f1(rows, ours.spans)
        print(f"{file.name.removesuffix('.jsonl.gz'):<24}{len(rows):>10}", end="")
        if mine is None:
            print("  no boundaries")
            continue
        print(f"{mine:>14.4f}", end="")
        if theirs is None:
            print()
            continue
        whole, lines = f1(rows, theirs) or 0.0, f1(rows, by_line(theirs)) or 0.0
        difference = mine - max(whole, lines)
        verdict = "" if difference >= -TOLERANCE else f"  more than {TOLERANCE} below"
        print(f"{whole:>11.4f}{lines:>9.4f}{difference:>+12.4f}{verdict}")
    print(f"\n{size / seconds / 1e6:.1f} MB/s over {size / 1e6:.1f} MB in documents")
    if theirs is None:
        print("not compared: punkt_tab is not installed (llama-index-core brings it)")


if __name__ == "__main__":
    main()
