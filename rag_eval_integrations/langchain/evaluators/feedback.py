"""A sink that posts scores to LangSmith as feedback on the runs they belong to."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, UUID, uuid5

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.langchain.evaluators.base import feedback_of
from rag_eval_integrations.records import Evaluation

if TYPE_CHECKING:
    from langsmith import Client

_ATTEMPTS = 3  # LangSmith's own 10 would hold up the sink for minutes


class LangSmithFeedback:
    """Posts every score as feedback on the run that was captured (`capture.run_id`).

    A sink for `BackgroundEvaluator`, where it has a thread of its own. Key is the score's name,
    comment its reason. A score without a value is posted without one, its comment saying why:
    LangSmith's averages leave it out, and its list of runs shows it. Questions, documents and
    responses are not sent, but a reason may quote sentences of them. An evaluation that belongs to
    no LangChain run is left out and counted. The same evaluation posted twice is one feedback.

    Args:
        client: a `langsmith.Client`.
        project: name of the project that the runs are traced to; by default the one that LangSmith
            itself would take (`LANGSMITH_PROJECT`, or `default`). It is looked up once, by the
            first batch.
        session_id: the project's id, where it is known: nothing is looked up then.

    Raises:
        ConfigurationError: `client` is none.
    """

    def __init__(
        self, client: Client, *, project: str | None = None, session_id: UUID | str | None = None
    ) -> None:
        if not callable(getattr(client, "create_feedback", None)):
            raise ConfigurationError("client", client, "should be a langsmith.Client")
        self.left_out = 0
        """Evaluations without a LangChain run."""
        self._client = client
        self._project = project
        self._session_id = session_id
        # Older releases (0.3.45) know no session, and warn of what they do not know.
        self._takes_session = "session_id" in inspect.signature(client.create_feedback).parameters

    def write(self, batch: Sequence[Evaluation]) -> None:
        """Post the scores of each evaluation.

        Raises:
            ExceptionGroup: of all that LangSmith refused; the other scores are posted.
            Exception: the project cannot be looked up; nothing is posted.
        """
        failures: list[Exception] = []
        session: dict[str, Any] = {"session_id": self._session()} if self._takes_session else {}
        for evaluation in batch:
            capture = evaluation.capture
            if capture is None or capture.framework != "langchain" or not capture.run_id:
                self.left_out += 1
                continue
            for name in evaluation.scores:
                try:
                    self._post(evaluation, capture.run_id, name, session)
                except Exception as error:  # noqa: BLE001 -- raised below, after the others' turn
                    failures.append(error)
        if failures:
            raise ExceptionGroup("LangSmith did not take all feedback", failures)

    def _post(
        self, evaluation: Evaluation, run_id: str, name: str, session: dict[str, Any]
    ) -> None:
        feedback = feedback_of(evaluation.scores[name], evaluation)
        made_by = f"{run_id}/{name}/{evaluation.fingerprint}"
        self._client.create_feedback(
            run_id,
            name,
            score=feedback["score"],
            comment=feedback["comment"],
            source_info=feedback["metadata"],
            feedback_source_type="model",
            feedback_id=uuid5(NAMESPACE_URL, made_by),
            stop_after_attempt=_ATTEMPTS,
            **session,
        )

    def _session(self) -> UUID | str:
        if self._session_id is None:
            from langsmith.utils import get_tracer_project  # noqa: PLC0415  # as `Client`

            project = self._project or get_tracer_project()
            self._session_id = self._client.read_project(project_name=project).id
        return self._session_id
