"""The TRACe judge and G-Eval against real servers: each row ends, and says what it cost.

The models have random weights, so nearly all rows are unscored. What is tested is everything else:
what a server refuses, ignores and gives, in how many requests, and that no row waits for an outage
that is none.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from passthrough import PassThrough
from tiny_models import write_gguf, write_transformers

from rag_eval_integrations import Evaluation, RagCall, RagEvaluator, Trace
from rag_eval_integrations.metrics.geval import GEval
from rag_eval_integrations.models.completion import CompletionRequest, Message
from rag_eval_integrations.models.openai import OpenAIModel
from rag_eval_integrations.models.throttling import ThrottledModel

pytestmark = [pytest.mark.slow, pytest.mark.servers]

KEY = "sk-tiny-0123456789abcdef-local"
SCHEMA: Any = {
    "type": "object",
    "properties": {"reason": {"type": "string", "maxLength": 20}, "score": {"type": "integer"}},
    "required": ["reason", "score"],
}
_LLAMA_CPP = """
import sys, time, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.port = sys.argv[1], int(sys.argv[2])
params.n_ctx, params.n_parallel, params.warmup, params.use_jinja = 4096, 1, False, True
server = xllamacpp.Server(params)
time.sleep(3600)
"""


@dataclass(frozen=True)
class Expected:
    """What a server is known to do; the table in docs/endpoints.md says the same."""

    structured_by: str
    schema: str
    logprobs: str
    n: str
    settings: dict[str, Any] = field(default_factory=dict)


SERVERS = {
    "llama-cpp-python": Expected("json_object", "given", "given", "absent"),
    "llama.cpp": Expected("json_schema", "given", "given", "refused"),
    # Slow without a GPU: its answers are kept short.
    "transformers serve": Expected(
        "json_schema", "absent", "absent", "absent", {"extra_body": {"max_tokens": 48}}
    ),
    "LiteLLM": Expected("json_schema", "given", "given", "refused", {"api_key": KEY}),
}


@dataclass
class Running:
    """A server, and what went through to it."""

    name: str
    model: OpenAIModel
    through: PassThrough

    @property
    def expected(self) -> Expected:
        return SERVERS[self.name]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    write_gguf(folder / "tiny.gguf")
    write_transformers(folder / "hf")
    return folder


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def process(words: list[str], port: int, log: Path, **env: str) -> Iterator[str]:
    """Run a server until the block ends; gives its URL as soon as it answers."""
    url = f"http://127.0.0.1:{port}"
    with (
        log.open("wb") as out,
        subprocess.Popen(
            words, stdout=out, stderr=out, env={**os.environ, "HF_HUB_OFFLINE": "1", **env}
        ) as child,
    ):
        try:
            until = time.monotonic() + 180
            while not answers(url):
                assert child.poll() is None, log.read_text(errors="replace")[-2000:]
                assert time.monotonic() < until, log.read_text(errors="replace")[-2000:]
                time.sleep(0.5)
            yield url
        finally:
            child.terminate()


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5):
            return True
    except urllib.error.HTTPError as error:
        return error.code != 503  # llama.cpp while it loads
    except OSError:
        return False


def llama_cpp(models: Path, stack: ExitStack) -> str:
    port = free_port()
    words = [sys.executable, "-c", _LLAMA_CPP, str(models / "tiny.gguf"), str(port)]
    return stack.enter_context(process(words, port, models / "llama_cpp.log"))


@pytest.fixture(scope="module", params=list(SERVERS))
def running(request: pytest.FixtureRequest, models: Path) -> Iterator[Running]:
    name: str = request.param
    programs = Path(sys.executable).parent
    port = free_port()
    model = "tiny"
    with ExitStack() as stack:
        if name == "llama.cpp":
            url = llama_cpp(models, stack)
        elif name == "llama-cpp-python":
            words = [sys.executable, "-m", "llama_cpp.server", "--model", str(models / "tiny.gguf"),
                     "--model_alias", model, "--n_ctx", "4096", "--port", str(port),
                     "--host", "127.0.0.1"]  # fmt: skip
            url = stack.enter_context(process(words, port, models / "llama_cpp_python.log"))
        elif name == "transformers serve":
            model = str(models / "hf")
            words = [str(programs / "transformers"), "serve", model, "--device", "cpu",
                     "--host", "127.0.0.1", "--port", str(port)]  # fmt: skip
            url = stack.enter_context(process(words, port, models / "transformers.log"))
        else:
            behind = llama_cpp(models, stack)
            config = models / "litellm.json"
            routed = {"model": "openai/tiny", "api_base": f"{behind}/v1", "api_key": "none"}
            routes = [{"model_name": model, "litellm_params": routed}]
            config.write_text(
                json.dumps({"model_list": routes, "general_settings": {"master_key": KEY}})
            )
            words = [str(programs / "litellm"), "--config", str(config), "--host", "127.0.0.1",
                     "--port", str(port)]  # fmt: skip
            cost = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
            url = stack.enter_context(process(words, port, models / "litellm.log", **cost))
        through = PassThrough(url)
        stack.callback(through.close)
        made = OpenAIModel(model, base_url=through.base_url, timeout=240, **SERVERS[name].settings)
        yield Running(name, made, through)


def asked(**changes: Any) -> CompletionRequest:
    messages = (Message(role="system", content="Judge."), Message(role="user", content="Well?"))
    return CompletionRequest(messages=messages, max_tokens=48, **changes)


async def test_what_it_takes_gives_and_ignores(running: Running) -> None:
    """A schema, log-probabilities and several answers: each given, refused or ignored, and said."""
    model, expected = running.model, running.expected

    structured = await model.complete(asked(json_schema=SCHEMA, temperature=1.0))
    tokens = await model.complete(asked(top_logprobs=20))
    several = await model.complete(asked(n=3, temperature=1.0))

    can = model.capabilities
    found = Expected(
        can.structured_by,
        can.observed.get("response_format", "refused"),
        can.observed.get("logprobs", "refused"),
        "refused" if {"n"} & {*can.refused, *can.limits} else can.observed.get("n", "?"),
        expected.settings,
    )
    assert found == expected
    assert bool(tokens.tokens) == (expected.logprobs == "given")
    for completion, state in ((structured, expected.schema), (tokens, expected.logprobs)):
        said = [warning for warning in completion.warnings if "accepted, but not given" in warning]
        assert bool(said) == (state == "absent")
    assert several.warnings  # fewer than three answers, or an `n` that was left out
    for lesson in can.refused.values():
        assert "/" not in lesson
        assert "File" not in lesson


async def evaluated(running: Running, what: str, metric: Any) -> tuple[list[Evaluation], int]:
    """Three rows, and the most requests that one took; prints a line for docs/endpoints.md."""
    evaluator = RagEvaluator(ThrottledModel(running.model, deadline=240), metrics=[metric])
    rows, counts = [], []
    for number in range(3):
        before = len(running.through.exchanges)
        rows.append(await evaluator.evaluate(call(number)))
        counts.append(len(running.through.exchanges) - before)
    report(running, what, rows, counts)
    return rows, max(counts)


async def test_every_trace_row_ends(running: Running) -> None:
    """Labelled or unscored with a reason, in a few requests each; no row is an outage."""
    rows, most = await evaluated(running, "TRACe", Trace())

    for row in rows:
        assert row.error is None, row.error
        for score in row.scores.values():
            assert score.status in ("scored", "unscored")
            assert score.status == "scored" or score.reason
            if running.expected.schema == "absent":
                assert any("accepted, but not given" in warning for warning in score.warnings)
    assert most <= 8


async def test_every_g_eval_row_ends(running: Running) -> None:
    """The same for G-Eval, whose first requests ask for log-probabilities."""
    rows, _ = await evaluated(running, "G-Eval", GEval.coherence(samples=5, max_tokens=48))

    for row in rows:
        score = row.scores["geval:coherence"]
        assert score.status in ("scored", "unscored"), score.reason


def call(number: int) -> RagCall:
    return RagCall(
        question=f"When does ferry {number} leave?",
        documents=("The ferry leaves at nine.",),
        response="It leaves at nine.",
    )


def report(running: Running, what: str, rows: list[Evaluation], counts: list[int]) -> None:
    """Print a line of the table in docs/endpoints.md (`pytest -s`)."""
    codes = [next(reversed(row.scores.values())).unscored or "scored" for row in rows]
    statuses = sorted({exchange.status for exchange in running.through.exchanges})
    can = running.model.capabilities
    print(
        f"\n{running.name}: {what}: requests per call {counts}, rows {codes}, statuses {statuses}, "
        f"by {can.structured_by}, observed {dict(can.observed)}, limits {dict(can.limits)}"
    )
