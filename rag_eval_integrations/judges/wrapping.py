"""What wraps a completer is known by the completer's own name: it changes no answer."""

from __future__ import annotations

from rag_eval_integrations.judges.protocols import Completer


class WrappedCompleter:
    """Base of the judges that stand around another one."""

    retries = False
    """Whoever gets a judge that retries does not wrap it in another layer of retries."""

    def __init__(self, completer: Completer) -> None:
        self._completer = completer

    @property
    def name(self) -> str:
        """The completer's name."""
        return self._completer.name

    @property
    def model(self) -> str | None:
        """The completer's model; None when it names none."""
        return self._known("model")

    @property
    def version(self) -> str | None:
        """The completer's version; None when it has none."""
        return self._known("version")

    @property
    def base_url(self) -> str | None:
        """The completer's endpoint; None when it has none."""
        return self._known("base_url")

    def _known(self, field: str) -> str | None:
        value: str | None = getattr(self._completer, field, None)
        return value
