"""A plot of a private distribution function: released quantiles, and the band that holds the true function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpselect.errors import ArgumentError, missing_extra
from dpselect.ordered.order_statistics.distribution_band import distribution_band

try:
    from matplotlib.axes import Axes
except ImportError:
    raise missing_extra("plot", "plotting quantiles") from None

__all__ = ["plot_distribution"]


def plot_distribution(ax: Any, shares: Sequence[float], values: Sequence[Any], errors: Sequence[float] | None) -> Axes:
    """Draw increasing quantiles, and with `errors` the band, on `ax` or on axes of a new figure, and return the axes.

    The errors are in shares of the rows.
    """
    if ax is not None and not isinstance(ax, Axes):
        raise ArgumentError(
            f"ax must be axes of Matplotlib, such as matplotlib.pyplot.subplots()[1], got {type(ax).__name__}"
        )
    axes = _new_axes() if ax is None else ax
    (line,) = axes.plot(values, shares, marker="o", label="private quantiles")
    if errors is not None:
        low, high = distribution_band(shares, errors)
        # between two values both bounds are constant
        look: dict[str, Any] = {"alpha": 0.2, "color": line.get_color(), "linewidth": 0.0}
        axes.fill_between(values, low, [*high[1:], 1.0], step="post", label="band of the true function", **look)
    axes.set(ylabel="share of rows at most this", ylim=(0.0, 1.0))
    axes.legend()
    return axes


def _new_axes() -> Axes:
    from matplotlib import pyplot  # its figures belong to the process, so only a plot without axes imports it

    return pyplot.subplots()[1]
