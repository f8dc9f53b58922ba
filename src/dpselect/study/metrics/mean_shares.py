"""An interval for the mean over classes of the share of their rows that is good, from noisy counts by class.

Class c has N_c rows with a share p_c. Its noisy good rows are r_c, and all of its noisy rows n_c. One interval a class,
averaged, is too wide, because the errors of the classes are independent. So they are bounded together.

Lemma. Given the N_c, let c(t) bound the cumulant function of one cell's noise. Let A(t) be the sum over the classes of
N_c k_c(t/N_c) + c((1 - p_c) t/N_c) + c(p_c t/N_c), with k_c(t) = ln(1 - p_c + p_c e^t) - p_c t. Then for each t > 0 the
sum of (r_c - p_c n_c)/N_c is at least (A(t) + ln(1/a))/t with probability at most a.

Proof. As in `noisy_shares`: rows and noises are independent, and the cells of a class have weights 1 - p_c and -p_c.
QED

The interval. Let each p_c be in an interval of its own, and each N_c between M_c > 0 and L_c. All of this holds with
the probability that is paid for it. A(t) falls as N_c rises, since k and c are convex and k(0) = 0, so that M_c takes
the place of N_c. k_c is concave in p_c. It is largest at 1/t - 1/(e^t - 1), or at the nearest end of the interval. Each
term of c is largest at an end. Let s be the least of (A(t) + ln(1/a))/t over a fixed list of t. It bounds the sum of
u_c (r_c/n_c - p_c), with u_c = n_c/N_c. So the sum of r_c/n_c - p_c is at most s plus the sum of
|1 - u_c| |r_c/n_c - p_c|, whose factors are both small.

If a person may have several rows, those of different classes depend on each other too. Then the mean of the intervals
of the classes is the interval.

Source of the inequalities: Boucheron, Lugosi, Massart (2013), section 2.2.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.study.metrics.noisy_shares import CellNoise, share_interval_of_cells

__all__ = ["mean_share_interval"]

Array = NDArray[np.float64]
_EXPONENTS: Final = np.geomspace(0.5, 1e8, 160)
_MOST: Final = 600.0
"""A larger exponent would overflow."""
_EACH: Final = 0.1
"""The part of the failure for the intervals of the classes."""
_ROWS: Final = 0.05
"""The part of the failure for the numbers of rows, of either side."""


def mean_share_interval(good: Array, total: Array, noise: CellNoise, failure: float) -> tuple[float, float]:
    """An interval for the mean of the shares `good/total` in new rows, which fails with probability at most `failure`.

    `good` and `total` are noisy numbers of rows by class, from one cell of good rows and one of others each.

    >>> low, high = mean_share_interval(np.full(4, 200.0), np.full(4, 250.0), CellNoise(), 0.05)
    >>> round(low, 2), round(high, 2)
    (0.76, 0.84)
    """
    classes, sample = len(good), noise.sample
    own = replace(noise, sample=sample._replace(rows=sample.rows / classes))
    part_of_each = _EACH if sample.per_person == 1 else 1.0
    each = [
        share_interval_of_cells(float(part), float(rows), (1, 1), own, part_of_each * failure / classes)
        for part, rows in zip(good, total, strict=True)
    ]
    lows, highs = np.array(each).T
    low, high = float(np.mean(lows)), float(np.mean(highs))
    if sample.per_person > 1:
        return low, high
    off = noise.most_rows(0.0, 2, _ROWS * failure / (2.0 * classes))
    if np.all(total - off >= 1.0):
        rows, main = (total - off, total + off), (1.0 - _EACH - _ROWS) * failure / 2.0
        low = max(low, _lower_end(good, total, (lows, highs), rows, noise, main))
        high = min(high, 1.0 - _lower_end(total - good, total, (1.0 - highs, 1.0 - lows), rows, noise, main))
    return low, high


def _lower_end(
    good: Array, total: Array, each: tuple[Array, Array], rows: tuple[Array, Array], noise: CellNoise, failure: float
) -> float:
    """The mean of the shares less what the sum of their errors is not beyond, but with probability `failure`."""
    (lows, highs), (least, most) = each, rows
    t = _EXPONENTS / least[:, None]
    inside = np.minimum(t, _MOST)
    p = np.clip(1.0 / inside - 1.0 / np.expm1(inside), lows[:, None], highs[:, None])
    of_rows = least[:, None] * (np.log1p(p * np.expm1(inside)) - p * inside)
    of_noise: Any = noise.cumulants((1.0 - lows[:, None]) * inside) + noise.cumulants(highs[:, None] * inside)
    sums = np.sum(np.where(t < _MOST, of_rows + of_noise, np.inf), axis=0)
    errors = float(np.min((sums + math.log(1.0 / failure)) / _EXPONENTS))
    shares = good / total
    away = np.maximum(highs - shares, shares - lows)
    off = np.maximum(total / least - 1.0, 1.0 - total / most)
    return float(np.mean(shares)) - (errors + float(np.sum(off * away))) / len(good)
