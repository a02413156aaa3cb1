"""`EvaluatorConfig`: what the evaluator of each actor is made of, which can be pickled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.judges import Judge, judge_from
from rag_eval_integrations.judges._named import named_judge
from rag_eval_integrations.judges.judge import AnyJudge, asks_endpoint
from rag_eval_integrations.metrics import Metric
from rag_eval_integrations.models import Model
from rag_eval_integrations.models.completion import model_base
from rag_eval_integrations.models.openai._address import address_of
from rag_eval_integrations.models.throttling import LocalPermits, Permits, ThrottledModel
from rag_eval_integrations.sentences import Splitter

if TYPE_CHECKING:
    from pydantic import JsonValue


@dataclass(frozen=True)
class EvaluatorConfig:
    """What the evaluator of each actor is made of; goes to other processes by pickling.

    It holds no key: an `openai:MODEL` reads OPENAI_API_KEY where the actor runs. On a cluster, set
    it on the nodes or by `ray.init(runtime_env={"env_vars": …})`. Its `repr` leaves out `base_url`
    and `extra_body`, which may hold secrets; who reads Ray's store sees them.

    Args:
        judge: a name as on the command line (`embedded`, `openai:MODEL`, `onnx:PATH`,
            `cascade:A,B`, `MODULE:OBJECT` …), or a `Judge` or `Model` that can be pickled.
        metrics: what to score; None for `[Trace()]`.
        splitter: how to split texts into sentences; None for `Punkt()`.
        flags: whether to look for `suspected_injection`, as in `RagEvaluator`.
        rpm: requests per minute of all actors together, above 0; None for no limit.
        tpm: tokens per minute of all actors together, above 0; None for no limit. Tokens are
            estimated in advance, as in `ThrottledModel`, and not corrected.
        max_concurrency: calls in progress at once per actor, from 1.
        base_url, timeout, max_tokens, extra_body, deadline: of an `openai:MODEL`, as in
            `judge_from`. The query of `base_url` and `extra_body` are pickled too, but not shown.

    Raises:
        ConfigurationError: for a number out of its range, a URL that `OpenAIModel` refuses, or a
            limit for a judge that asks no model or keeps limits of its own.
    """

    judge: AnyJudge = "embedded"
    metrics: Sequence[Metric] | None = None
    splitter: Splitter | None = None
    flags: bool = True
    rpm: float | None = None
    tpm: float | None = None
    max_concurrency: int = 8
    base_url: str | None = field(default=None, repr=False)
    timeout: float | None = None
    max_tokens: int | None = None
    extra_body: Mapping[str, JsonValue] | None = field(default=None, repr=False)
    deadline: float | None = None

    def __post_init__(self) -> None:
        LocalPermits(self.rpm, self.tpm)  # raises what is wrong with them
        if type(self.max_concurrency) is not int or self.max_concurrency < 1:
            raise ConfigurationError(
                "max_concurrency", self.max_concurrency, "use a whole number from 1"
            )
        if isinstance(self.judge, str) and asks_endpoint(self.judge):
            if self.base_url:
                address_of(self.base_url)
            return
        shown = repr(self.judge) if isinstance(self.judge, str) else type(self.judge).__name__
        for name in ("base_url", "timeout", "max_tokens", "extra_body", "deadline"):
            value = getattr(self, name)
            if value is not None:
                raise ConfigurationError(name, value, f"is for openai:MODEL, not for judge {shown}")

    @property
    def limited(self) -> bool:
        """Whether there is a limit that actors share."""
        return self.rpm is not None or self.tpm is not None

    def make(self, permits: Permits | None = None) -> RagEvaluator:
        """Make an evaluator.

        Args:
            permits: of the limit that all actors share; None makes one that keeps no limit.

        Raises:
            ConfigurationError: as `judge_from` and `RagEvaluator` do.
        """

        def endpoint(name: str) -> Judge | Model:
            """Make the model of an endpoint."""
            return judge_from(
                name, base_url=self.base_url, timeout=self.timeout, max_tokens=self.max_tokens,
                extra_body=self.extra_body, deadline=self.deadline, permits=permits,
            )  # fmt: skip

        if isinstance(self.judge, str):
            labeller = named_judge(self.judge, "judge", endpoint)
            own = asks_endpoint(self.judge)
        else:
            labeller, own = judge_from(self.judge), False
        if self.limited and not own:
            labeller = self._limited(labeller, permits)
        return RagEvaluator(labeller, self.metrics, splitter=self.splitter, flags=self.flags)

    def _limited(self, labeller: Judge | Model, permits: Permits | None) -> Model:
        """Limit the rate of a model; refuse one that keeps no limit or its own."""
        name, value = ("rpm", self.rpm) if self.rpm is not None else ("tpm", self.tpm)
        if isinstance(labeller, Judge):
            raise ConfigurationError(
                name, value, f"judge {labeller.name} keeps no limit; a model does"
            )
        if model_base(labeller).retries:
            raise ConfigurationError(
                name, value, f"model {labeller.name} has retries and limits of its own; pass "
                "the one inside of it",
            )  # fmt: skip
        return ThrottledModel(labeller, permits=permits)


def made(config: EvaluatorConfig | RagEvaluator, permits: Permits | None = None) -> RagEvaluator:
    """Make the evaluator of an actor, unless the actor has one."""
    return config if isinstance(config, RagEvaluator) else config.make(permits)


def config_of(config: object) -> EvaluatorConfig | RagEvaluator:
    """Check what a user passed as configuration.

    Raises:
        ConfigurationError: it is neither a configuration nor an evaluator.
    """
    if isinstance(config, RagEvaluator):
        return config
    if not isinstance(config, EvaluatorConfig):
        kind = type(config).__name__
        raise ConfigurationError(
            "evaluator_config", kind, "pass an EvaluatorConfig or RagEvaluator"
        )
    metrics = config.metrics
    return config if metrics is None else replace(config, metrics=tuple(metrics))
