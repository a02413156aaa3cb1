"""`evaluate_dataset`: from a `ray.data.Dataset` of calls to one of evaluations."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Collection, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from rag_eval_integrations.dataset import evaluate_calls, read_calls
from rag_eval_integrations.dataset.files import COLUMNS, score_column, table_of
from rag_eval_integrations.dataset.stream import pickled
from rag_eval_integrations.errors import ConfigurationError, extra
from rag_eval_integrations.evaluations.summary import Summary
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.ray._permits import Limit, SharedPermits
from rag_eval_integrations.ray.config import EvaluatorConfig, config_of, made
from rag_eval_integrations.records import Evaluation, from_line, to_line

if TYPE_CHECKING:
    from ray.data import Dataset

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
    ray = _imported()
    config = config_of(evaluator_config)
    names = config.names if isinstance(config, RagEvaluator) else config.make().names
    available = ray.cluster_resources().get("CPU", 0)
    if concurrency is None:
        concurrency = max(1, int(available) - 1)
    for field, number, most in (
        ("concurrency", concurrency, None), ("batch_size", batch_size, _MOST_ROWS),
    ):  # fmt: skip
        if type(number) is not int or number < 1 or (most is not None and number > most):
            up_to = "" if most is None else f" to {most}"
            raise ConfigurationError(field, number, f"use a whole number from 1{up_to}")
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
            config, names, limit, ray.put(frozenset(done)), dict(field_map or {}), tuple(keep),
        ),
        compute=ray.data.ActorPoolStrategy(size=concurrency),
        batch_size=batch_size,
        batch_format="pyarrow",
        num_cpus=num_cpus,
        max_task_retries=_MOST_DEATHS,
    )  # fmt: skip


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
    once.

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


def _imported() -> ModuleType:
    """Import Ray with Ray Data.

    Raises:
        MissingDependencyError: it is not installed.
    """
    with extra("ray", "ray[data]"):
        import ray  # noqa: PLC0415  # half a second
        import ray.data  # noqa: PLC0415
    return cast(ModuleType, ray)


# --- In the actors and tasks


class _Limit(Limit):
    """`Limit` in an actor; one that was started again does not know what it gave out."""

    def __init__(self, rpm: float | None, tpm: float | None) -> None:
        context = _imported().get_runtime_context()
        super().__init__(rpm, tpm, again=bool(context.was_current_actor_reconstructed))


class _Evaluate:
    """An actor of `map_batches`."""

    def __init__(
        self,
        config: EvaluatorConfig | RagEvaluator,
        names: Sequence[str],
        limit: Any,
        done: Any,
        field_map: Mapping[str, str],
        keep: Sequence[str],
    ) -> None:
        ray = _imported()
        self._names, self._keep, self._field_map = names, keep, field_map
        self._done: frozenset[bytes] = ray.get(done) if isinstance(done, ray.ObjectRef) else done
        self._concurrency = 8 if isinstance(config, RagEvaluator) else config.max_concurrency
        self._evaluator = made(config, None if limit is None else SharedPermits(limit.take.remote))

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
    """Ignore a message about how fields are understood."""


def _key(row_key: str, name: str | None) -> bytes:
    """Return the key of a row: a hash of its row key and id."""
    text = f"{row_key} {'' if name is None else 'n' + name}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


def _keys(batch: Any) -> list[bytes]:
    """Return the keys of a batch."""
    names = zip(batch["row_key"].to_pylist(), batch["id"].to_pylist(), strict=True)
    return [_key(row_key, name) for row_key, name in names]


def _sums(batch: Any) -> Any:
    """Return the summary of a batch, and the lines of its failed rows."""
    import pyarrow as pa  # noqa: PLC0415

    good, bad = batch.filter(pa.compute.invert(batch["failed"])), batch.filter(batch["failed"])
    part = Summary.of(from_line(Evaluation, line) for line in good["evaluation"].to_pylist())
    lines = dict(zip(_keys(bad), bad["evaluation"].to_pylist(), strict=True))
    return pa.table({"sum": pa.array([pickle.dumps((part, lines))], pa.binary())})
