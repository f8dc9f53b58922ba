"""The area under the curve: how often a row of the second class is placed above one of the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError
from dpselect.privacy import Adjacency
from dpselect.randomness import RandomSource
from dpselect.study.metrics.intervals import curve_error
from dpselect.study.metrics.metric import METRICS, Cells, Estimate, Metric, ScoreNoise
from dpselect.study.target import Target

__all__ = ["AreaUnderCurve"]

_FINE: Final = 256
_COARSE: Final = 16
_MIDDLE: Final = 0.25
_FARTHEST: Final = 40.0
_EDGES_SHARE: Final = Fraction(1, 4)
"""The part of epsilon, or of its squares, that finds where the rows are. The rest counts them."""


@METRICS.register("auc", task="classification")
@dataclass(frozen=True)
class AreaUnderCurve(Metric):
    """The share of the pairs of a row of the second class and one of the first that the model puts in this order.

    Rows are ordered by the log-odds of the second class; ties count half. The cells, shape (2, 256), count the rows of
    each class in 256 public bins of the log-odds, narrow about 0. A pair in one bin is a tie.

    Claim: `noisy` is pure epsilon for one row. It first counts the rows of both classes in each bin, with noise at
    epsilon/4. From that it takes 16 groups of bins with about equally many rows. Then it counts the rows of each class
    in each group, with noise at 3 epsilon/4, and gives these counts. Gaussian noise is split likewise, by squares of
    one over the multiplier.

    Proof: a row is in one bin, so that adding or removing it moves one of 256 counts by 1. Replacing it moves two by 1,
    or none. So it is with the counts by class in the groups, regardless of the groups. Given the first counts,
    the density of the second ones changes by a factor of at most exp(3 epsilon/4), that of the first by at most
    exp(epsilon/4), and their product by at most exp(epsilon). The groups are a function of the first. With Gaussian
    noise the L2 distance is 1, or sqrt(2). The two counts are then an adaptive composition of Gaussian mechanisms,
    whose squares of one over the multiplier add up. QED

    The area is computed from the noisy counts, which costs nothing more: the numbers of rows of each class, on
    which a rank statistic depends so much that no bound of its own is small, are paid for with them. Raises
    `ArgumentError` for labels of other than two classes.
    """

    target: Target

    def __post_init__(self) -> None:
        if len(self.target.classes) != 2:
            raise ArgumentError("auc needs two classes: take balanced-accuracy or log-loss")

    def cells(self, model: Any, X: Any, y: Any) -> Cells:
        if not len(y):
            return np.zeros((2, _FINE), dtype=np.int64)
        chances = np.asarray(model.predict_proba(X), dtype=np.float64)
        if chances.shape != (len(y), 2):
            raise ArgumentError("the estimator must give two probabilities for each row")
        return self._counted(_bins(chances), y)

    def lost(self, y: Any) -> Cells:
        places = np.asarray(y)
        return self._counted(np.where(places == 1, 0, _FINE - 1), y)

    def moved(self, adjacency: Adjacency) -> int:
        return 1 if adjacency is Adjacency.ADD_OR_REMOVE_ONE else 2

    def moved_squares(self, adjacency: Adjacency) -> int:
        return self.moved(adjacency)

    def noisy(self, cells: Cells, noise: ScoreNoise, random: RandomSource) -> Cells:
        first, second = self._noises(noise)
        reach = self.reach(noise.adjacency)
        found = first.added(np.sum(cells, axis=0), reach, random)
        return second.added(np.add.reduceat(cells, _groups(found), axis=1), reach, random)

    def score(self, cells: Cells, *, rows: float, noise: ScoreNoise | None) -> float:  # noqa: ARG002
        least = self.smallest_count(None if noise is None else self._noises(noise)[1])
        curves = [above / max(above[0], least) for above in _above(cells)]
        # with hardly a row of a class the rest of it is put where it says nothing
        negative, positive = curves
        area = _area(negative, positive) + (1.0 - negative[0] * positive[0]) / 2.0
        return float(np.clip(area, 0.0, 1.0))

    def estimate(self, cells: Cells, *, noise: ScoreNoise | None, failure: float) -> Estimate:
        """The interval from bands about both curves, each the share of a class's rows above a bin.

        A sum over the topmost groups is off by less than the partial sums of the noise, whichever groups; the share of
        a sample above a point by less than `curve_error`. The area is least where the second class's curve is lowest
        and the first's highest. Ties are part of the figure: it is the area of the grouped log-odds.
        """
        each = failure / 4.0
        most = 0.0
        if noise is not None:
            most = self._noises(noise)[1].most_partial(cells.shape[1], self.reach(noise.adjacency), each)
        bands = []
        for above in _above(cells):
            rows = above[0] - most
            if not rows > 0.0:
                return Estimate(self.score(cells, rows=1.0, noise=noise), 0.0, 1.0)
            error = curve_error(rows, each)
            low = np.clip((above - most) / (above[0] + most) - error, 0.0, 1.0)
            high = np.clip((above + most) / rows + error, 0.0, 1.0)
            low[0] = high[0] = 1.0
            low[-1] = high[-1] = 0.0
            # the curve itself only falls
            bands.append((np.maximum.accumulate(low[::-1])[::-1], np.minimum.accumulate(high)))
        (low_first, high_first), (low_second, high_second) = bands
        value = self.score(cells, rows=1.0, noise=noise)
        ends = min(value, _area(high_first, low_second)), max(value, _area(low_first, high_second))
        return Estimate(value, max(ends[0], 0.0), min(ends[1], 1.0))

    def rows_by_class(self, cells: Cells) -> list[float]:
        return [float(count) for count in np.sum(cells, axis=1)]

    def constant(self, shares: Sequence[float] | None) -> float:  # noqa: ARG002
        return 0.5

    def typical(self, rows: float, noise: ScoreNoise | None) -> Cells:  # noqa: ARG002
        """Two classes of equally many rows, with an area of 5/6."""
        steps = np.arange(_COARSE) + 0.5
        return np.round(rows / _COARSE**2 * np.stack([_COARSE - steps, steps])).astype(np.int64)

    @property
    def span(self) -> float:
        return 0.9

    @property
    def noisy_shape(self) -> tuple[int, ...]:
        return 2, _COARSE

    @staticmethod
    def _noises(noise: ScoreNoise) -> list[ScoreNoise]:
        return noise.split((_EDGES_SHARE, 1 - _EDGES_SHARE))

    @staticmethod
    def _counted(bins: NDArray[np.intp], y: Any) -> Cells:
        places = np.asarray(y)
        return np.stack([np.bincount(bins[places == k], minlength=_FINE) for k in (0, 1)]).astype(np.int64)


def _bins(chances: NDArray[np.float64]) -> NDArray[np.intp]:
    """The bin of each row, from its own probabilities."""
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.log(chances[:, 1]) - np.log(chances[:, 0])
    place = np.arcsinh(np.clip(np.nan_to_num(odds, nan=0.0), -_FARTHEST, _FARTHEST) / _MIDDLE)
    end = np.arcsinh(_FARTHEST / _MIDDLE)
    return np.clip(np.floor((place / end + 1.0) / 2.0 * _FINE), 0, _FINE - 1).astype(np.intp)


def _groups(counts: Cells) -> NDArray[np.intp]:
    """Where each of 16 groups of bins begins: about equally many rows in each, and a bin at least."""
    reached = np.maximum.accumulate(np.cumsum(counts))
    wanted = reached[-1] * np.arange(1, _COARSE) / _COARSE
    starts = np.append(0, np.searchsorted(reached, wanted) + 1)
    room = np.arange(_COARSE)
    starts = np.maximum.accumulate(np.minimum(starts, _FINE - _COARSE + room) - room) + room
    return starts.astype(np.intp)


def _above(cells: Cells) -> list[NDArray[np.float64]]:
    """Of each class how many rows are in a bin or above it; last 0."""
    return [np.append(np.cumsum(counts[::-1])[::-1], 0.0) for counts in cells.astype(np.float64)]


def _area(negative: NDArray[np.float64], positive: NDArray[np.float64]) -> float:
    """From the shares of both classes above each bin's lower end: a pair in one bin counts half."""
    inside = negative[:-1] - negative[1:]
    return float(np.sum(inside * (positive[:-1] + positive[1:]) / 2.0))
