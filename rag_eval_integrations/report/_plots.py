"""ROC and reliability plots as one HTML page: inline SVG, no scripts, no external resources."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rag_eval_integrations import _target
from rag_eval_integrations._visible import visible
from rag_eval_integrations.agreement._curves import Curves

_SIDE = 260
_EDGE = 34  # room for the axes' numbers
_MOST_POINTS = 400
"""Limit on the points drawn per curve; more cannot be told apart on 260 pixels."""

_STYLE = """
body{font:15px/1.45 system-ui,sans-serif;color:#1c1c1c}
body{margin:2rem auto;max-width:64rem;padding:0 1rem}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin:2rem 0 .3rem}p{margin:.2rem 0 .8rem;color:#444}
figure{display:inline-block;margin:0 1.5rem 1rem 0}figcaption{font-size:.85rem;color:#444}
svg{background:#fff}text{font:11px system-ui,sans-serif;fill:#444}
.axis{stroke:#999;fill:none}.chance{stroke:#bbb;stroke-dasharray:4 4}
.curve{stroke:#1558b0;stroke-width:2;fill:none}.point{fill:#1558b0}
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_GENERATOR = '<meta name="generator" content="rag-eval">'
"""Marks a page of this program, which may be replaced by a newer one."""


def write_plots(groups: Mapping[str, Mapping[str, Curves]], folder: Path, title: str) -> Path:
    """Write `agreement.html` into a folder, which is created if it does not exist.

    Args:
        groups: heading (all rows, or a data set) → the result of `agreement.curves` on its rows.
        folder: folder of the page.
        title: title of the page; any text.

    Returns:
        The page's path.

    Raises:
        ConfigurationError: there is an `agreement.html` that this program did not make, or the
            folder is a file.
        OSError: the page cannot be written.
    """
    _target.make_folder(folder, "--plots")
    path = folder / "agreement.html"
    _target.write_page(
        path,
        page(groups, title),
        lambda head: _GENERATOR.encode("ascii") in head,
        field="--plots",
        mode=_target.PUBLIC,
    )
    return path


def page(groups: Mapping[str, Mapping[str, Curves]], title: str) -> str:
    """Return the page's HTML; arguments as in `write_plots`."""
    parts = [
        "<!doctype html><html lang=en><head><meta charset=utf-8>",
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">{_GENERATOR}',
        f"<title>{_text(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{_text(title)}</h1>",
        "<p>Left: ROC, with chance dashed. Right: reliability in ten bins, with perfect "
        "calibration dashed; a point's area is its share of the items.</p>",
    ]
    for heading, found in groups.items():
        parts.append(f"<h2>{_text(heading)}</h2>")
        if not found:
            parts.append("<p>The judge gave no probabilities here.</p>")
        parts.extend(part for name, curves in found.items() for part in _verdict(name, curves))
    return "".join([*parts, "</body></html>\n"])


def _text(text: str) -> str:
    """Write a text that neither HTML nor SVG reads as markup, without control characters."""
    return html.escape(visible(text))


def _verdict(name: str, curves: Curves) -> Iterable[str]:
    auroc = "undefined: gold has one class only" if curves.auroc is None else f"{curves.auroc:.3f}"
    counts = f"{curves.positives} of {curves.n} positive in gold"
    yield f"<p><b>{_text(name)}</b>: {counts}</p>"
    yield _figure(_roc(curves.roc), f"ROC; area {auroc}", "false positives", "true positives")
    error = f"expected calibration error {curves.calibration_error:.3f}"
    yield _figure(_reliability(curves), f"reliability; {error}", "probability", "share in gold")


def _figure(marks: str, caption: str, across: str, up: str) -> str:
    size, low, high = _SIDE + 2 * _EDGE, _EDGE, _EDGE + _SIDE
    middle = (low + high) / 2
    return (
        f'<figure><svg width="{size}" height="{size}" viewBox="0 0 {size} {size}" role="img" '
        f'aria-label="{_text(caption)}">'
        f'<path class="axis" d="M{low} {low}V{high}H{high}"/>'
        f'<path class="chance" d="M{low} {high}L{high} {low}"/>'
        f'<text x="{low - 6}" y="{high + 14}">0</text><text x="{high - 4}" y="{high + 14}">1</text>'
        f'<text x="{low - 14}" y="{low + 4}">1</text>'
        f'<text x="{middle}" y="{high + 28}" text-anchor="middle">{_text(across)}</text>'
        f'<text x="12" y="{middle}" text-anchor="middle" '
        f'transform="rotate(-90 12 {middle})">{_text(up)}</text>'
        f"{marks}</svg><figcaption>{_text(caption)}</figcaption></figure>"
    )


def _at(x: float, y: float) -> tuple[str, str]:
    return f"{_EDGE + x * _SIDE:.1f}", f"{_EDGE + (1 - y) * _SIDE:.1f}"


def _roc(points: Sequence[tuple[float, float]]) -> str:
    if not points:
        return ""
    step = -(-len(points) // _MOST_POINTS)
    kept = [*points[:-1:step], points[-1]]
    return f'<path class="curve" d="M{"L".join(" ".join(_at(x, y)) for x, y in kept)}"/>'


def _reliability(curves: Curves) -> str:
    dots = []
    for one in curves.bins:
        x, y = _at(one.mean, one.share)
        radius = 2 + 14 * (one.n / curves.n) ** 0.5
        dots.append(
            f'<circle class="point" cx="{x}" cy="{y}" r="{radius:.1f}" fill-opacity=".6">'
            f"<title>{one.n} items: mean probability {one.mean:.3f}, share in gold "
            f"{one.share:.3f}</title></circle>"
        )
    return "".join(dots)
