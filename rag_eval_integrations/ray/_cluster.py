"""What is asked of Ray itself: a connection, actors that outlive others, a place for each worker.

`ray` is imported in functions, so that what only counts can be used without it.
"""

from __future__ import annotations

import os
import socket
from types import ModuleType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from rag_eval_integrations.errors import ConfigurationError, MissingDependencyError
from rag_eval_integrations.ray._permits import BlockPermits, PermitBlocks
from rag_eval_integrations.ray._worker import Attempts, Suspect, Worker
from rag_eval_integrations.ray.config import EvaluatorConfig, made

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rag_eval_integrations.evaluator import RagEvaluator

_OBJECTS = 256 * 1024 * 1024
"""Bytes of shared memory of a Ray that we start: it holds the batches on their way."""
_REACHED = 5.0
"""Seconds for a connection to a cluster."""
ACTORS = {"max_restarts": -1, "max_task_retries": -1}
"""Ray starts an actor that died again, and gives it the batch once more: see `_worker`."""


def imported() -> ModuleType:
    """Import Ray with Ray Data.

    Raises:
        MissingDependencyError: it is not installed.
    """
    try:
        import ray  # noqa: PLC0415  # half a second, and an extra
        import ray.data  # noqa: PLC0415
    except ImportError as error:
        raise MissingDependencyError("ray[data]", "ray") from error
    found: ModuleType = ray
    return found


def connect(address: str | None) -> bool:
    """Connect to a cluster, or start one on this machine; return whether it has to be shut down.

    A Ray that is started here listens on this machine only, without dashboard, and sends no usage
    statistics unless RAY_USAGE_STATS_ENABLED says so. Its workers have this process's priority
    unless RAY_worker_niceness says otherwise.

    Args:
        address: of a running cluster (`auto`, `HOST:PORT`); None for RAY_ADDRESS, else for one that
            is started here.

    Raises:
        ConfigurationError: no cluster is there.
    """
    address = address or os.environ.get("RAY_ADDRESS")
    own: dict[str, Any] = {"address": "local"}
    if address is None or address == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read when it is imported
        # Ray's own is 15: beside a busy process of another program, workers would get a 30th of a
        # core, where evaluating without Ray gets half.
        os.environ.setdefault("RAY_worker_niceness", "0")
        own |= {
            "include_dashboard": False, "object_store_memory": _OBJECTS,
            "_node_ip_address": "127.0.0.1",
        }  # fmt: skip
    else:
        own = {"address": address}
        _check_reachable(address)
    ray = imported()
    if ray.is_initialized():
        return False
    try:
        ray.init(**own, logging_level="ERROR", log_to_driver=False)
    except (ConnectionError, OSError, RuntimeError, TimeoutError, ValueError) as error:
        why = f"no Ray cluster can be used there: {error}"
        raise ConfigurationError("--address", address, why) from error
    return True


def _check_reachable(address: str) -> None:
    """Check that somebody listens at an address: Ray itself tries for minutes.

    Raises:
        ConfigurationError: nobody does.
    """
    host, _, port = address.rpartition("//")[2].rpartition(":")
    if not host or not port.isdecimal():
        return  # `auto`, or what Ray will refuse by itself
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_REACHED).close()
    except (OSError, OverflowError) as error:
        why = f"no Ray cluster can be used there: {error}"
        raise ConfigurationError("--address", address, why) from error


def cpus() -> float:
    """Return the CPUs of the cluster, as Ray counts them."""
    return float(imported().cluster_resources().get("CPU", 0.0))


def nodes() -> int:
    """Return the number of machines that are up."""
    return sum(bool(node["Alive"]) for node in imported().nodes())


def cpus_per_actor(
    actors: int, available: float, *, spare: float, wanted: float | None = None
) -> float:
    """Return the CPUs that each actor reserves.

    Actors that reserve every CPU would leave none to the tasks that read the rows, which then wait
    for the actors that wait for rows. Where there is no room, actors reserve none: they are
    scheduled all the same, and share the cores with the reading.

    Args:
        actors: number of actors, from 1.
        available: CPUs of the cluster.
        spare: CPUs that have to be left.
        wanted: what a user asked for; None for 1 where there is room, else 0.

    Raises:
        ConfigurationError: what a user asked for leaves too little.
    """
    if wanted is None:
        return 1.0 if actors + spare <= available else 0.0
    if not 0 <= wanted < float("inf"):
        raise ConfigurationError("num_cpus", wanted, "use a number from 0")
    if actors * wanted + spare > available:
        raise ConfigurationError(
            "num_cpus", wanted, f"{actors} actors reserve {actors * wanted:g} of {available:g} "
            f"CPUs, and the tasks that read rows need {spare:g}: they would wait for each other "
            "for ever. Use fewer actors or a smaller number, such as 0",
        )  # fmt: skip
    return wanted


# --- Actors that outlive the workers


def start_permits(config: EvaluatorConfig | RagEvaluator) -> Any:
    """Start the actor that gives out permits; None where no limit is shared."""
    if not isinstance(config, EvaluatorConfig) or not config.limited:
        return None
    actor = imported().remote(num_cpus=0, **ACTORS)(_Permits)
    return actor.options(name=f"rag-eval-permits-{uuid4().hex}").remote(config.rpm, config.tpm)


class _Permits(PermitBlocks):
    """`PermitBlocks` in an actor; one that was started again does not know what it gave out."""

    def __init__(self, rpm: float | None, tpm: float | None) -> None:
        context = imported().get_runtime_context()
        super().__init__(rpm, tpm, all_taken=bool(context.was_current_actor_reconstructed))


def start_attempts() -> Any:
    """Start the actor that holds `Attempts`."""
    actor = imported().remote(num_cpus=0, **ACTORS)(Attempts)
    return actor.options(name=f"rag-eval-attempts-{uuid4().hex}").remote()


class _RemoteAttempts:
    """Asks `Attempts` in its actor."""

    def __init__(self, actor: Any) -> None:
        self._actor, self._get = actor, imported().get

    def begin(self, batch: str) -> Suspect | None:
        found: Suspect | None = self._get(self._actor.begin.remote(batch))
        return found

    def alone(self, batch: str, place: int, rows: Mapping[int, str]) -> None:
        self._get(self._actor.alone.remote(batch, place, dict(rows)))

    def end(self, batch: str) -> None:
        self._get(self._actor.end.remote(batch))


def worker_of(
    config: EvaluatorConfig | RagEvaluator, max_concurrency: int, permits: Any, attempts: Any
) -> Worker:
    """Make the worker of the actor that this process is."""
    shared = None if permits is None else BlockPermits(permits.block.remote)
    return Worker(made(config, shared), max_concurrency, _RemoteAttempts(attempts))
