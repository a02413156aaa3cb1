"""The page of plots: valid, self-contained, drawn from the points, safe against its own input."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest
from hostile import HOSTILE, acting

from rag_eval_integrations._visible import visible
from rag_eval_integrations.agreement._curves import curve_of
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.report._plots import page, write_plots

CURVES = {"relevant": curve_of([(0.9, True), (0.8, False), (0.6, True), (0.1, False)])}


class Tags(HTMLParser):
    """Collects tags with their attributes, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_shows_both_plots_with_their_figures() -> None:
    """One ROC path through the points and one dot a bin; area and calibration error in words."""
    tags = Tags(page({"pooled": CURVES}, "Agreement"))

    curve = [attributes for tag, attributes in tags.found if attributes.get("class") == "curve"]
    dots = [attributes for tag, attributes in tags.found if tag == "circle"]
    assert [one["d"] for one in curve] == [
        "M34.0 294.0L34.0 164.0L164.0 164.0L164.0 34.0L294.0 34.0"
    ]
    assert len(dots) == 4
    assert "ROC; area 0.750" in tags.text
    assert "expected calibration error 0.350" in tags.text
    assert "2 of 4 positive" in tags.text


def test_the_page_fetches_nothing_and_runs_nothing() -> None:
    """No script, no link, no source; a policy that forbids them; hostile names stay text."""
    hostile = '<script>alert(1)</script>"><img src=x onerror=alert(1)>'
    tags = Tags(page({hostile: {hostile: CURVES["relevant"]}}, hostile))

    names = {tag for tag, _ in tags.found}
    assert not names & {"script", "img", "link", "iframe", "object"}
    assert not [a for _, a in tags.found if {"src", "href", "onerror"} & a.keys()]
    policy = [a for t, a in tags.found if t == "meta" and a.get("http-equiv")]
    assert "default-src 'none'" in str(policy[0]["content"])
    assert tags.text.count("alert(1)") >= 4


def test_no_curve_is_said_and_not_drawn() -> None:
    """A group without probabilities, and gold with one class, say so."""
    text = page({"a": {}, "b": {"relevant": curve_of([(0.5, True)])}}, "t")
    assert "gave no probabilities" in text
    assert "gold has one class only" in text
    assert 'class="curve"' not in text


def test_a_long_curve_is_thinned_out_and_keeps_its_ends(tmp_path: Path) -> None:
    """10,000 items make a page of some kilobytes that ends at (1, 1); the folder is made."""
    items = [(i / 10_000, i % 3 == 0) for i in range(10_000)]
    path = write_plots({"all": {"relevant": curve_of(items)}}, tmp_path / "new" / "plots", "t")

    text = path.read_text(encoding="utf-8")
    curve = next(a for _, a in Tags(text).found if a.get("class") == "curve")["d"] or ""
    assert curve.startswith("M34.0 294.0L")
    assert curve.endswith("L294.0 34.0")
    assert len(text) < 40_000
    assert [file.name for file in path.parent.iterdir()] == ["agreement.html"]


def test_only_a_page_of_this_program_is_replaced(tmp_path: Path) -> None:
    """Its own at any time; another one of that name is refused and stays, and so does a link."""
    curve = {"all": {"relevant": curve_of([(0.5, True), (0.4, False)])}}
    path = write_plots(curve, tmp_path, "first")
    real = tmp_path / "real.html"
    path.rename(real)
    path.symlink_to(real)

    write_plots(curve, tmp_path, "second")
    assert path.is_symlink()
    assert "<title>second" in real.read_text()

    real.write_text("<html>my own page</html>")
    with pytest.raises(ConfigurationError, match="was not made by this program"):
        write_plots(curve, tmp_path, "third")
    with pytest.raises(ConfigurationError, match="is not a folder"):
        write_plots(curve, real, "third")
    assert real.read_text() == "<html>my own page</html>"


def test_only_a_group_without_probabilities_says_so() -> None:
    """What is drawn is not said to be missing."""
    assert page({"a": {}, "b": CURVES}, "t").count("gave no probabilities") == 1
    assert "gave no probabilities" not in page({"b": CURVES}, "t")


def test_a_dots_area_is_its_share() -> None:
    """On a floor of two pixels: of a quarter each, half the way to that of all."""

    def radii(items: list[tuple[float, bool]]) -> list[str | None]:
        tags = Tags(page({"a": {"b": curve_of(items)}}, "t"))
        return [attributes["r"] for tag, attributes in tags.found if tag == "circle"]

    assert radii([(0.5, True), (0.5, False)]) == ["16.0"]
    assert radii([(0.1, True), (0.3, False), (0.6, False), (0.9, False)]) == ["9.0"] * 4


def test_the_axes_are_labelled_outside_of_the_plot_and_inside_of_the_picture() -> None:
    """No word lies over the curve or is cut off."""
    tags = Tags(page({"pooled": CURVES}, "t"))
    size = float(next(a["width"] or "" for tag, a in tags.found if tag == "svg"))
    places = [(float(a["x"] or ""), float(a["y"] or "")) for tag, a in tags.found if tag == "text"]

    assert len(places) == 10
    for x, y in places:
        assert 0 < x < size
        assert 0 < y < size
        assert x < 34 or y > 294


@pytest.mark.parametrize("text", HOSTILE)
def test_a_page_of_hostile_names_holds_no_controls(text: str) -> None:
    """Neither in HTML nor in SVG, and the page can be written whatever it holds."""
    found = page({text: {text: CURVES["relevant"]}}, text)

    assert acting(found) == []
    assert visible(text) in Tags(found).text
    found.encode()
