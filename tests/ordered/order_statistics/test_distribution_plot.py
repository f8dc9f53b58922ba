"""Plots of private distribution functions."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from dpselect.errors import ArgumentError, MissingExtraError
from dpselect.ordered import quantiles
from dpselect.randomness import keyed_source

figures = pytest.importorskip("matplotlib.figure")
ROWS = np.arange(1000)


def released(**options):
    asked = {"qs": [0.75, 0.25, 0.5, 0.5], "lower": 0, "upper": 999, "epsilon": 1.0, "random": keyed_source(1)}
    return quantiles(ROWS, **asked | options)


def test_quantiles_are_drawn_once_each_in_increasing_order_on_the_axes_given():
    release, axes = released(), figures.Figure().add_subplot()
    assert release.plot(axes) is axes
    (line,) = axes.get_lines()
    assert line.get_ydata().tolist() == [0.25, 0.5, 0.75]
    assert line.get_xdata().tolist() == sorted(release.value[:3])
    assert not axes.collections  # no band without the number of rows


def test_the_band_is_that_of_the_rank_errors():
    release, axes = released(method="independent"), figures.Figure().add_subplot()
    release.plot(axes, rows=1000, failure_probability=0.01)
    (band,) = axes.collections
    heights = band.get_paths()[0].vertices[:, 1]
    share = release.rank_errors(0.01)[0] / 1000
    assert heights.min() == pytest.approx(0.25 - share)
    assert heights.max() == 1.0
    assert any(heights == pytest.approx(0.75 + share) for heights in heights)


def test_new_axes_and_timestamps():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    times = np.datetime64("2024-01-01", "s") + ROWS.astype("timedelta64[h]")
    axes = quantiles(times, qs=[0.5, 0.6], lower="2024-01-01", upper="2024-03-01", epsilon=1.0).plot(rows=1000)
    assert len(axes.get_lines()) == 1
    pyplot.close(axes.figure)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"ax": "axes"}, ArgumentError, "ax must be axes of Matplotlib"),
        ({"rows": 0}, ArgumentError, "rows"),
        ({"failure_probability": 1.0}, ArgumentError, "failure_probability"),
    ],
)
def test_bad_arguments_are_named(given, error, said):
    with pytest.raises(error, match=said):
        released().plot(**given)


def test_weighted_rows_have_no_band():
    with pytest.raises(ArgumentError, match="rows: the errors of weighted rows"):
        released(weights=np.ones(1000), method="recursive").plot(rows=1000)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "dpselect.ordered.order_statistics.distribution_plot", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    with pytest.raises(MissingExtraError, match=r"dpselect\[plot\]"):
        released().plot()
