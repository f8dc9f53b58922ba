"""The privacy-loss distribution of one Poisson-sampled Gaussian mechanism, pessimistic, in closed form.

P = (1 - q) N(0,1) + q N(s,1) against P' = N(0,1), s = 1/noise_multiplier: the dominating pair of adding or removing one
row. Source: Zhu, Dong, Wang 2022, Theorem 11. With G(t) = H_{exp(t)}(N(s,1) || N(0,1)) and e >= 0,

    H_{exp(e)}(P || P') = q G(log((exp(e) - 1 + q) / q)),
    H_{exp(e)}(P' || P) = g G(log(q exp(e) / g)), g = 1 - exp(e)(1 - q), and 0 where g <= 0.

The error of `GaussianProfile` before it rounds up was measured against 60-digit arithmetic: relative, below 1.2e-15 (1
+ near far). Three times that is allowed for.
"""

from __future__ import annotations

import math

import numpy as np

from dpselect.numerics.search import Array
from dpselect.privacy.losses.below import Positive, dots_below
from dpselect.privacy.losses.composition import Losses
from dpselect.privacy.losses.connect_the_dots import MOST_POINTS, Curve, connect_the_dots
from dpselect.privacy.profile import GaussianProfile

__all__ = ["fixed_sample_losses", "sampled_gaussian_losses", "sampled_gaussian_mesh", "sampled_gaussian_positive"]


_REACH = 14.3
"""Standard deviations kept on either side: 1e-46 of the mass is beyond."""

_ERROR = 4e-15
_UNIT = 2.0**-53


def sampled_gaussian_losses(*, noise_multiplier: float, sampling_rate: float, width: float) -> tuple[Losses, Losses]:
    """The losses of P against P' (removing a row) and of P' against P (adding one), on a mesh of this width.

    0 < sampling_rate <= 1. Pessimistic: each dominates its direction.
    """
    remove = _removing(1.0 / noise_multiplier, sampling_rate, width)
    add = _adding(1.0 / noise_multiplier, sampling_rate, width)
    return connect_the_dots(width, remove, add), connect_the_dots(width, add, remove)


def fixed_sample_losses(*, mu: float, sampling_rate: float, width: float) -> Losses:
    """The losses of one Gaussian mechanism on a sample of fixed size, under replacing one row, in either direction.

    H_{exp(e)} is at most q G(log((exp(e) - 1 + q) / q)) for e >= 0, with a Gaussian that moves by mu. Source: Balle,
    Barthe, Gaboardi 2018, Theorem 9.
    """
    curve = _removing(mu, sampling_rate, width)
    return connect_the_dots(width, curve, curve)


def sampled_gaussian_positive(noise_multiplier: float, sampling_rate: float, width: float) -> tuple[Positive, Positive]:
    """The positive losses of both directions on a mesh of this width, from below."""
    curves = (form(1.0 / noise_multiplier, sampling_rate, 0.5 * width) for form in (_removing, _adding))
    remove, add = (dots_below(width, _band(values, error)) for values, error in curves)
    return remove, add


def _band(values: Array, error: Array) -> tuple[Array, Array]:
    """Both sides of a curve that was rounded up by 1e-12 and, at most, its error, at an odd number of points."""
    values, error = (np.append(x, x[-1:]) if x.size % 2 == 0 else x for x in (values, error))
    return np.maximum(values * (1.0 - 2e-12) - 2.0 * error, 0.0), values + error


def sampled_gaussian_mesh(*, noise_multiplier: float, sampling_rate: float) -> float:
    """A mesh width at which connecting the dots costs about 1e-5 of epsilon, however often the mechanism runs.

    The dots add up to width^2 / 6 to the variance of a loss, which is about that of the likelihood ratio. A mesh of its
    64th part adds 4e-5 of it. Wider where the losses reach too far for a million points.
    """
    s = 1.0 / noise_multiplier
    deviation = sampling_rate * math.sqrt(math.expm1(min(s * s, 2.0)))
    return max(deviation / 64.0, s * (s + _REACH) / 1e6)


def _removing(s: float, q: float, width: float) -> Curve:
    top = float(np.logaddexp(_log_rest(q), math.log(q) + s * (s + _REACH) - 0.5 * s * s))
    e = np.arange(min(math.ceil(max(top, width) / width), MOST_POINTS) + 1) * width
    small = np.exp(-e)
    t = np.maximum(e - math.log(q) + np.log(-np.expm1(-e) + q * small), 0.0)
    values = q * GaussianProfile(s).at(t)
    return values, values * _relative_error(s, t)


def _adding(s: float, q: float, width: float) -> Curve:
    most = -_log_rest(q)
    top = min(most, -float(np.logaddexp(_log_rest(q), math.log(q) - s * _REACH - 0.5 * s * s)))
    # one point past the largest loss, where the curve is zero
    e = np.arange(min(math.floor(max(top, 0.0) / width) + 1, MOST_POINTS) + 1) * width
    g = np.maximum(-np.expm1(e - most), 0.0)
    inside = g > 0.0
    with np.errstate(divide="ignore"):
        t = np.where(inside, np.maximum(math.log(q) + e - np.log(np.where(inside, g, 1.0)), 0.0), 0.0)
    values = GaussianProfile(s).at(t)
    # g is known to about a unit of `most`, which moves t as well
    moved = 8.0 * _UNIT * (most if most < math.inf else 0.0) * (1.0 + np.maximum(t / s - 0.5 * s, 0.0) / s)
    return g * values, np.where(inside, values * (g * _relative_error(s, t) + moved), 0.0)


def _log_rest(q: float) -> float:
    return math.log1p(-q) if q < 1.0 else -math.inf


def _relative_error(s: float, t: Array) -> Array:
    return _ERROR * (1.0 + np.maximum(t / s - 0.5 * s, 1.0) * (t / s + 0.5 * s))
