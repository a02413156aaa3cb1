"""`EvaluatorConfig`: makes in an actor the evaluator that it makes here."""

from __future__ import annotations

import pickle

import pytest

from rag_eval_integrations import RagEvaluator
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics import Retrieval, Trace
from rag_eval_integrations.models.throttling import LocalPermits
from rag_eval_integrations.ray import EvaluatorConfig
from rag_eval_integrations.ray.dataset import config_of, evaluator_of
from rag_eval_integrations.testing import ScriptedModel, small_call


class CountedPermits(LocalPermits):
    """No limit, but a count."""

    def __init__(self) -> None:
        super().__init__()
        self.taken = 0

    async def take(self, requests: int, tokens: int) -> None:
        self.taken += requests


@pytest.mark.parametrize("name", ["embedded", "openai:m", "cascade:embedded,openai:m"])
def test_a_pickled_configuration_makes_the_same_evaluator(name: str) -> None:
    """By its fingerprint, which `--resume` compares; the settings of the endpoint go along."""
    base_url = "http://127.0.0.1:9/v1" if "openai" in name else None
    config = EvaluatorConfig(name, [Trace(), Retrieval()], base_url=base_url)

    copy = pickle.loads(pickle.dumps(config_of(config)))

    assert evaluator_of(copy).fingerprint == evaluator_of(config).fingerprint
    assert evaluator_of(copy).names == RagEvaluator(metrics=[Trace(), Retrieval()]).names


def test_no_key_is_pickled(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would stand in the cluster's store."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    config = EvaluatorConfig("openai:m", rpm=5)
    config.make()

    assert b"very-secret" not in pickle.dumps(config)


def test_a_model_of_the_users_takes_from_the_shared_limit() -> None:
    """Each attempt takes a permit; without a limit none does."""
    call = small_call().call
    for rpm, count in ((1_000.0, 1), (None, 0)):
        permits = CountedPermits()
        model = ScriptedModel(['{"ok": true}'] * 9)
        model.retries = False

        EvaluatorConfig(model, rpm=rpm).make(permits).evaluate_sync(call)

        assert min(permits.taken, 1) == count


def test_an_evaluator_stays_as_it_is() -> None:
    """It has no limits that actors share."""
    evaluator = RagEvaluator()

    assert config_of(evaluator) is evaluator
    assert evaluator_of(evaluator) is evaluator


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("rpm", {"rpm": 0.0}),
        ("max_concurrency", {"max_concurrency": 0}),
        ("base_url", {"base_url": "http://127.0.0.1/v1"}),
        ("base_url", {"judge": "cascade:embedded,openai:m", "base_url": "127.0.0.1/v1"}),
    ],
)
def test_a_wrong_setting_is_named(field: str, values: dict[str, object]) -> None:
    """As it is made, not in an actor."""
    with pytest.raises(ConfigurationError, match=f"`{field}`"):
        EvaluatorConfig(**values)  # type: ignore[arg-type]


def test_a_limit_that_nobody_would_keep_is_refused() -> None:
    """The embedded judge asks nobody."""
    with pytest.raises(ConfigurationError, match=r"`rpm`.*embedded"):
        EvaluatorConfig(rpm=5).make()
    with pytest.raises(ConfigurationError, match="evaluator_config"):
        config_of("embedded")
