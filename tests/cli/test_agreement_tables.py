"""What `rag-eval agreement` prints, on a narrow screen and into a pipe, and what it refuses."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from by_hand import labels_of
from ferries import Command, write

LONG = "a_data_set_with_a_name_that_is_by_far_longer_than_any_screen_of_eighty_columns_is_wide"


Files = tuple[Path, Path]


def row(number: int, dataset: str | None) -> dict[str, Any]:
    """A call with labels, a published column and a human's rating; every third one is wrong."""
    supported = number % 3 != 0
    second = "Tickets cost two coins." if supported else "A famous admiral painted it green."
    return {
        "id": str(number),
        **({} if dataset is None else {"dataset": dataset}),
        "question": f"When does ferry number {number} leave?",
        "documents": [f"Ferry {number} leaves at nine. Tickets cost two coins. Dogs are welcome."],
        "response": f"Ferry {number} leaves at nine. {second}",
        "expert": number % 5 / 4,
        "doc_id": f"d{number % 4}",
        "ragas_faithfulness": number % 4 / 4,
        "labels": labels_of(
            ["0a", "0b"] if number % 2 else ["0a"],
            ["0a", "0b"] if supported else ["0a"],
            {"a": (["0a"], True), "b": (["0b"] if supported else [], supported)},
        ).model_dump(exclude_unset=True),
    }


@pytest.fixture
def files(rag_eval: Command) -> Callable[..., Files]:
    """Write 24 rows of the data sets given, and what the embedded judge says of them."""

    def written(*datasets: str | None) -> Files:
        rows = (row(number, datasets[number % len(datasets)]) for number in range(24))
        gold, evals = write(Path("gold.jsonl"), *rows), Path("evals.jsonl")
        rag_eval("run", gold, "-o", evals, code=0)
        return evals, gold

    return written


@pytest.fixture
def harbour(files: Callable[..., Files]) -> Files:
    """Those of one data set."""
    return files("harbour")


def line(out: str, start: str, *words: str) -> str:
    """The one line that starts so and holds all the words."""
    lines = (text for text in out.splitlines() if text.strip().startswith(start))
    found = [text for text in lines if all(word in text for word in words)]
    assert len(found) == 1, (start, words, found)
    return found[0]


def shown(figures: dict[str, Any], statistic: str) -> str:
    """A figure of --json as the tables write it, without an interval of no width."""
    low, high = (f"{end:.3f}" for end in figures["ci95"].get(statistic, (0, 0)))
    if low == high:  # also where there is none: too few rows of one kind
        return f" {figures[statistic]:.3f} "
    return f"{figures[statistic]:.3f} ({low} to {high})"


def test_sentences_are_printed_with_their_intervals(
    rag_eval: Command, files: Callable[..., Files], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Precision to κ of every kind: the mean over sets, pooled, baselines, as --json has them.

    What `supported` shares with `unsupported` is printed once.
    """
    pair = files("harbour", "railway")
    content = json.loads(rag_eval("agreement", *pair, "--json").out)
    monkeypatch.setenv("COLUMNS", "80")

    out = rag_eval("agreement", *pair).out

    names = {
        "precision": "precision",
        "recall": "recall",
        "f1": "F1",
        "auroc": "AUROC",
        "kappa": "κ",
    }
    mean = content["mean_over_datasets"]
    for kind in ("unsupported", "supported", "relevant", "utilized"):
        for statistic, title in list(names.items())[: 3 if kind == "supported" else 5]:
            text = line(out, f"{kind} {title} ")
            assert shown(mean["keys"][kind], statistic) in text
            beside = (mean["key_baselines"][name] for name in ("constant", "sentence_length"))
            rest = (content["keys"][kind], *(baseline[kind] for baseline in beside))
            assert text.split()[-3:] == [f"{figures[statistic]:z.3f}" for figures in rest]
    assert "supported κ" not in out.replace("unsupported κ", "")
    assert "f1" in content["keys"]["unsupported"]["ci95"]
    rows = [text.split() for text in out.splitlines() if text.strip().startswith("harbour")]
    for statistic, cells in zip(("precision", "recall", "auroc"), rows[1:], strict=True):
        keys = content["by_dataset"]["harbour"]["keys"]
        kinds = ["unsupported", "supported", "relevant", "utilized"]
        kinds = kinds[::2] if statistic == "auroc" else kinds
        assert (
            cells[2 : 2 + len(kinds)][:2] == [f"{keys[kind][statistic]:.3f}" for kind in kinds][:2]
        )


def test_the_figures_of_one_data_set_are_printed_once(
    rag_eval: Command, files: Callable[..., Files], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither by data set, nor as a mean over data sets; two data sets have all of it."""
    monkeypatch.setenv("COLUMNS", "80")
    evals, gold = files("harbour")
    alone = rag_eval("agreement", evals, gold).out
    evals.unlink()
    both = rag_eval("agreement", *files("harbour", "railway")).out

    for words in ("by data set", "mean over data sets", "pooled", "harbour"):
        assert words not in alone.lower()
        assert words in both.lower()
    assert len(re.findall(r"^ *context_relevance RMSE ", alone, re.MULTILINE)) == 1
    assert not re.search(r"(\d\.\d{3}) to \1", alone + both)
    assert re.search(r"adherence( +adherence){2} +relevance +utilization +completeness", both)


def tables(out: str) -> str:
    """The tables alone, without colours."""
    _, _, rest = out.partition("no model read this.")
    return re.sub(r"\x1b\[[0-9;]*m", "", rest.split("adherence: its figures", 1)[0])


@pytest.mark.parametrize("width", [60, 80])
def test_nothing_is_cut_at_80_columns(
    rag_eval: Command, files: Callable[..., Files], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """On a terminal every line fits, also at 60; names are folded, numbers are whole.

    In a pipe nothing is folded: the console is as wide as the widest table, whatever COLUMNS says.
    """
    words = ("agreement", *files("harbour", LONG), "--baselines", "--human", "expert")
    wide = rag_eval(*words).out
    monkeypatch.setenv("COLUMNS", "40")
    assert not sys.stdout.isatty()
    piped = rag_eval(*words).out
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("rag_eval_integrations.cli.agreement.sys.stdout.isatty", lambda: True)
    narrow = rag_eval(*words, code=0).out

    assert "…" not in piped + narrow
    assert len(re.findall(rf"^ {LONG} .*\d", piped, re.MULTILINE)) >= 4
    line(piped, "context_utilization RMSE", " to ")
    assert max(map(len, tables(narrow).splitlines())) <= width
    numbers = [sorted(re.findall(r"\d\.\d{3}\b", tables(out))) for out in (wide, narrow)]
    assert numbers[0] == numbers[1]
    assert LONG not in narrow  # folded: its parts stand below each other
    assert LONG[:8] in narrow


@pytest.mark.parametrize("datasets", [("harbour",), ("harbour", "railway"), (None,)])
def test_baselines_have_intervals(
    rag_eval: Command, files: Callable[..., Files], datasets: tuple[str | None, ...]
) -> None:
    """Beside the judge's own, over data sets or, where rows name none, pooled."""
    pair = files(*datasets)
    content = json.loads(rag_eval("agreement", *pair, "--baselines", "--json").out)
    source = content["mean_over_datasets"] if datasets != (None,) else content
    figures = source["baselines"]["ragas_faithfulness"]["adherence"]

    out = rag_eval("agreement", *pair, "--baselines").out

    text = line(out, "ragas_faithfulness", "")
    assert shown(figures, "auroc") in text
    assert f"{figures['judge_auroc']:.3f}" in text


def test_a_humans_table_is_whole(rag_eval: Command, harbour: Files) -> None:
    """One line a score, level and statistic, with names and intervals whole."""
    words = ("agreement", *harbour, "--human", "expert")
    figures = json.loads(rag_eval(*words, "--json").out)["human"]["supported_fraction"]
    out = rag_eval(*words).out

    assert "rmse" in figures["ci95"]
    part = out[out.index("over rows") : out.index("within documents")]
    for name in ("pearson", "spearman", "kendall", "rmse"):
        assert shown(figures, name) in line(part, "supported_fraction", f" {name} ")


def test_a_human_field_that_no_row_has_is_an_error(rag_eval: Command, harbour: Files) -> None:
    """A typo is said, not passed over in silence."""
    evals, gold = harbour
    # A number in a row that was not evaluated is none to compare with either.
    some, other = Path("some.jsonl"), {**row(99, "harbour"), "stars": 3}
    some.write_text(gold.read_text() + json.dumps(other) + "\n")
    for path, field in ((gold, "exprt"), (some, "stars")):
        done = rag_eval("agreement", evals, path, "--human", field, code=2)
        assert done.out == ""
        assert f"`--human` = '{field}'" in done.err


@pytest.mark.parametrize(
    ("content", "words"), [("", "has no rows"), ("[1]\n", "has no valid rows")]
)
def test_an_empty_file_is_said_to_be_empty(
    rag_eval: Command, harbour: Files, content: str, words: str
) -> None:
    """Whichever of the two it is."""
    evals, gold = harbour
    empty = Path("empty.jsonl")
    empty.write_text(content)
    no_evals = rag_eval("agreement", empty, gold, code=2).err
    assert f"the evaluations file {words}\n" in no_evals
    assert f"the gold file {words}\n" in rag_eval("agreement", evals, empty, code=2).err


def test_a_cascade_says_what_it_costs(rag_eval: Command, harbour: Files) -> None:
    """Requests, tokens and dollars by share; a price that is not known is not 0."""
    judged = [json.loads(text) for text in harbour[0].read_text().splitlines()]
    used = {"requests": 1, "prompt_tokens": 1000, "completion_tokens": 10}
    for cost, dollars in ((0.01, "$0.2400"), (None, "unknown")):
        rows = ({**item, "usage": {**used, "cost_usd": cost}} for item in judged)
        second = write(Path("second.jsonl"), *rows)
        out = rag_eval("agreement", *harbour, "--cascade", second).out
        part = out[out.index("cost of asking the second judge") :]
        assert line(part, "0%", "").split() == ["0%", "0", "0", "0", "$0.0000"]
        assert line(part, "100%", "").split() == ["100%", "24", "24000", "240", dollars]


def test_two_identical_runs_agree_perfectly(rag_eval: Command, harbour: Files) -> None:
    """RMSE 0 of every value and of every estimate; against gold, estimates stand beside values.

    A file in which an estimate was the value is refused beside one in which labels are.
    """
    evals, gold = harbour
    rag_eval("run", gold, "-o", "again.jsonl", code=0)

    same = json.loads(rag_eval("agreement", evals, "again.jsonl", "--json").out)
    against_gold = rag_eval("agreement", evals, gold).out

    names = {"context_relevance", "context_utilization", "completeness"}
    assert same["estimates"].keys() == names
    assert {same["scores"][name]["rmse"] for name in same["scores"]} == {0}
    assert {same["estimates"][name]["rmse"] for name in names} == {0}
    assert against_gold.count("its estimate RMSE") == 3
    assert "\nEstimates by comparing words: no model read this.\n" in against_gold
    assert max(map(len, tables(against_gold).splitlines())) <= 80

    rows = [json.loads(text) for text in evals.read_text().splitlines()]
    rows[0]["scores"]["completeness"] |= {"method": "calibrated", "value": 0.88}
    done = rag_eval("agreement", write(evals, *rows), gold, code=2)
    assert "differ within `completeness` of the predicted rows" in done.err
