"""Make the README's pictures from the demo's report.

    uv run python docs/pictures/make.py

Runs `rag-eval demo` in a temporary folder, opens its report in the chromium that is on PATH, and
writes `overview-light.png`, `overview-dark.png`, `call-light.png` and `call-dark.png` beside this
file. The demo's texts are our own, and so is all that the pictures show. Make them anew when the
report or the demo looks different.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import struct
import sys
import tempfile
import zlib
from collections import Counter
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright
from rich.console import Console

from rag_eval_integrations.cli.demo import run_demo

HERE = Path(__file__).resolve().parent
QUESTION = "How do I reset the station?"
SENTENCE = "b"
"""The invented sentence of the answer to it."""
WIDTH = 1060
SCALE = 1.5
"""Pixels per CSS pixel: sharp on a fine screen, and not many kilobytes more."""
MOST = 150_000
"""Bytes of a picture at most: a reader of the README loads all of them."""


def overview(page: Page) -> Path:
    """Show the first screen of the report: the verdict, and the call to look at first."""
    box = page.locator("details.worst .sides").first.bounding_box()
    assert box is not None
    return _shot(page, "overview", top=0, height=box["y"] + box["height"] + 12)


def call(page: Page) -> Path:
    """Show the call with the invented sentence, which is lit up as if it was pointed at."""
    rows = json.loads(page.locator("#index").text_content() or "[]")
    names = [row[0] for row in rows if row[1] == QUESTION]
    page.evaluate("(hash) => { location.hash = hash; }", f"row={names[0]}&s={SENTENCE}")
    page.locator("#one .s.lit").first.wait_for()
    top = page.locator("#one").bounding_box()
    end = page.locator("#one ul.support").bounding_box()
    assert top is not None
    assert end is not None
    scrolled = float(page.evaluate("scrollY"))
    height = end["y"] + end["height"] - top["y"] + 12
    return _shot(page, "call", top=top["y"] + scrolled, height=height)


def _shot(page: Page, name: str, *, top: float, height: float) -> Path:
    scheme = (
        "dark" if page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") else "light"
    )
    path = HERE / f"{name}-{scheme}.png"
    picture = page.screenshot(
        full_page=True, clip={"x": 0, "y": top, "width": WIDTH, "height": height}
    )
    path.write_bytes(indexed(picture))
    return path


# --- PNG with a palette: a third of the bytes, for the few colours of a page


def indexed(picture: bytes) -> bytes:
    """Write a PNG of a browser with at most 256 colours; a rarer one becomes the nearest."""
    width, height, size, rows = _decoded(picture)
    pixels = [row[at : at + 3] for row in rows for at in range(0, width * size, size)]
    counted = Counter(pixels)
    palette = [colour for colour, _ in counted.most_common(256)]
    index = {
        colour: min(range(len(palette)), key=lambda at: _distance(palette[at], colour))
        for colour in counted
    }
    lines = b"".join(
        b"\0" + bytes(index[pixel] for pixel in pixels[at : at + width])
        for at in range(0, len(pixels), width)
    )
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = [(b"IHDR", head), (b"PLTE", b"".join(palette)), (b"IDAT", zlib.compress(lines, 9))]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in [*parts, (b"IEND", b"")])


def _distance(one: bytes, other: bytes) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _decoded(picture: bytes) -> tuple[int, int, int, list[bytes]]:
    """Read width, height, bytes per pixel (3 or 4) and rows of a PNG with 8 bits per channel."""
    chunks: list[tuple[bytes, bytes]] = []
    at = 8
    while at < len(picture):
        (length,) = struct.unpack_from(">I", picture, at)
        chunks.append((picture[at + 4 : at + 8], picture[at + 8 : at + 8 + length]))
        at += 12 + length
    width, height, depth, kind = struct.unpack_from(">IIBB", chunks[0][1])
    if depth != 8 or kind not in (2, 6):
        raise ValueError(f"a PNG of kind {kind} with {depth} bits, not of a browser")
    size = 3 if kind == 2 else 4
    data = zlib.decompress(b"".join(part for name, part in chunks if name == b"IDAT"))
    rows: list[bytes] = []
    above = bytes(width * size)
    for start in range(0, len(data), width * size + 1):
        above = _unfiltered(data[start], data[start + 1 : start + 1 + width * size], above, size)
        rows.append(above)
    return width, height, size, rows


def _unfiltered(kind: int, row: bytes, above: bytes, size: int) -> bytes:
    """Undo the filter of a row, as the PNG specification defines it (section 9)."""
    if kind == 0:
        return row
    found = bytearray(row)
    for at, value in enumerate(row):
        left = found[at - size] if at >= size else 0
        corner = above[at - size] if at >= size else 0
        up = above[at]
        if kind == 1:
            guess = left
        elif kind == 2:
            guess = up
        elif kind == 3:
            guess = (left + up) // 2
        else:
            guess = min((left, up, corner), key=lambda one: abs(left + up - corner - one))
        found[at] = (value + guess) & 0xFF
    return bytes(found)


def pictures(browser: Browser, report: Path) -> list[Path]:
    """Make all pictures of a report."""
    made = []
    for scheme in ("light", "dark"):
        for picture in (overview, call):
            page = browser.new_page(
                color_scheme=scheme,
                viewport={"width": WIDTH, "height": 800},
                device_scale_factor=SCALE,
            )
            page.goto(report.as_uri())
            made.append(picture(page))
            page.close()
    return made


def main() -> int:
    """Make the pictures and print their sizes; 1 if one is too large."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        print(f"needs a browser: none of {', '.join(names)} is on PATH", file=sys.stderr)
        return 2
    # As root, chromium has no sandbox of its own.
    flags = (
        ["--disable-lcd-text", "--no-sandbox"]
        if hasattr(os, "geteuid") and os.geteuid() == 0
        else ["--disable-lcd-text"]
    )
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        if run_demo(Path(folder), Console(file=io.StringIO())):
            return 2
        browser = playwright.chromium.launch(executable_path=found, args=flags)
        made = pictures(browser, Path(folder) / "report.html")
        browser.close()
    for path in made:
        print(f"{path.stat().st_size:7,} bytes  {path.relative_to(HERE.parent.parent)}")
    return int(any(path.stat().st_size > MOST for path in made))


if __name__ == "__main__":
    raise SystemExit(main())
