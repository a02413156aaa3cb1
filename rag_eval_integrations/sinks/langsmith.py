"""A sink that posts scores to LangSmith as feedback on the captured runs."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.sinks._traced import Traced, TraceSink, client_library, score_id
from rag_eval_integrations.sinks.sink import PartlyWrittenError

if TYPE_CHECKING:
    from langsmith import Client

_ATTEMPTS = 1  # a failed batch is repeated anyway; LangSmith's default of 10 takes minutes
_IN_VAIN = 2
"""Scores of a call without success after which its others are not tried."""


def langsmith_client() -> Any:
    """Make the tool's client, with the address and keys of the environment.

    Raises:
        MissingDependencyError: it is not installed.
    """
    return client_library("langsmith", "langsmith", "langchain").Client()


class LangSmithSink(TraceSink):
    """Posts every score as feedback on the run of its call.

    A sink for `BackgroundEvaluator`, which calls it from a thread of its own. The feedback's key is
    the score's name. A score without a value is posted without one, and the comment says why:
    LangSmith leaves it out of averages and shows it in the list of runs. An evaluation without a
    run is left out and counted. An evaluation that is posted twice gives one feedback.

    A client that samples (`tracing_sampling_rate`) drops the feedback of runs that it leaves out,
    which is logged once.

    Args:
        client: a `langsmith.Client`; by default one that reads `LANGSMITH_API_KEY`.
        project: name of the project to which the runs are traced; by default LangSmith's own
            default (`LANGSMITH_PROJECT`, or `default`). It is looked up once, by the first batch.
        session_id: id of the project, if it is known; then nothing is looked up.
        extend_trace_retention: True to have feedback keep its trace for LangSmith's longer time,
            which costs more. The client then sends it in batches, and only logs what fails.
        metadata: names of fields of the call's metadata that go along in the feedback's source.
        texts: True to send reasons, which may quote questions, documents and responses; otherwise
            the comment names the keys of sentences.

    Raises:
        ConfigurationError: `client` is not a LangSmith client, or `metadata` not a list of names.
        MissingDependencyError: without a `client`, the extra `langchain` is not installed.
    """

    tool = "LangSmith"
    sources = ("langsmith",)

    def __init__(
        self,
        client: Client | None = None,
        *,
        project: str | None = None,
        session_id: UUID | str | None = None,
        extend_trace_retention: bool = False,
        metadata: Sequence[str] = (),
        texts: bool = False,
    ) -> None:
        super().__init__(metadata, texts)
        if client is None:
            client = langsmith_client()
        if not callable(getattr(client, "create_feedback", None)):
            raise ConfigurationError("client", client, "should be a langsmith.Client")
        self._client: Any = client
        self._project = project
        self._session_id = session_id
        self._extend = extend_trace_retention
        # Older releases (0.3.45) do not know all of them, and warn of unknown arguments.
        self._takes = inspect.signature(self._client.create_feedback).parameters
        self._sampled: float | None = getattr(client, "tracing_sample_rate", None)

    def traced(self, evaluation: Evaluation) -> Traced | None:
        """Return an evaluation with its run: that of its trace, or of the captured LangChain run.

        None for a call without capture, or without either.
        """
        capture = evaluation.capture
        if capture is None or "langsmith" in capture.traces:
            return super().traced(evaluation)
        if capture.framework == "langchain" and capture.run_id:
            return Traced(evaluation, None, capture.run_id)
        return None

    def _prepare(self) -> None:
        """Look up the project once, unless its id is known; warn once of a client that samples."""
        if self._sampled is not None and self._sampled < 1:
            message = (
                "LangSmithSink: the client samples runs (tracing_sampling_rate = %s) and drops the "
                "feedback of the others; give the sink a client of its own to send it all"
            )
            self._notices.log("sampled", message, self._sampled)
        if self._session_id is None and "session_id" in self._takes:
            utils = client_library("langsmith.utils", "langsmith", "langchain")
            project = self._project or utils.get_tracer_project()
            self._session_id = self._client.read_project(project_name=project).id

    def _refused(self, error: Exception) -> bool:
        """Return whether LangSmith does not know the run, or not yet."""
        return super()._refused(error) or type(error).__name__ == "LangSmithNotFoundError"

    def _send(self, group: Sequence[Traced]) -> None:
        """Send the scores of a call; if the first ones all fail, the others are not tried.

        Raises:
            PartlyWrittenError: some scores are not posted; it names the evaluation.
            Exception: all failed, or the first two, and the others were not tried.
        """
        (traced,) = group
        failures: list[Exception] = []
        for tried, name in enumerate(traced.evaluation.scores):
            if len(failures) == tried >= _IN_VAIN:
                raise failures[0]
            try:
                self._post(traced, name)
            except Exception as error:  # noqa: BLE001 -- raised below, after the other scores
                failures.append(error)
        if self._extend:
            self._client.flush()
        if failures and len(failures) == len(traced.evaluation.scores):
            raise failures[0]
        if failures:
            raise PartlyWrittenError([traced.evaluation], failures[0]) from failures[0]

    def _post(self, traced: Traced, name: str) -> None:
        """Post a score as feedback.

        Arguments that an older client does not know are left out.
        """
        score = traced.evaluation.scores[name]
        given = {
            "trace_id": traced.trace_id,
            "session_id": self._session_id,
            "extend_trace_retention": self._extend,
        }
        facts = self._facts(score, traced.evaluation)
        self._client.create_feedback(
            traced.span_id,
            name,
            score=score.value,
            comment=self._comment(score),
            source_info={field: fact for field, fact in facts.items() if fact is not None},
            feedback_source_type="model",
            feedback_id=score_id(traced.evaluation, name),
            stop_after_attempt=_ATTEMPTS,
            **{field: value for field, value in given.items() if field in self._takes},
        )
