"""Plots: the same figure gives the same file, and a wrong place is refused before anything is spent."""

import re

import pytest

from dpselect.errors import ArgumentError
from dpselect.report.plots import check_plot_path, picture, plotting, save_plot


@pytest.mark.cases(1)
@pytest.mark.parametrize("suffix", ["svg", "png", "pdf", "html"])
def test_the_same_figure_gives_the_same_file(tmp_path, suffix):
    for name in ("one", "two"):
        with plotting() as axes:
            axes.plot([1, 2], [3, 4])
            save_plot(axes, tmp_path / f"{name}.{suffix}")
    assert (tmp_path / f"one.{suffix}").read_bytes() == (tmp_path / f"two.{suffix}").read_bytes()


def test_a_plot_that_could_not_be_written_is_refused_beforehand(tmp_path):
    with pytest.raises(ArgumentError, match=r"--plot: the name must end in one of .*\.svg.*, got 'plot.txt'"):
        check_plot_path("--plot", tmp_path / "plot.txt")
    with pytest.raises(ArgumentError, match="--plot: there is no folder"):
        check_plot_path("--plot", tmp_path / "no" / "plot.svg")


def test_identifiers_of_two_pictures_do_not_meet():
    drawn = []
    for label in ("The first picture <&>", "Another picture"):
        with plotting() as axes:
            axes.plot([1, 2], [3, 4], gid="note")
            drawn.append(picture(axes, label, {"note": "<here> & there"}))
    first, second = (set(re.findall(r'id="([^"]*)"', text)) for text in drawn)
    assert first
    assert second
    assert not first & second
    assert all(
        f'"#{used}"' in text or f"#{used})" in text for text in drawn for used in re.findall(r"#([\w-]+-[mp]\w+)", text)
    )
    assert "<title>&lt;here&gt; &amp; there</title>" in drawn[0]
