"""Plots: drawn from the points, thinned where nobody could tell, with their figures in words."""

from __future__ import annotations

from agreement_rows import curve_of
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.report._agreement_page import EDGE, SIDE, course, reliability, roc

CURVES = curve_of([(0.9, True), (0.8, False), (0.6, True), (0.1, False)])


def test_a_roc_curve_goes_through_its_points() -> None:
    """From the lower left to the upper right, with the area in words and the points in a table."""
    found = roc(CURVES, "t")

    assert found["path"] == "M34.0 294.0L34.0 164.0L164.0 164.0L164.0 34.0L294.0 34.0"
    assert found["caption"] == "ROC; area 0.750"
    assert found["table"] == [("0.000", "0.500"), ("0.500", "1.000"), ("1.000", "1.000")]


def test_reliability_says_its_figures() -> None:
    """Per bin, and the calibration error over all of them; a dot's area is its share of items."""
    found, one = reliability(CURVES, "t"), reliability(curve_of([(0.5, True), (0.5, False)]), "t")

    assert found["caption"] == "reliability; expected calibration error 0.350"
    assert found["table"][0] == ("1", "0.100", "0.000")
    assert "mean probability 0.100, share in gold 0.000" in found["dots"][0]["title"]
    # On a floor of two pixels: of a quarter each, half the way to that of all.
    assert [[dot["r"] for dot in each["dots"]] for each in (found, one)] == [["9.0"] * 4, ["16.0"]]


def test_gold_of_one_class_has_no_roc() -> None:
    """It is said, and nothing is drawn."""
    found = roc(curve_of([(0.5, True)]), "t")

    assert (found["path"], found["table"]) == ("", [])
    assert "gold has one class only" in found["caption"]


def test_a_long_curve_is_thinned_out_and_keeps_its_ends() -> None:
    """Of 10,000 items some hundred points are drawn and eleven are listed."""
    found = roc(curve_of([(i / 10_000, i % 3 == 0) for i in range(10_000)]), "t")

    points = found["path"].split("L")
    assert (points[0], points[-1]) == ("M34.0 294.0", "294.0 34.0")
    assert len(points) <= 400
    assert (len(found["table"]), found["table"][-1]) == (11, ("1.000", "1.000"))


def test_a_course_leaves_out_what_is_undefined() -> None:
    """The axis ends at the tenths around the values; without a value there is no plot."""
    found = course([(0.0, 0.71), (0.5, None), (1.0, 0.88)], "t", "share", "AUROC")

    assert found is not None
    assert (found["low"], found["high"]) == ("0.7", "0.9")
    assert [dot["title"] for dot in found["dots"]] == ["0%: 0.710", "100%: 0.880"]
    assert course([(0.0, None)], "t", "share", "AUROC") is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_no_course_leaves_its_plot(values: list[float]) -> None:
    """Also where all values are the same, or at an end of the range."""
    points = [(at / len(values), value) for at, value in enumerate(values)]
    found = course(points, "t", "share", "RMSE")

    assert found is not None
    places = [float(dot[axis]) for dot in found["dots"] for axis in "xy"]
    assert EDGE - 0.1 <= min(places) <= max(places) <= EDGE + SIDE + 0.1
