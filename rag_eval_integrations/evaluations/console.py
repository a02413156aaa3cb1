"""Tables of evaluations for a terminal, with one row per call, as rich renderables; prints nothing.

Questions, documents and responses are untrusted text. All of it passes through `one_line` into
`Text` objects, so that it is neither read as markup nor able to control the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from rag_eval_integrations._visible import one_line
from rag_eval_integrations.evaluations._call_view import STATES, unsupported, view_of
from rag_eval_integrations.evaluations._paired import DERIVED
from rag_eval_integrations.records import Evaluation, Score
from rag_eval_integrations.sentences import document_number

# --- The common style of tables


def plain_table(title: str, *columns: str) -> Table:
    """Make an empty table without boxes, which is the narrowest style.

    In a narrow terminal words are folded, and numbers stay whole.

    Args:
        title: title of the table.
        columns: headings; one that ends in `>` is right-aligned, for numbers.
    """
    table = Table(
        title=Text(one_line(title)), title_justify="left", box=SIMPLE_HEAD, pad_edge=False
    )
    for column in columns:
        name = column.removesuffix(">")
        if name == column:
            table.add_column(Text(one_line(name)), overflow="fold")
        else:
            table.add_column(Text(one_line(name)), justify="right", no_wrap=True)
    return table


def add_row(table: Table, *cells: str) -> None:
    """Add a row of any texts, each shown on one line or folded, and never read as markup."""
    table.add_row(*(Text(one_line(cell)) for cell in cells))


def unsupported_sentences(evaluation: Evaluation) -> Text:
    """List the response sentences that the documents do not fully support; empty without any.

    Each sentence has a line with its key, its support and its text, and below it the judge's
    explanation.
    """
    lines = Text()
    for sentence, support, entry in unsupported(evaluation):
        lines.append("\n" if lines else "")
        lines.append(f"  {one_line(sentence.key)} ", style="bold red")
        lines.append(f"{STATES[support][1]}: “{one_line(sentence.text, 300)}”")
        if entry.explanation:
            lines.append(f"\n     {one_line(entry.explanation, 300)}", style="dim")
    return lines


# --- One call in full


KEYS = (
    "Each sentence has a key: 0a is the first sentence of document 0, 1c the third of document 1, "
    "and b alone the second sentence of the answer."
)
"""What a person has to know where the first key is printed."""

MISSED = "the retrieval missed: no sentence of these documents is relevant"


def marks_legend() -> Table:
    """List the signs of sentences in `call_details`, with their meanings."""
    table = _grid()
    for state, (sign, words) in STATES.items():
        table.add_row("", Text(sign, style=_STYLES[state]), Text(words))
    return table


def call_details(evaluation: Evaluation) -> Group:
    """Show one call: its question, the answer and the documents by sentence, and its scores.

    The sentences have the signs of `STATES`; an unsupported one has the judge's explanation below
    it. Long sentences are folded, whatever the terminal's width. A call without labels is shown
    without signs.
    """
    view = view_of(evaluation)
    support = {claim["key"]: claim for claim in view["support"]}
    answer, documents = _grid(), _grid()
    for key, state, _, pieces in view["response"]:
        _add_sentence(answer, state, key, "".join(pieces))
        claim = support.get(key)
        if claim and claim["why"] and (claim["faults"] or state in ("none", "partial")):
            answer.add_row("", "", "", Text(one_line(claim["why"], 300), style="dim"))
    for document in view["documents"]:
        number, name = one_line(document["number"]), one_line(document["name"], 60)
        title = Text(" · ".join(filter(None, (name, document["note"]))), style="bold")
        documents.add_row("", Text(number, style="bold"), "", title)
        for key, use, _, words in document["sentences"]:
            _add_sentence(documents, use, key, words)
    if is_missed(evaluation):
        style = _STYLES["none"]
        documents.add_row("", Text(STATES["none"][0], style=style), "", Text(MISSED, style=style))
    scores = [
        f"{one_line(name)} {one_line(cell(score))}"
        for name, score in evaluation.scores.items()
        if name not in DERIVED
    ]
    return Group(
        Text(f"Question  {one_line(evaluation.question, 400)}", style="bold"),
        Text("Answer"),
        answer if view["response"] else Text(one_line(view["said"] or "  (none)")),
        Text("Documents, as the model saw them"),
        documents if view["documents"] else Text("  (none)"),
        Text(f"Scores  {', '.join(scores)}"),
    )


def is_missed(evaluation: Evaluation) -> bool:
    """Tell whether the retrieval missed: documents, but none of their sentences is relevant."""
    labels = evaluation.labels
    if labels is None:
        return False

    def of_this_turn(keys: Iterable[str]) -> bool:
        """Tell whether a key is of a document that this turn retrieved."""
        return any(document_number(key) not in evaluation.earlier for key in keys)

    retrieved = of_this_turn(sentence.key for sentence in evaluation.sentences.documents)
    return retrieved and not of_this_turn(labels.all_relevant_sentence_keys)


def calls_overview(evaluations: Iterable[Evaluation]) -> Table:
    """Build a narrow table: a call's number from 1, its scores, and what is marked in it."""
    rows = list(evaluations)
    names = score_names(rows)
    table = plain_table("", "call>")
    for name in names:
        table.add_column(Text(heading(name)), justify="right", no_wrap=True)
    table.add_column("marked", overflow="fold")
    for number, row in enumerate(rows, 1):
        marked = [f"{STATES[state][0]} {sentence.key}" for sentence, state, _ in unsupported(row)]
        words = ", ".join(marked + ["✗ missed"] * is_missed(row))
        cells = (cell(row.scores.get(name)) for name in names)
        add_row(table, str(number), *cells, one_line(words, 200))
    table.title, table.padding = None, (0, 0)
    return table


_STYLES = {
    "full": "",
    "partial": "bold yellow",
    "none": "bold red",
    "unlabelled": "dim",
    "source": "dim",
    "ru": "green",
    "r": "yellow",
    "u": "yellow",
}
"""State of a sentence, or of a value → its style."""


def heading(name: str) -> str:
    """Write a score's name over a narrow column: a long one goes on behind an underscore."""
    return one_line(name).replace("_", "_\n", 1)


def _grid() -> Table:
    """Make the grid of a call's sentences."""
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(width=1)
    table.add_column(width=2)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _add_sentence(table: Table, state: str, key: str, words: str) -> None:
    """Add a sentence with its sign to a call's grid."""
    style, sign = _STYLES.get(state, ""), STATES[state][0] if state else ""
    said = Text(one_line(words, 400), style=style if state in ("none", "partial") else "")
    table.add_row("", Text(sign, style=style), Text(one_line(key), style=style), said)


def score_names(rows: Sequence[Evaluation]) -> list[str]:
    """List the scores that tables show, in the order of the metrics."""
    return list(dict.fromkeys(name for row in rows for name in row.scores if name not in DERIVED))


def cell(score: Score | None) -> str:
    """Write a score in a few characters: its value, or the code of why it has none."""
    if score is None:
        return "–"
    if score.value is None:
        return score.unscored or score.status
    return f"{score.value:.2f}"
