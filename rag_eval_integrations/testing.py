"""Tools for tests of RAG evaluation: assertions, a scripted model, and contracts to inherit.

`assert_scores` and `assert_no_regression` are plain functions for any test runner: scores must
reach minimums, or must not have fallen between two runs. `docs/testing.md` shows them with pytest.
`ScriptedModel` answers from a script and records its requests. `ModelContract` and `JudgeContract`
are test classes: inherit one, override its one factory method, and pytest checks your model or
judge against the rules that every model or judge of the library follows.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Literal

from rag_eval_integrations._asserting import assert_scores as assert_scores
from rag_eval_integrations._lazy import publish
from rag_eval_integrations.errors import ConfigurationError, JudgeRejectedError
from rag_eval_integrations.judges import Judge
from rag_eval_integrations.models import Model
from rag_eval_integrations.models.completion import (
    Choice,
    Completion,
    CompletionRequest,
    Message,
    ModelBase,
)
from rag_eval_integrations.records import (
    Labelling,
    RagCall,
    Sentence,
    Sentences,
    SentencizedCall,
    Usage,
)

if TYPE_CHECKING:
    from rag_eval_integrations.evaluations import Comparison
    from rag_eval_integrations.evaluations._pairing import Source
publish(__name__, ["assert_scores"])

Reply = str | Completion | Exception
"""A text, a whole completion, or an exception to raise."""


class ScriptedModel(ModelBase):
    """A model that answers from a script and records its requests.

    Args:
        replies: the answers in order, each used once (a request beyond the last one raises), or a
            function from request to answer.
        name: name of the model, recorded on every score.
        latency: seconds per answer, at least 0.

    Raises:
        ConfigurationError: `replies` is a single string.
    """

    def __init__(
        self,
        replies: Iterable[Reply] | Callable[[CompletionRequest], Reply],
        *,
        name: str = "scripted",
        latency: float = 0.0,
    ) -> None:
        if isinstance(replies, str):
            raise ConfigurationError("replies", replies, "use a list of replies")
        self.name = name
        self.version = "1"
        self.requests: list[CompletionRequest] = []
        """Every request, in order."""
        self._latency = latency
        script: Iterator[Reply] = iter(()) if callable(replies) else iter(replies)
        self._reply: Callable[[CompletionRequest], Reply | None] = (
            replies if callable(replies) else lambda request: next(script, None)
        )

    def not_sent(self, request: CompletionRequest) -> tuple[str, ...]:
        """Name nothing: the script sees the whole request."""
        return ()

    @property
    def prompts(self) -> list[str]:
        """The messages of every request, joined to one text per request."""
        return [_prompt_of(request) for request in self.requests]

    async def complete(self, request: CompletionRequest) -> Completion:
        """Answer with the next reply of the script.

        Args:
            request: the request; it is appended to `requests`.

        Raises:
            JudgeRejectedError: the script has ended; a retry would not help.
            Exception: the reply is an exception.
        """
        self.requests.append(request)
        await asyncio.sleep(self._latency)
        reply = self._reply(request)
        if reply is None:
            raise JudgeRejectedError("the script has ended")
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Completion):
            return reply
        return Completion(
            choices=(Choice(text=reply, finish_reason="stop"),) * request.n,
            usage=Usage(requests=1, prompt_tokens=1, completion_tokens=1),
        )


def _prompt_of(request: CompletionRequest) -> str:
    """Join the messages of a request to one text."""
    return "\n".join(message.content for message in request.messages)


def labels_reply(
    documents: Iterable[str], response: Iterable[str], *, supported: bool = True
) -> str:
    """Return the JSON reply of a judge that finds every document sentence relevant and used.

    Args:
        documents: keys of the document sentences.
        response: keys of the response sentences.
        supported: whether every response sentence is supported by the documents.
    """
    keys = list(documents)
    return json.dumps(
        {
            "relevance_explanation": "All of it is about the question.",
            "all_relevant_sentence_keys": keys,
            "sentence_support_information": [
                {
                    "response_sentence_key": key,
                    "explanation": "Said in the documents." if supported else "Said nowhere.",
                    "supporting_sentence_keys": keys[:1] if supported else [],
                    "fully_supported": supported,
                }
                for key in response
            ],
            "overall_supported_explanation": "",
            "overall_supported": supported,
            "all_utilized_sentence_keys": keys,
        }
    )


def small_call() -> SentencizedCall:
    """Return a call with three document sentences and two response sentences."""
    documents = (
        "The ferry leaves at nine. It carries forty passengers.",
        "Tickets cost two coins.",
    )
    call = RagCall(
        question="When does the ferry leave?",
        documents=documents,
        response="The ferry leaves at nine. It is painted green.",
    )
    sentences = Sentences(
        documents=(
            Sentence("0a", "The ferry leaves at nine.", 0, 25),
            Sentence("0b", "It carries forty passengers.", 26, 54),
            Sentence("1a", "Tickets cost two coins.", 0, 23),
        ),
        response=(
            Sentence("a", "The ferry leaves at nine.", 0, 25),
            Sentence("b", "It is painted green.", 26, 46),
        ),
    )
    return SentencizedCall(call=call, sentences=sentences, splitter="by hand")


class ModelContract:
    """The rules of every `Model`: inherit it in a test class and override `model`."""

    def model(self, reply: str) -> Model:
        """Return the model under test, which answers every request with `reply`.

        Args:
            reply: the text of every answer.
        """
        raise NotImplementedError  # abstract

    def test_it_is_a_model_with_a_name(self) -> None:
        """It is a `Model`, and its name is not empty."""
        model = self.model("hello")

        assert isinstance(model, Model)
        assert model.name

    async def test_the_answer_is_the_models_text(self) -> None:
        """The text is unchanged, not cut off, and the request is counted."""
        request = CompletionRequest(messages=(Message(role="user", content="Say hello."),))

        completion = await self.model("hello").complete(request)

        assert completion.text == "hello"
        assert completion.finish_reason in ("stop", "unknown")
        assert completion.usage.requests >= 1

    async def test_a_schema_still_gives_the_text(self) -> None:
        """A request with a JSON schema is answered, also by a model without a JSON mode."""
        request = CompletionRequest(
            messages=(
                Message(role="system", content="Reply with JSON."),
                Message(role="user", content="Now."),
            ),
            json_schema={
                "type": "object",
                "properties": {"a": {"type": "integer"}},
                "required": ["a"],
                "additionalProperties": False,
            },
            temperature=0.0,
            max_tokens=50,
            seed=7,
        )

        completion = await self.model('{"a": 1}').complete(request)

        assert completion.parsed == {"a": 1}

    async def test_it_may_be_asked_concurrently(self) -> None:
        """Twenty concurrent requests give twenty answers."""
        model = self.model("hello")
        request = CompletionRequest(messages=(Message(role="user", content="Say hello."),))

        completions = await asyncio.gather(*(model.complete(request) for _ in range(20)))

        assert [completion.text for completion in completions] == ["hello"] * 20

    def test_it_may_be_asked_on_one_loop_after_another(self) -> None:
        """No client stays bound to a loop that has ended."""
        model = self.model("hello")
        request = CompletionRequest(messages=(Message(role="user", content="Say hello."),))

        async def ask() -> str:
            return (await model.complete(request)).text

        assert [asyncio.run(ask()) for _ in range(3)] == ["hello"] * 3


class JudgeContract:
    """The rules of every `Judge`: inherit it in a test class and override `judge`."""

    def judge(self) -> Judge:
        """Return the judge under test; it must be able to label `small_call()`."""
        raise NotImplementedError  # abstract

    def test_it_is_a_judge_with_a_name(self) -> None:
        """It is a `Judge`, and its name is not empty."""
        judge = self.judge()

        assert isinstance(judge, Judge)
        assert judge.name

    async def test_labels_name_only_sentences_that_exist(self) -> None:
        """Labels hold existing keys only, and every response sentence is labelled."""
        call = small_call()

        labelling = await self.judge().label(call)

        labels = labelling.labels
        assert labels is not None
        documents = {sentence.key for sentence in call.documents}
        assert set(labels.all_relevant_sentence_keys) <= documents
        assert set(labels.all_utilized_sentence_keys) <= documents
        for sentence in call.response:
            assert labels.support(sentence.key) != "unlabelled"
        for entry in labels.sentence_support_information:
            assert set(entry.supporting_sentence_keys) <= documents

    async def test_the_judge_says_who_it_is(self) -> None:
        """The labelling carries the judge's name and a version."""
        judge = self.judge()

        labelling = await judge.label(small_call())

        assert labelling.judge.name == judge.name
        assert labelling.judge.version

    async def test_it_may_be_asked_concurrently(self) -> None:
        """Ten concurrent requests for one call give the same labels."""
        judge = self.judge()

        labellings: list[Labelling] = await asyncio.gather(
            *(judge.label(small_call()) for _ in range(10))
        )

        assert all(labelling.labels == labellings[0].labels for labelling in labellings)


def assert_no_regression(
    before: Source | Comparison,
    after: Source | None = None,
    /,
    *,
    unclear: Literal["pass", "fail"] = "pass",
    allow_mixed: bool = False,
    **deltas: float,
) -> Comparison:
    """Fail when a score fell between two runs of the same calls by more than a margin.

        assert_no_regression("main.jsonl", "branch.jsonl", adherence=0.02, completeness=0.05)

    A score fails when the whole 95 % interval of its difference is below minus its delta. The
    message has the figures, and the calls that fell most with their unsupported sentences.

    Args:
        before: the baseline: evaluations, the path of an EVALS file, or a `report.Comparison`,
            of which every run is checked.
        after: the run to check; None with a `Comparison`.
        unclear: `fail` to fail also where there are too few calls to tell.
        allow_mixed: compare scores that were made differently; see `report.compare`.
        deltas: for each score, the fall that does not matter, from 0 to 1. A name that is no
            keyword is passed as `**{"geval:coherence": 0.05}`.

    Returns:
        The comparison.

    Raises:
        AssertionError: a score fell.
        ConfigurationError: an argument cannot be used, the runs cannot be compared, or a score has
            no call with a value in both.
        InputError: a line of a file is not an evaluation.
        OSError: a file cannot be read.
    """
    from rag_eval_integrations.evaluations._gate import check_no_regression  # noqa: PLC0415

    __tracebackhide__ = True  # pytest shows the caller's line
    return check_no_regression(before, after, deltas, unclear=unclear, allow_mixed=allow_mixed)
