"""CachedModel: asked once, stored when answered, charged once; files that are not ours stay whole."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forked import FORKS, Fork, WarmPopen, forked

from rag_eval_integrations.errors import ConfigurationError, JudgeUnavailableError
from rag_eval_integrations.models import Choice, Completion, CompletionRequest, Message, Token
from rag_eval_integrations.models.caching import CachedModel, Keep
from rag_eval_integrations.models.completion import FinishReason
from rag_eval_integrations.records import Usage
from rag_eval_integrations.testing import ScriptedModel


def request(text: str = "?", **fields: object) -> CompletionRequest:
    return CompletionRequest(messages=(Message(role="user", content=text),), **fields)  # type: ignore[arg-type]


def answer(text: str = "yes", finish_reason: FinishReason = "stop") -> Completion:
    tokens = (Token(text="yes", logprob=-0.1, top=(("no", -2.0),)),)
    choice = Choice(text=text, finish_reason=finish_reason, tokens=tokens)
    usage = Usage(requests=1, prompt_tokens=100, completion_tokens=10, cost_usd=0.5)
    warnings = ("`seed` was left out",)
    return Completion(choices=(choice,), usage=usage, model="m-2", warnings=warnings)


class Scripted(ScriptedModel):
    """Answers each request by its own text, unless told what; counts."""

    def __init__(self, *answers: Completion | Exception, **fields: str) -> None:
        given = iter(answers)
        super().__init__(lambda asked: next(given, None) or answer(asked.messages[0].content))
        vars(self).update(fields)

    @property
    def asked(self) -> int:
        return len(self.requests)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.sqlite"


async def told(
    path: Path, model: Scripted, *requests: CompletionRequest, **settings: Any
) -> list[Completion]:
    """What a cache at the path says to each request, one after the other."""
    with CachedModel(model, path, **settings) as cached:
        return [await cached.complete(each) for each in requests]


# --- What is remembered ------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["?", "lone \ud83d surrogate", "\u2028\0"])
async def test_a_second_run_asks_nothing(path: Path, text: str) -> None:
    """The answer is as it was, with tokens, model and warnings; only the usage is nothing."""
    (first,) = await told(path, Scripted(), request(text))
    later = Scripted()

    (second,) = await told(path, later, request(text))

    assert first.usage.requests == 1
    assert second == first.model_copy(update={"usage": Usage()})
    assert later.asked == 0


async def test_ten_askers_are_one_request_and_one_charge(path: Path) -> None:
    """Together they cost as much as one answer."""
    model = Scripted()
    with CachedModel(model, path) as cached:
        answers = await asyncio.gather(*(cached.complete(request()) for _ in range(10)))

    assert model.asked == 1
    assert sorted(completion.usage.requests for completion in answers) == [0] * 9 + [1]
    assert {completion.text for completion in answers} == {"?"}


@pytest.mark.parametrize(
    ("fields", "model"),
    [
        *(({name: value}, {}) for name, value in {
            "json_schema": {"type": "object"}, "schema_name": "labels", "temperature": 0.5, "n": 2,
            "top_logprobs": 5, "max_tokens": 5, "seed": 1, "prompt_version": "2",
            "messages": (Message(role="system", content="?"),),
        }.items()),
        *(({}, {name: "2"}) for name in ("name", "model", "version", "base_url")),
    ],
)  # fmt: skip
async def test_all_of_a_request_and_its_model_is_in_the_key(
    path: Path, fields: dict[str, Any], model: dict[str, str]
) -> None:
    """Any field that differs is another question; an answer of another model is not this one's."""
    other = Scripted(**model)
    await told(path, Scripted(), request())
    await told(path, other, request().model_copy(update=fields))
    assert other.asked == 1


def test_the_key_is_the_same_in_every_version(path: Path) -> None:
    """Fixed: a change of the key makes all caches of all users worthless, and must be meant."""
    model = Scripted(name="openai:m", model="m", version="1", base_url="http://h/v1?key=secret")
    with CachedModel(model, path) as cached:
        key = cached.key(request("wie heißt \ud83d?", json_schema={"b": 1, "a": [True]}))

    assert key == "f34e14a35d9a661d3239e2ac750dfccfa58749aba9c7c45a5ed1935c05223ce7"


@pytest.mark.parametrize("keep", ["complete", "all"])
@pytest.mark.parametrize(
    "unfit",
    [*(answer(finish_reason=why) for why in ("length", "refusal", "content_filter", "unknown")),
     answer(text=""), JudgeUnavailableError("503", status=503)],
)  # fmt: skip
async def test_only_complete_answers_are_kept(
    path: Path, unfit: Completion | Exception, keep: Keep
) -> None:
    """What the next attempt may improve is asked for again, unless all is to be kept; an error always."""
    model = Scripted(unfit)
    with CachedModel(model, path, keep=keep) as cached:
        (first,) = await asyncio.gather(cached.complete(request()), return_exceptions=True)
        again = await cached.complete(request())
    assert first == unfit

    kept = keep == "all" and isinstance(unfit, Completion)
    assert model.asked == 2 - kept
    assert again.usage.requests == 1 - kept


async def test_a_value_that_does_not_validate_is_asked_again(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A warning says so, and the new answer takes its place."""
    await told(path, Scripted(), request())
    schemas = (f'\'{{"schema": {number}, "choices": []}}\'' for number in (1, 9))
    for broken in ("'{'", *schemas, "x'00'"):
        changed(path, f"UPDATE completions SET value = {broken}")
        model = Scripted()

        await told(path, model, request(), request())

        assert model.asked == 1
    assert caplog.text.count("is asked for again") == 3


@pytest.mark.parametrize("length", [601, 100])
def test_the_oldest_go_when_the_file_is_full(
    path: Path, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file stays near its size, in one run and in many short ones, with the latest answers."""
    monkeypatch.setattr(CachedModel, "_max_bytes", 2**20)
    model = Scripted()
    requests = [request(f"{number} " + "x" * 4000) for number in (*range(600), 599)]

    for start in range(0, 601, length):
        asyncio.run(told(path, model, *requests[start : start + length]))

    assert model.asked == 600
    assert len(rows(path)) < 600
    assert path.stat().st_size < 4 * 2**20


async def test_an_answer_kept_for_all_is_none_for_who_wants_complete_ones(path: Path) -> None:
    """The answers of a model under test are results, also empty and truncated ones."""
    (empty,) = await told(path, Scripted(answer(text="")), request(), keep="all")
    (complete,) = await told(path, Scripted(), request())

    assert (empty.text, complete.text) == ("", "?")


async def test_a_forgotten_answer_is_asked_for_again(path: Path) -> None:
    """In this process and in the next one; without a warning."""
    model = Scripted()
    with CachedModel(model, path) as cached:
        await cached.complete(request())
        await cached.complete(request("other"))
        cached.forget(request())
    await told(path, model, request(), request("other"))

    assert model.asked == 3


async def until(holds: Callable[[], object]) -> None:
    for _ in range(1000):
        if holds():
            return
        await asyncio.sleep(0.01)


async def test_an_answer_is_stored_although_its_caller_is_cancelled(path: Path) -> None:
    """It has arrived and is paid for; while another process holds the file, the loop goes on."""
    holder = sqlite3.connect(path, isolation_level=None)
    model = Scripted()
    with CachedModel(model, path) as cached:
        holder.execute("BEGIN IMMEDIATE")
        task = asyncio.ensure_future(cached.complete(request()))
        await until(lambda: model.asked)
        await asyncio.sleep(0.05)  # storing it has begun, and waits for the file
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        holder.execute("COMMIT")  # by the loop: blocked, it would come here too late
        holder.close()
        await until(lambda: rows(path))

        assert (await cached.complete(request())).usage == Usage()
    assert model.asked == 1


# --- Processes ---------------------------------------------------------------------------------

WRITER = """
import asyncio, sys
from rag_eval_integrations.models import CachedModel
from rag_eval_integrations.models.completion import CompletionRequest, Message
from rag_eval_integrations.testing import ScriptedModel

async def one(cached, number):
    text = f"{sys.argv[2]}-{number}"
    await cached.complete(CompletionRequest(messages=(Message(role="user", content=text),)))
    print(text, flush=True)

async def main():
    model = ScriptedModel(lambda request: request.messages[0].content, latency=0.001)
    with CachedModel(model, sys.argv[1]) as cached:
        for start in range(0, int(sys.argv[3]), 4):
            await asyncio.gather(*(one(cached, number) for number in range(start, start + 4)))

asyncio.run(main())
"""


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), name, str(count)]
    return WarmPopen(command, stdout=subprocess.PIPE, text=True)


def rows(path: Path) -> list[tuple[str, str]]:
    with contextlib.closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return database.execute("SELECT key, value FROM completions ORDER BY rowid").fetchall()


async def test_kill_9_loses_nothing_that_was_answered(path: Path) -> None:
    """Two processes write one file, one is killed in mid-writing: each answer returned is there."""
    killed, spared = writer(path, "killed", 100_000), writer(path, "spared", 400)
    assert killed.stdout is not None
    lines = [killed.stdout.readline() for _ in range(200)]
    killed.send_signal(signal.SIGKILL)
    lines += killed.stdout.read().splitlines()
    killed.wait()
    killed.stdout.close()
    out, _ = spared.communicate()

    answered = [line.strip() for line in lines] + out.split()
    model = Scripted()
    remembered = await told(path, model, *map(request, answered))

    assert [completion.text for completion in remembered] == answered
    assert (spared.returncode, len(out.split()), model.asked) == (0, 400, 0)
    assert len(answered) <= len(rows(path)) <= len(answered) + 4


@pytest.mark.parametrize("fork", FORKS)
def test_the_child_of_a_fork_opens_its_own_connection(path: Path, fork: Fork) -> None:
    """Parent and child go on with the same model; requests in flight in the parent are made again."""
    cached = CachedModel(Scripted(), path)
    asyncio.run(cached.complete(request("before")))

    def child() -> None:
        completion = asyncio.run(cached.complete(request("before")))
        assert completion.usage.requests == 0
        asyncio.run(cached.complete(request("in the child")))

    running = forked(child, fork)
    asyncio.run(cached.complete(request("in the parent")))
    running.printed()
    remembered = asyncio.run(cached.complete(request("in the child")))
    cached.close()

    assert remembered.usage.requests == 0
    assert len(rows(path)) == 3


# --- Files -------------------------------------------------------------------------------------


def refused(path: Path) -> str:
    before = path.read_bytes()
    with pytest.raises(ConfigurationError) as raised:
        CachedModel(Scripted(), path)
    assert path.read_bytes() == before
    assert [*path.parent.iterdir()] == [path]
    assert raised.value.field == "path"
    return str(raised.value)


def test_an_empty_file_is_used(path: Path) -> None:
    """As one that is absent; what is made is marked as ours."""
    path.touch()
    CachedModel(Scripted(), path).close()

    assert int.from_bytes(path.read_bytes()[68:72], "big") == 0x52455643


def test_a_file_that_is_not_ours_stays_as_it_is(path: Path) -> None:
    """A cache is not written over someone's data, whatever it is, nor over a newer schema's."""
    for content in (b'{"id": "1", "question": "?"}\n' * 10, b"SQLite format 3\x00"):
        path.write_bytes(content)
        assert "not an SQLite file" in refused(path)
    table = "CREATE TABLE completions (key TEXT PRIMARY KEY, value TEXT, stored REAL)"
    for mode in ("DELETE", "WAL"):
        path.unlink()
        changed(path, f"PRAGMA journal_mode = {mode}", table)
        assert "another application's" in refused(path)
    path.unlink()
    CachedModel(Scripted(), path).close()
    changed(path, "PRAGMA user_version = 2")
    assert "schema 2, this version reads 1" in refused(path)


def changed(path: Path, *commands: str) -> None:
    """Work on a database by other means."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        for command in commands:
            database.execute(command)


def test_a_damaged_file_is_refused_and_not_changed(path: Path) -> None:
    """Truncated or overwritten in the middle: named, and left for its owner to look at."""
    requests = [request(f"{number} " + "x" * 300) for number in range(200)]
    asyncio.run(told(path, Scripted(), *requests))
    whole = path.read_bytes()

    middle = whole[:8192] + os.urandom(16384) + whole[24576:]
    for content in (whole[: len(whole) // 2], middle, whole[:100] + b"\xff" * 3996 + whole[4096:]):
        path.write_bytes(content)
        assert "is damaged" in refused(path)


async def test_a_file_damaged_later_does_not_stop_the_run(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Answers that were paid for are returned; a warning says that they are not kept."""
    model = Scripted()
    with CachedModel(model, path) as cached:
        changed(path, "DROP TABLE completions")
        for number in range(3):
            assert (await cached.complete(request(str(number)))).text == str(number)

    assert model.asked == 3
    assert caplog.text.count("failed, the run continues without it: no such table") == 1


def test_a_path_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    """A folder, or a file in a folder that is not there."""
    with pytest.raises(ConfigurationError, match="is a folder; use a regular file"):
        CachedModel(Scripted(), tmp_path)
    with pytest.raises(ConfigurationError, match=r"cannot be opened: .*absent does not exist"):
        CachedModel(Scripted(), tmp_path / "absent" / "cache.sqlite")


async def test_all_files_of_a_cache_are_private(tmp_path: Path) -> None:
    """Also SQLite's own, and beside the target of a link; a file that exists keeps its mode."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link.db").symlink_to(tmp_path / "real" / "cache.db")
    for mode in (0o600, 0o640):
        cached = CachedModel(Scripted(), tmp_path / "link.db")
        await cached.complete(request())
        modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "real").iterdir()}
        cached.close()
        assert modes == dict.fromkeys(("cache.db", "cache.db-wal", "cache.db-shm"), mode)
        (tmp_path / "real" / "cache.db").chmod(0o640)
    assert (tmp_path / "link.db").is_symlink()


async def test_a_closed_cache_says_so(path: Path) -> None:
    """Closing twice is fine; asking is not."""
    cached = CachedModel(Scripted(), path)
    cached.close()
    cached.close()

    with pytest.raises(RuntimeError, match="is closed"):
        await cached.complete(request())


async def test_an_answer_that_comes_after_closing_is_still_returned(path: Path) -> None:
    """It was paid for; the file is not opened again for it."""
    cached = CachedModel(Scripted(), path)
    task = asyncio.ensure_future(cached.complete(request()))
    await asyncio.sleep(0)
    cached.close()

    assert (await task).text == "?"
    assert rows(path) == []


def test_arguments_out_of_range_are_refused(path: Path) -> None:
    """At construction, before a file is made."""
    wrong: list[dict[str, Any]] = [{"keep": "some"}, {"path": None}]
    for options in wrong:
        (field,) = options
        with pytest.raises(ConfigurationError, match=f"`{field}` = {options[field]!r}: use "):
            CachedModel(**{"model": Scripted(), "path": path} | options)
    assert not path.exists()
