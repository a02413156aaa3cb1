"""Scores and evaluations as a person reads them: on one line, on a few lines, in a notebook's cell.

What is shown is other people's text: all of it is made visible, and escaped in HTML. A notebook is
shown by many programs. Some drop styles, all that are not trusted drop scripts, and what is printed
stays in the file. So: no script, no ids, classes with a prefix, a bound in bytes, and nothing that
is told by colour alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import islice
from string import ascii_lowercase
from typing import Any, Literal

from rag_eval_integrations._visible import one_line
from rag_eval_integrations.records.call import Sentence
from rag_eval_integrations.records.labels import Labels, SentenceSupport

_ON_ONE_LINE = 200
"""Characters of a `repr`: pytest cuts the middle out of longer ones, at 240."""
_OF_A_SENTENCE = 100
_OF_A_REASON = 400

LEXICAL = "lexical_estimate"
"""Flag of an evaluation whose judge compared words, and asked no model."""

EARLIER = "from an earlier turn"
"""Beside a document that an earlier turn retrieved."""

Score = Any
"""A `records.Score`, whose module imports this one."""
Evaluation = Any
"""A `records.Evaluation`, likewise."""


# --- One score


def score_line(score: Score) -> str:
    """Show a score on one short line; what is wrong with the response comes first.

    That is the list of sentences that are not supported; without any, the reason is shown. Cut to
    200 characters.
    """
    sentences = (score.evidence or {}).get("unsupported")
    against = [
        f"not supported: {sentence.get('key')} “{one_line(words, _OF_A_SENTENCE)}”"
        for sentence in (sentences if isinstance(sentences, list) else ())
        if isinstance(sentence, dict) and isinstance(words := sentence.get("text"), str)
    ]
    why = ", ".join(against) or score.reason
    line = f"{score.name} {_verdict(score)}"
    return one_line(f"{line}: {why}" if why else line, _ON_ONE_LINE)


def score_text(score: Score) -> str:
    """Show a score with its reason, up to 400 characters of it, on one line."""
    line = f"{one_line(score.name)} {_verdict(score)}"
    return f"{line}: {one_line(score.reason, _OF_A_REASON)}" if score.reason else line


def _figure(score: Score) -> str:
    """Write a value with two decimals; without one, the status and the code of why.

    The status stands alone where there is no code, as for an error.
    """
    if score.value is not None:
        return f"{score.value:.2f}"
    return f"{score.status} ({score.unscored})" if score.unscored else score.status


def _verdict(score: Score) -> str:
    """Write a score, and whether it passed where it has a threshold."""
    if score.passed is None:
        return _figure(score)
    verdict = "passed" if score.passed else "failed"
    return f"{_figure(score)} ({verdict}, threshold {score.threshold:g})"


# --- One evaluation


def evaluation_line(evaluation: Evaluation) -> str:
    """Show an evaluation on one short line: question and scores, or what failed."""
    scores = ", ".join(f"{name} {_figure(score)}" for name, score in evaluation.scores.items())
    return one_line(f"“{one_line(evaluation.question, 50)}”: {_failure(evaluation) or scores}", 300)


def evaluation_text(evaluation: Evaluation) -> str:
    """Show an evaluation on a line per score, with each score's reason.

    A reason is cut to 200 characters, and `as above` where it repeats the one before. Then come the
    diagnosis and the makers.
    """
    lines = [f"Evaluation of “{one_line(evaluation.question, 200)}”"]
    if failure := _failure(evaluation):
        lines.append(f"  {failure}")
    width = max(map(len, evaluation.scores), default=0)
    before = None
    for name, score in evaluation.scores.items():
        same, before = score.reason == before, score.reason
        words = "as above" if same else one_line(score.reason or "", _ON_ONE_LINE)
        reason = f"  {words}" if score.reason else ""
        lines.append(f"  {one_line(name):{width}}  {_verdict(score)}{reason}")
    if evaluation.earlier:
        numbers = ", ".join(map(str, evaluation.earlier))
        lines.append(f"  {EARLIER}: document {one_line(numbers, _ON_ONE_LINE)}")
    lines += [f"  diagnosis  {problem}" for problem in _problems(evaluation)]
    return "\n".join([*lines, f"  {_makers(evaluation)}"])


def _problems(evaluation: Evaluation) -> list[str]:
    """Write each pattern of the scores with its problem, also `healthy`."""
    return [f"{each.pattern}: {each.problem}" for each in evaluation.diagnosis]


def _failure(evaluation: Evaluation) -> str:
    """Say what failed; empty if nothing did."""
    error = evaluation.error
    return one_line(f"failed ({error.stage}): {error.type}: {error.message}", 200) if error else ""


def _makers(evaluation: Evaluation) -> str:
    """Name the judge, its model, and the flags; say where no model read the call."""
    judge = evaluation.judge
    model = f", model {judge.model}" if judge.model else ""
    flags = [flag for flag in evaluation.flags if flag != LEXICAL]
    lexical = ", which compares words: no model read this" if LEXICAL in evaluation.flags else ""
    more = f"; flags: {', '.join(flags)}" if flags else ""
    return one_line(f"judge {judge.name}{model}{lexical}{more}", 200)


def unsupported(
    evaluation: Evaluation, most: int | None = None
) -> list[tuple[Sentence, Literal["none", "partial"], SentenceSupport]]:
    """List the first response sentences that the documents do not fully support, and why.

    Sentences without a verdict are left out; empty without labels. None for `most` lists all.
    """
    labels = evaluation.labels
    if labels is None:
        return []
    against = []
    for sentence in evaluation.sentences.claims:
        support, entry = labels.support(sentence.key), labels.entry(sentence.key)
        if entry is not None and (support == "none" or support == "partial"):
            against.append((sentence, support, entry))
    return against[:most]


_OF_PATTERN = {
    "hallucination": {"adherence": "none", "supported_fraction": "partial"},
    "nothing_relevant_retrieved": {"context_relevance": "none"},
    "context_ignored": {"context_utilization": "partial"},
    "incomplete": {"completeness": "partial"},
}
"""Pattern → the scores that show it, and the state whose look and sign they have."""


def bad_scores(evaluation: Evaluation) -> dict[str, str]:
    """Map scores with a bad value to a state, `none` or `partial`, whose look and sign they have.

    A value is bad if it is 0, if it is below its threshold, or if it shows a pattern of the call. A
    score without a value is left out.
    """
    bad: dict[str, str] = {}
    for diagnosis in evaluation.diagnosis:
        bad |= _OF_PATTERN.get(diagnosis.pattern, {})
    values = {name: score.value for name, score in evaluation.scores.items()}
    low = (name for name, score in evaluation.scores.items() if score.passed is False)
    bad |= dict.fromkeys([*(name for name, value in values.items() if value == 0), *low], "none")
    return {name: state for name, state in bad.items() if values.get(name) is not None}


def states_of(evaluation: Evaluation) -> Iterator[tuple[Sentence, str]]:
    """Yield the response sentences, each with its state; it is empty without labels."""
    labels, sentences = evaluation.labels, evaluation.sentences
    sources = set(sentences.not_claims)
    for sentence in sentences.response:
        state = "" if labels is None else labels.support(sentence.key)
        yield sentence, "source" if sentence.key in sources else state


def citation_faults(evaluation: Evaluation) -> dict[str, list[str]]:
    """Map response sentences to what is wrong with their citations, by the metric `Citations`."""
    score = evaluation.scores.get("citation_precision")
    evidence: Any = (score.evidence if score else None) or {}
    faults: dict[str, list[str]] = {}
    for each in evidence.get("citations", ()):
        if each["state"] != "right":
            key = each["key"] or evaluation.sentences.claims[-1].key
            faults.setdefault(key, []).append(f"{each['state']} citation {each['marker']}")
    for key in evidence.get("missing", ()):
        faults.setdefault(key, []).append("no citation of a document that supports it")
    return faults


def uses_of(labels: Labels | None) -> dict[str, str]:
    """Map document sentences to their use: `r` relevant, `u` used, `ru` both.

    Other sentences are left out; empty without labels.
    """
    relevant = set(labels.all_relevant_sentence_keys) if labels else set()
    used = set(labels.all_utilized_sentence_keys) if labels else set()
    return {key: "r" * (key in relevant) + "u" * (key in used) for key in relevant | used}


# --- One evaluation as HTML

MOST_BYTES = 100_000
"""Bytes of a cell."""
_OF_A_CALL = 40_000
_OF_A_MARKED = 400
_OF_A_CELL = 300
_MOST_SCORES = 24

STATES = {
    "full": ("✓", "supported by the documents"),
    "partial": ("◐", "supported in part"),
    "none": ("✗", "not supported"),
    "unlabelled": ("?", "not labelled by the judge"),
    "source": ("–", "a list of sources, not judged"),
    "ru": ("RU", "relevant and used"),
    "r": ("R", "relevant, but not used"),
    "u": ("U", "used, but not relevant"),
}
"""State of a sentence → its sign, and in words; the first five are of the response."""

STYLE = (
    "<style>.rag-eval{line-height:1.5;overflow-wrap:anywhere}"
    ".rag-eval table{text-align:left;border-collapse:collapse}"
    ".rag-eval th,.rag-eval td{text-align:left;vertical-align:top;padding:.2em .6em}"
    ".rag-eval th{white-space:nowrap}"
    ".rag-eval-full{background:#4090ff30;border-bottom:2px solid #3d8ee0}"
    ".rag-eval-partial{background:#ffc10740;border-bottom:2px dashed #b98900}"
    ".rag-eval-none{background:#ff563040;border-bottom:3px double #d4452b}"
    ".rag-eval-unlabelled{background:#80808030;border-bottom:2px dotted #808080}"
    ".rag-eval-r{background:#1fb98a30;border-bottom:2px dotted #169570}"
    ".rag-eval-u{background:#c45ee030;border-bottom:2px dashed #b24ad0}"
    ".rag-eval-ru{background:#5b80d840;border-bottom:3px double #5b80d8}</style>"
)
"""Translucent tints, which suit light and dark grounds."""


def evaluation_html(evaluation: Evaluation) -> str:
    """Show one evaluation as a whole cell."""
    return (
        f'<div class="rag-eval">{STYLE}<p><b>{text(evaluation.question, _OF_A_MARKED)}</b></p>'
        f"{call_html(evaluation, _OF_A_CALL)}{legend_html()}</div>"
    )


def call_html(evaluation: Evaluation, most: int) -> str:
    """Show the answer and the documents by sentence, then the scores and the diagnosis.

    Args:
        evaluation: the call.
        most: bytes; sentences that do not fit are counted instead.
    """
    end = "".join(_end(evaluation))
    left, parts, hidden = most - len(end.encode()), [], 0
    for part, sentences in _sentences(evaluation):
        left -= len(part.encode())
        if left < 0:
            hidden += sentences
        else:
            parts.append(part)
    more = f"<p>… {hidden} more sentences are not shown here.</p>" if hidden else ""
    return "".join([*parts, more, end])


def answer_html(evaluation: Evaluation, sentences: int, width: int) -> str:
    """Show the answer's first sentences, highlighted, each cut at a width; `…` for the rest."""
    parts = list(islice(_answer(evaluation, width), sentences + 1))
    return f"{''.join(parts[:sentences])}{'…' if len(parts) > sentences else ''}"


def text(words: str, width: int | None = None) -> str:
    """Write other people's text on one line, visible, escaped and cut at a width."""
    return escape(one_line(words, width))


def value_html(value: str, state: str) -> str:
    """Write a score's cell, which has the look and the sign of a state where the value is bad.

    An empty state gives a plain cell.
    """
    if not state:
        return f"<td>{text(value, 100)}</td>"
    return f'<td><span class="rag-eval-{state}">{text(value, 100)} {STATES[state][0]}</span></td>'


# --- Sentences


def _sentences(evaluation: Evaluation) -> Iterator[tuple[str, int]]:
    """Yield parts of HTML with the number of sentences in each; a new paragraph ends the last.

    First what failed, then the response, why sentences of it are not supported, and documents.
    """
    if failure := _failure(evaluation):
        yield f"<p><b>{text(failure, _OF_A_MARKED)}</b></p>", 0
    yield "<p><b>Answer:</b> ", 0
    for part in _answer(evaluation):
        yield part, len(evaluation.sentences.response[:1])
    for sentence, state, entry in unsupported(evaluation):
        keys = ", ".join(entry.supporting_sentence_keys)
        evidence = f", evidence {keys}" if keys else ""
        why = f"{sentence.key} {' '.join(STATES[state])}{evidence}: {entry.explanation}"
        yield f"<p><small>{text(why.rstrip(': '), _OF_A_MARKED)}</small></p>", 0
    for key, faults in citation_faults(evaluation).items():
        words = f"{key}: {', '.join(faults)}"
        yield f"<p><small>{text(words, _OF_A_MARKED)}</small></p>", 0
    uses, names = uses_of(evaluation.labels), dict(enumerate(evaluation.document_ids))
    before = None
    for sentence in evaluation.sentences.documents:
        number = sentence.key.rstrip(ascii_lowercase)
        if number != before:
            place = int(number) if number.isdecimal() and len(number) < 9 else -1
            name = names.get(place)
            known = f" ({text(name, 60)})" if name else ""
            known += f" {EARLIER}" if place in evaluation.earlier else ""
            yield f"<p><b>Document {text(number, 20)}{known}:</b> ", 0
            before = number
        yield _marked(sentence, uses.get(sentence.key, "")), 1


def _answer(evaluation: Evaluation, width: int = _OF_A_MARKED) -> Iterator[str]:
    """Yield the response's sentences, marked by their support.

    Without sentences it is the response, cut at `width`, or `(none)`.
    """
    if not evaluation.sentences.response:
        yield text(evaluation.response or "(none)", width)
    for sentence, state in states_of(evaluation):
        yield _marked(sentence, state, width)


def _marked(sentence: Sentence, state: str, width: int = _OF_A_MARKED) -> str:
    """Write a sentence with its key and sign."""
    sign, words = STATES.get(state, ("", ""))
    css = f' class="rag-eval-{state}" title="{words}"' if state else ""
    key = f"{text(sentence.key, 20)}{sign and f' {sign}'}"
    return f"<span{css}><b>{key}</b> {text(sentence.text, width)}</span> "


# --- What stands below them


def _end(evaluation: Evaluation) -> Iterator[str]:
    """Yield the scores, 24 at most, the diagnosis and the makers."""
    yield "<table><tr><th>score</th><th>value</th><th>why</th></tr>"
    scores, bad = list(evaluation.scores.items()), bad_scores(evaluation)
    for name, score in scores[:_MOST_SCORES]:
        yield (
            f"<tr><th>{text(name, 60)}</th>{value_html(_verdict(score), bad.get(name, ''))}"
            f"<td>{text(score.reason or '', _OF_A_CELL)}</td></tr>"
        )
    yield "</table>"
    if len(scores) > _MOST_SCORES:
        yield f"<p>… {len(scores) - _MOST_SCORES} more scores</p>"
    problems = "; ".join(_problems(evaluation))
    yield f"<p><small>{f'diagnosis {escape(problems)}<br>' if problems else ''}"
    yield f"{text(_makers(evaluation), 200)}</small></p>"


def legend_html() -> str:
    """Explain keys and signs."""
    signs = "; ".join(
        f'<span class="rag-eval-{state}">{sign}</span> {words}'
        for state, (sign, words) in STATES.items()
    )
    return (
        "<p><small>Each sentence has a key: 0a is the first sentence of document 0, b "
        f"alone the second sentence of the answer. {signs}.</small></p>"
    )
