"""Several processes give what one gives, in order, and lose nothing when one of them dies."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from by_hand import ScriptedJudge
from other_processes import LABELS, Closed, NotThere, ObedientJudge, calls, runs
from processes import until

from rag_eval_integrations import _loop
from rag_eval_integrations.dataset import Line, evaluate_calls
from rag_eval_integrations.dataset.stream import ALONE, Processes, cores, default_workers
from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.metrics import GEval, Retrieval, Trace
from rag_eval_integrations.records import Evaluation, RagCall, from_line, to_line
from rag_eval_integrations.testing import ScriptedModel

pytestmark = pytest.mark.slow  # every test starts processes

MODEL = ScriptedModel(["{}"])


def rows_of(judge: ObedientJudge, items: Iterator[RagCall], alone: int = 0) -> list[Evaluation]:
    """Evaluate in two processes."""
    processes = Processes(RagEvaluator(judge), 2, alone=alone)

    async def collect() -> list[str]:
        return [line async for rows in processes.rows(items) for line in rows.lines]

    try:
        return [from_line(Evaluation, line) for line in _loop.run(collect())]
    finally:
        processes.close()


def test_the_rows_are_those_of_one_process() -> None:
    """Byte for byte, in order, and so are the figures; lines that hold no call are in their place."""
    bad: Line[RagCall] = Line(7, None, InputError("is not a call"))
    items: list[RagCall | Line[RagCall]] = [*calls(ALONE + 5), bad, *calls(40), bad]
    evaluator = RagEvaluator("embedded", [Trace(), Retrieval()])

    of_one = list(evaluate_calls(items, evaluator))
    of_two = list(evaluate_calls(items, evaluator, workers=2))

    assert [to_line(row) for row in of_two] == [to_line(row) for row in of_one]
    assert [index for index, row in enumerate(of_two) if row.error] == [ALONE + 5, ALONE + 46]


def test_several_processes_do_the_work(tmp_path: Path) -> None:
    """Neither of them is this one, but for the first calls, which are not worth a start."""
    log = tmp_path / "log"

    result = rows_of(ObedientJudge(log), calls(80), alone=16)

    workers = {line.split()[0] for line in log.read_text().splitlines()[16:]}
    assert [row.id for row in result] == [str(number) for number in range(80)]
    assert {line.split()[0] for line in log.read_text().splitlines()[:16]} == {str(os.getpid())}
    assert 1 <= len(workers) <= 2
    assert str(os.getpid()) not in workers


def test_a_call_that_kills_its_process_is_an_error(tmp_path: Path) -> None:
    """Unless it does so once; all others are evaluated, also where they are not JSON any more."""
    orders = {20: "die once", 37: "die", 60: "fail"}
    items = list(calls(100, orders))
    odd = items[80].model_copy(update={"metadata": {"a": float("nan")}})

    result = rows_of(ObedientJudge(tmp_path / "log"), iter([*items[:80], odd, *items[81:]]))

    failed = {row.id: row.error for row in result if row.error}
    assert [row.id for row in result] == [str(number) for number in range(100)]
    assert set(failed) == {"37", "60"}
    assert "twice" in repr(failed["37"])
    assert all(row.scores["adherence"].value == 1 for row in result if not row.error)


def test_a_process_may_die_while_calls_are_read(tmp_path: Path) -> None:
    """The next batch finds that the processes ended: all calls are evaluated all the same."""
    log = tmp_path / "log"

    def slow() -> Iterator[RagCall]:
        for number, call in enumerate(calls(140, {30: "wait", 31: "die once"})):
            if number == 130:  # the first that is read after rows came back
                until(log.with_suffix(".died").exists)
                time.sleep(0.5)  # until the pool has seen it
            yield call

    result = rows_of(ObedientJudge(log), slow())

    assert [(row.id, row.error) for row in result] == [(str(n), None) for n in range(140)]


@pytest.mark.parametrize(
    ("evaluator", "why"),
    [
        (lambda path: RagEvaluator(Closed(path)), "it holds a socket"),
        (lambda path: RagEvaluator(MODEL), "waits for a model's answers"),
        (lambda path: RagEvaluator(ObedientJudge(path), [GEval("a", criteria="b", judge=MODEL)]),
         "waits for a model's answers"),
    ],
    ids=["closed", "model", "metric"],
)  # fmt: skip
def test_what_cannot_go_to_other_processes_is_refused(
    tmp_path: Path, evaluator: Callable[[Path], RagEvaluator], why: str
) -> None:
    """When the stream is made, before any call; and there is no run without a process."""
    with pytest.raises(ConfigurationError, match=why):
        evaluate_calls(calls(1), evaluator(tmp_path / "log"), workers=2)
    with pytest.raises(ConfigurationError, match="`workers` = 0"):
        evaluate_calls(calls(1), RagEvaluator(), workers=0)


def test_an_evaluator_that_cannot_be_made_again_is_told(tmp_path: Path) -> None:
    """With the reason, not as a pool that broke."""
    with pytest.raises(ConfigurationError, match="its model is not there"):
        rows_of(NotThere(tmp_path / "log"), calls(1))


def test_a_script_without_a_guard_is_told(tmp_path: Path) -> None:
    """It would start itself again in every process."""
    script = tmp_path / "script.py"
    script.write_text(
        "from rag_eval_integrations import RagCall, RagEvaluator\n"
        "from rag_eval_integrations.dataset import evaluate_calls\n"
        "calls = [RagCall('q', ['A b.'], 'A b.')] * 400\n"
        "print(len(list(evaluate_calls(calls, RagEvaluator(), workers=2))))\n"
    )

    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)

    assert ended.returncode == 1
    assert 'if __name__ == "__main__":' in ended.stderr.splitlines()[-1]


def test_slow_calls_are_shared_out_after_a_second(tmp_path: Path) -> None:
    """A judge that reads would keep one core busy for minutes with as many as are quick."""
    log = tmp_path / "log"

    result = rows_of(ObedientJudge(log), calls(32, {3: "wait"}), alone=ALONE)

    asked = [int(line.split()[0]) for line in log.read_text().splitlines()]
    assert [row.id for row in result] == [str(number) for number in range(32)]
    assert set(asked[:16]) == {os.getpid()}
    assert os.getpid() not in asked[16:]


def test_leaving_early_ends_the_processes(tmp_path: Path) -> None:
    """A loop that is left waits for nothing but the batches in progress."""
    log = tmp_path / "log"
    stream = evaluate_calls(calls(5_000), RagEvaluator(ObedientJudge(log)), workers=2)

    for evaluation in stream:
        if evaluation.id == str(ALONE + 3):
            break

    asked = {int(line.split()[0]) for line in log.read_text().splitlines()} - {os.getpid()}
    assert asked
    assert not [number for number in asked if runs(number)]


def test_the_default_is_the_cores_where_a_judge_computes() -> None:
    """One that waits, and one that is not known, get one process."""
    assert default_workers(RagEvaluator()) == cores() >= 1
    assert default_workers(RagEvaluator(ScriptedJudge(LABELS))) == 1
    assert default_workers(RagEvaluator(MODEL)) == 1


@pytest.mark.parametrize("count", [40, ALONE + 75])
def test_what_was_read_before_a_failure_of_the_calls_is_evaluated(
    count: int, tmp_path: Path
) -> None:
    """As with one process: the error of the iterable comes after the last evaluation."""

    def failing() -> Iterator[RagCall]:
        yield from calls(count)
        raise OSError("the disk is gone")

    seen = []
    with pytest.raises(OSError, match="the disk is gone"):  # noqa: PT012 -- a loop that raises
        for row in evaluate_calls(
            failing(), RagEvaluator(ObedientJudge(tmp_path / "log")), workers=2
        ):
            seen.append(row.id)  # noqa: PERF401 -- `extend` may lose them

    assert seen == [str(number) for number in range(count)]
