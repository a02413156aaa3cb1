"""`evaluate_dataset`: from a `ray.data.Dataset` of calls to one of evaluations."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rag_eval_integrations.dataset import read_calls
from rag_eval_integrations.dataset._evaluation_table import COLUMNS, score_column, table_of
from rag_eval_integrations.dataset._processes import pickled
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.ray import _cluster
from rag_eval_integrations.ray.config import EvaluatorConfig, config_of
from rag_eval_integrations.records import Evaluation, from_line, to_line
from rag_eval_integrations.report.summary import Summary

if TYPE_CHECKING:
    from ray.data import Dataset

_MOST_ROWS = 1_000
"""Rows of a batch: after so many bad rows, `read_calls` tells several as one."""


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

    A row that is not a call, or whose evaluation fails, is a row with `failed`. A call with which
    the process of an actor dies is evaluated once more, alone, and is such a row if that process
    dies, too. Rows come in the order in which they are finished; `keep` takes their numbers along.

    Args:
        ds: rows as `read_calls` takes them, such as of `ray.data.read_json` or `read_parquet`.
        evaluator_config: what each actor makes its evaluator of. Or an evaluator that can be
            pickled, which has no limits that actors share.
        concurrency: number of actors, from 1; None for the CPUs of the cluster without one, which
            is left to the reading.
        batch_size: rows that an actor evaluates at a time, from 1 to 1,000.
        num_cpus: CPUs that each actor reserves; None for 1 if a CPU is left to the tasks that read
            rows, else 0.
        field_map: as in `read_calls`.
        done: keys of calls to leave out, from `done_keys`.
        keep: names of columns of `ds` to take along.

    Returns:
        A data set with the columns `keep`, `row_key`, `id`, `failed`, `requests`, `prompt_tokens`,
        `completion_tokens`, `cost_usd` (null where it is not known), one for each score (null where
        it has no value) and `evaluation`, a line of EVALS.

    Raises:
        ConfigurationError: for an argument out of its range, a judge or metric that cannot be made
            here or pickled, or actors that would leave no CPU to the reading.
        MissingDependencyError: Ray is not installed.
    """
    ray = _cluster.imported()
    config = config_of(evaluator_config)
    names = config.names if isinstance(config, RagEvaluator) else config.make().names
    available = _cluster.cpus()
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
    reserved = _cluster.cpus_per_actor(concurrency, available, spare=1.0, wanted=num_cpus)
    return ds.map_batches(
        _Evaluate,
        fn_constructor_args=(
            config, names, _cluster.start_permits(config), _cluster.start_attempts(),
            ray.put(frozenset(done)), dict(field_map or {}), tuple(keep),
        ),
        compute=ray.data.ActorPoolStrategy(size=concurrency),
        batch_size=batch_size,
        batch_format="pyarrow",
        num_cpus=reserved,  # restarts and retries without end are Ray Data's default
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
    if failed:  # else one look at the rows is enough: each starts several processes
        known = _cluster.imported().put(frozenset(failed))
        again = results.select_columns(["row_key", "id", "failed"]).map_batches(
            _succeeded, fn_args=(known,), batch_format="pyarrow"
        )
        for batch in again.iter_batches(batch_format="pyarrow"):
            for key in batch["key"].to_pylist():
                failed.pop(key, None)
    for line in failed.values():
        total.add(from_line(Evaluation, line))
    return total


# --- In the tasks


class _Evaluate:
    """An actor of `map_batches`."""

    def __init__(
        self,
        config: EvaluatorConfig | RagEvaluator,
        names: Sequence[str],
        permits: Any,
        attempts: Any,
        done: Any,
        field_map: Mapping[str, str],
        keep: Sequence[str],
    ) -> None:
        ray = _cluster.imported()
        self._names, self._keep = names, keep
        self._done: frozenset[bytes] = ray.get(done) if isinstance(done, ray.ObjectRef) else done
        self._field_map = field_map
        concurrency = 8 if isinstance(config, RagEvaluator) else config.max_concurrency
        self._worker = _cluster.worker_of(config, concurrency, permits, attempts)

    def __call__(self, batch: Any) -> Any:
        lines = list(read_calls(batch, field_map=self._field_map, tell=_silent))
        items = [
            (at, line)
            for at, line in enumerate(lines)
            if line.value is None or _key(line.value.row_key, line.value.id) not in self._done
        ]
        # Ray Data calls this in a thread, where each attempt of a task sees another task id. So a
        # batch is known by the keys and ids of its rows alone.
        evaluations = self._worker.evaluate([line for _, line in items], "")
        return self._table(batch, [at for at, _ in items], evaluations)

    def _table(self, batch: Any, places: list[int], evaluations: Sequence[Evaluation]) -> Any:
        import pyarrow as pa  # noqa: PLC0415  # comes with ray[data]

        table = table_of(map(to_line, evaluations), self._names)
        at = pa.array(places, pa.int64())
        columns = {name: batch[name].take(at) for name in self._keep}
        return pa.table(columns | {name: table[name] for name in table.column_names})


def _silent(mapping: str) -> None:
    """Tell nobody how fields are understood: every batch would."""


def _key(row_key: str, name: str | None) -> bytes:
    text = f"{row_key} {'' if name is None else 'n' + name}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


def _keys(batch: Any) -> list[bytes]:
    names = zip(batch["row_key"].to_pylist(), batch["id"].to_pylist(), strict=True)
    return [_key(row_key, name) for row_key, name in names]


def _sums(batch: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    good, bad = batch.filter(pa.compute.invert(batch["failed"])), batch.filter(batch["failed"])
    part = Summary.of(from_line(Evaluation, line) for line in good["evaluation"].to_pylist())
    lines = dict(zip(_keys(bad), bad["evaluation"].to_pylist(), strict=True))
    return pa.table({"sum": pa.array([pickle.dumps((part, lines))], pa.binary())})


def _succeeded(batch: Any, failed: Any) -> Any:
    """Return which of the keys of failed calls are also those of calls that have not failed."""
    import pyarrow as pa  # noqa: PLC0415

    ray = _cluster.imported()
    known: frozenset[bytes] = ray.get(failed) if isinstance(failed, ray.ObjectRef) else failed
    good = batch.filter(pa.compute.invert(batch["failed"]))
    found = [key for key in _keys(good) if key in known]
    return pa.table({"key": pa.array(found, pa.binary())})
