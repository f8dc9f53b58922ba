"""Intervals for the mean of numbers from 0 to 1, from noisy sums of hat functions.

Nodes 0 = t_0 < ... < t_J = 1 are public. A number x between t_j and t_(j+1) adds the part (t_(j+1) - x)/(t_(j+1) - t_j)
to node j and the rest to node j + 1. So the sums of the nodes tell the number of rows, their mean, and about how they
are spread. Each sum y_j has Gaussian noise of its own, with standard deviation s.

Lemma. Let the rows be independent draws with mean m, and let Q(u) = P(Z > u) for a standard normal Z. Let lambda > 0
and m <= p, or -1 < lambda < 0 and m >= p. For weights w_j <= ln((1 + lambda t_j)/(1 + lambda p)) let tau = s |w|, and
let C(tau) be the supremum of Q(u) exp(tau u) over all u. Then the sum T of w_j y_j is at least ln(C(tau)/a) with
probability at most a.

Proof. A row with number x adds g(x) to T without noise, where g is the linear interpolation of the w_j. The logarithm
is concave, so g(x) <= ln((1 + lambda x)/(1 + lambda p)). Hence E exp(g(x)) <= (1 + lambda m)/(1 + lambda p) <= 1. The
rows are independent, so their sum S has E exp(S) <= 1. T is S + tau Z. For each s
P(tau Z >= L - s) = Q((L - s)/tau) <= C(tau) exp(s - L). So P(T >= L) <= C(tau) exp(-L) E exp(S) <= C(tau) exp(-L). QED

C(tau) is at most exp(tau^2/2), the bound by a Gaussian's moments. It is far below if tau is large. The function ln C is
the supremum of linear functions of tau, so it is convex. Linear interpolation in a table bounds it from above. The
function ln Q is concave, so the supremum for tau is at the u with tau = q(u)/Q(u), where q is the normal density.

If a person has up to q rows, which may depend on each other, T/q takes the place of T and tau/q that of tau. The pairs
below then depend on p and on a public number of rows alone (docs/theory/persons.md, Theorem 4).

Ends of intervals. The values p of a public grid are tested in rising order, as long as each is shown to be below m. The
argument is that of `noisy_shares`: only the first value at or above m matters. Several pairs of lambda and of a cap c
share the failure. Their weights are w_j = ln((1 + lambda min(t_j, c))/(1 + lambda p)), which satisfy the lemma for
lambda > 0. A cap keeps the noise of large nodes out. The pairs depend on p and on a noisy number of rows. The noise of
that number is independent of the y_j. The rows are independent draws, however many there are. So the pairs are fixed in
the lemma, given that number.

Bets 1 + lambda (x - m) against a mean are those of Waudby-Smith and Ramdas (2024), section 4. The factor C and the hat
functions are from here. Source: docs/theory/intervals-of-means.md, Lemma 1.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

__all__ = ["NODES", "SumNoise", "hat_sums", "mean_interval"]

Array = NDArray[np.float64]
NODES: Final = np.concatenate([[0.0], 0.4 ** np.arange(5.0, -1.0, -1.0)])
"""Errors are mostly small parts of their range, so nodes are close together there."""
_GRID: Final = np.concatenate([np.geomspace(2.0**-16, 0.125, 8800), np.arange(1025, 8192) / 8192.0])
_LOWER_SHARE: Final = 0.3
"""The part of the failure for the lower end. The upper end needs more, because large errors may be rare."""
_STEEPEST: Final = 0.7
"""The largest -lambda. A larger one would weigh the noise of the last node too much."""
_NOISE_WEIGHT: Final = 1.5
_SLACK: Final = 1e-6
"""What discrete noise and rounding may add to a logarithm."""


class SumNoise(NamedTuple):
    """The noise of sums, in rows: its standard deviation, and how far rounding moves one sum at most."""

    deviation: float = 0.0
    rounding: float = 0.0


class Bet(NamedTuple):
    """A guess at the second moment about p, as a multiple of p^2, with its part of the failure and its cap."""

    spread: float
    share: float
    cap: float


_LOWER_BETS: Final = (Bet(1.0, 0.6, 0.4), Bet(3.0, 0.3, 1.0), Bet(math.inf, 0.1, 1.0))
_UPPER_BETS: Final = (Bet(1.2, 0.85, 1.0), Bet(8.0, 0.1, 1.0), Bet(math.inf, 0.05, 1.0))


def hat_sums(numbers: Array, steps: int) -> NDArray[np.int64]:
    """The sums of the hat functions, in steps of 1/`steps`, each row's parts adding up to `steps`.

    Numbers from 0 to 1 are rounded up, by less than 1/`steps`.

    >>> hat_sums(np.array([0.0, 1.0, 0.7]), 1000)
    array([1000,    0,    0,    0,    0,  500, 1500])
    """
    place = np.clip(np.searchsorted(NODES, numbers, side="right") - 1, 0, len(NODES) - 2)
    part = (numbers - NODES[place]) / (NODES[place + 1] - NODES[place])
    above = np.clip(np.ceil(part * steps), 0, steps).astype(np.int64)
    found = np.zeros(len(NODES), dtype=np.int64)
    np.add.at(found, place, steps - above)
    np.add.at(found, place + 1, above)
    return found


def mean_interval(
    sums: Array, rows: float, noise: SumNoise, failure: float, per_person: int = 1
) -> tuple[float, float]:
    """An interval for the mean of numbers from 0 to 1 on new rows, which fails with probability at most `failure`.

    Source: docs/theory/intervals-of-means.md, Theorem 1.

    Args:
        sums: of the hat functions, in rows, with Gaussian noise.
        rows: about how many rows there are, from noise that is independent of that of `sums`. Public if a person may
            have several rows.
        noise: the noise of each sum.
        failure: the probability that the interval fails.
        per_person: the most rows of a person.

    >>> sums = hat_sums(np.repeat([0.0, 0.1], 500), 2**16) / 2**16
    >>> low, high = mean_interval(sums, 1000.0, SumNoise(), 0.05)
    >>> round(low, 3), round(high, 3)
    (0.044, 0.056)
    """
    below = _shown(sums, rows, noise, _LOWER_SHARE * failure, per_person, upwards=True)
    above = _shown(sums, rows, noise, (1.0 - _LOWER_SHARE) * failure, per_person, upwards=False)[::-1]
    first, last = _count_shown(below), _count_shown(above)
    return (
        float(_GRID[first - 1]) if first else 0.0,
        float(_GRID[len(_GRID) - last]) if last else 1.0,
    )


def _count_shown(shown: NDArray[np.bool_]) -> int:
    return len(shown) if bool(np.all(shown)) else int(np.argmin(shown))


def _shown(
    sums: Array, rows: float, noise: SumNoise, failure: float, per_person: int, *, upwards: bool
) -> NDArray[np.bool_]:
    """Whether the mean is shown to be above each p of the grid, or if not `upwards` to be below it."""
    shown = np.zeros(len(_GRID), dtype=bool)
    for bet in _LOWER_BETS if upwards else _UPPER_BETS:
        weights, least = weights_of_bet(bet, rows, noise, failure, per_person, upwards=upwards)
        shown |= weights @ sums >= least
    return shown


def weights_of_bet(
    bet: Bet, rows: float, noise: SumNoise, failure: float, per_person: int = 1, *, upwards: bool
) -> tuple[Array, Array]:
    """The weights w_j for each p of the grid, and what T must reach, at this bet's part of the failure.

    Both over `per_person`.
    """
    level = -math.log(failure * bet.share)
    spread = np.minimum(bet.spread * _GRID**2, _GRID * (1.0 - _GRID))
    of_noise = _NOISE_WEIGHT * (noise.deviation * bet.cap) ** 2 / per_person
    size = np.sqrt(2.0 * level * per_person / (max(rows, 1.0) * spread + of_noise))
    if upwards:
        size = np.minimum(size, 0.9 / _GRID)
        slope = size / (1.0 - size * _GRID)
    else:
        slope = -np.minimum(size / (1.0 + size * _GRID), _STEEPEST)
    weights = np.log1p(slope[:, None] * np.minimum(NODES, bet.cap)) - np.log1p(slope * _GRID)[:, None]
    weights = weights / per_person
    tau = noise.deviation * np.sqrt(np.sum(weights**2, axis=1)) * (1.0 + 1e-9)
    moved = noise.rounding * np.sum(np.abs(weights), axis=1)
    return weights, (log_tail_factor(tau) + level) * (1.0 + 1e-9) + moved + _SLACK


def log_tail_factor(tau: Array) -> Array:
    """An upper bound on ln C(tau) of the lemma.

    >>> float(log_tail_factor(np.array([2.0]))[0]) < 0.3 < 2.0**2 / 2.0
    True
    """
    taus, logs = _tail_table()
    return np.where(tau <= taus[-1], np.interp(tau, taus, logs), tau * tau / 2.0)


@lru_cache(maxsize=1)
def _tail_table() -> tuple[Array, Array]:
    u = np.linspace(-8.0, 40.0, 9601)
    log_tail = log_ndtr(-u)
    taus = np.exp(-u * u / 2.0 - 0.5 * math.log(2.0 * math.pi) - log_tail)
    return taus, log_tail + taus * u
