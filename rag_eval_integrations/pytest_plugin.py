"""The pytest plugin: fixture and marker `rag_eval`, `--rag-eval-judge` and `--rag-eval-report`.

pytest loads it wherever the library is installed, so it imports nothing of the library before a
test uses it, and a session that does not use it prints and writes nothing.

    item ─▶ evaluations of the test ─▶ report.rag_eval, text alone ─▶ `_session_results`

Under pytest-xdist the first two are in a worker, the last is in the controller. What stands on a
report comes there also from a worker that crashes later. PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from rag_eval_integrations._asserting import AllowUnscored
    from rag_eval_integrations._session_results import SessionResults
    from rag_eval_integrations.evaluator import RagEvaluator
    from rag_eval_integrations.judges import Judge
    from rag_eval_integrations.models import Model
    from rag_eval_integrations.records import Evaluation, RagCall

_MARKER = (
    "rag_eval(minimums=None, /, *, allow_unscored=(), **named): every evaluation of the test must "
    "reach these scores, such as `rag_eval(adherence=1.0)`; there must be at least one evaluation."
)
_NOTHING = (
    "nothing was evaluated in this test; use the fixture `rag_eval`: "
    "rag_eval.evaluate_sync(call), or rag_eval.record(evaluation) for one made elsewhere"
)
_OURS = re.compile(r"rag_eval(\[\d+\])?\.")
_MOST_PROPERTIES = 20
"""Evaluations of one test that have JUnit properties."""
_MOST_WORDS = 4_000
"""Characters of a failure that a report carries."""


# --- Options


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and the ini value."""
    group = parser.getgroup("rag_eval", "RAG evaluation")
    group.addoption(
        "--rag-eval-judge",
        metavar="JUDGE",
        default=None,
        help="judge of the fixture rag_eval: embedded (default, asks no model), openai:MODEL, "
        "cascade:A,B or MODULE:OBJECT",
    )
    group.addoption(
        "--rag-eval-report",
        metavar="PATH",
        default=None,
        help="write the evaluations of all tests to PATH: a page (.html) or lines (.jsonl)",
    )
    parser.addini(
        "rag_eval_judge", "judge of the fixture rag_eval, as --rag-eval-judge", default=""
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker; check where the report goes before any test runs."""
    config.addinivalue_line("markers", _MARKER)
    if hasattr(config, "workerinput"):  # its controller collects
        return
    path: str | None = config.getoption("--rag-eval-report")
    if path is not None:
        from rag_eval_integrations._session_results import checked_path  # noqa: PLC0415  # wanted

        try:
            path = str(checked_path(path))
        except (ValueError, OSError) as error:
            raise pytest.UsageError(f"--rag-eval-report: {error}") from error
    config.pluginmanager.register(_Collector(path), "rag_eval_collector")


# --- One test


@dataclass
class _State:
    """The evaluations and outcome of one test while it runs."""

    evaluations: list[Evaluation] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    """Lines of EVALS that stand on no report yet."""
    properties: list[tuple[str, object]] = field(default_factory=list)
    """Likewise, for JUnit."""
    failure: str | None = None
    """Why the marker failed the test."""
    ended: bool = False
    calls: int = 0
    """How many calls the fixture was given."""


_STATE = pytest.StashKey[_State]()


def _state_of(item: pytest.Item) -> _State:
    """Return the state of a test, made at first use."""
    if _STATE not in item.stash:
        # A test that is run again has the properties of its first run.
        item.user_properties[:] = [p for p in item.user_properties if not _OURS.match(p[0])]
        item.stash[_STATE] = _State()
    return item.stash[_STATE]


class RagEvalFixture:
    """Evaluates calls of one test and attaches the evaluations to it: the fixture `rag_eval`.

    Attached evaluations are what the marker checks, and are in the report, the summary and the
    JUnit properties. A failed evaluation raises nothing: its scores have no value, and
    `assert_scores` says why.
    """

    def __init__(self, item: pytest.Item, evaluator: RagEvaluator) -> None:
        self._item = item
        self._state = _state_of(item)
        self.evaluator = evaluator
        """The evaluator of the session: what the fixture `rag_evaluator` returned."""

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """The evaluations of this test so far, oldest first."""
        return tuple(self._state.evaluations)

    async def evaluate(
        self, call: RagCall | None = None, /, *, only: Collection[str] | None = None, **fields: Any
    ) -> Evaluation:
        """Evaluate a call, or the call with these fields, in an async test.

        Args:
            call: the call; None if its fields are given instead.
            only: names of scores, as in `RagEvaluator.evaluate`.
            fields: of the `RagCall`: `question`, `documents`, `response` …

        Raises:
            ConfigurationError: there are both a call and fields, or neither.
        """
        evaluation = await self.evaluator.evaluate(self._call(call, fields), only=only)
        self.record(evaluation)
        return evaluation

    def evaluate_sync(
        self, call: RagCall | None = None, /, *, only: Collection[str] | None = None, **fields: Any
    ) -> Evaluation:
        """Evaluate a call as `evaluate` does; also the `target` of a handler or wrapper."""
        evaluation = self.evaluator.evaluate_sync(self._call(call, fields), only=only)
        self.record(evaluation)
        return evaluation

    def record(self, *evaluations: Evaluation) -> None:
        """Attach evaluations that were made elsewhere, such as `*handler.evaluations`.

        One that is attached already is not attached again.

        Raises:
            ConfigurationError: something is not an Evaluation, or the test has ended.
        """
        from rag_eval_integrations.errors import ConfigurationError  # noqa: PLC0415  # when used
        from rag_eval_integrations.records import Evaluation, to_line  # noqa: PLC0415

        for evaluation in evaluations:
            if not isinstance(evaluation, Evaluation):
                kind = type(evaluation).__name__
                why = "is not an Evaluation; write record(*evaluations) for several"
                raise ConfigurationError("evaluation", f"a {kind}", why)
            if self._state.ended:
                why = f"comes after the end of its test {self._item.nodeid}; flush the handler"
                raise ConfigurationError("evaluation", evaluation.id, why)
            if any(evaluation is recorded for recorded in self._state.evaluations):
                continue
            labelled = {"metadata": {"test": self._item.nodeid, **evaluation.metadata}}
            self._state.lines.append(to_line(evaluation.model_copy(update=labelled)))
            self._state.evaluations.append(evaluation)
            number = len(self._state.evaluations)
            if number <= _MOST_PROPERTIES:
                self._state.properties += _properties(evaluation, number)

    def assert_scores(
        self,
        minimums: Mapping[str, float] | None = None,
        /,
        *,
        allow_unscored: AllowUnscored = (),
        **named: float,
    ) -> None:
        """Assert that every evaluation of this test so far reaches these scores.

        Arguments and errors are those of `testing.assert_scores`.
        """
        __tracebackhide__ = True
        from rag_eval_integrations._asserting import assert_scores  # noqa: PLC0415  # when used

        assert_scores(self.evaluations, minimums, allow_unscored=allow_unscored, **named)

    def _call(self, call: RagCall | None, fields: Mapping[str, Any]) -> RagCall:
        """Make the call, with the test's name as its id."""
        from rag_eval_integrations.records.call import call_of  # noqa: PLC0415  # when used

        call = call_of(call, fields)
        self._state.calls += 1  # at once: several may be evaluated at the same time
        if "id" in call.model_fields_set:
            return call
        # Two runs are compared by id, and by default the id follows from the response as well.
        number = "" if self._state.calls == 1 else f"#{self._state.calls}"
        return call.model_copy(update={"id": f"{self._item.nodeid}{number}"})


def _properties(evaluation: Evaluation, number: int) -> list[tuple[str, object]]:
    """Return the scores as JUnit properties."""
    prefix = "rag_eval" if number == 1 else f"rag_eval[{number}]"
    return [
        (
            f"{prefix}.{name}",
            f"{score.value:.4g}"
            if score.value is not None
            else ": ".join(filter(None, (score.status, score.unscored))),
        )
        for name, score in evaluation.scores.items()
    ]


# --- Fixtures


def _failed(words: str) -> BaseException:
    """Make a test's failure, to be raised `from None`: pytest would show both errors."""
    return pytest.fail.Exception(words, pytrace=False)


@pytest.fixture(scope="session")
def rag_eval_judge(pytestconfig: pytest.Config) -> Judge | Model:
    """Return the judge that `--rag-eval-judge` or the ini value names; the embedded one if none."""
    from rag_eval_integrations.judges._named import named_judge  # noqa: PLC0415  # when used

    option: str | None = pytestconfig.getoption("--rag-eval-judge")
    name = option or pytestconfig.getini("rag_eval_judge") or "embedded"
    try:
        return named_judge(name, "--rag-eval-judge" if option else "rag_eval_judge")
    except ValueError as error:
        raise _failed(str(error)) from None


@pytest.fixture(scope="session")
def rag_evaluator(rag_eval_judge: Judge | Model) -> RagEvaluator:
    """Return the evaluator of the session; override it to choose metrics or a splitter."""
    from rag_eval_integrations.evaluator import RagEvaluator  # noqa: PLC0415  # when used

    return RagEvaluator(rag_eval_judge)


@pytest.fixture
def rag_eval(request: pytest.FixtureRequest, rag_evaluator: RagEvaluator) -> RagEvalFixture:
    """Evaluate calls; the evaluations are attached to the test."""
    return RagEvalFixture(request.node, rag_evaluator)


# --- The marker


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Check the evaluations of a marked test when its body has passed; without any, it fails.

    A marker that cannot be used fails the test before its body.
    """
    marks = list(item.iter_markers("rag_eval"))
    if not marks:
        return (yield)
    from rag_eval_integrations._asserting import assert_scores  # noqa: PLC0415  # when used

    try:
        minimums, allow = _conditions_of(marks)
    except ValueError as error:  # told before a judge is asked in vain
        raise _failed(f"marker rag_eval: {error}") from None
    result = yield
    state = _state_of(item)
    if not state.evaluations:
        raise _failed(f"marker rag_eval: {_NOTHING}")
    try:
        assert_scores(state.evaluations, minimums, allow_unscored=allow)
    except AssertionError as error:
        state.failure = str(error)
        raise _failed(state.failure) from None
    except ValueError as error:
        raise _failed(f"marker rag_eval: {error}") from None
    return result


def _conditions_of(marks: list[pytest.Mark]) -> tuple[dict[str, float], AllowUnscored]:
    """Join the markers of a test, its class and its module; the closest decides on a name."""
    from rag_eval_integrations._asserting import checked_minimums  # noqa: PLC0415  # when used
    from rag_eval_integrations.errors import ConfigurationError  # noqa: PLC0415

    minimums: dict[str, float] = {}
    allow: AllowUnscored = ()
    for mark in reversed(marks):
        if len(mark.args) > 1:
            why = "takes one mapping, and keywords"
            raise ConfigurationError("minimums", mark.args, why)
        named = dict(mark.kwargs)
        allow = named.pop("allow_unscored", allow)
        minimums |= checked_minimums(mark.args[0] if mark.args else None, named)
    return minimums, allow


# --- From the test to the session


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put what was evaluated since the last report on this one: strings, which xdist can send."""
    state = item.stash.get(_STATE, None)
    if state is None or (call.when == "setup" and call.excinfo is None):
        # The body's report takes along what fixtures evaluated: only it tells of a run again.
        return (yield)
    lines, state.lines = state.lines, []
    properties, state.properties = state.properties, []
    item.user_properties += properties
    report = yield
    failure = _failure(state, call) if report.failed else None
    if lines or failure:
        report.__dict__["rag_eval"] = {"lines": lines, "failure": failure}
    if call.when == "teardown":
        state.ended = True
        del item.stash[_STATE]
    return report


def _failure(state: _State, call: pytest.CallInfo[None]) -> str | None:
    """Return the message of a test that failed by its scores; None if by anything else."""
    from rag_eval_integrations._asserting import is_of_scores  # noqa: PLC0415  # when used

    error = None if call.excinfo is None else call.excinfo.value
    if isinstance(error, pytest.fail.Exception) and state.failure is not None:
        return state.failure[:_MOST_WORDS]
    if error is not None and is_of_scores(error):
        return str(error)[:_MOST_WORDS]
    return None


class _Collector:
    """Collects the evaluations of all tests, in the process that the user started."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._results: SessionResults | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what stands on a report, unless the test is run again."""
        record = getattr(report, "rag_eval", None)
        if not isinstance(record, dict) or str(report.outcome) == "rerun":
            return
        if self._results is None:
            from rag_eval_integrations._session_results import SessionResults  # noqa: PLC0415

            self._results = SessionResults(keep=self._path is not None)
        self._results.add(report.nodeid, record["lines"], record["failure"])

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the report and the summary for GitHub; a report that fails fails the run."""
        if self._results is None:
            return
        if (
            self._path is not None
            and not self._results.write(self._path)
            and not session.exitstatus
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        summary = os.environ.get("GITHUB_STEP_SUMMARY")
        if summary:
            self._results.append_to(summary)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the means, and where the report is."""
        if self._results is not None:
            lines = self._results.lines()
        elif self._path is not None and not terminalreporter.config.option.collectonly:
            lines = [f"no test evaluated anything: {self._path} was not written"]
        else:
            return
        terminalreporter.write_sep("=", "RAG evaluation")
        for line in lines:
            terminalreporter.write_line(line)
