"""`rag-eval run --engine ray`: the file, the figures and the exit code of a run without."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from loopback import Behaviour, LoopbackServer
from other_processes import calls

from rag_eval_integrations.records import to_line

pytestmark = [
    pytest.mark.ray,
    pytest.mark.slow,
    pytest.mark.timeout(900),
]

MAIN = "from rag_eval_integrations.cli import main; main()"
SUPPORT = Path(__file__).parent.parent / "support"
RAY = ["--engine", "ray", "--workers", "2"]


def lines(path: Path, count: int) -> Path:
    path.write_text("".join(to_line(call) + "\n" for call in calls(count)))
    return path


def run(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", MAIN, "run", *map(str, words)],
        capture_output=True, text=True, timeout=600, check=False,
        env={**os.environ, "COLUMNS": "200"} | environment,
    )  # fmt: skip


def raylets() -> int:
    listed = subprocess.run(["ps", "-eo", "args="], capture_output=True, text=True, check=True)
    return sum("raylet/raylet" in line for line in listed.stdout.splitlines())


def figures(printed: str) -> str:
    return printed.split("Each sentence")[0]


def test_the_command_writes_the_same_file(tmp_path: Path) -> None:
    """And prints the same figures; bad lines and thresholds give the same exit code."""
    path = lines(tmp_path / "calls.jsonl", 300)
    with path.open("a") as stream:
        stream.write("not a call\n")
    before = raylets()

    plain = run(path, "-o", tmp_path / "1.jsonl", "--workers", 1, "--fail-under", "adherence=1")
    ray = run(path, "-o", tmp_path / "2.jsonl", *RAY, "--fail-under", "adherence=1")

    assert (ray.returncode, plain.returncode) == (2, 2), ray.stderr
    assert (tmp_path / "1.jsonl").read_bytes() == (tmp_path / "2.jsonl").read_bytes()
    assert figures(ray.stdout) == figures(plain.stdout)
    until(lambda: raylets() == before)


def test_a_call_that_kills_its_actor_costs_one_row(tmp_path: Path) -> None:
    """The others are there, in order."""
    rows = [
        {"id": str(at), "question": f"{at}?", "documents": ["It leaves."], "response": "It leaves."}
        for at in range(50)
    ]
    rows[7]["question"] = "deadly"
    path = tmp_path / "calls.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    ended = run(
        path, "-o", tmp_path / "out.jsonl", *RAY, "--judge", "deadly:judge",
        PYTHONPATH=os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")]),
    )  # fmt: skip

    assert ended.returncode == 0, ended.stderr
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["id"] for row in found] == [str(at) for at in range(50)]
    assert [row["id"] for row in found if row.get("error")] == ["7"]


def test_workers_of_a_ray_that_is_started_here_have_its_priority() -> None:
    """Ray's own would let every other program of the machine go first."""
    code = (
        "import os\nfrom rag_eval_integrations.ray import _cluster\n"
        "assert _cluster.connect(None)\nray = _cluster.imported()\n"
        "print(os.nice(0), ray.get(ray.remote(lambda: os.nice(0)).remote()))\nray.shutdown()\n"
    )
    found = {name: os.environ[name] for name in os.environ if name != "RAY_worker_niceness"}
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False,
        env=found,
    )  # fmt: skip

    assert ended.returncode == 0, ended.stderr
    own, worker = ended.stdout.split()
    assert own == worker


def test_a_judge_that_cannot_be_reached_is_told_before_ray_starts(tmp_path: Path) -> None:
    """As without it: no file, exit 1."""
    path = lines(tmp_path / "calls.jsonl", 20)

    ended = run(
        path, "-o", tmp_path / "out.jsonl", *RAY, "--judge", "openai:m",
        "--base-url", "http://127.0.0.1:9/v1", OPENAI_API_KEY="key",
    )  # fmt: skip

    assert ended.returncode == 1
    assert "cannot be used" in ended.stderr
    assert not list(tmp_path.glob("out.jsonl*"))


def test_a_model_is_asked_by_actors_within_the_limit(tmp_path: Path) -> None:
    """Every call once, what this process asked included; no minute has more than the limit."""
    path = lines(tmp_path / "calls.jsonl", 70)
    with LoopbackServer(Behaviour(content="{}")) as server:
        ended = run(
            path, "-o", tmp_path / "out.jsonl", *RAY, "--judge", "openai:m", "--rpm", 120,
            "--base-url", server.base_url, OPENAI_API_KEY="key",
        )  # fmt: skip
        times = server.times

    assert "70 calls in" in ended.stdout, ended.stderr
    assert len(times) >= 70
    assert max(sum(0 <= other - one < 60 for other in times) for one in times) <= 120


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_ended_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    """`--resume` gives the file of a run that was not ended, and no Ray stays."""
    path, out = lines(tmp_path / "calls.jsonl", 20_000), tmp_path / "out.jsonl"
    partial = out.with_name("out.jsonl.partial")
    before = raylets()
    command = [sys.executable, "-c", MAIN, "run", str(path), "-o", str(out), *RAY]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        until(lambda: partial.exists() and partial.read_bytes().count(b"\n") > 200)
        process.send_signal(number)
        _, errors = process.communicate(timeout=120)
    kept = partial.read_bytes().count(b"\n")
    until(lambda: raylets() == before)

    if number == signal.SIGINT:
        assert process.returncode == 130, errors
    short = tmp_path / "short.jsonl"
    short.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[: kept + 20]))
    ended = run(short, "-o", out, *RAY, "--resume")
    assert ended.returncode == 0, ended.stderr
    ids = [json.loads(line)["id"] for line in out.read_text().splitlines()]
    assert ids == [str(at) for at in range(kept + 20)]


def until(happened: Callable[[], bool]) -> None:
    for _ in range(1800):
        if happened():
            return
        time.sleep(0.1)
    raise AssertionError("it did not happen within three minutes")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--engine", "dask"], "--engine"),
        (["--address", "auto"], "--address"),
        (["--engine", "ray", "--address", "127.0.0.1:1", "--workers", "1"], "no Ray cluster"),
    ],
)
def test_what_cannot_work_is_told(tmp_path: Path, words: list[str], told: str) -> None:
    """Exit 2, and what to do."""
    path = lines(tmp_path / "calls.jsonl", 3)
    ended = run(path, "-o", tmp_path / "out.jsonl", *words, RAY_raylet_start_wait_time_s="5")

    assert ended.returncode == 2, ended.stderr
    assert told in ended.stderr
