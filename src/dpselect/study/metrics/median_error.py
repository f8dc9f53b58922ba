"""Quantiles of the absolute errors, compared with those of the middle label, from counts on public grids."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.privacy import Adjacency
from dpselect.randomness import RandomSource
from dpselect.study.metrics.errors import absolute_shares
from dpselect.study.metrics.metric import METRICS, Cells, Estimate, Figure, Metric, ScoreNoise
from dpselect.study.metrics.noisy_shares import CellNoise, quantile_interval, quantile_value
from dpselect.study.metrics.person_sample import SINGLE_ROWS, PersonSample
from dpselect.study.metrics.score_noise import Reach
from dpselect.study.target import Target

__all__ = ["MedianError"]

_BLOCKS, _IN_BLOCK = 16, 16
_BINS: Final = _BLOCKS * _IN_BLOCK
_LEAST: Final = 2.0**-12
"""Of the distance of the label's bounds: smaller errors are in one bin."""
_CONSTANT_BINS: Final = 64
_RANGES: Final = 16
_STEPS: Final = 3
"""The middle label is found among 16 ranges of labels, then among 16 parts of that range, and so on."""
_LABELS: Final = _RANGES**_STEPS
_SHARES: Final = (*[Fraction(1, 16)] * _STEPS, Fraction(1, 8), Fraction(11, 16))
"""What finds the middle label, what counts its errors, and what counts the model's."""


@METRICS.register("median-error", task="regression")
@dataclass(frozen=True)
class MedianError(Metric):
    """The median of |answer - label|, in units of the label, both clipped at its bounds. Less is better.

    The 90 % error, which nine rows of ten are not beyond, is released with it, and both of one constant answer, the
    middle label. If labels are skewed, another constant may have a smaller median error. The cells are counts of the
    rows by their error, in 256 bins that grow by 3.3 % each, and of their labels in 4,096 bins.

    Claim: `noisy` is pure epsilon for one row, or as private as a Gaussian mechanism of the noise's multiplier. It
    counts the labels in 16 ranges with noise, then in 16 parts of the range that has the middle one, and in 16 parts of
    that. It counts the rows by the distance of their label from the middle of the bin that has the middle label. Last
    it counts the rows by their error, in bins and in blocks of 16 bins. Each step has a part of the noise.

    Proof: in each step but the last a row is in one bin at most, whichever the bins are. So neighbours' counts differ
    by 1 in one bin, or in two if a row is replaced. In the last step a row is in one bin and in one block. The
    ranges and the middle are functions of noisy counts that were paid for. So the steps are an adaptive composition,
    whose parts add up as `ScoreNoise.split` says. QED

    The distance of labels from the middle one is rounded down, by 1/8192 of the distance of the bounds at most.
    """

    target: Target
    sample: PersonSample = SINGLE_ROWS
    loss = True

    def cells(self, model: Any, X: Any, y: Any) -> Cells:
        if not len(y):
            return np.zeros(_BINS + _LABELS, dtype=np.int64)
        errors = np.searchsorted(self._edges[1:-1], absolute_shares(self.target, model, X, y), side="left")
        return np.concatenate([np.bincount(errors, minlength=_BINS), self._labels(y)]).astype(np.int64)

    def lost(self, y: Any) -> Cells:
        errors = np.zeros(_BINS, dtype=np.int64)
        errors[-1] = len(y)
        return np.concatenate([errors, self._labels(y)])

    def moved(self, adjacency: Adjacency) -> int:
        return 1 if adjacency is Adjacency.ADD_OR_REMOVE_ONE else 2

    def moved_squares(self, adjacency: Adjacency) -> int:
        return self.moved(adjacency)

    def noisy(self, cells: Cells, noise: ScoreNoise, random: RandomSource) -> Cells:
        errors, labels = cells[:_BINS], cells[_BINS:]
        once = self.reach(noise.adjacency)
        *steps, constant, last = noise.split(_SHARES)
        place, wanted, inside = 0, None, labels
        for step in steps:
            ranges = inside.reshape(_RANGES, -1)
            counted = step.added(np.sum(ranges, axis=1), once, random)
            wanted = 0.5 * float(np.sum(counted)) if wanted is None else wanted
            chosen, before = _middle(counted, wanted)
            place, wanted, inside = _RANGES * place + chosen, wanted - before, ranges[chosen]
        constants = constant.added(self._constants(labels, place), once, random)
        both = np.concatenate([errors.reshape(_BLOCKS, -1).sum(axis=1), errors])
        return np.concatenate([last.added(both, self._twice(noise), random), constants, [place]])

    def score(self, cells: Cells, *, rows: float, noise: ScoreNoise | None) -> float:  # noqa: ARG002
        blocks, errors, _, _ = self._read(cells, noise)
        return -quantile_value(blocks, errors, self._edges, 0.5)

    def estimate(self, cells: Cells, *, noise: ScoreNoise | None, failure: float) -> Estimate:
        return self._quantile(cells, 0.5, noise, failure)

    def of_persons(self, sample: PersonSample) -> Metric:
        return replace(self, sample=sample)

    def figures(self, cells: Cells, *, noise: ScoreNoise | None, failure: float) -> list[Figure]:
        _, _, constants, place = self._read(cells, noise)
        assert self.target.bounds is not None
        answer = self.target.bounds[0] + self.target.width * ((place + 0.5) / _LABELS)
        found = []
        for name, quantile in (("median-error", 0.5), ("90%-error", 0.9)):
            value = quantile_value(constants, constants, self._constant_edges, quantile) * self.target.width
            estimate = self._quantile(cells, quantile, noise, failure)
            found.append(Figure(name, estimate, value, answer, less_is_better=True))
        return found

    def typical(self, rows: float, noise: ScoreNoise | None) -> Cells:  # noqa: ARG002
        """Errors of a normal distribution of 0.05 of the distance of the bounds, labels of one of 0.125."""
        from scipy.stats import norm  # which few studies need

        errors = np.round(rows * np.diff(2.0 * norm.cdf(self._edges / 0.05) - 1.0))
        labels = np.diff(norm.cdf(np.linspace(-4.0, 4.0, _LABELS + 1)))
        place = _LABELS // 2
        constants = np.round(rows * self._constants(labels, place))
        blocks = errors.reshape(_BLOCKS, -1).sum(axis=1)
        return np.concatenate([blocks, errors, constants, [place]]).astype(np.int64)

    @property
    def span(self) -> float:
        return 0.084 * self.target.width  # the median of |labels - middle| of `typical`

    @property
    def noisy_shape(self) -> tuple[int, ...]:
        return (_BLOCKS + _BINS + _CONSTANT_BINS + 1,)

    def _quantile(self, cells: Cells, quantile: float, noise: ScoreNoise | None, failure: float) -> Estimate:
        blocks, errors, _, _ = self._read(cells, noise)
        width, of_cells = self.target.width, CellNoise(sample=self.sample)
        if noise is not None:
            last, twice = noise.split(_SHARES)[-1], self._twice(noise)
            of_cells = CellNoise(lambda at: last.cumulants(at, twice), sample=self.sample)
        value = quantile_value(blocks, errors, self._edges, quantile)
        low, high = quantile_interval(blocks, errors, self._edges, quantile, of_cells, failure)
        return Estimate(value * width, min(low, value) * width, max(high, value) * width)

    def _read(
        self, cells: Cells, noise: ScoreNoise | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], int]:
        """Blocks and bins of errors, errors of the constant answer, and its place, from cells with noise or without."""
        if noise is None and len(cells) == _BINS + _LABELS:
            labels = cells[_BINS:]
            place = _middle(labels, 0.5 * float(np.sum(labels)))[0]
            errors = cells[:_BINS].astype(np.float64)
            blocks = errors.reshape(_BLOCKS, -1).sum(axis=1)
            return blocks, errors, self._constants(labels, place).astype(np.float64), place
        parts = np.split(cells.astype(np.float64), np.cumsum([_BLOCKS, _BINS, _CONSTANT_BINS]))
        return parts[0], parts[1], parts[2], int(cells[-1])

    def _twice(self, noise: ScoreNoise) -> Reach:
        """A row is in a bin and in a block."""
        once = self.reach(noise.adjacency)
        return Reach(2 * once.total, 2 * once.squares)

    def _labels(self, y: Any) -> Cells:
        places = np.floor(self.target.shares(np.asarray(y, dtype=np.float64)) * _LABELS).astype(np.int64)
        return np.bincount(np.minimum(places, _LABELS - 1), minlength=_LABELS).astype(np.int64)

    def _constants(self, labels: NDArray[Any], place: int) -> NDArray[Any]:
        """The counts of the rows by the distance of their label from the bin at `place`."""
        away = np.maximum(np.abs(np.arange(_LABELS) - place) - 0.5, 0.0) / _LABELS
        bins = np.searchsorted(self._constant_edges[1:-1], away, side="left")
        return np.bincount(bins, weights=labels, minlength=_CONSTANT_BINS).astype(labels.dtype)

    @cached_property
    def _edges(self) -> NDArray[np.float64]:
        return np.concatenate([[0.0], np.geomspace(_LEAST, 1.0, _BINS)])

    @cached_property
    def _constant_edges(self) -> NDArray[np.float64]:
        return np.concatenate([[0.0], np.geomspace(_LEAST, 1.0, _CONSTANT_BINS)])


def _middle(counts: Cells, wanted: float) -> tuple[int, float]:
    """The bin in which the sum of the counts reaches `wanted`, and the sum before it."""
    reached = np.maximum.accumulate(np.cumsum(counts))
    place = min(int(np.searchsorted(reached, wanted)), len(counts) - 1)
    return place, float(reached[place - 1]) if place else 0.0
