"""Groups of options: a command takes a dataclass, its user sees single options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from rag_eval_integrations.cli._grouped import grouped


@dataclass(frozen=True)
class Size:
    width: Annotated[int, typer.Option(help="How wide.")] = 1
    names: Annotated[list[str] | None, typer.Option("--name")] = None


@dataclass(frozen=True)
class Colour:
    colour: Annotated[str, typer.Option()] = "red"


def invoke(*words: str) -> str:
    app = typer.Typer()

    @app.command()
    @grouped
    def paint(
        what: Annotated[str, typer.Argument()], size: Size, times: int = 2, *, colour: Colour
    ) -> None:
        """Paint it."""
        typer.echo(f"{what} {size} {times} {colour}")

    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output
    return done.output.strip()


def test_fields_are_options_with_their_defaults() -> None:
    """The command gets whole groups, made of what was given and the fields' own defaults."""
    assert invoke("wall") == f"wall {Size()} 2 {Colour()}"
    given = invoke("wall", "--width", "3", "--name", "a", "--name", "b", "--colour", "blue")
    assert given == f"wall {Size(3, ['a', 'b'])} 2 {Colour('blue')}"


def test_help_lists_them_where_the_group_stands() -> None:
    """With the fields' help, in the order of the signature, under the command's docstring."""
    text = invoke("--help")

    assert "Paint it." in text
    assert "How wide." in text
    places = [text.index(option) for option in ("--width", "--name", "--times", "--colour")]
    assert places == sorted(places)
