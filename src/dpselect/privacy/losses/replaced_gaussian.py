"""The privacy-loss distribution of one Poisson-sampled Gaussian mechanism under replacing one row, pessimistic.

P = (1 - q) N(0,1) + q N(s,1) against P' = (1 - q) N(0,1) + q N(-s,1), s = 1/noise_multiplier, dominates both
directions. Source: docs/theory/samples.md, Theorem 4. The loss ascends in the output. It equals e at c = log(y) / s
with

    log y = e/2 + asinh((1-q)/q sinh(e/2) exp(s^2/2)).

With G(t) = H_{exp(t)}(N(s,1) || N(0,1)) this gives, for e >= 0, a sum of positive terms:

    H_{exp(e)}(P || P') = q G(s c - s^2/2) + q exp(e - s c - s^2/2) G(s c + s^2/2).

c is wrong by 8 units relative to it at most. The slope of the sum's logarithm in c is at most c + s + 3. The error of
`GaussianProfile` is the one that `losses.sampled_gaussian` allows for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpselect.numerics.search import Array
from dpselect.privacy.losses.below import Positive, dots_below
from dpselect.privacy.losses.composition import BothLosses, compose_distributions
from dpselect.privacy.losses.connect_the_dots import MOST_POINTS, Curve, connect_the_dots
from dpselect.privacy.losses.pld import LossSource
from dpselect.privacy.profile import GaussianProfile

__all__ = ["replaced_gaussian_curve", "replaced_gaussian_loss", "replaced_gaussian_positive"]

_REACH = 14.3
"""Standard deviations kept on either side: 1e-46 of the mass is beyond."""

_ERROR = 8e-15
_LARGE = 200.0


@dataclass(frozen=True)
class replaced_gaussian_loss(LossSource):
    """The privacy-loss distribution of `steps` Gaussians on Poisson samples, under replacing one row."""

    noise_multiplier: float
    sampling_rate: float
    steps: int = 1

    def __call__(self, interval: float) -> BothLosses:
        curve = _curve(1.0 / self.noise_multiplier, self.sampling_rate, interval)
        one = connect_the_dots(interval, curve, curve)
        return compose_distributions([(BothLosses(one, one), self.steps)])

    @property
    def parts(self) -> int:
        """How many distributions are added up."""
        return self.steps

    @property
    def transforms(self) -> int:
        """Both directions have the same distribution."""
        return 1


def replaced_gaussian_positive(noise_multiplier: float, sampling_rate: float, width: float) -> Positive:
    """The positive losses of either direction on a mesh of this width, from below."""
    values, error = _curve(1.0 / noise_multiplier, sampling_rate, 0.5 * width)
    if values.size % 2 == 0:
        values, error = np.append(values, values[-1:]), np.append(error, error[-1:])
    # `GaussianProfile` rounds up by 1e-12
    return dots_below(width, (np.maximum(values * (1.0 - 2e-12) - 2.0 * error, 0.0), values + error))


def replaced_gaussian_curve(noise_multiplier: float, sampling_rate: float, epsilons: Array) -> Curve:
    """The hockey-stick divergence of either direction at epsilons >= 0, and a bound on its absolute error.

    The rate is above 0 and below 1.
    """
    s, q = 1.0 / noise_multiplier, sampling_rate
    e = np.asarray(epsilons, dtype=np.float64)
    half = 0.5 * e
    with np.errstate(divide="ignore", over="ignore"):
        # log(sinh(e/2)), and asinh of what is too large to write as its logarithm
        log_sinh = half + np.log(-np.expm1(-e)) - math.log(2.0)
        log_z = log_sinh + (math.log1p(-q) - math.log(q) + 0.5 * s * s)
        near = np.arcsinh((1.0 - q) / q * np.sinh(np.minimum(half, 300.0)) * math.exp(min(0.5 * s * s, 300.0)))
    log_y = half + np.where(log_z > _LARGE, log_z + math.log(2.0), near)
    gaussian, shift = GaussianProfile(s), 0.5 * s * s
    first = gaussian.remove(log_y - shift)
    second = np.exp(np.minimum(e - log_y - shift, 700.0)) * gaussian.remove(log_y + shift)
    values = q * np.minimum(first + second, 1.0)
    far = log_y / s + s
    return values, values * _ERROR * (1.0 + far * (far + 3.0))


def _curve(s: float, q: float, width: float) -> Curve:
    """The divergence at 0, width, ... up to the largest loss that is kept."""
    far = s + _REACH
    rest = math.log1p(-q)
    top = np.logaddexp(rest, math.log(q) + s * far - 0.5 * s * s)
    top -= np.logaddexp(rest, math.log(q) - s * far - 0.5 * s * s)
    points = min(math.ceil(max(float(top), width) / width), MOST_POINTS) + 1
    return replaced_gaussian_curve(1.0 / s, q, np.asarray(np.arange(points) * width, dtype=np.float64))
