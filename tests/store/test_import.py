"""`SpoolImport`: files that are damaged in any way, and an import that is to end."""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from rag_eval_integrations import RagCall, RagEvaluator, Spool
from rag_eval_integrations._visible import LogOnce
from rag_eval_integrations.store import Store, _import
from rag_eval_integrations.store._import import SpoolImport
from rag_eval_integrations.store._worker import Worker
from rag_eval_integrations.store.spool import Refusal, SpooledCall

CALLS = 100
FAILURES = LogOnce(logging.getLogger("test"))


def spooled(folder: Path) -> Path:
    """A closed file of calls, three to a page."""
    spool = Spool(folder)
    for _ in range(CALLS):
        spool.submit(RagCall("When?", ["It leaves at nine. " * 40], "At nine."))
    spool.close()
    (path,) = folder.glob("*.spool")
    return path


def names(folder: Path) -> list[str]:
    """What is in a folder."""
    return [path.name for path in folder.iterdir()]


class Kept(Store):
    """A store that keeps what is added to it, and has no database."""

    def __init__(self) -> None:
        self.uids: set[str] = set()
        self.refusals: list[Refusal] = []

    def add(self, calls: Sequence[SpooledCall], refusals: Sequence[Refusal] = ()) -> int:
        new = {call.call_uid for call in calls} - self.uids
        self.uids |= new
        self.refusals += refusals
        return len(new)


def test_whatever_is_damaged_the_import_ends_and_says_what_is_lost(tmp_path: Path) -> None:
    """Pieces are overwritten, zeroed and cut off; a file of which anything is lost is kept.

    The number that is lost is right, or said to be unknown, but where the last call's own number is
    damaged, and is still one that the file has room for.
    """
    whole, wrong = spooled(tmp_path / "whole").read_bytes(), 0
    for case in range(200):
        chance, content = random.Random(case), bytearray(whole)
        for _ in range(chance.choice([1, 1, 2, 5])):
            at = chance.randrange(1, len(content))
            size = min(chance.choice([1, 4, 100, 4_096, 20_000]), len(content) - at)
            how = chance.choice(["zeros", "noise", "cut"])
            content[at : at + size] = bytes(size) if how == "zeros" else chance.randbytes(size)
            if how == "cut":
                del content[at:]
                break
        folder = tmp_path / str(case)
        folder.mkdir()
        (folder / "1.spool").write_bytes(content)
        store = Kept()
        imported = SpoolImport(store, [folder], FAILURES).run()

        assert imported <= CALLS, case
        if store.refusals:
            (refusal,) = store.refusals
            assert names(folder) in (["1.damaged"], ["1.aside"]), case
            known = "unknown" not in str(refusal.why)
            wrong += known and imported + refusal.calls != CALLS
        else:
            assert (names(folder), imported) == ([], CALLS), case
    assert wrong <= 2


async def test_a_worker_that_is_stopped_ends_with_the_batch_that_it_imports(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many files wait; the next worker imports the rest, and none is twice in the store."""
    monkeypatch.setattr(_import, "_BATCH", 10)
    spooled(tmp_path)
    with closing(Store(url)) as store:
        worker = Worker(store, RagEvaluator(), [tmp_path], sample_rate=0.0)
        add = store.add

        def last(calls: Sequence[SpooledCall], refusals: Sequence[Refusal] = ()) -> int:
            worker.stop()
            return add(calls, refusals)

        monkeypatch.setattr(store, "add", last)
        await worker.run()
        assert worker.counts == {"imported": 10}
        monkeypatch.setattr(store, "add", add)
        rest = Worker(store, RagEvaluator(), [tmp_path], sample_rate=0.0)
        await rest.run(once=True)

        assert rest.counts["imported"] == CALLS - 10
        assert store.counts() == [("left_out", "not in the sample of 0", CALLS)]
    assert not any(".spool" in name for name in names(tmp_path))
