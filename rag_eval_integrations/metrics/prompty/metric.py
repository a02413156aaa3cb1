"""`PromptyMetric`: a model grades a call by a `NAME.metric.prompty` file; lookup of these files."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges import judge_from
from rag_eval_integrations.judges._prompt import json_object
from rag_eval_integrations.judges.judge import AnyModel
from rag_eval_integrations.metrics._scales import warn_of_other_range
from rag_eval_integrations.metrics.metric import Measured, ModelMetric
from rag_eval_integrations.metrics.prompty._reply import Reading, read_score
from rag_eval_integrations.metrics.prompty.file import Prompty, load_prompty, prompt_name
from rag_eval_integrations.models import Model, ModelBase
from rag_eval_integrations.models.completion import Completion, CompletionRequest, completed
from rag_eval_integrations.models.throttling.model import with_retries
from rag_eval_integrations.records import By, RagCall, Score
from rag_eval_integrations.records._json import JsonObject
from rag_eval_integrations.records.labels import UnscoredCode

VARIABLES = (
    "output",
    "prompt",
    "rules",
    "input",
    "intent",
    "inputSpec",
    "expected",
    "groundtruth",
    "contexts",
)
"""Variables that a metric file may insert; the first four are PromptPex's."""
PARSER_VERSION = "2"
"""Version of the reply parser; raise it when any reply is read differently."""
SCALE = (0.0, 100.0)

_SCORER_SCHEMA = json_object(explanation={"type": "string"}, score={"type": "number"})
STOPPED: dict[str, tuple[UnscoredCode, str]] = {
    "content_filter": ("content_filter", "a content filter stopped the judge"),
    "refusal": ("refusal", "the judge refused"),
    "length": ("truncated", "the judge's reply was cut off"),
}
"""Code and reason of a reply that is not read, by its finish reason."""


@dataclass(frozen=True, slots=True)
class GradedReply:
    """A judge's reply to a metric, and its reading."""

    reading: Reading
    completion: Completion
    stopped: tuple[UnscoredCode, str] | None = None
    """Code and reason of a reply that was refused or cut off, and so is not read; else None."""
    escaped_variables: tuple[str, ...] = ()
    """Variables whose values held a tag of the metric's own sections, which was escaped."""


class PromptyMetric(ModelMetric):
    """A metric from a prompt file, answered by any model with a score of 0 to 100 or OK/ERR.

    The prompt inserts the variables `output`, `prompt`, `rules` and `input` (PromptPex), or
    `intent`, `inputSpec`, `expected`, `groundtruth` and `contexts`. For a RAG call, `input` is the
    question, `output` the response, `contexts` the documents, and `groundtruth` and `expected` the
    reference; the others come from `variables` or from the call's metadata.

    The score's `value` is in [0, 1]: a score of 0 to 100 is divided by 100, OK is 1 and ERR is 0. A
    reply that cannot be read is unscored (`judge_output_invalid`), never 0. A call that lacks a
    text that the prompt inserts is unscored without asking the model (`empty_response`,
    `no_context`, `no_question`, `missing_param`).

    Args:
        prompt: a file, or a loaded prompt.
        variables: values for all calls: text, or other JSON values.
        judge: the metric's own model, or its name; None to use the evaluator's.
        threshold: lowest `value` that passes, from 0 to 1; None for no verdict.
        name: name of the score; by default the file's name without `.metric.prompty`.
        temperature: sampling temperature; 0 for repeatable answers, None for the model's default.

    Raises:
        ConfigurationError: the file is not a usable prompt, the judge is not a model, or the
            threshold is out of range.
        OSError: the file cannot be read.

    Warns:
        UserWarning: the prompt names another range of scores than 0 to 100.
    """

    def __init__(
        self,
        prompt: str | Path | Prompty,
        *,
        variables: Mapping[str, object] | None = None,
        judge: AnyModel | None = None,
        threshold: float | None = None,
        name: str | None = None,
        temperature: float | None = 0.0,
    ) -> None:
        self.prompt = prompt if isinstance(prompt, Prompty) else load_prompty(prompt)
        self.variables: dict[str, object] = dict(variables or {})
        if threshold is not None and not 0 <= threshold <= 1:
            raise ConfigurationError("threshold", threshold, "use a number from 0 to 1")
        self.judge = None if judge is None else _model_of(judge)
        self.name = name or self.prompt.name
        warn_of_other_range(
            self.prompt.source or self.name, [self.prompt.text], SCALE, "ask for one from 0 to 100"
        )
        self.names = (self.name,)
        asked: list[object] = [[message.role, message.text] for message in self.prompt.messages]
        asked += [self._schema] if self._schema is not None else []
        self.version = f"{_digest(asked)}/{PARSER_VERSION}"
        self.threshold = threshold
        self._temperature = temperature

    @property
    def _schema(self) -> JsonObject | None:
        """Return the schema of the reply, for a scorer."""
        return _SCORER_SCHEMA if "scorer" in self.prompt.tags else None

    @property
    def identity(self) -> str:
        """Its `repr`, which names the version."""
        return repr(self)

    def __repr__(self) -> str:
        given = _digest(self.variables, sort_keys=True) if self.variables else ""
        judge = "" if self.judge is None else self.judge.name
        return (
            f"PromptyMetric({self.name!r}, {self.version!r}, variables={given!r}, "
            f"judge={judge!r}, threshold={self.threshold}, temperature={self._temperature})"
        )

    def values(self, call: RagCall) -> dict[str, object]:
        """Return the values that the prompt may insert for a call, by variable."""
        from rag_eval_integrations.metrics.prompty._sandbox import Texts  # noqa: PLC0415  # Jinja

        names = (*VARIABLES, *sorted(self.prompt.variables - set(VARIABLES)))
        values: dict[str, object] = {
            name: _joined_items(call.metadata[name]) if name in VARIABLES else call.metadata[name]
            for name in names
            if call.metadata.get(name) not in (None, "")
        }
        if (call.reference or "").strip():
            values |= {"groundtruth": call.reference, "expected": call.reference}
        contexts = Texts(document.shown for document in call.documents)
        given = {"input": call.question, "output": call.response or "", "contexts": contexts}
        return values | self.variables | given

    def missing(self, call: RagCall) -> tuple[str, ...]:
        """List the variables that the prompt inserts and that have no value for the call."""
        return self.prompt.missing(self.values(call))

    def unscored(self, code: UnscoredCode, reason: str, by: By) -> tuple[Score, ...]:
        """Return the metric's score without a value, for a reason."""
        by = by.model_copy(update={"prompt_version": f"{self.name}@{self.version}"})
        return (Score(name=self.name, status="unscored", unscored=code, reason=reason, by=by),)

    async def measure(self, call: RagCall, judge: ModelBase) -> Measured:
        """Score one call with one request; a score that has no value states the reason.

        Raises:
            JudgeError: the judge does not answer.
        """
        by = By(judge=judge.name, judge_version=judge.version)
        lacking = self._lacking(call)
        if lacking is not None:
            return Measured(self.unscored(*lacking, by))
        graded = await self.ask(self.values(call), judge)
        return Measured((self.score(graded, by),), graded.completion.usage)

    def _lacking(self, call: RagCall) -> tuple[UnscoredCode, str] | None:
        """Return why a call cannot be scored, as code and reason; None if it can."""
        used = self.prompt.variables
        if "output" in used and not (call.response or "").strip():
            what = "has no response" if call.response is None else "has an empty response"
            return "empty_response", f"the call {what}"
        if "contexts" in used and not any(document.text.strip() for document in call.documents):
            return "no_context", "the call has no documents"
        if "input" in used and not call.question.strip():
            return "no_question", "the call has no question"
        if missing := ", ".join(self.missing(call)):
            why = "give one in the call's metadata or with `variables=`"
            return "missing_param", f"no value for {missing}: {why}"
        return None

    async def ask(
        self, values: Mapping[str, object], judge: Model, *, seed: int | None = None
    ) -> GradedReply:
        """Send the prompt with these values to a model and read the reply.

        Args:
            values: values by variable.
            judge: the model to ask.
            seed: sampling seed of the request; None for none.

        Raises:
            ConfigurationError: a variable has no value.
            JudgeError: the judge does not answer.
        """
        from rag_eval_integrations.metrics.prompty.file import (  # noqa: PLC0415  # Jinja
            escape_section_tags,
            section_names,
        )

        escaped, changed = escape_section_tags(values, section_names(self.prompt.text))
        request = CompletionRequest(
            messages=self.prompt.render(escaped),
            json_schema=self._schema,
            schema_name="score",
            temperature=self._temperature,
            seed=seed,
            prompt_version=f"{self.name}@{self.version}",
        )
        completion = await completed(judge, request)
        stopped = STOPPED.get(completion.finish_reason)
        if completion.choices[0].refusal:
            stopped = ("refusal", f"the judge refused: {completion.choices[0].refusal[:200]}")
        return GradedReply(read_score(completion.text), completion, stopped, changed)

    def score(self, graded: GradedReply, by: By = By()) -> Score:  # noqa: B008  # frozen
        """Make the score of a judge's reply."""
        reading, stopped = graded.reading, graded.stopped
        by = by.model_copy(update={"model": graded.completion.model})
        if stopped is None and reading.problem is not None:
            stopped = (reading.problem, reading.reason)
        if stopped is not None:
            return self.unscored(*stopped, by)[0]
        verdict = reading.outcome is not None
        return Score(
            name=self.name,
            status="scored",
            value=float(reading.outcome == "ok") if reading.score is None else reading.score / 100,
            raw=reading.score,
            scale=None if verdict else SCALE,
            threshold=self.threshold,
            reason=reading.reason or None,
            method="verdict" if verdict else "score",
            warnings=tuple(
                f"`{name}` holds a tag of the metric's own sections, which was escaped"
                for name in graded.escaped_variables
            ),
            by=by.model_copy(update={"prompt_version": f"{self.name}@{self.version}"}),
        )


def _digest(content: object, *, sort_keys: bool = False) -> str:
    """Return the first 12 hex digits of a content's hash, as its version."""
    text = json.dumps(content, sort_keys=sort_keys, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _joined_items(value: object) -> object:
    """Return a list of texts, such as rules, as lines; any other value unchanged."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    return value


def _model_of(judge: AnyModel) -> ModelBase:
    """Return the model that a name or object stands for, with retries; refuse another judge.

    Raises:
        ConfigurationError: it is not a judge, or one that only labels sentences.
    """
    model = judge_from(judge)
    if not isinstance(model, Model):
        why = "only labels sentences; a metric file needs a model, such as openai:MODEL"
        raise ConfigurationError("judge", judge, why)
    return with_retries(model)


# --- The metric files of a folder, and their lint. No model is asked


SUFFIX = ".metric.prompty"
_TAG = re.compile(r"<\s*+(?:/\s*+)?([A-Za-z][\w.-]*+)\s*+>")


def metric_files(folder: str | Path) -> list[Path]:
    """List the metric files of a folder, sorted by name; none when the folder does not exist.

    Folders and pipes with such a name are left out, since reading a pipe would never end.
    """
    folder = Path(folder)
    if not folder.is_dir():
        return []
    return sorted(
        path
        for path in folder.iterdir()
        if path.name.lower().endswith(SUFFIX) and (path.is_file() or not path.exists())
    )


def discover_metrics(
    folder: str | Path, *, named: Collection[str] = (), groundtruth: bool = False
) -> list[PromptyMetric]:
    """Load the metric files of a folder.

    A file with the tag `experimental` is left out unless it is named. A file with the tag
    `groundtruth` judges expected outputs, and is loaded only with `groundtruth=True`.

    Args:
        folder: the folder of the prompt under test.
        named: names of the metrics to load; empty for all.
        groundtruth: load the metrics for expected outputs instead of those for outputs.

    Raises:
        ConfigurationError: a file is not a usable prompt, a named metric does not exist or is for
            the other kind of output, or two metrics have the same name.
    """
    metrics: list[PromptyMetric] = []
    for path in metric_files(folder):
        if named and prompt_name(path) not in named:
            continue  # before reading: a broken file that is not asked for does no harm
        metric = PromptyMetric(path)
        tags = metric.prompt.tags
        if named and ("groundtruth" in tags) != groundtruth:
            what = "outputs" if groundtruth else "expected outputs"
            why = f"{path} is a metric for {what}, according to its tags"
            raise ConfigurationError("metric", metric.name, why)
        if ("groundtruth" in tags) != groundtruth or ("experimental" in tags and not named):
            continue
        metrics.append(metric)
    absent = sorted(set(named) - {metric.name for metric in metrics})
    if absent:
        raise ConfigurationError("metric", absent, f"there is no {absent[0]}{SUFFIX} in {folder}")
    return distinct(metrics)


def distinct(metrics: Iterable[PromptyMetric]) -> list[PromptyMetric]:
    """Return the metrics; refuse two with the same name.

    Raises:
        ConfigurationError: two metrics have the same name; names both files.
    """
    by_name: dict[str, PromptyMetric] = {}
    for metric in metrics:
        other = by_name.setdefault(metric.name, metric)
        if other is not metric:
            both = f"{other.prompt.source} and {metric.prompt.source}"
            raise ConfigurationError("metric", metric.name, f"two metrics have this name: {both}")
    return list(by_name.values())


def lint(prompt: Prompty, known: Iterable[str] = VARIABLES) -> list[str]:
    """List the likely mistakes of a metric file; empty when there are none.

    These are variables that are declared or mentioned, as in `<INPUT>`, but never inserted; a
    prompt that never inserts the output; and variables without a standard value.

    Args:
        prompt: the metric file.
        known: variables with a standard value.
    """
    known = tuple(known)
    used = prompt.variables
    odd = [f"declares `{name}` and never inserts it" for name in prompt.inputs if name not in used]
    for tag in dict.fromkeys(_TAG.findall(prompt.text)):
        variable = _mentioned_variable(tag, known)
        if variable is not None and variable not in used:
            odd.append(f"mentions <{tag}> and never inserts {{{{{variable}}}}}")
    if "output" not in used:
        odd.append("never inserts {{output}}: every output gets the same score")
    odd += [
        f"inserts {{{{{name}}}}}, which has a value only if the call or the user provides one"
        for name in sorted(used - set(known) - set(prompt.inputs))
    ]
    return list(dict.fromkeys(odd))


def _mentioned_variable(tag: str, known: tuple[str, ...]) -> str | None:
    """Return the variable that a tag such as `<INPUT>` or `<CHATBOT_OUTPUT>` mentions, or None."""
    words = re.split(r"[_.-]", tag.lower())
    whole = "".join(words)
    for name in known:
        if whole == name.lower():
            return name
    return next((name for name in known if name.lower() in words), None)
