"""Random damage to rows: whatever a line holds, it is counted, and nothing is raised.

RAG_EVAL_FUZZ_CASES sets the number of files that are tried (400), RAG_EVAL_FUZZ_SEED the first
random seed (0): each file has a seed of its own, which a failure names.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from by_hand import ScriptedJudge, labels_of

from rag_eval_integrations.dataset import (
    EvaluationFile,
    call_from,
    labelled_from,
    read_calls,
    read_lines,
)
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.records import Evaluation, RagCall, from_object, to_line
from rag_eval_integrations.sentences import Punkt

CASES = int(os.environ.get("RAG_EVAL_FUZZ_CASES", "400"))
FIRST = int(os.environ.get("RAG_EVAL_FUZZ_SEED", "0"))
PARTS = 2
"""Tests that the cases are divided among."""

CALL: dict[str, Any] = {
    "id": "1", "question": "When?", "documents": ["At nine.", {"text": "Or ten.", "id": "d"}],
    "response": "At nine.", "reference": "Nine.", "metadata": {"a": [1, 2.5, None]},
}  # fmt: skip
LABELS: dict[str, Any] = {
    "all_relevant_sentence_keys": ["0a"],
    "all_utilized_sentence_keys": ["0a", "1a"],
    "sentence_support_information": [
        {"response_sentence_key": "a", "supporting_sentence_keys": ["0a"], "fully_supported": True}
    ],
}
PUBLISHED: dict[str, Any] = {
    **CALL, **LABELS, "documents": ["At nine.", "Or ten."], "adherence_score": True,
    "relevance_score": 0.5, "overall_supported": True, "dataset_name": "x",
    "documents_sentences": [[["0a", "At nine."]], [["1a", "Or ten."]]],
    "response_sentences": [["a", "At nine."]],
}  # fmt: skip
EVALUATOR = RagEvaluator(ScriptedJudge(labels_of(["0a"], ["0a"], {"a": (["0a"], True)})))
EVALUATION: dict[str, Any] = json.loads(
    to_line(asyncio.run(EVALUATOR.evaluate(RagCall(question="Q", documents=["A."], response="A."))))
)
ROWS = (CALL, {**CALL, "labels": LABELS}, PUBLISHED, EVALUATION)

ODD: tuple[Any, ...] = (
    None, True, -1, 0, 10**400, -(10**400), 1e308, float("nan"), float("inf"), 2**63, "", "\0",
    "\ud800", "\u2028", "²", "--5", "9" * 5000 + "a", "0a", "zzzzzzz", "x" * 5000, [], {}, [[]],
    [None], {"": None}, [["a", "b", "c"]], {"text": None}, "NaN", [0] * 200, {"schema": 2},
)  # fmt: skip
TOKENS = (
    b"\0", b"\n", b"\r", b"\xff\xfe", b"\xef\xbb\xbf", b"[" * 3000, b'{"a":' * 500, b"NaN",
    b"9" * 5000, b"1e999", b'"', b"\\", b"\\ud800", b",", b"}", b"\xed\xa0\x80", b"\xe2\x80\xa8",
)  # fmt: skip


def changed(value: Any, chance: random.Random) -> Any:
    """Put something odd in the place of a part of a JSON value, or take the part away."""
    if chance.random() < 0.15 or not isinstance(value, dict | list) or not value:
        return chance.choice(ODD)
    if isinstance(value, dict):
        name = chance.choice(list(value))
        if chance.random() < 0.15:
            return {key: item for key, item in value.items() if key != name}
        if chance.random() < 0.1:
            return {**value, str(chance.choice(ODD))[:50]: chance.choice(ODD)}
        return {**value, name: changed(value[name], chance)}
    index = chance.randrange(len(value))
    return [*value[:index], changed(value[index], chance), *value[index + 1 :]]


def torn(line: bytes, chance: random.Random) -> bytes:
    """Change, remove, repeat or insert bytes."""
    index = chance.randrange(len(line) + 1)
    to = min(len(line), index + chance.choice((1, 1, 3, 40)))
    middle = chance.choice(
        (chance.randbytes(to - index), b"", line[index:to] * 2, chance.choice(TOKENS), line[to:])
    )
    return line[:index] + middle + line[to:]


def line_of(chance: random.Random) -> bytes:
    row: Any = chance.choice(ROWS)
    for _ in range(chance.choice((0, 1, 1, 2))):
        row = changed(row, chance)
    line = json.dumps(row).encode("ascii")
    for _ in range(chance.choice((0, 0, 1, 3))):
        line = torn(line, chance)
    return chance.choice((line, line, line, b"", b" ", chance.randbytes(20)))


def content_of(chance: random.Random) -> bytes:
    content = b"\n".join(line_of(chance) for _ in range(chance.randrange(1, 7)))
    return content + chance.choice((b"", b"\n"))


def filled(content: bytes) -> int:
    """Count the lines that are not blank, in another way than the reader does."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    return sum(bool(line.removeprefix(b"\xef\xbb\xbf").strip()) for line in content.split(b"\n"))


READERS: tuple[Callable[[dict[str, Any]], object], ...] = (
    call_from,
    lambda content: labelled_from(content, Punkt()),
    lambda content: from_object(Evaluation, content),
)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_line_ends_the_reading_of_a_file(tmp_path: Path, part: int) -> None:
    """Each line is a value or a fault; a file of evaluations of another version is refused whole."""
    path = tmp_path / "rows"
    for seed in range(FIRST + part, FIRST + CASES, PARTS):
        chance = random.Random(seed)
        content = content_of(chance)
        path.write_bytes(gzip.compress(content, 1) if seed % 4 == 0 else content)
        for read in READERS:
            try:
                lines = list(read_lines(path, read))
            except ConfigurationError as error:
                if read is call_from or "this version reads 2" not in str(error):
                    raise
                continue
            assert len(lines) == filled(content), seed
            assert all((line.value is None) != (line.error is None) for line in lines), seed
            assert all(line.error is None or line.error.line == line.number for line in lines), seed


@pytest.mark.parametrize("part", range(2))
def test_no_damage_to_a_gzip_file_ends_its_reading(tmp_path: Path, part: int) -> None:
    """Cut or changed anywhere, the header included: lines, and a fault at the damage."""
    path = tmp_path / "rows.gz"
    for seed in range(FIRST + part, FIRST + CASES // 4, 2):
        chance = random.Random(seed)
        whole = gzip.compress(b"\n".join(line_of(chance) for _ in range(20)), 1)
        path.write_bytes(b"\x1f\x8b" + torn(whole[2:], chance))
        lines = list(read_calls(path))
        assert [line.number for line in lines] == sorted({line.number for line in lines}), seed


@pytest.mark.parametrize("part", range(2))
def test_no_damage_to_a_file_ends_its_resuming_badly(tmp_path: Path, part: int) -> None:
    """It is resumed or refused; if refused, it is as it was, and so are its neighbours."""
    out, partial = tmp_path / "out.jsonl", tmp_path / "out.jsonl.partial"
    resumed = 0
    for seed in range(FIRST + part, FIRST + CASES // 4, 2):
        chance = random.Random(seed)
        content = to_line(from_object(Evaluation, EVALUATION)).encode() + b"\n" + content_of(chance)
        damaged = chance.choice((out, partial))
        damaged.write_bytes(content)
        try:
            with EvaluationFile(out, EVALUATOR.fingerprint, resume=True) as file:
                rows = list(file.earlier())
        except ConfigurationError:
            assert damaged.read_bytes() == content, seed
            assert os.listdir(tmp_path) == [damaged.name], seed
        else:
            resumed += 1
            assert rows, seed
        damaged.unlink()
    assert resumed >= CASES // 40
