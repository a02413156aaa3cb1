"""`compare`: pairs, refusals, what became unscored, verdicts, what changed most."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from runs import MAKER, call, run, write

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import Capture, Evaluation, EvaluationError
from rag_eval_integrations.report import compare
from rag_eval_integrations.testing import assert_no_regression

HALF = [1.0, 0.0] * 50
FEW = [1.0, 0.0] * 6


def numbered(scores: dict[str, float], n: int = 12) -> list[Evaluation]:
    """Calls with the same scores."""
    return [call(f"q{place}", scores) for place in range(n)]


# --- Pairs


def test_calls_are_paired_by_the_users_own_ids() -> None:
    """In any order, and whatever their questions; calls of one run only are counted."""
    before = run(HALF)
    after = [*reversed(run(HALF, question="Asked in other words?")), call("new", {"adherence": 1})]

    comparison = compare(before[1:], after)

    assert (comparison.paired_by, comparison.pairs) == ("id", 99)
    assert (comparison.only_a, comparison.only_b) == (0, 2)
    assert comparison.scores["adherence"].ties == 99
    assert "99 of 99 calls with the same id have another question or reference." in comparison.notes


def by_default(evaluations: list[Evaluation]) -> list[Evaluation]:
    """The evaluations with ids that the library makes: they change with the response."""
    return [each.model_copy(update={"id": each.row_key[:16]}) for each in evaluations]


@pytest.mark.parametrize(
    ("before", "after", "pairs"),
    [
        (by_default(run(HALF)), by_default(run(HALF, response=["It leaves at ten."])), 100),
        # A framework's run ids are new in every run.
        (run(HALF), [each.model_copy(update={"id": f"run-{each.id}"}) for each in run(HALF)], 100),
        # The same question with another expected answer is another call.
        (*[[call("same", {}, question="When?", reference=str(n)) for n in range(12)]] * 2, 12),
        # Two retrievals with unknown questions are not known to be the same.
        (*[[call("", {}, question=text) for text in ("", "Known?")]] * 2, 1),
    ],
)
def test_without_common_ids_question_and_reference_say_which_call_is_which(
    before: list[Evaluation], after: list[Evaluation], pairs: int
) -> None:
    """Where ids are the library's own, or of one run only, or repeat."""
    comparison = compare(before, after[::-1])

    assert (comparison.paired_by, comparison.pairs) == ("question", pairs)
    assert comparison.only_a == comparison.only_b == len(before) - pairs


def test_ids_that_repeat_are_refused_with_their_places() -> None:
    """Unless questions and references are unique; nothing is guessed."""
    twice = [*run(HALF), *run([1.0, 1.0])]

    with pytest.raises(
        ConfigurationError, match="by ids: calls 1 and 101 of B have the id 'q0'"
    ) as error:
        compare(run(HALF), twice)

    assert "calls 1 and 101 of B have the same question and reference" in str(error.value)
    renamed = [*run(HALF), call("q0", {"adherence": 1.0}, question="Another?")]
    assert compare(run(HALF), renamed).paired_by == "question"


def test_all_runs_are_paired_in_one_way() -> None:
    """Where the third has no ids of its own, the second is paired by question, too."""
    ways = [each.paired_by for each in compare(run(FEW), run(FEW), by_default(run(FEW))).all]

    assert ways == ["question", "question"]
    assert compare(run(FEW), run(FEW)).paired_by == "id"
    with pytest.raises(ConfigurationError, match="call 1 of A has no id of its own"):
        compare(by_default(run(FEW)), run(FEW), by="id")


def test_a_run_is_any_iterable_of_evaluations() -> None:
    """Such as a stream of them; other things are named, and there has to be something to pair."""
    assert compare(iter(run([1.0] * 12)), iter(run([0.0] * 12))).changed_count == 12
    one = call("q0", {"adherence": 1.0})
    wrong: tuple[tuple[Any, str], ...] = (
        ([{"id": "q0"}], "holds a dict"),
        ([], r"has no evaluations$"),
        ([call("other", {"adherence": 1.0})], "have none in common"),
        *((other, "run B should be evaluations or the path") for other in (None, 3, one, object())),
    )
    for other, why in wrong:
        with pytest.raises(ConfigurationError, match=why):
            compare(run([1.0]), other)


@pytest.mark.parametrize("by", ["id", "question"])
def test_the_order_of_the_files_does_not_matter(by: Any) -> None:
    """Nor does that of the runs: the figures are mirrored."""
    generator = random.Random(8)
    before, after = (run([generator.random() for _ in range(60)]) for _ in "AB")
    first = compare(before, after, by=by).scores["adherence"]
    generator.shuffle(before)
    generator.shuffle(after)

    again = compare(before, after, by=by).scores["adherence"]
    mirrored = compare(after, before, by=by).scores["adherence"]

    assert (again.interval, again.p, mirrored.p) == (first.interval, first.p, first.p)
    (low, high, method), ends = (
        (each.interval.low, each.interval.high, each.interval.method)
        for each in (first, mirrored)
        if each.interval
    )
    assert method == "Student's t"
    assert ends == (pytest.approx(-high, abs=1e-12), pytest.approx(-low, abs=1e-12), method)


# --- Files


def test_files_are_compared_and_read_again_for_what_is_shown(tmp_path: Path) -> None:
    """Plain, gzipped or one JSON array; the run is named after its file."""
    before = write(tmp_path / "before.jsonl", run(HALF))
    after = tmp_path / "after.jsonl.gz"
    changed = run([0.0, *HALF[1:]], response=["It leaves at ten."])
    after.write_bytes(gzip.compress(write(tmp_path / "after.jsonl", changed).read_bytes()))

    comparison = compare(before, after)

    assert comparison.names == ("before.jsonl", "after.jsonl.gz")
    (change,) = comparison.changed("adherence")
    texts = (change.before.response, change.after.response)
    assert (*texts, change.difference) == ("It leaves at nine.", "It leaves at ten.", -1)
    array = tmp_path / "after.json"
    array.write_text(f"[{','.join(each.model_dump_json() for each in changed)}]")
    assert compare(before, array).changed("adherence") == [change]


def test_a_file_that_changed_since_is_not_mixed_with_its_old_figures(tmp_path: Path) -> None:
    """A notebook that runs its pipeline again would see other calls' texts beside old changes."""
    after = write(tmp_path / "b.jsonl", run([0.0] * 12))
    comparison, whole = compare(run([1.0] * 12), after), after.read_text()
    old = comparison.changed("adherence", None)
    assert len(old) == 12

    reverse = "".join(reversed(whole.splitlines(keepends=True)))
    other = write(after, run([0.5] * 12)).read_text()
    for content in (other, whole[: len(whole) // 4], reverse, "{}\n" * 12):
        after.write_text(content)
        with pytest.raises(ConfigurationError, match=r"'b\.jsonl': has changed since it was"):
            comparison.changed("adherence")
    after.write_text(whole)
    assert comparison.changed("adherence", None) == old


def test_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    """By their folders, or by letters where one file is compared with itself."""
    first, second = (tmp_path / folder / "evals.jsonl" for folder in ("a", "b"))
    for path in (first, second):
        path.parent.mkdir()
        write(path, run(FEW))

    assert compare(first, second).names == (str(first), str(second))
    assert compare(first, first).names == ("A", "B")
    assert compare(first, second, names=["old", "new"]).names == ("old", "new")
    wrong: tuple[Any, ...] = (["one"], ["same", "same"], "ab", [1, 2])
    for names in wrong:
        with pytest.raises(ConfigurationError, match="names"):
            compare(first, second, names=names)


# --- Makers


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"formulas": "ragbench"}, "formulas gpt-labeling in A, ragbench in B: adherence"),
        ({"prompt_version": "7"}, "prompt_version None in A, 7 in B: adherence"),
    ],
)
def test_scores_made_differently_are_refused(change: dict[str, str], message: str) -> None:
    """The message says what differs; told to, the comparison says it too."""
    other = run(FEW, by=MAKER.model_copy(update=change))

    with pytest.raises(ConfigurationError) as error:
        compare(run(FEW), other)

    assert message in str(error.value)
    assert "--allow-mixed" in str(error.value)
    comparison = compare(run(FEW), other, allow_mixed=True)
    assert any(message in note for note in comparison.notes)


def test_a_run_mixed_in_itself_is_refused() -> None:
    """As by log-probabilities and by samples; another splitter and other windows are no mix."""
    several = [*run(FEW[:6]), *run(FEW, method="logprobs")[6:]]
    other = MAKER.model_copy(update={"splitter": "another", "windows": 3})

    with pytest.raises(ConfigurationError, match="method labels and logprobs in A"):
        compare(several, several)
    assert compare(run(FEW), run(FEW, by=other)).notes == ()


# --- Scores


def test_what_became_unscored_is_counted_apart() -> None:
    """By why; it is in no mean, and no call that fell."""
    before = run([1.0] * 20 + ["no_context"] * 2)
    after = run(["refusal", "refusal", None, *[1.0] * 19])
    failed = EvaluationError(type="Timeout", message="late", stage="judge")
    after[19] = call("q19", {}, error=failed)

    comparison = compare(before, after)

    difference = comparison.scores["adherence"]
    assert difference.became_unscored == {"refusal": 2, "error": 2}
    assert (difference.became_scored, difference.n, difference.losses) == (2, 16, 0)
    assert (difference.mean_a, difference.mean_b) == (1.0, 1.0)
    lost = comparison.became_unscored("adherence")
    assert [change.after.id for change in lost] == ["q0", "q1", "q2", "q19"]
    assert {change.difference for change in lost} == {None}


def test_scores_of_one_run_only_are_told() -> None:
    """They cannot be compared, and the others can."""
    comparison = compare(*(numbered({"adherence": 1.0, name: 1.0}) for name in ("old", "new")))

    assert list(comparison.scores) == ["adherence"]
    assert comparison.notes == ("Only in A: old.", "Only in B: new.")
    why = "'new': A and B do not both have it; the scores are adh"
    with pytest.raises(ConfigurationError, match=why):
        comparison.changed("new")


def adherent(values: list[float]) -> list[Evaluation]:
    parts = {"adherence": 1, "supported_fraction": 2, "trace_average": 4}
    return [
        call(f"q{number}", {name: value / part for name, part in parts.items()})
        for number, value in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([0] * 6 + [1] * 24,
         "6 answers became unsupported, none was repaired; that is more than chance."),
        ([0] * 6 + [1] * 22 + [2] * 2,
         "6 answers became unsupported, 2 were repaired; 30 calls are too few to be sure."),
        ([0] + [1] * 28 + [2],
         "1 answer became unsupported, one was repaired; 30 calls are too few to be sure."),
        ([1] * 29 + [2],
         "No answer became unsupported, one was repaired; 30 calls are too few to be sure."),
        ([1] * 30, "No answer became unsupported, none was repaired."),
        ([0], "1 answer became unsupported, none was repaired; 1 call is too few to be sure."),
    ],
)  # fmt: skip
def test_a_comparison_says_first_how_many_answers_changed(values: list[int], sentence: str) -> None:
    """In one sentence, and whether so many calls can tell; 0 fell, 2 rose."""
    before = adherent([0.0 if value == 2 else 1.0 for value in values])
    after = adherent([0.0 if value == 0 else 1.0 for value in values])

    scores = compare(before, after).scores
    lines = str(compare(before, after)).splitlines()

    # Holm's correction is of adherence alone: the others tell of the same sentences.
    assert scores["adherence"].p_holm == scores["adherence"].p
    assert (scores["trace_average"].p_holm, scores["supported_fraction"].p_holm) == (None, None)
    assert lines[:2] == ["B compared with A", sentence]
    assert max(map(len, lines[: lines.index("")])) <= 80
    assert sentence in compare(before, after)._repr_html_()


def test_a_comparison_names_its_runs(tmp_path: Path) -> None:
    """Files and others by their names, beside the letters of the table's columns."""
    before, after = run(FEW), run(FEW[::-1])
    path = write(tmp_path / "new.jsonl", after)
    for compared, heading in (
        (compare(before, after, names=["old", "new"]), "A: old, B: new"),
        (compare(before, after, before).others[0], "B (C) compared with A"),
        (compare(before, path), "B (new.jsonl) compared with A"),
        (compare(path, before), "B compared with A (new.jsonl)"),
    ):
        assert str(compared).splitlines()[0] == heading


def test_without_adherence_the_score_that_changed_most_is_told() -> None:
    """By its name; of no score at all, nothing."""
    before = numbered({"tone": 0.5, "style": 0.5})
    after = [call(f"q{n}", {"tone": 0.5, "style": 0.08 * n}) for n in range(12)]

    assert str(compare(before, after)).splitlines()[1] == (
        "style fell in 7 calls and rose in 5; 12 calls are too few to be sure."
    )
    assert str(compare(before, numbered({}))).splitlines()[1] == ""


def test_a_comparison_says_that_no_model_read_the_calls() -> None:
    """In the second line, also where it is true of one run only."""
    lexical = run(FEW, flags=("lexical_estimate",))
    for other, line in (
        (lexical, "Estimates by comparing words: no model read this."),
        (run(FEW), "Estimates by comparing words in 12 of 24 scored calls: no model read them."),
    ):
        assert str(compare(lexical, other)).splitlines()[2] == line
    assert "comparing words" not in str(compare(run(FEW), run(FEW)))


def test_the_calls_that_changed_most_come_first() -> None:
    """A fall before a rise of the same size; those that did not change are none of them."""
    before = run([0.5, 0.5, 0.5, 0.5, 0.0, 0.5])
    after = run([0.5, 0.7, 0.1, 0.9, 0.3, 0.5 + 1e-7])  # within a millionth, as in the counts
    comparison = compare(before, after)

    changes = [(each.after.id, each.difference) for each in comparison.changed("adherence")]
    expected = (("q2", -0.4), ("q3", 0.4), ("q4", 0.3), ("q1", 0.2))
    assert changes == [(name, pytest.approx(difference)) for name, difference in expected]
    assert len(comparison.changed("adherence", 2)) == 2
    assert [change.after.id for change in comparison.fell("adherence")] == ["q2"]
    assert comparison.changed_count == 4
    assert (comparison.scores["adherence"].wins, comparison.scores["adherence"].ties) == (3, 2)


# --- Verdicts


@pytest.mark.parametrize(
    ("fallen", "calls", "delta", "outcome", "reason"),
    [
        (40, 200, 0.02, "worse", "wholly below -0.02"),
        (40, 200, 0.0, "worse", "wholly below 0"),
        (40, 200, 0.3, "fine", "is not below -0.3"),  # that it fell is no chance
        (0, 200, 0.02, "fine", ""),
        (0, 20, 0.02, "cannot tell", ""),  # nothing changed; in a thousand, something could have
        (6, 200, 0.02, "cannot tell", " would show one of 0.02"),
        (9, 9, 0.02, "cannot tell", "9 calls in both runs, at least 10 needed"),
        (1, 1, 0.1, "cannot tell", "1 call in both runs, at least 10 needed"),
        (10, 10, 0.02, "worse", ""),
    ],
)
def test_three_verdicts(fallen: int, calls: int, delta: float, outcome: str, reason: str) -> None:
    """Worse beyond doubt, fine beyond doubt, or too few calls to tell: some fell from 1 to 0."""
    after = run([0.0] * fallen + [1.0] * (calls - fallen))
    verdict = compare(run([1.0] * calls), after).scores["adherence"].verdict(delta)

    assert verdict.outcome == outcome
    assert reason in verdict.reason


def test_an_interval_that_ends_at_the_margin_is_not_below_it() -> None:
    """With its lower end there the score is fine, with its upper end it is not worse."""
    score = compare(run([1.0] * 200), run([0.0] * 40 + [1.0] * 160)).scores["adherence"]
    assert score.interval is not None

    assert score.verdict(-score.interval.low).outcome == "fine"
    assert score.verdict(-score.interval.high).outcome == "cannot tell"


# --- Conversations


def in_threads(n: int, size: int, value: float | None = None) -> list[Evaluation]:
    """Calls of which so many stand in one thread each."""
    return [
        call(f"q{place}", {"adherence": float(place % 2) if value is None else value},
             metadata={"thread_id": f"t{place // size}"})
        for place in range(n)
    ]  # fmt: skip


def test_calls_of_one_conversation_are_kept_together() -> None:
    """From the metadata that frameworks write; one id for a whole run names no conversation.

    Nor does an empty one; pandas writes the ids as floats where one is missing.
    """

    def changed(change: Callable[[str], dict[str, Any]]) -> list[Evaluation]:
        threads = (f"t{place // 4}" for place in range(120))
        pairs = zip(before, threads, strict=True)
        return [each.model_copy(update={"metadata": {}, **change(name)}) for each, name in pairs]

    before = in_threads(120, 4)
    bare = changed(lambda _: {})
    captured = changed(lambda t: {"capture": Capture(framework="x", metadata={"thread_id": t})})
    whole = changed(lambda _: {"metadata": {"session_id": "run 7"}})
    floats = changed(lambda thread: {"metadata": {"session_id": float(thread[1:])}})
    late = changed(lambda thread: {"metadata": {"thread_id": thread * (thread < "t2")}})
    named = changed(lambda thread: {"metadata": {"user": thread}})
    cases: tuple[tuple[list[Evaluation], list[Evaluation], Any, int | None], ...] = (
        (before, before, None, 30), (captured, captured, None, 30), (bare, before, None, 30),
        (named, named, "user", 30), (named, named, None, None), (whole, whole, None, None),
        (before, before, False, None), (bare, bare, None, None),
        (floats, floats, None, 30), (late, late, None, 12 + 18 * 4),
    )  # fmt: skip

    for first, second, field, conversations in cases:
        comparison = compare(first, second, conversation=field)
        assert comparison.scores["adherence"].conversations == conversations
        assert ("kept together" in str(comparison)) == (conversations is not None)
    four = compare(in_threads(40, 10, 1.0), in_threads(40, 10, 0.0)).scores["adherence"]
    assert four.verdict(0.02) == ("cannot tell", "4 conversations in both runs, at least 10 needed")
    with pytest.raises(ConfigurationError, match=r"'usr': is a field of the metadata of no call"):
        compare(named, named, conversation="usr")


# --- Several runs, and how it is shown


def test_further_runs_are_compared_with_the_first() -> None:
    """Each with the baseline, not with its neighbour; the same runs give the same figures."""
    runs = run([1.0] * 20), run([0.5] * 20), run([0.0] * 20)
    comparison = compare(*runs, names=["a", "b", "c"])

    assert [each.names for each in comparison.all] == [("a", "b"), ("a", "c")]
    assert [each.scores["adherence"].difference for each in comparison.all] == [-0.5, -1.0]
    assert [each["name"] for each in comparison.to_json()["runs"]] == ["b", "c"]
    assert comparison == compare(*runs, names=["a", "b", "c"])


def test_it_reads_well(capsys: pytest.CaptureFixture[str]) -> None:
    """As text, in one line, and in a notebook; other people's texts act in none of them."""
    names = ["<b>old</b>\x1b[31m", "new"]
    comparison = compare(run(HALF), run([0.0] * 100), names=names)

    print(comparison)
    shown = capsys.readouterr().out
    assert "adherence  0.500  0.000  -0.500" in shown
    assert "Intervals: Bonett-Price; p: sign flips." in shown
    assert repr(comparison).startswith("<Comparison of new with")
    page = comparison._repr_html_()
    assert "<b>old" not in page
    assert "-0.500" in page
    for text in (shown, repr(comparison), page):
        assert "\x1b" not in text


# --- The gate


INVENTED = "A famous admiral painted it green."


def worse(fallen: int) -> list[Evaluation]:
    """A run in which some of 100 calls fell from 1 to 0, because of an invented sentence."""
    response = ["It leaves at nine.", INVENTED]
    scores = {"adherence": 0.0, "completeness": 1.0}
    fell = [call(f"q{n}", scores, response=response, supported=False) for n in range(fallen)]
    return fell + BEFORE[fallen:]


BEFORE = numbered({"adherence": 1.0, "completeness": 1.0}, 100)


def test_a_run_that_is_worse_fails_with_its_worst_calls(tmp_path: Path) -> None:
    """Value, interval, verdict, and the sentences that no document supports; from files too."""
    after = write(tmp_path / "after.jsonl", worse(30))

    with pytest.raises(AssertionError) as error:
        assert_no_regression(BEFORE, after, adherence=0.05, completeness=0.1)

    first, *rest = str(error.value).split("\n")
    assert first.startswith("worse: adherence: 30 of 100 calls fell, 0 rose: -0.300 [-0.")
    assert first.endswith("(Bonett-Price) is wholly below -0.05")
    assert len(rest) == 5
    assert rest[0] == (
        f"  -1.00 q0 “When does q0 leave?”: not supported: a “It leaves at nine.”; b “{INVENTED}”"
    )


def test_what_cannot_be_told_passes_unless_it_may_not() -> None:
    """Three of 100 calls fell: chance, or one call in thirty."""
    after = worse(3)

    assert assert_no_regression(BEFORE, after, adherence=0.02).scores["adherence"].losses == 3
    with pytest.raises(
        AssertionError, match=r"cannot tell: adherence: 3 of 100 calls fell, 0 rose: -0\.030"
    ):
        assert_no_regression(BEFORE, after, unclear="fail", adherence=0.02)


def test_a_comparison_is_checked_with_all_its_runs() -> None:
    """A third run that is worse fails, and is named."""
    comparison = compare(BEFORE, BEFORE, worse(30), names=["old", "same", "new"])

    with pytest.raises(AssertionError, match=r"worse: adherence \(new\): 30"):
        assert_no_regression(comparison, adherence=0.02)


SAME = (BEFORE, BEFORE)


@pytest.mark.parametrize(
    ("runs", "options", "why"),
    [
        (SAME, {}, "`deltas` = {}: name a score and the fall that does not matter"),
        ((BEFORE,), {"adherence": 0.1}, "`after`: give the run to check"),
        *((SAME, {"adherence": delta}, f"`delta` = {delta!r}: use a number from 0 to 1")
          for delta in (-0.1, 1.5, float("nan"), True, "0.1")),
        (SAME, {"adherence": 0.1, "unclear": "maybe"}, "`unclear` = 'maybe': use 'pass' or 'fail'"),
        ((compare(*SAME), BEFORE), {"adherence": 0.1},
         "`after` = 'list': is in the comparison already"),
        (SAME, {"adherance": 0.1}, "`name` = 'adherance': A and B do not both have it; did you"),
        ((run([1.0] * 20), run([None] * 20)), {"adherence": 0.1},
         "`adherence` = 0.1: no call of A and B has a value in both"),
    ],
)  # fmt: skip
def test_mistakes_are_told_before_anything_passes(runs: Any, options: Any, why: str) -> None:
    """A gate that checks nothing must not be green, nor one of a judge that failed throughout."""
    with pytest.raises(ConfigurationError) as error:
        assert_no_regression(*runs, **options)
    assert str(error.value).startswith(why)
