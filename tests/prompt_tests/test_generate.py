"""The stages: what they ask, read and write."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prompt_test_models import generator, reply_with_tests, stage_of

from rag_eval_integrations.errors import (
    ConfigurationError,
    JudgeError,
    JudgeOutputError,
    JudgeRejectedError,
    JudgeUnavailableError,
)
from rag_eval_integrations.metrics.prompty import parse_prompty
from rag_eval_integrations.models import CallableModel
from rag_eval_integrations.models.completion import Choice, Completion, CompletionRequest
from rag_eval_integrations.prompt_tests import (
    GenerateOptions,
    Generation,
    PromptTest,
    PromptUnderTest,
    Rule,
)
from rag_eval_integrations.prompt_tests._replies import (
    read_baseline,
    read_inverse_rules,
    read_tests,
)
from rag_eval_integrations.prompt_tests.project import Project
from rag_eval_integrations.testing import ScriptedModel

ONE_EACH = GenerateOptions(tests_per_rule=1, baseline=False)
REFUSAL = "I'm sorry, I can't assist with that."


def stages(model: ScriptedModel) -> list[str]:
    return [stage_of(request) for request in model.requests]


def inputs_of(tests: Iterable[PromptTest]) -> list[str]:
    return [test.testinput for test in tests]


def inverse(*texts: str, first: int = 1) -> str:
    """A reply with inverse rules, numbered from the first."""
    return json.dumps([{"number": n, "text": text} for n, text in enumerate(texts, first)])


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


Generate = Callable[..., tuple[list[PromptTest], list[str]]]


@pytest.fixture
def generate(put: Path, out: Path) -> Generate:
    """Generate tests in the folder: the tests, and the notices."""

    def run(
        model: ScriptedModel | None = None, options: GenerateOptions = ONE_EACH, **more: Any
    ) -> tuple[list[PromptTest], list[str]]:
        notices: list[str] = []
        made = Generation(put, out, model or generator(), options, tell=notices.append, **more)
        return made.run(), notices

    return run


def test_every_stage_writes_its_file(generate: Generate, out: Path) -> None:
    """Upstream's names; one statement a line; rule, text and direction frozen on each test."""
    model = generator()

    tests, _ = generate(model, GenerateOptions(tests_per_rule=1))

    for name, text in {
        "intent": "Repeats text in capitals.\n",
        "input_spec": "The input is any text.\n",
        "rules": "The output is in capitals.\nThe output repeats the input.\n",
        "inverse_rules": "The output is in small letters.\nThe output is something new.\n",
        "baseline_tests": "one\n===\ntwo\n===\nthree\n===\nfour\n",
    }.items():
        assert (out / f"{name}.txt").read_text() == text
    rows = json.loads((out / "tests.json").read_text())
    assert [row["ruleid"] for row in rows] == ["1", "2", "3", "4", "", "", "", ""]
    assert [row["inverse"] for row in rows[:4]] == [False, False, True, True]
    assert rows[2]["rule"] == "The output is in small letters."
    assert rows[0] | {"testuid": ""} == {
        "ruleid": "1", "testid": "1", "expectedoutput": "TEXT 1", "reasoning": "plain",
        "text": "text 1", "inputs": {"text": "text 1"}, "testinput": "text 1", "scenario": "",
        "generation": 0, "baseline": False, "inverse": False, "testuid": "",
        "rule": "The output is in capitals.",
    }  # fmt: skip
    assert len({row["testuid"] for row in rows}) == 8
    assert [test.baseline for test in tests] == [False] * 4 + [True] * 4
    asked = "baseline input-spec intent inverse-rules rules tests tests"
    assert " ".join(sorted(stages(model))) == asked


def test_a_folder_without_its_prompt_says_so(generate: Generate, put: Path, out: Path) -> None:
    """`Generation` writes tests alone; the command continues its folder, and asks nothing."""
    generate()

    with pytest.raises(ConfigurationError, match=r"not their prompt.*generate PROMPT"):
        Project(out, print)
    Project.create(put, out, print)
    assert Project(out, print).tests()


def test_a_second_generation_asks_nothing_and_gives_the_same(generate: Generate, out: Path) -> None:
    """Files that are there are read; replies that were paid for are never asked again."""
    first = generate()
    silent = ScriptedModel([], name="generator")  # it fails if it is asked

    assert generate(silent) == first
    for name in ("intent.txt", "rules.txt", "tests.json"):
        (out / name).unlink()
    assert generate(silent) == first


def test_rules_edited_by_hand_are_what_counts(generate: Generate, out: Path) -> None:
    """A file that is there is the stage's result, comments and blank lines left out."""
    out.mkdir()
    (out / "rules.txt").write_text("# mine\n\nThe output is loud.\n")
    model = generator(inverse_rules=inverse("The output is quiet."))

    tests, _ = generate(model)

    assert [test.rule for test in tests] == ["The output is loud.", "The output is quiet."]
    assert "rules" not in stages(model)

    (out / "rules.txt").write_text("The output is loud.\nThe output is long.\n")
    (out / "tests.json").unlink()
    assert "2 rules but 1 inverse rules" in generate()[1][-1]


def test_a_rule_that_begins_like_a_comment_is_one(generate: Generate, out: Path) -> None:
    """In the file it has a backslash in front, which is no part of it."""
    rules = ["#tags come last.", "\\# is a heading."]
    tests, _ = generate(generator(rules=json.dumps({"rules": rules})))
    assert [test.rule for test in tests[:2]] == rules
    assert (out / "rules.txt").read_text() == "".join(f"\\{rule}\n" for rule in rules)


def test_missing_inverse_rules_are_asked_for_once_more(generate: Generate, out: Path) -> None:
    """Only those; what is then still missing leaves the others with their rules."""
    first = inverse("Opposite of two.", first=2)

    def only_the_second(request: CompletionRequest) -> str:
        return first if "2. " in request.messages[1].content else REFUSAL

    tests, notices = generate(generator(inverse_rules=only_the_second))
    assert (out / "inverse_rules.txt").read_text() == "2. Opposite of two.\n"
    assert [test.rule for test in tests][2:] == ["Opposite of two."]
    assert "2 rules but 1 inverse rules" in notices[0]

    shutil.rmtree(out)
    replies = iter([first, inverse("Opposite of one.")])
    model = generator(inverse_rules=lambda _: next(replies))
    assert generate(model)[0][2].rule == "Opposite of one."
    asked = [r.messages[1].content for r in model.requests if stage_of(r) == "inverse-rules"]
    assert "1. The output is in capitals." in asked[1]
    assert "2. The output repeats" not in asked[1]


@pytest.mark.parametrize(
    ("text", "inverse"),
    [
        ('{"inverse": [{"number": "2", "text": "b"}, {"number": 1, "text": "a"}]}', {1: "a", 2: "b"}),
        ('[{"number": 7, "text": "x"}, {"number": 1, "text": " a "}]', {1: "a"}),
        ('{"inverse": ["a", "b"]}', {1: "a", 2: "b"}),
        ("1. a\n2. b", {1: "a", 2: "b"}),
        ("a\nb\n", {1: "a", 2: "b"}),
        ("a\nb\nc", None), ("", None), ('{"inverse": []}', None), ('[{"number": 9, "text": "x"}]', None),
    ],
)  # fmt: skip
def test_inverse_rules_are_matched_by_number_or_order(text: str, inverse: object) -> None:
    """Whatever form they come in; more than rules, or none, cannot be matched."""
    assert read_inverse_rules(text, [1, 2]) == inverse


def test_a_prompt_without_rules_is_said(generate: Generate, out: Path) -> None:
    """No tests, no error; the file says how to go on."""
    model = generator(rules='{"rules": []}')

    tests, [notice] = generate(model)

    assert (tests, "no output rules were found" in notice) == ([], True)
    assert (out / "rules.txt").read_text().startswith("# no output rules were found")
    assert stages(model).count("inverse-rules") == 0
    assert generate(ScriptedModel([]))[0] == []


@pytest.mark.parametrize("stage", ["intent", "input_spec", "rules"])
def test_a_refusal_never_becomes_a_rule(generate: Generate, out: Path, stage: str) -> None:
    """Asked once more, then the stage fails with the reason and writes nothing."""
    model = generator(**{stage: REFUSAL})

    with pytest.raises(JudgeOutputError, match="the generator refused: I'm sorry"):
        generate(model)

    assert stages(model).count(stage.replace("_", "-")) == 2
    assert not (out / f"{stage}.txt").exists()
    again = iter([REFUSAL, '{"rules": ["fine"]}' if stage != "intent" else "It works."])
    assert generate(generator(**{stage: lambda _: next(again)}))[0]


@pytest.mark.parametrize(
    ("stage", "reply"),
    [
        ("intent", ""), ("intent", "x" * 1001), ("input_spec", "\n"), ("rules", ""),
        ("rules", Completion(choices=(Choice(text="The output", finish_reason="length"),))),
        ("rules", Completion(choices=(Choice(text="", refusal="no"),))),
        ("inverse_rules", "a\nb\nc"),
    ],
)  # fmt: skip
def test_a_reply_of_no_use_twice_is_an_error(generate: Generate, stage: str, reply: Any) -> None:
    """Nothing is made up of it."""
    with pytest.raises(JudgeOutputError):
        generate(generator(**{stage: reply}))


def test_a_generator_that_fails_leaves_what_is_done(generate: Generate) -> None:
    """Where all groups of rules fail, the reason is theirs; stages before are not asked again."""
    with pytest.raises(JudgeRejectedError, match="filtered"):
        generate(generator(tests=JudgeRejectedError("filtered", status=400)))
    model = generator()
    assert len(generate(model)[0]) == 4
    assert set(stages(model)) == {"tests"}


def test_scenarios_samples_and_types_reach_the_generator(tmp_path: Path) -> None:
    """Each where it belongs, and inputs with their types.

    A scenario's fixed inputs are not asked for, and not replaced by what is written all the same.
    """
    path = tmp_path / "p.prompty"
    path.write_text(
        "---\ninputs: {text: {type: string, description: what to shout}, tone: {type: string},"
        " n: {type: number}, loud: {type: boolean}}\nsample: {text: ahoy, tone: kind}\nscenarios:\n  - {name: night, instructions: It is night., parameters: {tone: soft}}\n"
        "  - {name: day}\n---\n{{text}} {{tone}} {{n}} {{loud}}\n"
    )
    options = GenerateOptions(tests_per_rule=1, baseline=False, expansions=1)
    more = '"inputs": {"tone": "shrill", "n": 2, "loud": false, '
    model = generator(
        expand='{"text": "longer", "n": 2, "loud": false}',
        tests=lambda request: reply_with_tests(request).replace('"inputs": {', more),
    )

    tests = Generation(path, tmp_path / "out", model, options, scenarios=["night"]).run()

    asked = {stage_of(r): f"{r.messages} {json.dumps(r.json_schema)}" for r in model.requests}
    for stage, *words in (
        ("input-spec", "ahoy", "text (string): what to shout"),
        ("tests", "It is night.", '{"tone": "soft"}', '"text": {"type": "string"}',
         '"n": {"type": "number"}', '"loud": {"type": "boolean"}'),
        ("expand", '"text": {"type": "string"}'),
    ):  # fmt: skip
        assert [each for each in words if each not in asked[stage]] == []
    assert not any('"tone": {"type"' in asked[stage] for stage in ("tests", "expand"))
    assert {test.scenario for test in tests} == {"night"}
    # Two tests expand to the same text; each keeps its first form and its rule.
    rest = {"n": 2, "loud": False}
    assert all(test.original == {"text": f"text {test.rule_id}", **rest} for test in tests)
    assert all(test.inputs == {"text": "longer", **rest} for test in tests)


def test_tests_that_are_not_made_longer_keep_their_form(generate: Generate, out: Path) -> None:
    """Refused, it costs nothing else and is named; a dead generator is not asked for every one."""
    longer = {True: REFUSAL, False: '{"text": "longer"}'}
    model = generator(expand=lambda request: longer['"text 1"' in request.messages[1].content])
    tests, [line] = generate(model, replace(ONE_EACH, expansions=1))
    assert inputs_of(tests) == ["text 1", "longer", "longer", "longer"]
    assert f"{tests[0].uid} ('text 1') keeps its short form: the generator refused" in line

    shutil.rmtree(out)
    dead = generator(expand=JudgeUnavailableError("connection refused", connected=False))
    dead.retries = True  # it needs none of ours, which wait
    tests, [line] = generate(dead, replace(ONE_EACH, expansions=3), max_concurrency=1)
    assert (len(tests), (out / "tests.json").exists()) == (4, True)
    assert "keep their short form: connection refused" in line


def no_small_letters(request: CompletionRequest) -> str:
    """Tests, where a filter refuses the inverse rules."""
    if "small letters" in request.messages[1].content:
        raise JudgeRejectedError("filtered", status=400)
    return reply_with_tests(request)


def no_second_round(request: CompletionRequest) -> str | Exception:
    long = len(request.messages) > 2
    return JudgeRejectedError("too long", status=400) if long else reply_with_tests(request)


def only_when_asked_again(request: CompletionRequest) -> str:
    """Tests in the second reply, and none of the third rule."""
    if "3. " in request.messages[1].content:
        return REFUSAL
    return "nothing yet" if len(request.messages) == 2 else reply_with_tests(request)


@pytest.mark.parametrize(
    ("options", "replies", "rules", "words"),
    [
        ({"baseline": True}, {"baseline": "==="}, [1, 2, 3, 4], "there are no baseline tests"),
        ({"keep": 2}, {"rating": '{"keep": [9, 1]}'}, [1, 2, 3, 4],
         "all 4 tests are kept without a review"),
        ({}, {"tests": no_small_letters}, [1, 2], "there are no tests of rule 3, 4: filtered"),
        ({"generations": 2}, {"tests": no_second_round}, [1, 2, 3, 4],
         "round 2 of the tests of rule 1, 2 is missing: too long"),
        ({}, {"tests": only_when_asked_again}, [1, 2],
         "no tests were written for rule 3, 4: the generator refused"),
    ],
)  # fmt: skip
def test_a_stage_of_no_use_leaves_the_other_tests(
    generate: Generate, out: Path, options: dict[str, Any], replies: dict[str, Any],
    rules: list[int], words: str,
) -> None:  # fmt: skip
    """What was paid for before is written, and the loss is said."""
    tests, notices = generate(generator(**replies), replace(ONE_EACH, **options))

    assert [test.rule_id for test in tests] == rules
    assert any(words in notice for notice in notices)
    assert len(json.loads((out / "tests.json").read_text())) == len(rules)


def test_more_generations_continue_the_chat(generate: Generate) -> None:
    """Asked for more and no duplicates; those that repeat are dropped."""

    def reply(request: CompletionRequest) -> str:
        if len(request.messages) == 2:
            return reply_with_tests(request)
        assert "none like those above" in request.messages[-1].content
        return '[{"rule": 1, "inputs": {"text": "text 1"}}, {"rule": 1, "inputs": {"text": "new"}}]'

    tests, _ = generate(generator(tests=reply), replace(ONE_EACH, generations=2, max_rules=1))

    direct = [(test.testinput, test.generation) for test in tests if not test.inverse]
    assert direct == [("text 1", 0), ("new", 1)]


def test_tests_are_read_in_every_form(prompt: PromptUnderTest) -> None:
    """JSON and CSV; a row short of an input is named, never filled in."""
    rule = Rule(id=5, text="r", inverse=True)
    for form, lost, expected in (
        ('{"tests": [{"rule": 5, "inputs": {"text": "a, b"}, "expected": ["X"]}, {"rule": 5}]}',
         "test 2: is empty", '["X"]'),
        ('ruleid,testid,expectedoutput,reasoning,text\n5,1,"X","y","a, b"\n5,2,"X","y"',
         "line 3: 4 cells instead of 5", "X"),
    ):  # fmt: skip
        parsed = read_tests(form, prompt, [rule])
        [test] = parsed.tests
        assert (test.inputs, test.rule_id, test.inverse) == ({"text": "a, b"}, 5, True)
        assert (parsed.lost, test.expected) == ([lost], expected)
    two = PromptUnderTest.from_text("{{a}}{{b}}")
    default = PromptUnderTest.from_text("---\ninputs: {a: {default: x}}\n---\n{{a}}")
    for text, under_test, read, missing in (
        ('[{"inputs": {"text": "a"}}, {"inputs": "a"}, "b", ""]', prompt, ["a", "b"],
         ["test 2: is the same as an earlier one", "test 4: is empty"]),
        ("ruleid,testid,testinput\n1,1,plain", two, [],
         ["test 1: `testinput` = 'plain': should be an object with a, b"]),
        ("ruleid,testid,testinput\n1,1,", default, [], ["test 1: is empty"]),
    ):  # fmt: skip
        parsed = read_tests(text, under_test)
        assert (inputs_of(parsed.tests), parsed.lost) == (read, missing)
        assert all(test.baseline for test in parsed.tests)
    # Which rule a test tries is not guessed; its direction is that of its group.
    rules = [Rule(id=1, text="a", inverse=True), Rule(id=2, text="b", inverse=True)]
    [test] = read_tests('[{"text": "x"}]', prompt, rules).tests
    assert (test.rule_id, test.rule, test.inverse) == (None, "", True)


def test_baseline_tests_lose_their_titles(prompt: PromptUnderTest) -> None:
    """Parted by ===, or a JSON list; repeated ones once."""
    text = "Test case 1:\none\n===\n**Test 2:** two words\n===\none\n====\nuser:\nthree"
    assert inputs_of(read_baseline(text, prompt)) == ["one", "two words", "user:\nthree"]
    for listed in ('["a", "b"]', '{"inputs": ["a", "b"]}'):
        assert inputs_of(read_baseline(listed, prompt)) == ["a", "b"]
    two = PromptUnderTest.of(parse_prompty("{{a}}{{b}}", name="p"))
    tests = read_baseline('{"a": "1", "b": "2"}\n===\n{"a": "1"}', two)
    assert [t.inputs for t in tests] == [{"a": "1", "b": "2"}]


def test_baseline_tests_that_begin_like_a_refusal_are_kept(generate: Generate) -> None:
    """A complaint is a test, where others follow it."""
    texts = ["I can't log in to my account.", "Where is my order?"]
    tests, _ = generate(generator(baseline="\n===\n".join(texts)), GenerateOptions())
    assert inputs_of(test for test in tests if test.baseline) == texts


def test_tests_can_be_reviewed_and_the_best_kept(generate: Generate, out: Path) -> None:
    """Exactly so many; the review is a file."""
    model = generator(rating='{"review": "Two are enough.", "keep": [3, 1]}')

    tests, _ = generate(model, replace(ONE_EACH, keep=2))

    assert [test.rule_id for test in tests] == [1, 3]
    assert (out / "test_collection_review.md").read_text() == "Two are enough.\n"


async def test_expected_outputs_are_judged_and_tried_again(put: Path, out: Path) -> None:
    """80 is taken at once; the best of three from 50 on; below that it is refused."""
    scores = [["90"], ["60", "70", "10"], ["40", "20", "30"], ["?"] * 3]

    def strong(request: CompletionRequest) -> str:
        return f"{request.messages[-1].content.upper()} {request.seed or 0}"

    def judged(request: CompletionRequest) -> str:
        _, test, attempt = request.messages[-1].content.split("<OUTPUT>\n")[1].split()[:3]
        return scores[int(test) - 1][int(attempt)]

    models = ScriptedModel(strong, name="strong"), [ScriptedModel(judged, name="judge")]
    tests = await Generation(put, out, generator(), ONE_EACH).groundtruth(*models)

    assert [(t.groundtruth, t.groundtruth_score, t.usable_groundtruth) for t in tests] == [
        ("TEXT 1 0", 90, "TEXT 1 0"), ("TEXT 2 1", 70, "TEXT 2 1"),
        ("TEXT 3 0", -1, None), ("TEXT 4 0", -1, None),
    ]  # fmt: skip
    assert {t.groundtruth_model for t in tests} == {"strong"}
    assert len(json.loads((out / "test_groundtruth.json").read_text())) == 4
    silent = ScriptedModel([], name="strong")
    again = Generation(put, out, generator(), ONE_EACH)
    assert await again.groundtruth(silent, [silent]) == tests
    with pytest.raises(ConfigurationError, match="give at least one"):
        await again.groundtruth(silent, [])


async def test_rules_added_by_hand_lead_to_tests(put: Path, out: Path) -> None:
    """Also where expected outputs were asked for before there were any."""
    none = Generation(put, out, generator(rules='{"rules": []}'), ONE_EACH)
    silent = ScriptedModel([], name="strong")
    assert await none.groundtruth(silent, [silent]) == []

    (out / "rules.txt").write_text("The output is in capitals.\n")
    (out / "inverse_rules.txt").unlink(missing_ok=True)

    assert len(await Generation(put, out, generator(), ONE_EACH).tests()) == 2


async def test_a_groundtruth_metric_beside_the_prompt_is_used(put: Path, out: Path) -> None:
    """Instead of our own; verdicts count as 100 and 0, empty outputs as none.

    A test whose input a filter refuses for good is told, and the others get their outputs.
    """
    text = "---\ntags: [groundtruth]\n---\nMINE {{output}}"
    (put.parent / "mine.metric.prompty").write_text(text)
    judge = ScriptedModel(lambda r: "OK" if "MINE" in r.messages[0].content else "0", name="j")
    replies: dict[str, Any] = {"1": "", "2": JudgeRejectedError("filtered"), "3": "out", "4": "out"}
    strong = ScriptedModel(lambda r: replies[r.messages[-1].content[-1]], name="s")
    notices: list[str] = []

    generation = Generation(put, out, generator(), ONE_EACH, tell=notices.append)
    tests = await generation.groundtruth(strong, [judge])

    assert [t.groundtruth_score for t in tests] == [-1, None, 100, 100]
    assert ["gets no expected output" in notice for notice in notices] == [True]


def test_options_given_explicitly_beat_the_preset() -> None:
    """Always; what is not given is the preset's."""
    options = GenerateOptions.of("min", tests_per_rule=4, max_rules=None, split_rules=True)

    assert (options.tests_per_rule, options.max_rules, options.split_rules) == (4, 6, True)
    assert GenerateOptions.of() == GenerateOptions()
    for effort, keep, field in (("max", 1, "effort"), (None, 0, "keep")):
        with pytest.raises(ConfigurationError, match=field):
            GenerateOptions.of(effort, keep=keep)


def test_wrong_arguments_are_named(put: Path, generate: Generate, out: Path) -> None:
    """No model that answers, a folder that is a file, a test file that is none."""
    for folder, model, options, why in (
        (out, "embedded", {}, "does not answer messages"),
        (out, generator(), {"max_concurrency": 0}, "max_concurrency"),
        (put, generator(), {}, "is a file"),
        (out, generator(), {"scenarios": ["noon"]}, "the prompt's scenarios are: none"),
    ):
        with pytest.raises(ConfigurationError, match=why):
            Generation(put, folder, model, **options)
    generate()
    for name, content, why in (
        ("tests.json", b'[{"text": "a"},\n {"text": }]', r"tests\.json': cannot be read: .* line 2 "),
        ("rules.txt", b"\xff", r"rules\.txt': cannot be read"),
    ):  # fmt: skip
        (out / name).write_bytes(content)
        with pytest.raises(ConfigurationError, match=why):
            generate()


def test_tests_edited_by_hand_are_read(generate: Generate, out: Path) -> None:
    """A row without an input is told; ids are made where there is none."""
    generate()
    (out / "tests.json").write_text('[{"ruleid": 3, "text": "mine"}, {"ruleid": 1}]')

    [test], notices = generate()

    rule = "The output is in small letters."
    assert (test.testinput, test.rule, test.inverse) == ("mine", rule, True)
    assert test.uid.startswith("test-")
    assert notices == [f"{out / 'tests.json'}: test 2: has no input"]


async def test_stages_work_on_a_group_by_themselves(put: Path, tmp_path: Path) -> None:
    """Each can be called alone, and does what it needs first; a framework's model may write."""
    from langchain_core.language_models.fake_chat_models import FakeListChatModel

    generation = Generation(put, tmp_path / "out", FakeListChatModel(responses=["One sentence."]))  # type: ignore[arg-type]
    assert await generation.intent() == "One sentence."

    alone = Generation(put, tmp_path / "alone", generator())
    opposites = ["The output is in small letters.", "The output is something new."]
    assert await alone.inverse_rules() == opposites
    written = {path.name for path in (tmp_path / "alone").glob("*.txt")}
    assert written == {"inverse_rules.txt", "rules.txt"}


def test_replies_of_no_use_are_asked_for_anew_by_the_next_run(generate: Generate) -> None:
    """A refusal that was recorded would otherwise be the answer for ever."""
    with pytest.raises(JudgeOutputError, match="refused"):
        generate(generator(rules=REFUSAL, tests="no tests at all"))

    no_tests = generator(tests="no tests at all")
    assert generate(no_tests)[0] == []
    fine = generator()

    assert len(generate(fine)[0]) == 4
    assert stages(no_tests)[0] == "rules"  # what was of use before is not asked again
    assert set(stages(fine)) == {"tests"}


def test_a_generator_that_raises_anything_is_an_error_that_says_so(put: Path, out: Path) -> None:
    """An async function of the user's raises what its own client does."""

    async def down(_: list[dict[str, str]]) -> str:
        raise ConnectionResetError("gone")

    with pytest.raises(JudgeError, match=r"^model '\w+' raised ConnectionResetError: gone$"):
        Generation(put, out, CallableModel(down)).run()


@pytest.mark.parametrize("effort", ["min", "low", "medium", "high"])
@pytest.mark.parametrize("rules", [3, 17])
def test_no_effort_takes_more_requests_than_upstream(
    generate: Generate, rules: int, effort: str
) -> None:
    """Upstream: five, one per group of rules and round, one per test and expansion."""
    texts = [f"Rule {n}." for n in range(rules)]

    def tests(request: CompletionRequest) -> str:
        return reply_with_tests(request).replace("text ", f"round {len(request.messages)} ")

    model = generator(
        rules=json.dumps({"rules": texts}), inverse_rules=inverse(*texts), tests=tests,
        expand='{"text": "longer"}', baseline="\n===\n".join(map(str, range(400))),
    )  # fmt: skip
    options = GenerateOptions.of(effort)
    made, _ = generate(model, options)

    direct = min(options.max_rules or rules, rules)
    kinds = [direct, direct] if options.split_rules else [2 * direct]
    groups = sum(-(-count // options.rules_per_group) for count in kinds)
    of_rules = sum(not test.baseline for test in made)
    upstream = 5 + groups * options.generations + of_rules * options.expansions
    assert of_rules == 2 * direct * options.generations
    assert len(model.requests) <= upstream


async def test_a_list_among_the_inputs_is_a_list() -> None:
    """In a baseline test, and where the generator writes it as text, as its schema says."""
    put = PromptUnderTest.from_text(
        "---\ninputs: {q: {type: string}, of: {type: array}}\n---\n{{q}}{% for x in of %}<{{x}}>{% endfor %}"
    )
    parts = read_baseline('{"q": "a", "of": ["b", "c"]}\n===\n{"q": "d", "of": "[1, 2]"}', put)

    shown = [put.render(put.values(test.inputs))[0].content for test in parts]
    assert shown == ["a<b><c>", "d<1><2>"]


def test_the_expected_output_is_written_after_the_inputs(generate: Generate) -> None:
    """An endpoint keeps the order of the schema, in which a test's parts depend on each other."""
    model = generator()
    generate(model)

    for schema in [r.json_schema for r in model.requests if stage_of(r) == "tests"]:
        names: Any = schema["properties"]["tests"]["items"]["properties"]  # type: ignore[index,call-overload]
        assert list(names) == ["rule", "inputs", "expected", "reasoning"]


def test_a_fence_of_one_baseline_test_takes_no_other_away(prompt: PromptUnderTest) -> None:
    """A fence around all of them, or each of them, is not part of a test; code within one is."""
    for reply, texts in (
        ("Why?\n```py\nx = 1\n```\n===\nb", ["Why?\n```py\nx = 1\n```", "b"]),
        ("```\na\n```\n===\n```\nb\n```", ["a", "b"]),
        ("Here they are:\n```\na\n===\nb\n```", ["a", "b"]),
    ):
        assert inputs_of(read_baseline(reply, prompt)) == texts
