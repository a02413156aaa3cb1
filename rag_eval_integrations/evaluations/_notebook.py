"""Evaluations as HTML for a notebook's cell: one call, or figures and a row per call.

A notebook is shown by many programs. Some drop styles, all that are not trusted drop scripts, and
what is printed stays in the file. So: no script, no ids, classes with a prefix, a bound in bytes,
and nothing that is told by colour alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from rag_eval_integrations._visible import one_line
from rag_eval_integrations.evaluations._call_view import SIGNS, STATES, View, bad_scores, view_of
from rag_eval_integrations.evaluations.console import cell, score_names
from rag_eval_integrations.evaluations.summary import Summary, maker_words
from rag_eval_integrations.metrics._outcome import gravity
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.records._repr import makers

_MOST_BYTES = 100_000
"""Bytes of a cell."""
_OF_A_CALL = 40_000
_OF_A_MARKED = 400
_OF_A_CELL = 300
_MOST_SCORES = 24

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

_MOST_ROWS = 20
_MOST_COLUMNS = 8
_MOST_SENTENCES = 5
_MOST_FIGURES = 16
_LAST_WORDS = 200  # bytes left for what follows the rows


# --- One call


def evaluation_html(evaluation: Evaluation) -> str:
    """Render one evaluation as a notebook's cell."""
    return (
        f'<div class="rag-eval">{STYLE}<p><b>{text(evaluation.question, _OF_A_MARKED)}</b></p>'
        f"{call_html(evaluation, _OF_A_CALL)}{_legend_html()}</div>"
    )


def call_html(evaluation: Evaluation, most: int) -> str:
    """Show the answer and the documents by sentence, then the scores and the diagnosis.

    Args:
        evaluation: the call.
        most: bytes; sentences that do not fit are counted instead.
    """
    view = view_of(evaluation)
    end = "".join(_scores_and_makers(evaluation, view))
    left, parts, hidden = most - len(end.encode()), [], 0
    for part, sentences in _sentences(view):
        left -= len(part.encode())
        if left < 0:
            hidden += sentences
        else:
            parts.append(part)
    more = f"<p>… {hidden} more sentences are not shown here.</p>" if hidden else ""
    return "".join([*parts, more, end])


def text(words: str, width: int | None = None) -> str:
    """Write other people's text on one line, visible, escaped and cut at a width."""
    return escape(one_line(words, width))


def _sentences(view: View) -> Iterator[tuple[str, int]]:
    """Yield parts of HTML with the number of sentences in each; a new paragraph ends the last.

    First what failed, then the response, why sentences of it are not supported, and documents.
    """
    if view["error"]:
        yield f"<p><b>{text(view['error'], _OF_A_MARKED)}</b></p>", 0
    yield "<p><b>Answer:</b> ", 0
    for part in _answer_html(view):
        yield part, len(view["response"][:1])
    if view["reference"] is not None:
        yield f"<p><b>Expected answer:</b> {text(view['reference'], _OF_A_MARKED)}</p>", 0
    for claim in view["support"]:
        words = "; ".join(filter(None, [*claim["against"], claim["why"]]))
        if claim["state"] in ("none", "partial") or claim["faults"]:
            evidence = f", evidence {', '.join(claim['evidence'])}" if claim["evidence"] else ""
            why = f"{claim['key']} {' '.join(STATES[claim['state']])}{evidence}: {words}"
            yield f"<p><small>{text(why.rstrip(': '), _OF_A_MARKED)}</small></p>", 0
    for document in view["documents"]:
        name = f" ({text(document['name'], 60)})" if document["name"] else ""
        number, note = text(document["number"], 20), text(document["note"])
        yield f"<p><b>Document {number}{name}</b> · {note}: ", 0
        for key, use, _, words in document["sentences"]:
            yield _sentence_html(key, use, words), 1


def _answer_html(view: View, width: int = _OF_A_MARKED) -> Iterator[str]:
    """Yield the response's sentences, marked by their support.

    Without sentences it is the response, cut at `width`, or `(none)`.
    """
    if not view["response"]:
        yield text(view["said"] or "(none)", width)
    for key, state, _, pieces in view["response"]:
        yield _sentence_html(key, state, "".join(pieces), width)


def _sentence_html(key: str, state: str, words: str, width: int = _OF_A_MARKED) -> str:
    """Write a sentence with its key and sign."""
    sign, meaning = STATES.get(state, ("", ""))
    css = f' class="rag-eval-{state}" title="{meaning}"' if state else ""
    label = f"{text(key, 20)}{sign and f' {sign}'}"
    return f"<span{css}><b>{label}</b> {text(words, width)}</span> "


def _scores_and_makers(evaluation: Evaluation, view: View) -> Iterator[str]:
    """Yield the table of scores, 24 at most, the diagnosis and the makers."""
    yield "<table><tr><th>score</th><th>value</th><th>why</th></tr>"
    for score in view["scores"][:_MOST_SCORES]:
        value = f"{score['figure']} {score['verdict']}".rstrip()
        yield (
            f"<tr><th>{text(score['name'], 60)}</th>{_value_html(value, score['bad'])}"
            f"<td>{text(score['reason'], _OF_A_CELL)}</td></tr>"
        )
    yield "</table>"
    if (more := len(view["scores"]) - _MOST_SCORES) > 0:
        yield f"<p>… {more} more scores</p>"
    problems = "; ".join(f"{each.pattern}: {each.problem}" for each in evaluation.diagnosis)
    yield f"<p><small>{f'diagnosis {escape(problems)}<br>' if problems else ''}"
    yield f"{text(makers(evaluation), 200)}</small></p>"


def _value_html(value: str, state: str) -> str:
    """Write a score's cell; a bad value has the look and the sign of its state.

    An empty state gives a plain cell.
    """
    if not state:
        return f"<td>{text(value, 100)}</td>"
    return f'<td><span class="rag-eval-{state}">{text(value, 100)} {SIGNS[state]}</span></td>'


def _legend_html() -> str:
    """Explain keys and signs."""
    signs = "; ".join(
        f'<span class="rag-eval-{state}">{sign}</span> {words}'
        for state, (sign, words) in STATES.items()
    )
    return (
        "<p><small>Each sentence has a key: 0a is the first sentence of document 0, b "
        f"alone the second sentence of the answer. {signs}.</small></p>"
    )


# --- Many


def evaluations_html(evaluations: Sequence[Evaluation], missing: str = "") -> str:
    """Show 20 evaluations in at most 100 kB, of more the gravest; the rest is in `.report(path)`.

    Args:
        evaluations: all of them.
        missing: what stands behind their number: the calls that are still being judged.
    """
    numbers = list(range(len(evaluations)))
    if len(evaluations) > _MOST_ROWS:
        numbers = sorted(sorted(numbers, key=lambda n: gravity(evaluations[n]))[:_MOST_ROWS])
    gravest = [evaluations[number] for number in numbers]
    names = score_names(gravest)[:_MOST_COLUMNS]
    head = "".join(_head(Summary.of(evaluations), names, missing))
    end = f"</table>{_legend_html()}</div>"
    left = _MOST_BYTES - len(head.encode()) - len(end.encode()) - _LAST_WORDS
    parts, rows = [head], 0
    for place, evaluation in enumerate(gravest):
        row = _row(numbers[place] + 1, evaluation, names)
        left -= len(row.encode())
        # What one call leaves unused is the next ones'; a row without sentences still says most.
        rows_left = len(gravest) - place
        share = (left + len(row.encode())) // rows_left - len(row.encode()) - _LAST_WORDS
        if left < 0:
            break
        details = (
            f'<tr><td></td><td colspan="{len(names) + 1}"><details><summary>documents and reasons'
            f"</summary>{call_html(evaluation, max(0, share))}</details></td></tr>"
        )
        parts.append(row)
        rows += 1
        if len(details.encode()) <= left:
            left -= len(details.encode())
            parts.append(details)
    if more := len(evaluations) - rows:
        note = f"<p>{more:,} less grave: <code>.report(path)</code></p>"
        end = end.replace("</table>", f"</table>{note}", 1)
    return "".join([*parts, end])


def _head(summary: Summary, names: Sequence[str], missing: str) -> Iterator[str]:
    """Yield what stands above the rows of calls: verdict, scores, diagnoses, and their header."""
    yield f'<div class="rag-eval">{STYLE}<p><b>{summary.verdict()}</b>{text(missing)}</p>'
    yield f"<p>{text(summary.headline())}</p>"
    yield f"<p>{summary.caution()}</p>" if summary.caution() else ""
    yield "<table><tr><th>score</th><th>mean</th><th>95 %</th><th>scored</th><th>by</th></tr>"
    for score in summary.scores[:_MOST_FIGURES]:
        mean = "–" if score.mean is None else f"{score.mean:.3f}"
        interval = "–" if score.interval is None else f"{score.interval:.2f}"
        maker = ", ".join(filter(None, (maker_words(score.by), score.method)))
        yield (
            f"<tr><th>{text(score.name, 60)}</th><td>{mean}</td><td>{interval}</td>"
            f"<td>{score.scored:,} of {score.total:,}</td><td>{text(maker, 100)}</td></tr>"
        )
    if summary.patterns:
        yield "</table><table><tr><th>diagnosis</th><th>calls</th><th>meaning</th></tr>"
        for pattern in summary.patterns:
            if pattern.calls:
                share = f"{pattern.calls:,} of {summary.labelled:,}"
                yield f"<tr><th>{pattern.pattern}</th>"
                yield f"<td>{share}</td><td>{text(pattern.meaning)}</td></tr>"
    yield "</table><table><tr><th></th><th>question and answer</th>"
    yield from (f"<th>{text(name, 60)}</th>" for name in names)
    yield "</tr>"


def _row(number: int, evaluation: Evaluation, names: Sequence[str]) -> str:
    """Write the row of a call."""
    bad = bad_scores(evaluation)
    values = "".join(
        _value_html(cell(evaluation.scores.get(name)), bad.get(name, "")) for name in names
    )
    patterns = ", ".join(diagnosis.pattern for diagnosis in evaluation.diagnosis)
    parts = list(_answer_html(view_of(evaluation), 160))
    answer = "".join(parts[:_MOST_SENTENCES]) + "…" * (len(parts) > _MOST_SENTENCES)
    error = evaluation.error
    words = patterns if error is None else f"failed: {error.type}"
    return (
        f"<tr><td>{number}</td><td><b>{text(evaluation.question, 120)}</b><br>"
        f"<small>{text(words, 80)}</small><br>{answer}</td>"
        f"{values}</tr>"
    )
