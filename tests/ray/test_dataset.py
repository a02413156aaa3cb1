"""`evaluate_dataset` on a real Ray: every row is there once, whatever happens to an actor."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deadly import DeadlyJudge, FailingJudge
from loopback import Behaviour, LoopbackServer

from rag_eval_integrations import RagEvaluator
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.ray import EvaluatorConfig, done_keys, evaluate_dataset, summary_of
from rag_eval_integrations.records import Evaluation, from_line
from rag_eval_integrations.testing import labels_reply

RAYS_OWN = pytest.mark.filterwarnings("ignore")  # many of them
pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(900), RAYS_OWN]


def rows(count: int, **more: Any) -> list[dict[str, Any]]:
    return [
        {"id": str(at), "question": f"When does ferry {at} leave?", **more,
         "documents": [f"Ferry {at} leaves at nine. It is blue."],
         "response": f"Ferry {at} leaves at nine."}
        for at in range(count)
    ]  # fmt: skip


def written(path: Path, found: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in found))
    return path


def of(results: Any) -> dict[str, Evaluation]:
    lines = [row["evaluation"] for row in results.take_all()]
    found = [from_line(Evaluation, line) for line in lines]
    assert len({one.id for one in found}) == len(found)
    return {str(one.id): one for one in found}


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_rows_of_files_become_rows_of_files(started_ray: Any, tmp_path: Path, kind: str) -> None:
    """The same scores as here, one row per call, kept columns beside them; and their sums."""
    data = started_ray.data
    ds = data.read_json(str(written(tmp_path / "calls.jsonl", rows(200, number=7))))
    if kind == "parquet":
        ds.write_parquet(str(tmp_path / "calls"))
        ds = data.read_parquet(str(tmp_path / "calls"))

    results = evaluate_dataset(ds, EvaluatorConfig(), concurrency=1, keep=["number"])
    out = str(tmp_path / "evals")
    (results.write_json if kind == "json" else results.write_parquet)(out)

    again = (data.read_json if kind == "json" else data.read_parquet)(out)
    found = again.take_all()
    here = RagEvaluator()
    assert sorted(int(row["id"]) for row in found) == list(range(200))
    assert {row["number"] for row in found} == {7}
    for row in found[:5]:
        evaluation = from_line(Evaluation, row["evaluation"])
        assert evaluation.fingerprint == here.fingerprint
        assert row["adherence"] == evaluation.scores["adherence"].value
        assert row["row_key"] == evaluation.row_key
    summary = summary_of(again)
    assert (summary.calls, summary.failed) == (200, 0)
    mean = summary.means.mean("adherence")
    assert mean is not None
    assert mean.mean == pytest.approx(sum(row["adherence"] for row in found) / 200)


def test_as_many_actors_as_cpus_do_not_starve_the_reading(started_ray: Any, tmp_path: Path) -> None:
    """They reserve no CPU then."""
    ds = started_ray.data.read_json(str(written(tmp_path / "calls.jsonl", rows(40))))

    assert len(of(evaluate_dataset(ds, EvaluatorConfig(), concurrency=2))) == 40
    with pytest.raises(ConfigurationError, match="`concurrency`"):
        evaluate_dataset(ds, EvaluatorConfig(), concurrency=0)


def test_bad_rows_are_rows_and_a_process_that_dies_costs_none(
    started_ray: Any, tmp_path: Path
) -> None:
    """A call that kills its process once is scored, as are all around it."""
    found = rows(40)
    found[3]["question"] = f"once {tmp_path / 'killed'}"
    found[12]["documents"] = None
    found[30]["response"] = None
    ds = started_ray.data.from_items(found)

    results = evaluate_dataset(
        ds, EvaluatorConfig(DeadlyJudge()), concurrency=1, batch_size=16
    ).materialize()

    evaluations = of(results)
    assert (tmp_path / "killed").exists()
    assert len(evaluations) == 40
    failed = {key for key, one in evaluations.items() if one.error is not None}
    assert failed <= {"12", "row 13"}
    assert evaluations["3"].scores["adherence"].value is not None
    assert evaluations["30"].scores["adherence"].value is None
    good = [one for one in evaluations.values() if one.scores["adherence"].value is not None]
    assert len(good) >= 38
    assert summary_of(results).failed == len(failed)


def test_a_call_that_always_kills_ends_the_job(started_ray: Any) -> None:
    """With Ray's error, instead of process after process without end."""
    found = rows(4)
    found[2]["question"] = "a deadly one"
    ds = started_ray.data.from_items(found)

    with pytest.raises(started_ray.exceptions.RayError):
        evaluate_dataset(ds, EvaluatorConfig(DeadlyJudge()), concurrency=1).materialize()


def test_a_run_goes_on_from_what_was_written(started_ray: Any, tmp_path: Path) -> None:
    """Failed calls are evaluated again and count once; scored ones are not evaluated again."""
    data, out = started_ray.data, str(tmp_path / "evals")
    evaluate_dataset(data.from_items(rows(60)[:5]), EvaluatorConfig(), concurrency=1).write_parquet(
        out
    )
    failing = EvaluatorConfig(FailingJudge())
    evaluate_dataset(data.from_items(rows(60)[5:7]), failing, concurrency=1).write_parquet(out)
    done = done_keys(data.read_parquet(out))
    assert len(done) == 5
    assert summary_of(data.read_parquet(out)).failed == 2

    results = evaluate_dataset(data.from_items(rows(60)), EvaluatorConfig(), done=done)
    results.write_parquet(out)

    again = data.read_parquet(out)
    assert again.count() == 5 + 2 + 55
    summary = summary_of(again)
    assert (summary.calls, summary.failed) == (60, 0)
    assert len(done_keys(again)) == 60


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(Behaviour(content=labels_reply(["0a"], ["a"]))) as running:
        yield running


def test_all_actors_keep_one_limit(
    started_ray: Any, server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two actors ask a real server over HTTP; it never sees more than the limit in a minute."""
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    ds = started_ray.data.from_items(rows(90)).repartition(6)
    config = EvaluatorConfig("openai:m", base_url=server.base_url, rpm=60, max_concurrency=16)

    results = evaluate_dataset(ds, config, concurrency=2, batch_size=15).materialize()

    summary = summary_of(results)
    assert (summary.calls, summary.failed) == (90, 0)
    assert summary.usage.requests == 90
    times = server.times
    assert len(times) == 90
    assert max(sum(0 <= other - one < 60 for other in times) for one in times) <= 60


# Ray 2.50 asks a UDP socket for its address towards this host, to which nothing is sent.
@pytest.mark.allow_hosts(["127.0.0.1", "::1", "localhost", "8.8.8.8"])
def test_two_machines_share_the_work(tmp_path: Path) -> None:
    """Two nodes of one CPU each: reading is not starved, and actors run on both."""
    import ray
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": 120 * 2**20, "include_dashboard": False}
    ray.shutdown()
    cluster = Cluster(initialize_head=True, head_node_args=node)
    try:
        cluster.add_node(num_cpus=1, object_store_memory=120 * 2**20)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        ds = ray.data.read_json(str(written(tmp_path / "calls.jsonl", rows(200))))
        results = evaluate_dataset(ds.repartition(8), EvaluatorConfig(), concurrency=2)
        assert len(of(results)) == 200
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert threading.active_count() < 50
