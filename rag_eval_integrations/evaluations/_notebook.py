"""Many evaluations as HTML for a notebook's cell: figures, a row per call, and its sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_eval_integrations.evaluations.console import cell, score_names
from rag_eval_integrations.evaluations.summary import Summary, maker_words
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.records._shown import (
    MOST_BYTES,
    STYLE,
    answer_html,
    bad_scores,
    call_html,
    legend_html,
    text,
    value_html,
)

_MOST_ROWS = 20
_MOST_COLUMNS = 8
_MOST_SENTENCES = 5
_MOST_FIGURES = 16
_LAST_WORDS = 200  # bytes left for what follows the rows


def evaluations_html(evaluations: Sequence[Evaluation], missing: str = "") -> str:
    """Show the first 20 evaluations in at most 100 kB; the rest is in `.report(path)`.

    Args:
        evaluations: all of them.
        missing: what stands behind their number: the calls that are still being judged.
    """
    shown = evaluations[:_MOST_ROWS]
    names = score_names(shown)[:_MOST_COLUMNS]
    head = "".join(_head(Summary.of(evaluations), names, missing))
    end = f"</table>{legend_html()}</div>"
    left = MOST_BYTES - len(head.encode()) - len(end.encode()) - _LAST_WORDS
    parts, rows = [head], 0
    for place, evaluation in enumerate(shown):
        row = _row(place + 1, evaluation, names)
        left -= len(row.encode())
        # What one call leaves unused is the next ones'; a row without sentences still says most.
        share = (left + len(row.encode())) // (len(shown) - place) - len(row.encode()) - _LAST_WORDS
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
        note = f"<p>{more:,} more: <code>.report(path)</code></p>"
        end = end.replace("</table>", f"</table>{note}", 1)
    return "".join([*parts, end])


def _head(summary: Summary, names: Sequence[str], missing: str) -> Iterator[str]:
    """Yield the head of the table: figures of scores and diagnoses."""
    yield f'<div class="rag-eval">{STYLE}<p>{text(summary.headline() + missing)}</p>'
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
        value_html(cell(evaluation.scores.get(name)), bad.get(name, "")) for name in names
    )
    patterns = ", ".join(diagnosis.pattern for diagnosis in evaluation.diagnosis)
    error = evaluation.error
    words = patterns if error is None else f"failed: {error.type}"
    return (
        f"<tr><td>{number}</td><td><b>{text(evaluation.question, 120)}</b><br>"
        f"<small>{text(words, 80)}</small><br>{answer_html(evaluation, _MOST_SENTENCES, 160)}</td>"
        f"{values}</tr>"
    )
