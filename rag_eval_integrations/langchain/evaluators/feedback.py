"""A sink that posts scores to LangSmith as feedback on the captured runs."""

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

_ATTEMPTS = 3  # LangSmith's default of 10 would hold up the sink for minutes


class LangSmithFeedback:
    """Posts every score as feedback on the run that was captured (`capture.run_id`).

    A sink for `BackgroundEvaluator`, which calls it from a thread of its own. The feedback's key is
    the score's name, its comment the score's reason. A score without a value is posted without one,
    and the comment says why: LangSmith leaves it out of averages and shows it in the list of runs.
    Questions, documents and responses are not sent, but a reason may quote sentences of them. An
    evaluation without a LangChain run is left out and counted. An evaluation that is posted twice
    gives one feedback.

    Args:
        client: a `langsmith.Client`.
        project: name of the project to which the runs are traced; by default LangSmith's own
            default (`LANGSMITH_PROJECT`, or `default`). It is looked up once, by the first batch.
        session_id: id of the project, if it is known; then nothing is looked up.

    Raises:
        ConfigurationError: `client` is not a LangSmith client.
    """

    def __init__(
        self, client: Client, *, project: str | None = None, session_id: UUID | str | None = None
    ) -> None:
        if not callable(getattr(client, "create_feedback", None)):
            raise ConfigurationError("client", client, "should be a langsmith.Client")
        self.left_out = 0
        """Number of evaluations without a LangChain run."""
        self._client = client
        self._project = project
        self._session_id = session_id
        # Older releases (0.3.45) do not know sessions, and warn of unknown arguments.
        self._takes_session = "session_id" in inspect.signature(client.create_feedback).parameters

    def write(self, batch: Sequence[Evaluation]) -> None:
        """Post the scores of each evaluation.

        Args:
            batch: the evaluations.

        Raises:
            ExceptionGroup: LangSmith refused some of the scores; the others are posted.
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
                except Exception as error:  # noqa: BLE001 -- raised below, after the other scores
                    failures.append(error)
        if failures:
            raise ExceptionGroup("LangSmith did not accept all feedback", failures)

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
            from langsmith.utils import get_tracer_project  # noqa: PLC0415  # LangSmith's users

            project = self._project or get_tracer_project()
            self._session_id = self._client.read_project(project_name=project).id
        return self._session_id
