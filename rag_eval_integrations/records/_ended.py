"""A captured call that has ended, whose record may be made later and in another thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rag_eval_integrations.records.call import CaptureStatus, RagCall


@dataclass(slots=True, eq=False)
class EndedCall:
    """What capture has read of a call, which needs none of the app's objects any more.

    Finding the documents in the prompt and hashing the texts is a third of what capture adds to a
    call: an evaluator in the background leaves that to its own thread.
    """

    run_id: object
    """The framework's id of the outermost run."""
    status: CaptureStatus
    _make: Callable[[], RagCall] | None
    """Makes the record; called once at most."""
    _release: Callable[[], object]
    """Frees what the record is made of."""
    _failed: Callable[[Exception], object]
    """Called with the exception if the record cannot be made."""
    _record: RagCall | None = None

    def record(self) -> RagCall | None:
        """Make the record, or return the one made before; None if that failed."""
        make, self._make = self._make, None
        if make is not None:
            try:
                self._record = make()
            except Exception as error:  # noqa: BLE001 -- the boundary: told and counted by capture
                self._failed(error)
            finally:
                self._release()
        return self._record

    def drop(self) -> None:
        """Free what the record would be made of: nobody wants it."""
        if self._make is not None:
            self._make = None
            self._release()
