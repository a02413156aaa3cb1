"""A call whose record is made later: once, by whoever asks first, and never raising."""

from __future__ import annotations

from rag_eval_integrations.records import RagCall
from rag_eval_integrations.records.call import EndedCall


class Made:
    """Counts what an ended call does."""

    def __init__(self, error: Exception | None = None) -> None:
        self.made = self.released = 0
        self.errors: list[Exception] = []
        self._error = error

    def make(self) -> RagCall:
        self.made += 1
        if self._error is not None:
            raise self._error
        return RagCall("How fast?", ["Four minutes."], "Four.")

    def release(self) -> None:
        self.released += 1

    def ended(self) -> EndedCall:
        return EndedCall("run", "ok", self.make, self.release, self.errors.append)


def test_the_record_is_made_once() -> None:
    """The second caller gets the same object; what it was made of is freed once."""
    made = Made()
    ended = made.ended()
    assert made.made == 0

    record = ended.record()

    assert record is not None
    assert record.question == "How fast?"
    assert ended.record() is record
    ended.drop()
    assert ended.record() is record
    assert (made.made, made.released) == (1, 1)


def test_a_failure_is_told_and_gives_no_record() -> None:
    """It is not raised, and not tried again."""
    made = Made(ZeroDivisionError("broken"))
    ended = made.ended()

    assert ended.record() is None
    assert ended.record() is None
    assert [str(error) for error in made.errors] == ["broken"]
    assert (made.made, made.released) == (1, 1)


def test_a_dropped_call_makes_no_record() -> None:
    """What it holds is freed at once, and once."""
    made = Made()
    ended = made.ended()

    ended.drop()
    ended.drop()

    assert ended.record() is None
    assert (made.made, made.released) == (0, 1)
