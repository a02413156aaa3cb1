"""Random damage to rows: whatever a line holds, it is counted, and nothing is raised."""

from __future__ import annotations

import gzip
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from fuzz import disturbed, fuzz, mangled, written
from own_rows import made_rows

from rag_eval_integrations import Evaluation, RagCall, RagEvaluator, Trace
from rag_eval_integrations.dataset import EvaluationFile, labelled_from, read_calls, score_labelled
from rag_eval_integrations.dataset._input import read_lines
from rag_eval_integrations.dataset.rows import call_from
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import from_line, to_line
from rag_eval_integrations.records._json import from_object
from rag_eval_integrations.sentences import Punkt

CALL: dict[str, Any] = {
    "id": "1", "question": "When?", "documents": ["At nine.", {"text": "Or ten.", "id": "d"}],
    "response": "At nine.", "reference": "Nine.", "metadata": {"a": [1, 2.5, None]},
    "history": [{"role": "user", "content": "hi"}], "started_at": "2024-01-01T00:00:00Z",
}  # fmt: skip
EVALUATOR = RagEvaluator()
EVALUATION: dict[str, Any] = json.loads(to_line(EVALUATOR.evaluate_sync(call_from(CALL))))
ROWS = (CALL, EVALUATION, *made_rows(3))
TOKENS = (
    b"\0", b"\n", b"\r", b"\xff\xfe", b"\xef\xbb\xbf", b"1e999", b'"', b"\xed\xa0\x80",
    b"\xe2\x80\xa8",
)  # fmt: skip


def torn(rng: random.Random, content: bytes) -> bytes:
    """Change, remove, repeat or insert bytes."""
    start = rng.randrange(len(content) + 1)
    end = min(len(content), start + rng.choice((1, 1, 3, 40)))
    middle = rng.choice(
        (rng.randbytes(end - start), b"", content[start:end] * 2, rng.choice(TOKENS), content[end:])
    )
    return content[:start] + middle + content[end:]


def lines_of(rng: random.Random) -> bytes:
    """Make a file of one to three lines, most of which are damaged in one place."""
    texts = [
        disturbed(rng, written(mangled(rng, rng.choice(ROWS)))) for _ in range(rng.randrange(1, 4))
    ]
    content = "\n".join(texts).encode("utf-8", "surrogatepass") + rng.choice((b"", b"\n"))
    return torn(rng, content) if rng.random() < 0.2 else content


def filled(content: bytes) -> int:
    """Count the lines that are not blank, in another way than the reader does."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    return sum(bool(line.removeprefix(b"\xef\xbb\xbf").strip()) for line in content.split(b"\n"))


def read_call(content: dict[str, Any]) -> None:
    """Read a call, which is written as it was read."""
    call = call_from(content)
    assert from_line(RagCall, to_line(call)) == call


def read_labelled(content: dict[str, Any]) -> None:
    """Read a labelled row, whose scores are written as they were made."""
    evaluation = score_labelled(labelled_from(content, Punkt()), [Trace()])
    assert from_line(Evaluation, to_line(evaluation)).row_key == evaluation.row_key


def read_evaluation(content: dict[str, Any]) -> None:
    """Read an evaluation, which is written as it was read."""
    evaluation = from_object(Evaluation, content)
    assert from_line(Evaluation, to_line(evaluation)) == evaluation


@pytest.mark.parametrize("read", [read_call, read_labelled, read_evaluation])
def test_fuzz_files_of_rows(tmp_path: Path, read: Any) -> None:
    """Each line is a value or a fault; evaluations of another version are refused whole."""
    path = tmp_path / "rows"

    def check(content: bytes) -> None:
        path.write_bytes(content)
        try:
            lines = list(read_lines(path, lambda row: (read(row), "read")))
        except ConfigurationError as error:
            if read is read_call or "this version reads 2" not in str(error):
                raise
            return
        assert len(lines) == filled(content)
        assert all((line.value is None) != (line.error is None) for line in lines)
        assert all(line.error is None or line.error.line == line.number for line in lines)

    fuzz(read.__name__, lines_of, check)


def test_fuzz_damaged_gzip(tmp_path: Path) -> None:
    """Cut or changed anywhere, the header included: lines, and a fault at the damage."""
    path = tmp_path / "rows.gz"

    def check(content: bytes) -> None:
        path.write_bytes(b"\x1f\x8b" + content)
        numbers = [line.number for line in read_calls(path)]
        assert numbers == sorted(set(numbers))

    fuzz("gzip", lambda rng: torn(rng, gzip.compress(lines_of(rng) * 5, 1)[2:]), check)


def test_no_damage_to_a_file_ends_its_resuming_badly(tmp_path: Path) -> None:
    """It is resumed or refused; if refused, it is as it was, and so are its neighbours."""
    out, partial = tmp_path / "out.jsonl", tmp_path / "out.jsonl.partial"
    resumed = 0
    for seed in range(100):
        rng = random.Random(seed)
        content = json.dumps(EVALUATION).encode() + b"\n" + lines_of(rng)
        damaged = rng.choice((out, partial))
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
    assert resumed >= 50
