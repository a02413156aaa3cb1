"""`Evaluations`: a sequence that sums itself up, refuses mixtures, and loses nothing in a file."""

from __future__ import annotations

import gzip
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from agreement_rows import scored
from hostile import HOSTILE, acting
from own_rows import made_rows
from parsed import Parsed
from runs import call

from rag_eval_integrations import Evaluations, RagCall, RagEvaluator
from rag_eval_integrations.errors import ConfigurationError, InputError, MissingDependencyError
from rag_eval_integrations.metrics._outcome import outcome
from rag_eval_integrations.records import JudgeInfo, Score, Sentences
from rag_eval_integrations.records.mean import Interval

NOTHING: dict[str, list[str]] = {
    "all_relevant_sentence_keys": [], "all_utilized_sentence_keys": [],
    "sentence_support_information": [],
}  # fmt: skip


def made(number: int, formulas: Any = "gpt-labeling") -> Evaluations:
    return Evaluations(scored(row, formulas) for row in made_rows(number))


@pytest.fixture(scope="module")
def evaluations() -> Evaluations:
    """Thirty scored calls, one without documents."""
    row = {"id": "alone", "question": "Where?", "documents": [], "response": "Here."}
    return Evaluations([*made(30), scored({**row, "labels": NOTHING})])


# --- A sequence


def test_it_is_a_sequence_whose_slices_are_evaluations(evaluations: Evaluations) -> None:
    """Length, order, membership, addition; equal to the list that results used to be; pickled."""
    items = list(evaluations)
    assert len(evaluations) == len(items) == 31
    assert evaluations[-1] is items[-1]
    assert (type(evaluations[3:5]), list(evaluations[3:5])) == (Evaluations, items[3:5])
    assert items[7] in evaluations
    assert isinstance(evaluations + evaluations, Evaluations)
    assert Evaluations() == []
    assert evaluations == Evaluations(items) == items == pickle.loads(pickle.dumps(evaluations))
    assert evaluations != Evaluations(reversed(evaluations))
    assert evaluations != 7


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("evals.jsonl", "Evaluations.load"),
        (Path("evals.jsonl"), "Evaluations.load"),
        (7, "iterable"),
        ([{"id": "1"}], r"evaluations\[0\]"),
        (made(1)[0], "iterable of evaluations"),  # a record is iterable to Python, over its fields
    ],
)
def test_what_holds_no_evaluations_is_refused(wrong: Any, message: str) -> None:
    """At once, by place, with what to write instead."""
    with pytest.raises(ConfigurationError, match=message):
        Evaluations(wrong)


def test_a_call_is_looked_up_by_its_id(evaluations: Evaluations) -> None:
    """An unknown id says a near one, unless it is as long as a text; which takes quadratic time."""
    assert evaluations.by_id("alone") is evaluations[-1]
    long = evaluations[-1].model_copy(update={"id": "ferry " * 100})
    for rows, name, why in (
        (evaluations, "alnoe", "did you mean 'alone'"),
        (evaluations + evaluations, "alone", "2 evaluations have it"),  # not answered by chance
        (Evaluations([*evaluations, long]), "ferry " * 99, r"has it$"),
    ):
        with pytest.raises(ConfigurationError, match=why):
            rows.by_id(name)


# --- Figures


def test_a_mean_says_its_interval_and_of_how_many(evaluations: Evaluations) -> None:
    """What has no value is in `total`, not in the mean."""
    mean = evaluations.mean("adherence")
    values = [each.scores["adherence"].value for each in evaluations]
    known = [value for value in values if value is not None]

    assert mean.value == pytest.approx(sum(known) / len(known))
    assert (mean.n, mean.total) == (len(known), 31)
    assert isinstance(mean.interval, Interval)
    assert mean.interval.method == "Wilson"
    assert str(mean) == (
        f"adherence {mean.value:.3f} (95 %: {mean.interval.low:.3f}–{mean.interval.high:.3f}, "
        f"{mean.n} of 31)"
    )


def test_a_mean_of_mixed_makers_is_refused() -> None:
    """The message says what they differ in, and how many calls each has."""
    several = made(4) + made(5, "ragbench")

    why = "formulas gpt-labeling: 4 calls; formulas ragbench: 5 calls"
    with pytest.raises(ConfigurationError, match=why):
        several.mean("context_utilization")
    assert len(several.summary().scores) == 12


def test_a_mean_of_an_unknown_score_names_those_there_are(evaluations: Evaluations) -> None:
    """A near name or meaning, else all; of nothing at all, that there is nothing."""
    for rows, name, why in (
        (evaluations, "adherance", "did you mean 'adherence'"),
        (evaluations, "zzz", "the scores are context_relevance, "),
        (evaluations, "faithfulness", "; `supported_fraction` is nearest to it"),
        (evaluations[:1], "zzz", "none of 1 evaluation; "),
        (Evaluations(), "adherence", "none of 0 evaluations"),
    ):
        with pytest.raises(ConfigurationError, match=why):
            rows.mean(name)


def test_a_score_without_any_value_has_no_mean(evaluations: Evaluations) -> None:
    """None, and 0 of 1; never 0."""
    mean = evaluations[-1:].mean("adherence")
    assert (mean.value, mean.interval, mean.n, mean.total) == (None, None, 0, 1)
    assert str(mean) == "adherence – (0 of 1)"


# --- Files


@pytest.mark.parametrize("name", ["evals.jsonl", "evals.jsonl.gz", "other.txt"])
def test_what_is_saved_loads_equal(name: str, evaluations: Evaluations, tmp_path: Path) -> None:
    """Plain or gzipped, by name; the same evaluations give the same bytes."""
    path = tmp_path / name

    assert evaluations.save(path) == path

    assert Evaluations.load(path) == Evaluations.load(str(path)) == evaluations
    content = path.read_bytes()
    assert content.startswith(b"\x1f\x8b") == name.endswith(".gz")
    rows = gzip.decompress(content) if name.endswith(".gz") else content
    assert len(rows.splitlines()) == len(evaluations)
    evaluations.save(path, overwrite=True)
    assert path.read_bytes() == content
    assert [each.name for each in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["save", "to_csv", "to_parquet", "to_ragbench"])
def test_a_file_is_not_replaced_by_chance(
    evaluations: Evaluations, tmp_path: Path, name: str
) -> None:
    """Only when it is said; an error leaves it as it was."""
    pytest.importorskip("pyarrow")
    path, write = tmp_path / "rows", getattr(evaluations, name)
    path.write_text("mine")
    with pytest.raises(ConfigurationError, match=r"name, or overwrite=True to replace it$"):
        write(path)
    assert path.read_text() == "mine"
    write(path, overwrite=True)
    assert path.read_bytes() != b"mine"
    with pytest.raises(ConfigurationError, match="a folder"):
        write(tmp_path, overwrite=True)
    with pytest.raises(OSError, match="does not exist"):
        write(tmp_path / "none" / "rows")


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        ("to_csv", r"\.csv"),
        ("to_parquet", r"\.parquet"),
        ("to_ragbench", r"\.jsonl"),
        ("report", r"\.html"),
    ],
)
def test_a_name_of_another_format_is_refused(
    evaluations: Evaluations, tmp_path: Path, name: str, ending: str
) -> None:
    """Rows in `x.xlsx` are a slip, which is said before anything is written."""
    pytest.importorskip("pyarrow")
    for file in ("x.xlsx", "x.md", "x.xlsx.gz"):
        with pytest.raises(ConfigurationError, match=f"name end in {ending}"):
            getattr(evaluations, name)(tmp_path / file)
    assert list(tmp_path.iterdir()) == []


def test_a_line_that_is_no_evaluation_is_named(evaluations: Evaluations, tmp_path: Path) -> None:
    """File, line and reason; an older format says how to make the file anew."""
    path = evaluations[:2].save(tmp_path / "evals.jsonl")
    wrong: tuple[tuple[str, type[Exception], str], ...] = (
        (path.read_text() + '{"scores": {}}\n', InputError,
         r"evals\.jsonl: line 3: field `id`: is missing"),
        ('{"schema": 1, "id": "1", "scores": {}}\n', ConfigurationError, "rag-eval run"),
    )  # fmt: skip
    for content, error, why in wrong:
        path.write_text(content)
        with pytest.raises(error, match=why):
            Evaluations.load(path)
    path.write_text("")
    assert Evaluations.load(path) == []
    with pytest.raises(OSError, match="none"):
        Evaluations.load(tmp_path / "none.jsonl")
    with pytest.raises(ConfigurationError, match=r"`path` = .* is a folder"):
        Evaluations.load(tmp_path)


def test_reports_and_comparisons_are_made_of_it(evaluations: Evaluations, tmp_path: Path) -> None:
    """A page with every call, and the differences to another run, in memory or in a file."""
    page = evaluations.report(tmp_path / "report.html", title="Nightly <run>")
    assert "Nightly &lt;run&gt;" in page.read_text(encoding="utf-8")

    page.write_text("mine")
    with pytest.raises(ConfigurationError, match="not made by this program"):
        evaluations.report(page)
    assert "<html" in evaluations.report(page, overwrite=True).read_text(encoding="utf-8")

    later = evaluations[::-1]
    for other in (later, later.save(tmp_path / "later.jsonl")):
        assert evaluations.compare(other).scores["adherence"].difference == 0


# --- pandas


@pytest.mark.slow  # to import pandas takes a second
def test_a_data_frame_has_a_row_per_call(evaluations: Evaluations) -> None:
    """A score without a value is missing, with its reason beside it; means are those of `mean`."""
    pytest.importorskip("pandas")

    frame = evaluations.to_pandas()

    mean = evaluations.mean("adherence")
    assert list(frame["id"]) == [each.id for each in evaluations]
    assert frame["adherence"].mean() == pytest.approx(mean.value)
    assert frame["adherence"].isna().sum() == 31 - mean.n
    assert frame["adherence:unscored"].iloc[-1] == "no_context"
    assert frame["documents"].iloc[-1] == 0
    assert str(frame["adherence"].dtype) == "float64"
    assert list(Evaluations().to_pandas().columns)[:2] == ["id", "question"]
    assert len(Evaluations().to_pandas()) == 0


@pytest.mark.slow
def test_a_score_may_have_the_name_of_a_column() -> None:
    """Nothing is overwritten: the score's column says that it is one."""
    pytest.importorskip("pandas")
    names = ("id", "score:id", "judge", "a", "a:unscored")
    each = call("mine", {name: place / 10 for place, name in enumerate(names)})

    (row,) = Evaluations([each]).to_pandas().to_dict("records")

    assert (row["id"], row["judge"]) == ("mine", "by hand")
    numbers = {value for name, value in row.items() if isinstance(value, float) and value == value}
    assert numbers == {0.0, 0.1, 0.2, 0.3, 0.4}


@pytest.mark.parametrize(
    ("module", "extra", "name"),
    [("pandas", "pandas", "to_pandas"), ("pyarrow", "parquet", "to_parquet")],
)
def test_without_a_package_it_says_what_to_install(
    evaluations: Evaluations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    module: str, extra: str, name: str,
) -> None:  # fmt: skip
    """By the name of the extra, and no file is made."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=rf"rag-eval-integrations\[{extra}\]"):
        getattr(evaluations, name)(*[tmp_path / "rows"] * (name == "to_parquet"))
    assert list(tmp_path.iterdir()) == []


# --- As a person reads it


def test_print_shows_the_figures(evaluations: Evaluations) -> None:
    """Counts, means with intervals and how many, why not, and the diagnoses with their shares."""
    text = str(evaluations)
    mean = evaluations.mean("adherence")

    verdict, headline = text.split("\n31 calls", 1)
    headline = "31 calls" + headline.splitlines()[0]
    assert " ".join(verdict.split()) == evaluations.summary().verdict()
    assert headline.startswith("31 calls, 30 scored; judged by recorded made")
    line = next(line for line in text.splitlines() if line.startswith("  adherence"))
    for words in (f"{mean.value:.3f}", f"{mean.n}/31", "no_context 1"):
        assert words in line
    assert "hallucination" in text
    assert max(map(len, text.splitlines())) <= 100
    assert str(evaluations.summary()) == text
    assert repr(evaluations.summary()) == f"<Summary of {headline}>"


def test_no_model_read_what_was_only_compared(evaluations: Evaluations) -> None:
    """One line says so under the first two, and the usual formulas' name stands beside no judge."""
    call = RagCall("Where?", ["It is here."], "It is here.")
    lexical = Evaluations([RagEvaluator().evaluate_sync(call)])

    assert str(lexical).splitlines()[2] == "Estimates by comparing words: no model read this."
    assert "Scores by embedded v" in str(lexical)
    assert "judge request" not in str(lexical)
    second = str(lexical + evaluations[:2]).splitlines()[2]
    assert second == "Estimates by comparing words in 1 of 3 scored calls: no model read them."
    assert "no model" not in str(evaluations[:30])
    for text in (str(lexical), str(evaluations), lexical._repr_html_()):
        assert "gpt-labeling" not in text
    assert "no model read this" in lexical._repr_html_()
    assert "ragbench formulas" in str(made(2, "ragbench"))


def test_a_repr_is_one_short_line(evaluations: Evaluations) -> None:
    """Number of calls and means; of nothing, that there is nothing."""
    shown = repr(evaluations)
    assert re.fullmatch(r"<Evaluations of 31 calls: context_relevance 0\.\d\d, .{,180}>", shown)
    assert repr(Evaluations()) == "<Evaluations of 0 calls>"
    several = repr(made(4) + made(5, "ragbench"))
    assert several.startswith("<Evaluations of 9 calls: context_relevance made in 2 ways, ")
    assert str(Evaluations()).startswith("No calls")


ALLOWED = {
    "div", "style", "p", "table", "tr", "th", "td", "b", "small", "span", "details", "summary",
    "br", "code",
}  # fmt: skip


def test_a_cell_of_more_than_twenty_calls_shows_the_gravest(evaluations: Evaluations) -> None:
    """With their numbers, in the order of the calls; no healthy call while a grave one is not."""
    sound = [each for each in evaluations if outcome(each) == "sound"][:1] * 30
    failing = [each for each in evaluations if outcome(each) == "hallucination"][:2]
    html = Evaluations([*sound, *failing])._repr_html_()

    numbers = [int(number) for number in re.findall(r"<tr><td>(\d+)</td>", html)]
    assert numbers == [*range(1, 19), 31, 32]


def test_a_cell_shows_the_first_calls_by_sentence(evaluations: Evaluations) -> None:
    """Twenty rows with keys and signs as text, what is not shown, no script, ids or sources."""
    html = evaluations._repr_html_()
    page = Parsed(html)
    text = page.texts("div")[0]

    assert {*page.tags} <= ALLOWED
    for attributes in page.attributes:
        assert attributes.keys() <= {"class", "title", "colspan"}
        classes = (attributes.get("class") or "").split()
        assert all(name.startswith("rag-eval") for name in classes)
    assert page.tags.count("details") == 20
    assert "11 less grave: .report(path)" in text
    assert "Each sentence has a key" in text
    wrong = next(
        sentence
        for each in evaluations[:20]
        for sentence in each.sentences.response
        if each.labels is not None and each.labels.support(sentence.key) == "none"
    )
    assert f"{wrong.key} ✗ {wrong.text}" in text
    assert f"{evaluations.mean('adherence').value:.3f}" in text
    summary = evaluations.summary()
    for pattern in (result for result in summary.patterns if result.calls):  # as `print` has them
        assert f"{pattern.pattern}{pattern.calls} of {summary.labelled}{pattern.meaning}" in text
    assert '<span class="rag-eval-none">0.00 ✗</span>' in html
    assert "more:" not in evaluations[:3]._repr_html_()


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_neither_act_nor_are_markup(text: str) -> None:
    """In every field that a cell or a terminal shows."""
    score = Score(name=text, status="scored", value=0.0, reason=text)
    sentences = Sentences(documents=((f"{text}0a", text),), response=((text, text),))  # type: ignore[arg-type]
    each = call(
        text, {text: score}, question=text, response=[text], labels=None, flags=(text,),
        sentences=sentences, document_ids=(text,), judge=JudgeInfo(name=text, model=text),
    )  # fmt: skip
    result = Evaluations([each, each])

    assert {*Parsed(result._repr_html_()).tags} <= ALLOWED
    for shown in (result._repr_html_(), str(result), repr(result)):
        assert not acting(shown.replace("\n", ""))


def test_a_cell_is_bounded_whatever_it_shows() -> None:
    """A thousand scores with long names, and long sentences of many bytes."""
    long = "é<&" * 1_000
    each = call(
        "1", {f"{long}{place}": 0.5 for place in range(100)}, question=long, response=[long],
        documents=[long] * 200, document_ids=[long] * 300, judge=JudgeInfo(name=long),
    )  # fmt: skip

    assert len(Evaluations([each] * 40)._repr_html_().encode()) <= 100_000
    assert len(each._repr_html_().encode()) <= 100_000
    assert "more sentences are not shown here" in each._repr_html_()
