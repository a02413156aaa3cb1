"""Pages as one file: templates, the common look, and a policy that lets nothing else in or out.

A page is a template that extends `base.html`, with one stylesheet and at most one script, both
files of `templates/` and the same for every page of their kind. The policy names them by their
hashes: neither a script that a text brings along nor a changed page runs, and nothing is fetched.

    pieces      a page in pieces, for pages of many megabytes
    write       pieces ─▶ a file, in place of an earlier page of this program only
    data        JSON for a data block, `<script type="application/json">{{ data(…) }}</script>`
    page_text   a text of other people, as a page shows it
    named       likewise a name, which may be long
    drawn       a share of 1 as a bar's width or height
"""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_eval_integrations import _target
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations._call_view import drawn, page_text
from rag_eval_integrations.records._json import whole_text

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

__all__ = ["data", "drawn", "named", "page_text", "pieces", "write"]

_GENERATOR = b'<meta name="generator" content="rag-eval">'
"""Marks a page of this program, which may be replaced by a newer one; stands in `base.html`."""
_PIECE = 1 << 16
"""Characters that are gathered before they are handed on: templates yield a few at a time."""


def pieces(
    template: str,
    *,
    script: str = "",
    style: str = "",
    served: bool = False,
    **context: object,
) -> Iterator[str]:
    """Render a page in pieces; what the template loops over is read as the pieces are.

    Args:
        template: name of a file of `templates/` that extends `base.html`.
        script: names of the files with the page's script, between spaces; empty without one.
        style: likewise those with further rules, below those of `base.css`.
        served: let the page ask the server that it is from, and only this one.
        context: what the template names; at least `title`. A name that is missing is an error.

    Yields:
        HTML. All values are escaped, so templates have to quote every attribute.

    Raises:
        jinja2.UndefinedError: the template names something that is missing.
    """
    from markupsafe import Markup  # noqa: PLC0415  # comes with Jinja2, which takes 50 ms

    css = "".join(map(_source, ["base.css", *style.split()]))
    code = "".join(map(_source, script.split()))
    context |= {
        "css": Markup(css),  # our own file
        "script": Markup(code),  # likewise
        "policy": policy(css, code, served=served),
        "served": served,
    }
    gathered: list[str] = []
    size = 0
    for piece in _environment().get_template(template).generate(context):
        gathered.append(piece)
        size += len(piece)
        if size > _PIECE:
            yield "".join(gathered)
            gathered, size = [], 0
    yield "".join(gathered)


def policy(css: str, code: str, *, served: bool = False) -> str:
    """Return the Content-Security-Policy that allows this stylesheet and this script alone."""
    scripts = f"script-src {_hash(code)}; " if code else ""
    asks = "connect-src 'self'; form-action 'self'" if served else "form-action 'none'"
    return f"default-src 'none'; {scripts}style-src {_hash(css)}; base-uri 'none'; {asks}"


def _hash(text: str) -> str:
    """Return the hash of a script or style, as a content policy takes it."""
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def write(
    path: Path,
    content: Iterable[str],
    *,
    field: str = "path",
    mode: int = _target.PRIVATE,
    overwrite: bool = False,
) -> Path:
    """Write a page in place of an earlier one of this program.

    A new page is readable by its owner only, unless `mode` says otherwise.

    Args:
        path: the page; links are followed.
        content: its pieces.
        field: name of the argument, for the error.
        mode: of a new page; `_target.PUBLIC` for one without texts of calls.
        overwrite: replace a file of others as well.

    Returns:
        The path.

    Raises:
        ConfigurationError: there is a file that this program did not make, or no regular file; the
            name is that of another format, such as `evals.jsonl`.
        OSError: it cannot be written; an earlier page is as it was.
    """
    target = check(path, field=field, overwrite=overwrite)
    ours = (lambda head: True) if overwrite else is_page
    _target.write_page(target, content, ours, field=field, mode=mode)
    return path


def check(path: Path, *, field: str = "path", overwrite: bool = False) -> Path:
    """Follow links to a page that is going to be written, and refuse what `write` would refuse.

    Returns:
        The file that would be written.

    Raises:
        ConfigurationError: as for `write`.
    """
    target = (
        _target.resolved(path, field)
        if overwrite
        else _target.check_page(path, is_page, field=field)
    )
    if path.suffix.lower() not in ("", ".html", ".htm"):  # HTML in `evals.jsonl` is a slip
        raise ConfigurationError(field, str(path), "a page is HTML; let its name end in .html")
    return target


def is_page(head: bytes) -> bool:
    """Tell from the beginning of a file whether this program made it as a page."""
    return _GENERATOR in head


_RISKY = re.compile("[<>&\u2028\u2029]")


def data(content: object) -> Markup:
    r"""Write JSON that ends no script element, as in `\u003c`; NaN is refused.

    Lone surrogates become U+FFFD.

    Raises:
        ValueError: NaN or an infinity is in it.
    """
    from markupsafe import Markup  # noqa: PLC0415

    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    safe = _RISKY.sub(lambda match: f"\\u{ord(match[0]):04x}", whole_text(text))
    return Markup(safe)  # nothing is left in it that HTML reads as markup


def named(name: str) -> Markup:
    """Write a name such as `context_relevance`, which may break behind underscores only."""
    from markupsafe import Markup, escape  # noqa: PLC0415

    return Markup("_<wbr>").join(escape(part) for part in page_text(name).split("_"))


@cache
def _source(name: str) -> str:
    """Read a file of `templates/`, with plain line feeds; it is read once."""
    # Line ends as they are hashed: a browser hashes what it has parsed, which holds no `\r`.
    return files(__package__).joinpath("templates", name).read_text("utf-8").replace("\r\n", "\n")


@cache
def _environment() -> Environment:
    """Make the Jinja environment of the templates, once.

    It escapes all values, and refuses names that are missing.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # noqa: PLC0415  # 50 ms

    environment = Environment(
        loader=FunctionLoader(_source),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    ours: dict[str, Any] = {"data": data, "drawn": drawn}
    environment.globals.update(ours)
    environment.filters |= {"page_text": page_text, "named": named}
    return environment
