"""`rag-eval run --metrics geval:…` and `agreement --human`, against a real endpoint on loopback."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from ferries import Command, read
from loopback import Body, LoopbackServer, Reply
from scored_tokens import chat_body

from rag_eval_integrations.testing import labels_reply

SYSTEMS, DOCUMENTS = 4, 3


def human(document: int, system: int) -> int:
    """The second document has one number only: no correlation within it."""
    return 3 if document == 1 else 1 + system


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """Four systems' summaries of three documents, with a human's number in the metadata."""
    path = tmp_path / "calls.jsonl"
    rows = [
        {
            "id": f"{document}/{system}",
            "question": "Summarise.",
            "documents": [f"Document {document}."],
            "response": f"Summary {document} by {system}.",
            "reference": "A summary.",
            "metadata": {
                "doc_id": f"d{document}",
                "system_id": f"s{system}",
                "expert": {"coherence": human(document, system)},
            },
        }
        for document in range(DOCUMENTS)
        for system in range(SYSTEMS)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def respond(body: Body) -> Reply:
    """Scores by system: 2 to 5; steps and labels where these are asked for."""
    asked = json.dumps(body)
    if "You write the evaluation steps" in asked:
        return Reply.json(chat_body(['{"steps": ["Judge it."]}']))
    if "relevance_explanation" in asked:
        return Reply.json(chat_body([labels_reply(["0a"], ["a"])]))
    found = re.search(r"Summary \d by (\d)", asked)
    if found is None:
        return Reply(status=404)
    system = int(found[1])
    pieces = ['{"reason": "', "Fine", '.", "score": ', str(2 + system), "}"]
    if not body.get("logprobs"):
        return Reply.json(chat_body(*[pieces] * body.get("n", 1)))
    other = 2 if system == 3 else 3 + system
    return Reply.json(chat_body(pieces, at={3: {str(2 + system): 0.75, str(other): 0.25}}))


def judged(server: LoopbackServer) -> list[str]:
    return ["--judge", "openai:small", "--base-url", server.base_url]


def test_ready_made_and_own_metrics_beside_trace(
    rag_eval: Command, calls: Path, tmp_path: Path
) -> None:
    """One request a score, one for the steps of the own metric, whatever the number of rows."""
    own = tmp_path / "politeness.geval.yaml"
    own.write_text("criteria: The response is polite.\nparams: [response]\n")
    out = tmp_path / "evals.jsonl"
    with LoopbackServer(respond=respond) as server:
        done = rag_eval(
            "run", calls, "-o", out, *judged(server),
            "--metrics", f"trace,geval:coherence, geval:consistency:summary,{own}",
        )  # fmt: skip
        steps = sum("You write the evaluation steps" in json.dumps(b) for b in server.requests)
        requests = len(server.requests)

    assert done.code == 0, done.err
    rows = read(out)
    assert [name for name in rows[0].scores if name.startswith("geval:")] == [
        "geval:coherence", "geval:consistency", "geval:politeness",
    ]  # fmt: skip
    assert rows[0].scores["adherence"].value == 1.0
    assert rows[0].scores["geval:coherence"].raw == pytest.approx(2.25)
    assert {row.scores["geval:politeness"].method for row in rows} == {"logprobs"}
    assert (steps, requests) == (1, 1 + 12 * 4)
    assert "geval:coherence" in done.out


def test_thresholds_know_the_names(rag_eval: Command, calls: Path, tmp_path: Path) -> None:
    """`--fail-under geval:NAME=VALUE`, on the normalised value."""
    words = [
        "run",
        calls,
        "-o",
        tmp_path / "out.jsonl",
        "--overwrite",
        "--metrics",
        "geval:coherence",
    ]
    with LoopbackServer(respond=respond) as server:
        low = rag_eval(*words, *judged(server), "--fail-under", "geval:coherence=0.4")
        high = rag_eval(*words, *judged(server), "--fail-under", "geval:coherence=0.9")
        unknown = rag_eval(*words, *judged(server), "--fail-under", "coherence=0.9")

    assert (low.code, high.code, unknown.code) == (0, 1, 2)
    assert re.search(r"FAILED geval:coherence: mean 0\.\d{4} is below 0\.9\n", high.err)


def test_a_mean_over_two_estimators_is_refused(
    rag_eval: Command, calls: Path, tmp_path: Path
) -> None:
    """Half of the rows by log-probabilities, half by samples: no gate on that mean."""

    def half(body: Body) -> Reply:
        placeholder = "Summary 0" in json.dumps(body) and body.get("logprobs")
        made = chat_body(['{"score": ', "3", "}"], at={1: {"3": 0.4, "x": 0.6}})
        return Reply.json(made) if placeholder else respond(body)

    with LoopbackServer(respond=half) as server:
        done = rag_eval(
            "run", calls, "-o", tmp_path / "out.jsonl", "--metrics", "geval:coherence",
            *judged(server), "--fail-under", "geval:coherence=0",
        )  # fmt: skip

    assert done.code == 1
    assert "FAILED geval:coherence: no single mean: " in done.err
    methods = {row.scores["geval:coherence"].method for row in read(tmp_path / "out.jsonl")}
    assert methods == {"logprobs", "monte_carlo"}


@pytest.mark.parametrize(
    ("metrics", "words"),
    [
        ("geval:coherence", "12 to 252 requests for metrics that send their own requests"),
        ("trace,geval:coherence", "prompt tokens, and 12 to 252 requests"),
    ],
)
def test_a_dry_run_counts_what_would_be_asked(
    rag_eval: Command, calls: Path, tmp_path: Path, metrics: str, words: str
) -> None:
    """And asks nobody."""
    with LoopbackServer() as server:
        done = rag_eval(
            "run", calls, "-o", tmp_path / "out.jsonl", "--metrics", metrics, *judged(server),
            "--dry-run",
        )  # fmt: skip
        assert server.requests == []

    assert done.code == 0
    assert words in done.out


def test_the_cost_of_a_score_can_be_set(rag_eval: Command, calls: Path, tmp_path: Path) -> None:
    """For presets and files alike; the dry run's bound follows."""
    tone = tmp_path / "tone.geval.yaml"
    tone.write_text("steps: [Judge the tone.]\nsamples: 7\n")

    def run(*words: object) -> Any:
        metrics = ("--metrics", f"geval:coherence,{tone}")
        with LoopbackServer(respond=respond) as server:
            done = rag_eval(
                "run", calls, "-o", tmp_path / "out.jsonl", "--overwrite", *metrics, *words,
                *judged(server),
            )  # fmt: skip
            return done, len(server.requests)

    single = ("--geval-estimator", "single")
    assert "24 requests" in run(*single, "--dry-run")[0].out
    assert "24 to 144 requests" in run("--geval-samples", 5, "--dry-run")[0].out
    done, asked = run(*single)
    assert (done.code, asked) == (0, 24)
    refused, _ = run("--geval-estimator", "guess")
    assert refused.code == 2
    assert "`--geval-estimator` = 'guess': use one of auto" in refused.err


@pytest.fixture
def evals(rag_eval: Command, calls: Path, tmp_path: Path) -> Path:
    """The calls, scored."""
    out = tmp_path / "evals.jsonl"
    with LoopbackServer(respond=respond) as server:
        words = ["--metrics", "geval:coherence"]
        assert rag_eval("run", calls, "-o", out, *words, *judged(server)).code == 0
    return out


def test_agreement_with_a_human_at_every_level(rag_eval: Command, calls: Path, evals: Path) -> None:
    """Rows, within documents (one of three has no correlation), systems, by fields of any name."""
    done = rag_eval("agreement", evals, calls, "--human", "expert.coherence", "--json")

    assert done.code == 0, done.err
    content = json.loads(done.out)
    assert content["human"]["geval:coherence"]["n"] == 12
    document = content["human_by_document"]["geval:coherence"]
    assert (document["documents"], document["skipped"]) == (2, 1)
    # 2.25, 3.25, 4.25 and 4.25 against 1 to 4: five pairs of six alike, one tied in the scores.
    assert document["kendall"] == pytest.approx(5 / 30**0.5)
    assert content["human_by_system"]["geval:coherence"]["systems"] == 4
    named = ("--document", "system_id", "--system", "nothing")
    done = rag_eval("agreement", evals, calls, "--human", "expert.coherence", *named, "--json")
    content = json.loads(done.out)
    document = content["human_by_document"]["geval:coherence"]
    assert (document["skipped"], document["kendall"]) == (4, None)
    assert "human_by_system" not in content


def test_ratings_may_come_without_their_calls(
    rag_eval: Command, calls: Path, evals: Path, tmp_path: Path
) -> None:
    """An id and a number a line are enough; they are joined by the id."""
    ratings = tmp_path / "ratings.jsonl"
    rows = [json.loads(line) for line in calls.read_text().splitlines()]
    ratings.write_text(
        "".join(
            json.dumps({"id": row["id"], **row["metadata"], "stars": n % 5}) + "\n"
            for n, row in enumerate(rows)
        )
    )

    done = rag_eval("agreement", evals, ratings, "--human", "expert.coherence", "--json")

    content = json.loads(done.out)
    assert (done.code, content["joined_by_id"]) == (0, 12)
    assert content["human_by_document"]["geval:coherence"]["kendall"] == pytest.approx(5 / 30**0.5)
    assert rag_eval("agreement", evals, ratings, "--human", "stars").code == 0
