"""Tables of evaluations for a terminal, with one row per call, as rich renderables; prints nothing.

Questions, documents and responses are untrusted text. All of it passes through `plain` into `Text`
objects, so that it is neither read as markup nor able to control the terminal.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rag_eval_integrations.records import Evaluation, Score

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


# --- The common style of tables


def plain_table(title: str, *columns: str) -> Table:
    """Make an empty table without boxes, which is the narrowest style.

    Args:
        title: title of the table.
        columns: headings; one that ends in `>` is right-aligned, for numbers.
    """
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415  # costs 0.1 s
    from rich.table import Table  # noqa: PLC0415

    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        name = column.removesuffix(">")
        table.add_column(name, justify="right" if name != column else "left", no_wrap=True)
    return table


_HEADINGS = {
    "context_relevance": "relev.",
    "context_utilization": "utiliz.",
    "completeness": "compl.",
    "adherence": "adher.",
}
_LEFT_OUT = {"supported_fraction", "trace_average"}  # they follow from the scores shown


def plain(text: str, width: int | None = None) -> str:
    r"""Write text on one line that is safe for a terminal.

    White space becomes single spaces. Control characters, format characters (such as those that
    change the direction of writing) and lone surrogates are escaped, as in `\x1b`. Text of more
    than `width` characters is cut and ends in an ellipsis.
    """
    line = " ".join(text.split())
    if width is not None and len(line) > width:
        line = line[: max(width - 1, 0)].rstrip() + "…"
    return "".join(map(_shown, line))


def _shown(character: str) -> str:
    if unicodedata.category(character) not in {"Cc", "Cf", "Cs"}:
        return character
    return character.encode("unicode_escape").decode()


def calls_table(evaluations: Iterable[Evaluation]) -> Table:
    """Build a table: question, framework, every score, keys of unsupported response sentences.

    A score without a value shows its reason code (`no_context`, `error` …), never a number.
    """
    from rich.table import Table  # noqa: PLC0415 -- takes 0.1 s, needed for printing only
    from rich.text import Text  # noqa: PLC0415 -- likewise

    rows = list(evaluations)
    names = list(
        dict.fromkeys(name for row in rows for name in row.scores if name not in _LEFT_OUT)
    )
    table = Table(show_lines=False, pad_edge=False)
    table.add_column("question", ratio=1, min_width=16)
    table.add_column("framework", no_wrap=True)
    for name in names:
        table.add_column(Text(plain(_HEADINGS.get(name, name))), justify="right")
    table.add_column("unsupported", no_wrap=True)
    for row in rows:
        table.add_row(
            Text(plain(row.question, 120)),
            Text(plain(row.capture.framework if row.capture else "–")),
            *(Text(_cell(row.scores.get(name))) for name in names),
            Text(_keys([key for key, *_ in _unsupported(row)])),
        )
    return table


def unsupported_sentences(evaluation: Evaluation) -> Text:
    """List the response sentences that the documents do not fully support; empty without any.

    Each sentence has a line with its key, its support and its text, and below it the judge's
    explanation.
    """
    from rich.text import Text  # noqa: PLC0415 -- takes 0.1 s, needed for printing only

    lines = Text()
    for key, support, sentence, explanation in _unsupported(evaluation):
        if lines:
            lines.append("\n")
        lines.append(f"  {plain(key)} ", style="bold red")
        lines.append(f"{support}: ")
        lines.append(f"“{plain(sentence, 300)}”")
        if explanation:
            lines.append(f"\n     {plain(explanation, 300)}", style="dim")
    return lines


_IN_WORDS = {"none": "not supported", "partial": "partly supported"}


def _unsupported(evaluation: Evaluation) -> list[tuple[str, str, str, str]]:
    labels = evaluation.labels
    if labels is None:
        return []
    found = []
    for sentence in evaluation.sentences.response:
        words = _IN_WORDS.get(labels.support(sentence.key))
        if words is not None:
            entry = labels.entry(sentence.key)
            found.append((sentence.key, words, sentence.text, entry.explanation if entry else ""))
    return found


def _cell(score: Score | None) -> str:
    if score is None:
        return "–"
    if score.value is None:
        return score.unscored or score.status
    return f"{score.value:.2f}"


def _keys(keys: Sequence[str], shown: int = 4) -> str:
    if not keys:
        return "–"
    rest = len(keys) - shown
    return plain(" ".join(keys[:shown])) + (f" +{rest}" if rest > 0 else "")
