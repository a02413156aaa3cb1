"""`evaluate_dataset`: from a `ray.data.Dataset` of calls to one of evaluations, by actors."""

from __future__ import annotations

import asyncio
import hashlib
import math
import pickle
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from rag_eval_integrations.dataset import evaluate_calls, read_calls
from rag_eval_integrations.dataset.files import COLUMNS, score_column, table_of
from rag_eval_integrations.dataset.stream import pickled
from rag_eval_integrations.errors import ConfigurationError, extra, whole_number
from rag_eval_integrations.evaluations.summary import Summary
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.judges import Judge, judge_from
from rag_eval_integrations.judges._named import asks_endpoint, named_judge
from rag_eval_integrations.judges.judge import AnyJudge
from rag_eval_integrations.metrics import Metric
from rag_eval_integrations.models import Model
from rag_eval_integrations.models.completion import model_base
from rag_eval_integrations.models.openai._address import address_of
from rag_eval_integrations.models.throttling import LocalPermits, Permits, ThrottledModel
from rag_eval_integrations.records import Evaluation, from_line, to_line
from rag_eval_integrations.sentences import Splitter

if TYPE_CHECKING:
    from pydantic import JsonValue
    from ray.data import Dataset


@dataclass(frozen=True)
class EvaluatorConfig:
    """Configuration of the evaluator that each actor makes; it is pickled for other processes.

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
    flags: bool | None = None
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
        whole_number("max_concurrency", self.max_concurrency)
        if isinstance(self.judge, str) and asks_endpoint(self.judge):
            if self.base_url:
                address_of(self.base_url)
            return
        judge_text = repr(self.judge) if isinstance(self.judge, str) else type(self.judge).__name__
        for name in ("base_url", "timeout", "max_tokens", "extra_body", "deadline"):
            value = getattr(self, name)
            if value is not None:
                raise ConfigurationError(
                    name, value, f"is for openai:MODEL, not for judge {judge_text}"
                )

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
            """Make the model of an endpoint, with the settings and the shared permits."""
            return judge_from(
                name,
                base_url=self.base_url,
                timeout=self.timeout,
                max_tokens=self.max_tokens,
                extra_body=self.extra_body,
                deadline=self.deadline,
                permits=permits,
            )

        if isinstance(self.judge, str):
            labeller = named_judge(self.judge, "judge", endpoint)
            own = asks_endpoint(self.judge)
        else:
            labeller, own = judge_from(self.judge), False
        if self.limited and not own:
            labeller = self._throttled(labeller, permits)
        return RagEvaluator(labeller, self.metrics, splitter=self.splitter, flags=self.flags)

    def _throttled(self, labeller: Judge | Model, permits: Permits | None) -> Model:
        """Limit the rate of a model; refuse a judge, or a model with limits of its own.

        Raises:
            ConfigurationError: it is a judge, or retries by itself.
        """
        name, value = ("rpm", self.rpm) if self.rpm is not None else ("tpm", self.tpm)
        if isinstance(labeller, Judge):
            raise ConfigurationError(
                name, value, f"judge {labeller.name} keeps no limit; a model does"
            )
        if model_base(labeller).retries:
            raise ConfigurationError(
                name,
                value,
                f"model {labeller.name} has retries and limits of its own; pass "
                "the one inside of it",
            )
        return ThrottledModel(labeller, permits=permits)


def evaluator_of(
    config: EvaluatorConfig | RagEvaluator, permits: Permits | None = None
) -> RagEvaluator:
    """Make the evaluator of an actor; an evaluator is returned as it is."""
    return config if isinstance(config, RagEvaluator) else config.make(permits)


def config_of(config: object) -> EvaluatorConfig | RagEvaluator:
    """Check a user's configuration, and return it with a tuple of metrics.

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


_MOST_ROWS = 1_000
"""Rows of a batch: after so many bad rows, `read_calls` tells several as one."""
_MOST_DEATHS = 3
"""How often Ray gives a batch out again with which a process died; it would do so for ever."""


def evaluate_dataset(
    ds: Dataset,
    evaluator_config: EvaluatorConfig | RagEvaluator,
    *,
    concurrency: int | None = None,
    batch_size: int = 64,
    num_cpus: float | None = None,
    field_map: Mapping[str, str] | None = None,
    done: Collection[bytes] = (),
    keep: Sequence[str] = (),
) -> Dataset:
    """Evaluate a data set of calls on a Ray cluster.

    The result is lazy, as every data set of Ray is: each time it is consumed, all calls are
    evaluated, and a model is paid again. Write it (`write_parquet`, `write_json`) and read what was
    written, or call `materialize()` once.

    A row that is not a call, or whose evaluation fails, is a row with `failed`. A batch with which
    the process of an actor dies is evaluated again, up to three times, after which the job ends
    with Ray's error. Rows come in the order in which they are finished; `keep` takes their numbers
    along.

    Args:
        ds: rows as `read_calls` takes them, such as of `ray.data.read_json` or `read_parquet`.
        evaluator_config: what each actor makes its evaluator of. Or an evaluator that can be
            pickled, which has no limits that actors share.
        concurrency: number of actors, from 1; None for the CPUs of the cluster without one, which
            is left to the reading.
        batch_size: rows that an actor evaluates at a time, from 1 to 1,000.
        num_cpus: CPUs that each actor reserves; None for 1 if a CPU is left to the tasks that read
            rows, else 0. Actors that reserve every CPU wait for those tasks for ever.
        field_map: as in `read_calls`.
        done: keys of calls to leave out, from `done_keys`.
        keep: names of columns of `ds` to take along.

    Returns:
        A data set with the columns `keep`, `row_key`, `id`, `failed`, `requests`, `prompt_tokens`,
        `completion_tokens`, `cost_usd` (null where it is not known), one for each score (null where
        it has no value) and `evaluation`, a line of EVALS.

    Raises:
        ConfigurationError: for an argument out of its range, or a judge or metric that cannot be
            made here or pickled.
        MissingDependencyError: Ray is not installed.
    """
    ray = _import_ray()
    config = config_of(evaluator_config)
    names = config.names if isinstance(config, RagEvaluator) else config.make().names
    available = ray.cluster_resources().get("CPU", 0)
    if concurrency is None:
        concurrency = max(1, int(available) - 1)
    whole_number("concurrency", concurrency)
    whole_number("batch_size", batch_size, 1, _MOST_ROWS)
    taken = sorted(set(keep) & {*COLUMNS, *map(score_column, names)})
    if taken:
        raise ConfigurationError("keep", taken, "is a column of the result; rename it in the rows")
    pickled(config, "evaluator_config", type(config).__name__, ray.cloudpickle.dumps)
    if num_cpus is None:
        num_cpus = 1 if concurrency + 1 <= available else 0
    limit = None
    if isinstance(config, EvaluatorConfig) and config.limited:
        actor = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(_Limit)
        limit = actor.options(name=f"rag-eval-limit-{uuid4().hex}").remote(config.rpm, config.tpm)
    return ds.map_batches(
        _Evaluate,
        fn_constructor_args=(
            config,
            names,
            limit,
            ray.put(frozenset(done)),
            dict(field_map or {}),
            tuple(keep),
        ),
        compute=ray.data.ActorPoolStrategy(size=concurrency),
        batch_size=batch_size,
        batch_format="pyarrow",
        num_cpus=num_cpus,
        max_task_retries=_MOST_DEATHS,
    )


def done_keys(results: Dataset) -> frozenset[bytes]:
    """Return the keys of the calls that need not be evaluated again: those that have not failed.

    Calls of the same content and id have one key.

    Args:
        results: what an earlier run wrote, such as `ray.data.read_parquet(folder)`.
    """
    columns = results.select_columns(["row_key", "id", "failed"])
    return frozenset(
        _key(row["row_key"], row["id"])
        for batch in columns.iter_batches(batch_format="pyarrow")
        for row in batch.to_pylist()
        if not row["failed"]
    )


def summary_of(results: Dataset) -> Summary:
    """Sum up what `evaluate_dataset` gave: means, errors, requests, tokens, cost.

    A call that failed and was evaluated again later, by a run that left out the `done_keys`, counts
    once. A call that failed several times counts once, too.

    Args:
        results: what was written, such as `ray.data.read_parquet(folder)`, or a materialized data
            set: one that is still lazy would evaluate all calls again, up to twice.

    Returns:
        The totals that `rag-eval run` prints.
    """
    total = Summary()
    failed: dict[bytes, str] = {}
    sums = results.map_batches(_sums, batch_format="pyarrow", batch_size=1_024)
    for batch in sums.iter_batches(batch_format="pyarrow"):
        for pickled_sum in batch["sum"].to_pylist():
            part, lines = pickle.loads(pickled_sum)  # of our own tasks
            total.merge(part)
            failed |= lines
    # One look at the rows is enough where none failed: each starts several processes.
    succeeded = done_keys(results) if failed else ()
    for key in failed.keys() - succeeded:
        total.add(from_line(Evaluation, failed[key]))
    return total


def _import_ray() -> ModuleType:
    """Import Ray with Ray Data.

    Raises:
        MissingDependencyError: it is not installed.
    """
    with extra("ray", "ray[data]"):
        import ray  # noqa: PLC0415  # half a second
        import ray.data  # noqa: PLC0415
    return cast(ModuleType, ray)


# --- One limit per minute for many processes: `Limit` in an actor, `SharedPermits` in each of them


ON_THE_WAY = 1.0
"""Seconds that a permit may take from the actor to the request that it lets start."""


class _FarPermits(LocalPermits):
    """Local permits that allow for the time on the way from the actor."""

    _slack = ON_THE_WAY


class Limit:
    """Gives out the permits of one limit, in the order in which they are asked for.

    In any minute no more attempts start than the limit allows, if a permit is on its way for no
    more than a second: one second of every 61 is given up for that.

    Args:
        rpm: requests per minute, above 0; None for no limit.
        tpm: tokens per minute, above 0; None for no limit.
        clock: returns seconds, like `time.monotonic`.
        again: whether an earlier `Limit` may have given out all of it just now.

    Raises:
        ConfigurationError: for a limit out of its range.
    """

    def __init__(
        self,
        rpm: float | None = None,
        tpm: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        again: bool = False,
    ) -> None:
        self._permits = _FarPermits(rpm, tpm, clock=clock)
        self._turn = asyncio.Lock()
        if again:
            requests, tokens = (0 if limit is None else math.ceil(limit) for limit in (rpm, tpm))
            self._permits.start(clock(), tokens, clock(), requests)

    async def take(self, requests: int, tokens: int) -> None:
        """Wait until so many requests and tokens are within the limit, and count them."""
        async with self._turn:
            await self._permits.take(requests, tokens)


class SharedPermits:
    """The `Permits` of one process, each granted by a limit in another process.

    Args:
        ask: `Limit.take`, wherever it is.
    """

    def __init__(self, ask: Callable[[int, int], Awaitable[None]]) -> None:
        self._ask = ask

    async def take(self, requests: int, tokens: int) -> None:
        """Wait until so many requests and tokens are within the shared limit.

        A permit of a request that is cancelled meanwhile is lost, which is safe.

        Raises:
            ConnectionError: the limit does not answer.
        """
        try:
            await self._ask(requests, tokens)
        except Exception as error:
            raise ConnectionError(f"the shared limit does not answer: {error}") from error


# --- In the actors and tasks


class _Limit(Limit):
    """`Limit` in an actor; a restarted one assumes that all of its limit was just given out."""

    def __init__(self, rpm: float | None, tpm: float | None) -> None:
        context = _import_ray().get_runtime_context()
        super().__init__(rpm, tpm, again=bool(context.was_current_actor_reconstructed))


class _Evaluate:
    """Actor of `map_batches` that evaluates a batch of rows."""

    def __init__(
        self,
        config: EvaluatorConfig | RagEvaluator,
        names: Sequence[str],
        limit: Any,
        done: Any,
        field_map: Mapping[str, str],
        keep: Sequence[str],
    ) -> None:
        ray = _import_ray()
        self._names, self._keep, self._field_map = names, keep, field_map
        self._done: frozenset[bytes] = ray.get(done) if isinstance(done, ray.ObjectRef) else done
        self._concurrency = 8 if isinstance(config, RagEvaluator) else config.max_concurrency
        self._evaluator = evaluator_of(
            config, None if limit is None else SharedPermits(limit.take.remote)
        )

    def __call__(self, batch: Any) -> Any:
        import pyarrow as pa  # noqa: PLC0415  # comes with ray[data]

        lines = [
            (place, line)
            for place, line in enumerate(read_calls(batch, field_map=self._field_map, tell=_silent))
            if line.value is None or _key(line.value.row_key, line.value.id) not in self._done
        ]
        calls = [line for _, line in lines]
        evaluations = evaluate_calls(calls, self._evaluator, max_concurrency=self._concurrency)
        table = table_of(map(to_line, evaluations), self._names)
        places = pa.array([place for place, _ in lines], pa.int64())
        columns = {name: batch[name].take(places) for name in self._keep}
        return pa.table(columns | {name: table[name] for name in table.column_names})


def _silent(mapping: str) -> None:
    """Ignore the message about how fields are understood."""


def _key(row_key: str, name: str | None) -> bytes:
    """Return the key of a row: 16 bytes of a hash of its row key and id."""
    text = f"{row_key} {'' if name is None else 'n' + name}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


def _keys(batch: Any) -> list[bytes]:
    """Return the keys of the rows of a batch."""
    names = zip(batch["row_key"].to_pylist(), batch["id"].to_pylist(), strict=True)
    return [_key(row_key, name) for row_key, name in names]


def _sums(batch: Any) -> Any:
    """Return the summary of a batch, and the lines of its failed rows by key.

    They are pickled, in a table of one row.
    """
    import pyarrow as pa  # noqa: PLC0415

    good, bad = batch.filter(pa.compute.invert(batch["failed"])), batch.filter(batch["failed"])
    part = Summary.of(from_line(Evaluation, line) for line in good["evaluation"].to_pylist())
    lines = dict(zip(_keys(bad), bad["evaluation"].to_pylist(), strict=True))
    return pa.table({"sum": pa.array([pickle.dumps((part, lines))], pa.binary())})
