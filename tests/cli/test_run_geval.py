"""`rag-eval run --metrics geval:…` and `agreement --human`, against a real endpoint on loopback."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from ferries import Command, read, write
from loopback import Body, LoopbackServer, Reply
from scored_tokens import chat_body

from rag_eval_integrations.testing import labels_reply


@pytest.fixture
def calls() -> Path:
    """Four systems' summaries of three documents, with a human's number in the metadata.

    The second document has one number only: no correlation within it.
    """
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
                "expert": {"coherence": 3 if document == 1 else 1 + system},
            },
        }
        for document in range(3)
        for system in range(4)
    ]
    return write(Path("calls.jsonl"), *rows)


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


def test_ready_made_and_own_metrics_beside_trace(rag_eval: Command, calls: Path, out: Path) -> None:
    """One request a score, one for the steps of the own metric, whatever the number of rows.

    Thresholds know the names, and are of the normalised value.
    """
    own = "politeness.geval.yaml"
    Path(own).write_text("criteria: The response is polite.\nparams: [response]\n")
    metrics = ("--metrics", f"trace,geval:coherence, geval:consistency:summary,{own}")
    gate = ("--fail-under", "geval:coherence=0.9")
    with LoopbackServer(respond=respond) as server:
        done = rag_eval("run", calls, "-o", out, *metrics, *gate, judge=server, code=1)
        steps = sum("You write the evaluation steps" in json.dumps(b) for b in server.requests)
        requests = len(server.requests)

    rows = read(out)
    assert [name for name in rows[0].scores if name.startswith("geval:")] == [
        "geval:coherence", "geval:consistency", "geval:politeness",
    ]  # fmt: skip
    assert rows[0].scores["adherence"].value == 1.0
    assert rows[0].scores["geval:coherence"].raw == pytest.approx(2.25)
    assert {row.scores["geval:politeness"].method for row in rows} == {"logprobs"}
    assert (steps, requests) == (1, 1 + 12 * 4)
    assert re.search(r"FAILED geval:coherence: mean 0\.\d{4} is below 0\.9\n", done.err)
    assert "geval:coherence" in done.out


def test_a_mean_over_two_estimators_is_refused(rag_eval: Command, calls: Path, out: Path) -> None:
    """Half of the rows by log-probabilities, half by samples: no gate on that mean."""

    def half(body: Body) -> Reply:
        placeholder = "Summary 0" in json.dumps(body) and body.get("logprobs")
        made = chat_body(['{"score": ', "3", "}"], at={1: {"3": 0.4, "x": 0.6}})
        return Reply.json(made) if placeholder else respond(body)

    words = ("--metrics", "geval:coherence", "--fail-under", "geval:coherence=0")
    with LoopbackServer(respond=half) as server:
        done = rag_eval("run", calls, "-o", out, *words, judge=server, code=1)

    assert "FAILED geval:coherence: no single mean: " in done.err
    methods = {row.scores["geval:coherence"].method for row in read(out)}
    assert methods == {"logprobs", "monte_carlo"}


def test_the_cost_of_a_score_can_be_set(rag_eval: Command, calls: Path) -> None:
    """For presets and files alike; a dry run asks nobody, and its bound follows."""
    Path("tone.geval.yaml").write_text("steps: [Judge the tone.]\nsamples: 7\n")
    words = ("run", calls, "-o", "out.jsonl", "--metrics")
    both, single = (*words, "geval:coherence,tone.geval.yaml"), ("--geval-estimator", "single")
    with LoopbackServer(respond=respond) as server:
        for metrics, options, cost in (
            ("geval:coherence", (), "12 to 252 requests for metrics that send their own requests"),
            ("trace,geval:coherence", (), "prompt tokens, and 12 to 252 requests"),
            (both[-1], single, "24 requests"),
            (both[-1], ("--geval-samples", 5), "24 to 144 requests"),
        ):
            dry = rag_eval(*words, metrics, *options, "--dry-run", judge=server, code=0)
            assert cost in dry.out
        assert server.requests == []
        rag_eval(*both, *single, judge=server, code=0)
        assert len(server.requests) == 24
        refused = rag_eval(*both, "--geval-estimator", "guess", judge=server, code=2)
    assert "`--geval-estimator` = 'guess': use one of auto" in refused.err


@pytest.fixture
def evals(rag_eval: Command, calls: Path, out: Path) -> Path:
    """The calls, scored."""
    with LoopbackServer(respond=respond) as server:
        rag_eval("run", calls, "-o", out, "--metrics", "geval:coherence", judge=server, code=0)
    return out


def test_agreement_with_a_human_at_every_level(rag_eval: Command, calls: Path, evals: Path) -> None:
    """Rows, within documents (one of three has no correlation), systems, by fields of any name.

    Ratings may come without their calls: an id and a number per line are enough.
    """
    words = ("--human", "expert.coherence", "--json")
    content = json.loads(rag_eval("agreement", evals, calls, *words, code=0).out)
    assert content["human"]["geval:coherence"]["n"] == 12
    document = content["human_by_document"]["geval:coherence"]
    assert (document["documents"], document["skipped"]) == (2, 1)
    # 2.25, 3.25, 4.25 and 4.25 against 1 to 4: five pairs of six alike, one tied in the scores.
    kendall = pytest.approx(5 / 30**0.5)
    assert document["kendall"] == kendall
    assert content["human_by_system"]["geval:coherence"]["systems"] == 4
    named = ("--document", "system_id", "--system", "nothing")
    content = json.loads(rag_eval("agreement", evals, calls, *words, *named).out)
    document = content["human_by_document"]["geval:coherence"]
    assert (document["skipped"], document["kendall"]) == (4, None)
    assert "human_by_system" not in content

    rows = [json.loads(line) for line in calls.read_text().splitlines()]
    rated = ({"id": row["id"], **row["metadata"], "stars": n % 5} for n, row in enumerate(rows))
    ratings = write(Path("ratings.jsonl"), *rated)
    content = json.loads(rag_eval("agreement", evals, ratings, *words, code=0).out)
    assert content["joined_by_id"] == 12
    assert content["human_by_document"]["geval:coherence"]["kendall"] == kendall
    rag_eval("agreement", evals, ratings, "--human", "stars", code=0)
