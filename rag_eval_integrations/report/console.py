"""Tables of evaluations for a terminal, with one row per call, as rich renderables; prints nothing.

Questions, documents and responses are untrusted text. All of it passes through `plain` into `Text`
objects, so that it is neither read as markup nor able to control the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rag_eval_integrations._visible import one_line
from rag_eval_integrations.records import Evaluation, Score

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


# --- The common style of tables


def plain_table(title: str, *columns: str) -> Table:
    """Make an empty table without boxes, which is the narrowest style.

    In a narrow terminal words are folded, and numbers stay whole.

    Args:
        title: title of the table.
        columns: headings; one that ends in `>` is right-aligned, for numbers.
    """
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415  # costs 0.1 s
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(title=Text(plain(title)), title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        name = column.removesuffix(">")
        if name == column:
            table.add_column(Text(plain(name)), overflow="fold")
        else:
            table.add_column(Text(plain(name)), justify="right", no_wrap=True)
    return table


def add_row(table: Table, *cells: str) -> None:
    """Add a row of any texts, each shown on one line or folded, and never read as markup."""
    from rich.text import Text  # noqa: PLC0415  # costs 0.1 s

    table.add_row(*(Text(plain(cell)) for cell in cells))


_HEADINGS = {
    "context_relevance": "relev.",
    "context_utilization": "utiliz.",
    "completeness": "compl.",
    "adherence": "adher.",
}
_LEFT_OUT = {"supported_fraction", "trace_average"}  # they follow from the scores shown


def plain(text: str, width: int | None = None) -> str:
    r"""Write text on one line that is safe for a terminal.

    White space becomes single spaces. Control characters, characters without a width or that
    change the direction of writing, and lone surrogates are escaped, as in `\x1b`. Text of more
    than `width` characters is cut and ends in an ellipsis.
    """
    return one_line(text, width)


_MIN_QUESTION = 16
_BORDER = 3  # columns of a cell's border and padding


def calls_table(evaluations: Iterable[Evaluation], width: int | None = None) -> Table:
    """Build a table: question, framework, every score, keys of unsupported response sentences.

    A score without a value shows its reason code (`no_context`, `error` …), never a number.

    Args:
        evaluations: the rows.
        width: columns of the terminal. If they are too few for a column per score, the scores
            stand below the question, so that no value is cut. None for a column per score.
    """
    from rich.cells import cell_len  # noqa: PLC0415 -- takes 0.1 s, needed for printing only
    from rich.table import Table  # noqa: PLC0415 -- likewise
    from rich.text import Text  # noqa: PLC0415 -- likewise

    rows = list(evaluations)
    names = list(
        dict.fromkeys(name for row in rows for name in row.scores if name not in _LEFT_OUT)
    )
    headings = ["framework", *(plain(_HEADINGS.get(name, name)) for name in names), "unsupp."]
    cells = [
        [
            plain(row.capture.framework if row.capture else "–"),
            *(plain(_cell(row.scores.get(name))) for name in names),
            _keys([key for key, *_ in _unsupported(row)]),
        ]
        for row in rows
    ]
    widths = [max(map(cell_len, column)) for column in zip(headings, *cells, strict=True)]
    table = Table(show_lines=False, pad_edge=False)
    if width is not None and _MIN_QUESTION + sum(widths) + _BORDER * (len(widths) + 1) > width:
        table.show_lines = True
        table.add_column("question and scores", overflow="fold")
        for row, values in zip(rows, cells, strict=True):
            pairs = (f"{name} {value}" for name, value in zip(headings, values, strict=True))
            table.add_row(Text(f"{plain(row.question, 120)}\n{'; '.join(pairs)}"))
        return table
    table.add_column("question", ratio=1, min_width=_MIN_QUESTION)
    for name in headings:
        scores = name not in ("framework", "unsupp.")
        table.add_column(Text(name), justify="right" if scores else "left", no_wrap=True)
    for row, values in zip(rows, cells, strict=True):
        table.add_row(Text(plain(row.question, 120)), *map(Text, values))
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
