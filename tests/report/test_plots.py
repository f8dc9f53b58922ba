"""Plots: the same figure gives the same file, and a wrong place is refused before anything is spent."""

import pytest

from dpselect.errors import ArgumentError

pytest.importorskip("matplotlib")

from dpselect.report.plots import check_plot_path, plotting, save_plot


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


def test_a_page_names_its_picture(tmp_path):
    with plotting() as axes:
        axes.plot([1, 2], [3, 4])
        save_plot(axes, tmp_path / "plot.html", title="a < b")
    assert '<svg role="img" aria-label="a &lt; b"' in (tmp_path / "plot.html").read_text()
