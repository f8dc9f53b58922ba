"""Pictures of the report: their places follow from the numbers, and nothing in them can break out."""

from __future__ import annotations

import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from dpselect.report.svg import Axis, Curve, bars, columns, curves

X, Y = Axis("epsilon", 0.0, 2.0), Axis("delta", 1e-8, 1.0, log=True)


def drawn(text: str, tag: str) -> list[dict[str, str]]:
    return [part.attrib for part in ElementTree.fromstring(text).iter(f"{{http://www.w3.org/2000/svg}}{tag}")]


def places(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([\d.-]+) ([\d.-]+)", path)]


def test_a_curve_goes_through_its_points_and_leaves_at_the_edge() -> None:
    """The frame is from 44 to 294 and from 8 to 146. Half of the last part, from 1e-4 to 1e-12, is above 1e-8."""
    line = [(0.0, 1.0), (1.0, 1e-4), (2.0, 1e-12)]
    text = curves("label", 180.0, (X, Y), [Curve("one", "run", line)], dot=(1.0, 1e-4))
    (curve,) = [path for path in drawn(text, "path") if path.get("stroke-linejoin")]
    assert places(curve["d"]) == [(44.0, 8.0), (169.0, 77.0), (231.5, 146.0)]
    (dot,) = drawn(text, "circle")
    assert (dot["cx"], dot["cy"]) == ("169.0", "77.0")


def test_a_curve_from_outside_comes_in_at_the_edge() -> None:
    for line in ([(0.0, 1e-12), (2.0, 1e-4)], [(0.0, 0.0), (2.0, 1.0)]):
        text = curves("label", 180.0, (X, Y), [Curve("one", "run", line)])
        (curve,) = [path for path in drawn(text, "path") if path.get("stroke-linejoin")]
        assert curve["d"].count("M") == 1
        assert places(curve["d"])[0] == (169.0, 146.0)


def test_bars_and_columns_are_as_long_as_their_numbers() -> None:
    lengths = [
        float(each["width"]) for each in drawn(bars("b", [("a", "run", 1.0, "1"), ("b", "run", 3.0, "3")]), "rect")
    ]
    assert lengths[1] == pytest.approx(3 * lengths[0], abs=0.2)
    axes = Axis("runs", -0.6, 2.4), Axis("probability", 0.0, 0.5)
    heights = [float(each["height"]) for each in drawn(columns("c", 144.0, axes, [0.1, 0.4, 0.0]), "rect")]
    assert heights == pytest.approx([20.4, 81.6, 0.0], abs=0.02)


@pytest.mark.parametrize(
    ("axis", "labels"),
    [
        (Axis("", 0.0, 2.0), ["0", "0.5", "1", "1.5", "2"]),
        (Axis("", -0.6, 20.4), ["0", "5", "10", "15", "20"]),
        (Axis("", 0.0, 1e-9), ["0", "2e-10", "4e-10", "6e-10", "8e-10", "1e-09"]),
        (Axis("", 1e-3, 1.0, log=True), ["10^-3", "10^-2", "10^-1", "1"]),
    ],
)
def test_ticks_are_round(axis: Axis, labels: list[str]) -> None:
    found = [re.sub(r"<tspan[^>]*>(.*)</tspan>", r"^\1", label) for _, label in axis.ticks()]
    assert found == labels


def test_texts_are_escaped() -> None:
    hostile = "</svg><script>\"'&"
    notes = [(0.0, 1.0, hostile)]
    texts = [
        bars(hostile, [(hostile, "run", 1.0, hostile)]),
        curves(hostile, 180.0, (Axis(hostile, 0.0, 1.0), Y), [Curve(hostile, "run", [(0.5, 0.5)])], notes=notes),
    ]
    for text in texts:
        assert ElementTree.fromstring(text).attrib["aria-label"] == hostile
        assert "<script" not in text


def test_a_report_needs_no_matplotlib() -> None:
    ask = "import sys, dpselect.report.model_card; print('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout == "False\n"
