"""Gzipped EVALS files: as good as plain ones, after a kill and a resume, and no larger than gzip."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from pathlib import Path

import pytest
from by_hand import ScriptedJudge, labels_of

from rag_eval_integrations import Evaluations
from rag_eval_integrations.dataset import EvaluationFile
from rag_eval_integrations.dataset._zipped import Unzipped, ZippedLines
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.records import Evaluation, EvaluationError, RagCall

EVALUATOR = RagEvaluator(ScriptedJudge(labels_of(["0a"], ["0a"], {"a": (["0a"], True)})))


def call(number: int) -> RagCall:
    return RagCall(question=f"q{number}", documents=["A b."], response="A b.")


CALLS = [call(number) for number in range(150)]


@pytest.fixture(scope="module")
def made() -> list[Evaluation]:
    async def evaluate() -> list[Evaluation]:
        return [await EVALUATOR.evaluate(each) for each in CALLS]

    return asyncio.run(evaluate())


def questions(path: Path) -> list[str]:
    return [evaluation.question for evaluation in Evaluations.load(path)]


def wanted(count: int) -> list[str]:
    return [f"q{number}" for number in range(count)]


def unpacked_as_far_as_it_goes(data: bytes) -> bytes:
    found = b""
    while data:
        unpacker = zlib.decompressobj(31)
        found += unpacker.decompress(data)
        data = unpacker.unused_data
    return found


def test_out_is_the_partial_file_and_reads_back(tmp_path: Path, made: list[Evaluation]) -> None:
    """It is gzip for any reader, never a second copy, and little larger than packed at once."""
    out = tmp_path / "e.jsonl.gz"
    with EvaluationFile(out, EVALUATOR.fingerprint) as file:
        for number, evaluation in enumerate(made):
            file.add_in_turn(number, number, evaluation)
            if number % 50 == 7:  # whatever was added can be read at once
                rows = unpacked_as_far_as_it_goes(file.partial.read_bytes())
                assert rows.count(b"\n") == number + 1
        written = file.partial.stat().st_ino
        assert file.finish() == 150

    assert out.stat().st_ino == written
    assert questions(out) == wanted(150)
    assert [path.name for path in tmp_path.iterdir()] == ["e.jsonl.gz"]
    content = gzip.decompress(out.read_bytes())
    assert content.count(b"\n") == 150
    assert out.stat().st_size < len(content) / 2


@pytest.mark.parametrize("cut", [0, 9, 10, 11, 40, 300, 2000])
def test_a_cut_within_a_member_loses_the_torn_row_alone(
    tmp_path: Path, made: list[Evaluation], cut: int
) -> None:
    """Resuming takes over the whole rows, and makes the others."""
    out = tmp_path / "e.jsonl.gz"
    file = EvaluationFile(out, EVALUATOR.fingerprint)
    for number in range(100):
        file.add_in_turn(number, number, made[number])
    killed = file.partial.read_bytes()
    file.__exit__()
    killed = killed[: len(killed) - cut]
    whole = unpacked_as_far_as_it_goes(killed).count(b"\n")
    assert whole == 100 if cut == 0 else 0 < whole < 100
    file.partial.write_bytes(killed)

    with pytest.raises(ConfigurationError, match="--resume"):
        EvaluationFile(out, EVALUATOR.fingerprint)
    with EvaluationFile(out, EVALUATOR.fingerprint, resume=True) as file:
        missing = [n for n in range(110) if file.take(n, CALLS[n]) is None]
        assert missing == list(range(whole, 110))
        for turn, number in enumerate(missing):
            file.add_in_turn(turn, number, made[number])
        assert file.finish() == 110

    assert questions(out) == wanted(110)


def test_a_cut_at_any_byte_is_mended(tmp_path: Path) -> None:
    """All lines before it are kept, and what is appended then follows them."""
    path = tmp_path / "lines.gz"
    lines = [f"{number} {'x' * (number % 7)}".encode() for number in range(70)]
    with ZippedLines(path) as file:
        for line in lines:
            file.append(line)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        found = unpacked_as_far_as_it_goes(whole[:size])
        kept = found[: found.rfind(b"\n") + 1]
        with ZippedLines(path) as file:
            file.mend()
            offset = file.append(b"last")
        content = gzip.decompress(path.read_bytes())
        assert content[offset:] == b"last\n"
        # Half a line may be readable, and so may a line whose flush was cut.
        assert kept.startswith(content[:offset])
        assert kept.count(b"\n") - content[:offset].count(b"\n") <= 1


def test_rows_in_any_order_are_put_in_order(tmp_path: Path, made: list[Evaluation]) -> None:
    """Those of OUT, of an earlier OUT.partial, and those that failed and are made again."""
    out = tmp_path / "e.jsonl.gz"
    failed = EvaluationError(type="E", message="m", stage="judge")
    Evaluations(made[60:90]).save(out)
    with EvaluationFile(out, EVALUATOR.fingerprint, resume=True) as file:
        for number in reversed(range(50)):
            again = number % 3 == 0
            file.add(number, made[number].model_copy(update={"error": failed} if again else {}))
    with EvaluationFile(out, EVALUATOR.fingerprint, resume=True) as file:
        missing = [n for n in range(150) if file.take(n, CALLS[n]) is None]
        assert missing == [*range(0, 50, 3), *range(50, 60), *range(90, 150)]
        for number in reversed(missing):
            file.add(number, made[number])
        assert file.finish() == 150

    assert questions(out) == wanted(150)
    assert all(evaluation.error is None for evaluation in Evaluations.load(out))


def test_overwriting_replaces_at_the_end(tmp_path: Path, made: list[Evaluation]) -> None:
    """Until then the earlier file is at its place."""
    out = tmp_path / "e.jsonl.gz"
    Evaluations(made[:2]).save(out)
    with pytest.raises(ConfigurationError, match="--overwrite"):
        EvaluationFile(out, EVALUATOR.fingerprint)
    with EvaluationFile(out, EVALUATOR.fingerprint, overwrite=True) as file:
        file.add_in_turn(0, 0, made[5])
        assert questions(out) == wanted(2)
        file.finish()

    assert questions(out) == ["q5"]
    assert [path.name for path in tmp_path.iterdir()] == ["e.jsonl.gz"]


def test_damage_is_refused_and_left(tmp_path: Path) -> None:
    """It is no cut, so nothing of the file is thrown away."""
    out = tmp_path / "e.jsonl.gz"
    partial = tmp_path / "e.jsonl.gz.partial"
    for content in (b'{"schema":2}\n', gzip.compress(b"{}\n" * 9) + b"no gzip at all, but text"):
        partial.write_bytes(content)
        with pytest.raises(ConfigurationError, match="is damaged"):
            EvaluationFile(out, EVALUATOR.fingerprint, resume=True)
        assert partial.read_bytes() == content


def test_lines_are_found_again_in_any_order(tmp_path: Path) -> None:
    """Also in a file that grows."""
    path = tmp_path / "lines.gz"
    with ZippedLines(path) as file, Unzipped(path.open("rb")) as unpacked:
        offsets = [file.append(b"%d" % number * 30) for number in range(300)]
        for number in (299, 0, 150, 151, 64, 63, 299):
            unpacked.seek(offsets[number])
            assert unpacked.readline() == b"%d" % number * 30 + b"\n"
        offset = file.append(b"new")
        unpacked.seek(offset)
        assert unpacked.readline() == b"new\n"


@pytest.mark.parametrize("name", ["e.parquet.gz", "e.PQ.gz"])
def test_parquet_is_not_gzipped(tmp_path: Path, name: str) -> None:
    """It is compressed already, and nothing reads it."""
    with pytest.raises(ConfigurationError, match=r"leave out the `\.gz`"):
        EvaluationFile(tmp_path / name, EVALUATOR.fingerprint)
    assert not list(tmp_path.iterdir())
