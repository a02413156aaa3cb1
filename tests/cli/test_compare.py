"""`rag-eval compare`: what it prints and writes, its exit codes, and the mistakes it names."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from ferries import Command
from hostile import HOSTILE, acting
from runs import MAKER, call, run, write


@pytest.fixture
def before() -> Path:
    """A hundred calls with full marks."""
    return write(Path("before.jsonl"), run([1.0] * 100))


@pytest.fixture
def after() -> Path:
    """Thirty of them fell."""
    fallen = run([0.0] * 30, response=["It is green."], supported=False)
    return write(Path("after.jsonl"), [*fallen, *run([1.0] * 100)[30:]])


def test_figures_are_printed(rag_eval: Command, before: Path, after: Path) -> None:
    """A table, and how it was made."""
    done = rag_eval("compare", before, after, code=0)

    assert done.out.splitlines()[:2] == [
        "A: before.jsonl, B: after.jsonl",
        "30 answers became unsupported, none was repaired; that is more than chance.",
    ]
    line, row = (line for line in done.out.splitlines() if "adherence" in line[:30])
    assert line == "worse           adherence  30 of 100 calls fell, 0 rose"
    assert row.split()[:4] == ["adherence", "1.000", "0.700", "-0.300"]
    assert "100 calls paired by id." in done.out
    assert "Intervals: Bonett-Price; p: sign flips." in done.out


def test_no_name_and_no_figure_is_cut_in_80_columns(
    rag_eval: Command, before: Path, after: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where one table is too wide, there are two: the values, and how sure they are."""
    wide = rag_eval("compare", before, after).out
    monkeypatch.setenv("COLUMNS", "80")

    narrow = rag_eval("compare", before, after).out

    (figures,) = (line.split() for line in wide.splitlines() if line.startswith("adherence "))
    values, sure = (line.split() for line in narrow.splitlines() if line.startswith("adherence "))
    assert values + sure[1:] == figures
    assert "adjusted p  smallest detectable difference\n" in narrow
    assert max(map(len, narrow.split("100 calls")[0].splitlines())) <= 80


def test_one_changed_call_reads_well(rag_eval: Command) -> None:
    """Neither "1 calls" nor "the 1 of 1"."""
    before, after = (write(Path(f"{n}.jsonl"), run([float(n)])) for n in (1, 0))
    shown = rag_eval("compare", before, after).out
    assert "1 call paired by id.\n1 call changed:\n  q0 “When does q0 leave?”: " in shown


def test_few_calls_have_no_columns_of_dashes(rag_eval: Command) -> None:
    """And two decimals; of scores that follow from others, calls say nothing."""
    names = ("adherence", "trace_average")
    runs = ([call(f"q{n}", dict.fromkeys(names, value)) for n in range(6)] for value in (1.0, 0.0))
    before, after = (write(Path(f"{n}.jsonl"), made) for n, made in enumerate(runs))

    shown = rag_eval("compare", before, after).out

    (head,) = (line for line in shown.splitlines() if line.startswith("score "))
    assert head.split() == ["score", "A", "B", "B", "-", "A", "p", "adjusted", "p"]
    assert "\nadherence      1.00  0.00  -1.00  " in shown
    assert "\n  q0 “When does q0 leave?”: adherence 1.00 to 0.00\n" in shown


@pytest.mark.parametrize("width", [80, 120])
def test_changed_calls_are_wrapped(
    rag_eval: Command, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """At the terminal's width; in a file, at the width of its tables."""
    monkeypatch.setenv("COLUMNS", str(width))
    names = [f"a score with a rather long name {n}" for n in range(6)]
    runs = (
        [call(f"q{n}", dict.fromkeys(names, value), question="So? " * 50) for n in range(9)]
        for value in (1.0, 0.0)
    )
    before, after = (write(Path(f"{n}.jsonl"), made) for n, made in enumerate(runs))

    lines = rag_eval("compare", before, after).out.split("changed most:\n")[1].splitlines()

    assert len(lines) > 3
    assert max(map(len, lines)) <= width
    for name in names:
        assert f"{name} 1.00 to 0.00" in " ".join(line.strip() for line in lines)


def test_a_call_without_an_id_of_its_own_is_named_by_its_question(rag_eval: Command) -> None:
    """Neither the list nor the failure shows the 16 digits that stand for it in the files."""
    runs = (run([value] * 30) for value in (1.0, 0.0))
    bare = ([row.model_copy(update={"id": row.row_key[:16]}) for row in made] for made in runs)
    before, after = (write(Path(f"{n}.jsonl"), made) for n, made in enumerate(bare))

    done = rag_eval("compare", before, after, "--fail-on-regression", "adherence=0.02")

    assert "\n  “When does q0 leave?”: adherence 1.000 to 0.000\n" in done.out
    assert "\n  -1.00 “When does q0 leave?”" in done.err


def test_a_regression_fails(rag_eval: Command, before: Path, after: Path) -> None:
    """With exit code 1 and the worst calls on stderr; a fall within DELTA does not.

    Bad lines are reported and left out: exit code 2, which beats 1; --skip-invalid leaves the
    verdict.
    """
    words = ("compare", before, after, "--fail-on-regression", "adherence=0.02")
    done = rag_eval(*words, code=1)
    assert "worse: adherence: 30 of 100 calls fell, 0 rose: -0.300" in done.out
    assert "FAILED worse: adherence: 30 of 100 calls fell" in done.err
    assert "-1.00 q0 “When does q0 leave?”: not supported: a “It is green.”" in done.err
    fine = rag_eval(*words[:-1], "adherence=0.5", code=0)
    assert fine.err == ""
    assert "fine: adherence" in fine.out

    after.write_text(after.read_text() + '{"schema": 2}\nno JSON\n')
    done = rag_eval(*words, code=2)
    assert f"{after}: line 102" in done.err
    assert f"{after}: 2 invalid lines left out" in done.err
    assert "worse: adherence" in done.out
    rag_eval(*words, "--skip-invalid", code=1)


def test_new_unsupported_sentences_are_listed_and_may_fail(rag_eval: Command) -> None:
    """Those of changed answers that had no equal sentence before; means say nothing of them."""
    known = run([0.0] * 2, response=["It is green."], supported=False)
    a = write(Path("a.jsonl"), [*known, *run([1.0] * 5)[2:]])
    grown = run([0.0] * 3, response=["It is  green.", "It has wings."], supported=False)
    b = write(Path("b.jsonl"), [*grown, *run([1.0] * 5)[3:]])

    done = rag_eval("compare", a, b, "--fail-on-new", "unsupported=4", code=0)
    assert "4 sentences are unsupported that the answers before did not have." in done.out
    listed = done.out.split("New unsupported sentences:\n")[1].splitlines()[:4]
    assert [line.rpartition(": ")[2] for line in listed] == [
        "a “It is green.”", "b “It has wings.”", "b “It has wings.”", "b “It has wings.”",
    ]  # fmt: skip
    assert (
        json.loads(rag_eval("compare", a, b, "--format", "json").out)["runs"][0]["new_unsupported"]
        == 4
    )

    failed = rag_eval("compare", a, b, "--fail-on-new", "unsupported", code=1).err
    assert "FAILED b.jsonl: 4 new unsupported sentences; --fail-on-new allows 0\n" in failed
    rag_eval("compare", a, a, "--fail-on-new", "unsupported", code=0)
    rag_eval("compare", a, b, code=0)
    for word in ("adherence", "unsupported=", "unsupported=-1", "unsupported=few"):
        assert (
            "use unsupported, or unsupported=N"
            in rag_eval("compare", a, b, "--fail-on-new", word, code=2).err
        )


def test_too_few_calls_pass_unless_told(rag_eval: Command) -> None:
    """It cannot be told whether a score fell; --fail-on-unclear asks for more calls."""
    before = write(Path("a.jsonl"), run([1.0] * 30))
    after = write(Path("b.jsonl"), run([0.0] + [1.0] * 29))
    words = ("compare", before, after, "--fail-on-regression", "adherence=0.02")
    said = rag_eval(*words, code=0).out
    assert "cannot tell: adherence: 1 of 30 calls fell, 0 rose: -0.033" in said
    assert "FAILED cannot tell" in rag_eval(*words, "--fail-on-unclear", code=1).err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--fail-on-regression adherance=0.1", "do not both have it; did you mean 'adherence'?"),
        ("--fail-on-regression Hallucination=0", "`adherence` is nearest to it"),
        ("--fail-on-regression adherence=much", "a number from 0 to 1"),
        ("--fail-on-regression adherence", "use NAME=DELTA"),
        ("--fail-on-regression adherence=0.5", "adherence has a DELTA already, 0; give one"),
        ("--by name", "use id or question"),
        ("--format pdf", "use html, md or json"),
    ],
)
def test_mistakes(rag_eval: Command, before: Path, after: Path, words: str, said: str) -> None:
    """With exit code 2, also beside a regression."""
    gate = ("--fail-on-regression", "adherence=0")
    assert said in rag_eval("compare", before, after, *gate, *words.split(), code=2).err


def test_what_cannot_be_compared_is_told(rag_eval: Command, before: Path, after: Path) -> None:
    """One file, standard input twice, --fail-on-unclear alone, which would pass whatever is.

    A judge that failed throughout must not be green, and makers are mixed only on request.
    """
    rag_eval("compare", before, code=2)
    alone = rag_eval("compare", before, after, "--fail-on-unclear", code=2)
    assert alone.out == ""
    assert "--fail-on-unclear needs a score: --fail-on-regression NAME=DELTA" in alone.err
    assert "standard input can be only one" in rag_eval("compare", "-", "-", code=2).err

    failed = write(Path("failed.jsonl"), run([None] * 100))
    done = rag_eval("compare", before, failed, "--fail-on-regression", "adherence=0.1", code=2)
    assert "FAILED adherence: no call has a value in both runs" in done.err
    assert "Became unscored: adherence 100 (error 100)." in done.out

    maker = MAKER.model_copy(update={"judge_version": "2"})
    other = write(Path("other.jsonl"), run([1.0] * 100, by=maker))
    differ = "judge_version 1 in before.jsonl, 2 in other.jsonl"
    assert f"{differ}: adherence" in rag_eval("compare", before, other, code=2).err
    assert differ in rag_eval("compare", before, other, "--allow-mixed", code=0).out


def test_a_page_is_written_and_replaced(rag_eval: Command, before: Path, after: Path) -> None:
    """A file that this program did not make is not replaced, nor is an input."""
    page, words = Path("diff.html"), ("compare", before, after, "-o")
    for _ in range(2):
        rag_eval(*words, page, "--fail-on-regression", "adherence=0", code=1)
    text = page.read_text(encoding="utf-8")
    assert "before.jsonl compared with after.jsonl" in text
    assert "<li>worse: adherence" in text
    assert "<p>30 answers became unsupported, none was repaired; that is more than" in text

    page.write_text("mine")
    for path in (page, after):
        content = path.read_bytes()
        rag_eval(*words, path, code=2)
        assert path.read_bytes() == content


def test_the_same_documents_are_no_regression_of_the_retriever(rag_eval: Command) -> None:
    """In the table, JSON and the gate, values are pooled; the run's own stand beside them."""
    reset = "To reset the station, hold the blue button for eight seconds."
    documents = [
        f"{reset} The reset erases all stored readings. Afterwards it searches for its sensor.",
        "Wipe the display with a dry cloth. Alcohol turns the plastic white.",
    ]
    calls = Path("calls.jsonl")
    for name, answer in (("a", reset), ("b", "I do not know.")):
        row = {
            "question": "How do I reset the station?",
            "documents": documents,
            "response": answer,
        }
        calls.write_text("".join(f"{json.dumps(row | {'id': f'q{n}'})}\n" for n in range(12)))
        rag_eval("run", calls, "-o", f"{name}.jsonl", code=0)
    words = ("compare", "a.jsonl", "b.jsonl", "--format", "json")

    done = rag_eval(*words, "--fail-on-regression", "context_relevance=0", "--fail-on-unclear")

    assert done.code == 0
    score = json.loads(done.out)["runs"][0]["scores"][0]
    assert score["name"] == "context_relevance"
    assert (score["difference"], score["same_documents"]) == (0, True)
    assert score["own_mean_a"] != score["own_mean_b"]
    assert "fine: context_relevance: 12 calls with the same documents in both runs" in done.err
    line = next(line for line in done.err.splitlines() if line.startswith("same documents"))
    assert line.split()[2] == "context_relevance"
    assert "Pooled: in 12 calls" in done.err
    rag_eval("compare", "a.jsonl", "b.jsonl", "-o", "diff.html", code=0)
    page = Path("diff.html").read_text(encoding="utf-8")
    assert "> same documents</span>" in page
    assert "Pooled: in 12 calls" in page


def test_json_and_markdown(rag_eval: Command, before: Path, after: Path) -> None:
    """As the file's name ends, or as --format says; to a file or alone on stdout."""
    done = rag_eval("compare", before, after, "--format", "json")
    content = json.loads(done.out)
    assert content["runs"][0]["scores"][0]["difference"] == pytest.approx(-0.3)
    assert "adherence" in done.err

    for _ in range(2):
        assert rag_eval("compare", before, after, "-o", "diff.json").code == 0
    assert json.loads(Path("diff.json").read_text()) == content
    rag_eval("compare", before, after, "-o", "diff.md")
    lines = Path("diff.md").read_text().splitlines()
    assert any(line.startswith("| adherence | 1.000 | 0.700 |") for line in lines)
    assert "- worse adherence 30 of 100 calls fell, 0 rose" in lines
    piped = rag_eval("compare", before, after, "-o", "-", "--format", "md")
    assert piped.out.splitlines() == lines


def test_more_than_two_runs(rag_eval: Command, before: Path, after: Path) -> None:
    """A table and a verdict for each run but the baseline."""
    third = write(Path("third.jsonl"), run([1.0] * 400))

    done = rag_eval(
        "compare", before, third, after, "--fail-on-regression", "adherence=0.05", code=1
    )

    assert "B: third.jsonl" in done.out
    assert "fine: adherence (third.jsonl)" in done.out
    assert "worse: adherence (after.jsonl)" in done.out
    assert "Left out: 0 calls only in before.jsonl, 300 only in third.jsonl." in done.out


def test_standard_input_is_one_of_the_runs(
    rag_eval: Command, before: Path, after: Path, stdin: Callable[[bytes], None]
) -> None:
    """It is read once, and again for the calls that are shown."""
    stdin(after.read_bytes())
    page = Path("diff.html")
    assert "B: standard input" in rag_eval("compare", before, "-", "-o", page, code=0).out
    assert "When does q0 leave?" in page.read_text()


def test_calls_that_cannot_be_paired_are_named(rag_eval: Command) -> None:
    """Nothing is guessed.

    It is told before the files end, though one has a line that is not JSON, and the other as well.
    """
    twice = Path("twice.jsonl")
    lines = write(twice, run([1.0] * 30) * 3).read_text().splitlines()
    twice.write_text("\n".join([*lines[:50], "no JSON", *lines[50:]]))
    Path("other.jsonl").write_text("no JSON\n")
    said = rag_eval("compare", twice, "other.jsonl", code=2).err
    assert "by ids: calls 1 and 31 of twice.jsonl have the id 'q0'; by question" in said
    assert "calls 1 and 31 of twice.jsonl have the same question and reference; give" in said
    assert "line" not in said


def test_no_text_acts_on_the_terminal(rag_eval: Command) -> None:
    """Names of scores, ids, questions and sentences of other people, in every format."""
    names = {f"{number} {text}": text for number, text in enumerate(HOSTILE)}
    before = [call(n, {t: 1.0, "adherence": 1.0}, question=t) for n, t in names.items()]
    after = [
        call(n, {t: 0.5, "adherence": 0.0}, question=t, response=[t], supported=False)
        for n, t in names.items()
    ]
    files = (write(Path("a.jsonl"), before), write(Path("b.jsonl"), after))
    gate = ("--fail-on-regression", "adherence=0.02")
    for words in ((), ("--format", "md"), ("--format", "json"), ("--format", "html")):
        done = rag_eval("compare", *files, *words, *gate, code=1)
        assert acting(done.out + done.err) == []


def test_conversations_are_named_by_a_field(rag_eval: Command) -> None:
    """Or there are none, whatever the metadata says."""
    values = [call(f"q{n}", {"adherence": 1.0}, metadata={"user": f"u{n // 4}"}) for n in range(80)]
    path = write(Path("a.jsonl"), values)
    for words, kept in ((["--conversation", "user"], True), (["--conversation", "none"], False),
                        ([], False)):  # fmt: skip
        shown = rag_eval("compare", path, path, *words).out
        assert ("Calls of one conversation were kept together." in shown) == kept
