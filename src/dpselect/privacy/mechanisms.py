"""Guarantees of the usual base mechanisms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import SupportsFloat

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import AdjacencyError, integer, number
from dpselect.numerics import ROUND_UP
from dpselect.privacy.adjacency import Adjacency, parse_adjacency
from dpselect.privacy.below import (
    AttainedGaussian,
    AttainedLaplace,
    AttainedPair,
    AttainedSampledGaussian,
    parts_below,
)
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.losses.pld import LossProfile, event_loss, suitable_interval
from dpselect.privacy.losses.sampled_gaussian import sampled_gaussian_mesh
from dpselect.privacy.profile import GaussianProfile, LaplaceProfile, RandomizedResponseProfile, TabulatedProfile
from dpselect.privacy.renyi import LinearRenyi, TabulatedRenyi
from dpselect.privacy.sampled_gaussian import SampledGaussianRenyi

__all__ = ["approximate_dp", "dp_sgd", "from_profile", "gaussian", "laplace", "pure_dp", "renyi_dp", "zcdp"]

Array = NDArray[np.float64]
_DEFAULT = Adjacency.ADD_OR_REMOVE_ONE
_SAMPLED_LOSSES = "privacy-loss distribution of the sampled Gaussian (Zhu, Dong, Wang 2022, Theorem 11)"


@dataclass(frozen=True)
class RandomizedResponseRenyi:
    """The Renyi divergence of randomised response, the largest that an epsilon-private pair can have.

    Every epsilon-private pair is a post-processing of randomised response (Kairouz, Oh, Viswanath 2015), so this is
    the exact worst case; it lies below epsilon^2 order / 2 (Bun, Steinke 2016, Proposition 3.3).
    """

    epsilon: float
    theorem: str = "randomised response dominates (Kairouz, Oh, Viswanath 2015)"

    def __call__(self, orders: Array) -> Array:
        """log(p^a q^(1-a) + q^a p^(1-a)) / (a - 1) with p = 1/(1+exp(-epsilon)), q = 1 - p."""
        a = np.asarray(orders, dtype=np.float64)
        e = self.epsilon
        # the moment is cosh((a - 1/2) e) / cosh(e / 2) in logs; log cosh x = x + log1p(exp(-2x)) - log 2
        difference = (a - 1.0) * e + np.log1p(np.exp(-(2.0 * a - 1.0) * e)) - np.log1p(np.exp(-e))
        # near order 1 or epsilon 0 the sum cancels: the product form 2 sinh sinh / cosh keeps its digits
        x, y = (a - 1.0) * e / 2.0, a * e / 2.0
        with np.errstate(over="ignore", invalid="ignore"):
            product = np.log1p(2.0 * np.sinh(np.minimum(x, 20.0)) * np.sinh(np.minimum(y, 20.0)) / np.cosh(e / 2.0))
        moment = np.where(y < 10.0, product, difference)
        return np.asarray(np.minimum(moment / (a - 1.0) * ROUND_UP, e))


@dataclass(frozen=True)
class LaplaceRenyi:
    """The Laplace mechanism of scale 1/epsilon at sensitivity 1 (Mironov 2017, Proposition 6)."""

    epsilon: float
    theorem: str = "Laplace mechanism (Mironov 2017, Proposition 6)"

    def __call__(self, orders: Array) -> Array:
        """log(a/(2a-1) exp((a-1)e) + (a-1)/(2a-1) exp(-a e)) / (a - 1); the first-order terms of both cancel."""
        a = np.asarray(orders, dtype=np.float64)
        e = self.epsilon
        with np.errstate(over="ignore"):
            near = np.log1p(
                (a * _expm1_tail(np.minimum((a - 1.0) * e, 30.0)) + (a - 1.0) * _expm1_tail(-a * e)) / (2.0 * a - 1.0)
            )
            far = (a - 1.0) * e + np.log(a / (2.0 * a - 1.0)) + np.log1p((a - 1.0) / a * np.exp(-(2.0 * a - 1.0) * e))
        moment = np.where((a - 1.0) * e < 30.0, near, far)
        return np.asarray(np.minimum(moment / (a - 1.0) * ROUND_UP, e))


def _expm1_tail(x: Array) -> Array:
    """exp(x) - 1 - x, which is non-negative; by its series near zero, where the difference cancels."""
    small = np.clip(x, -0.5, 0.5)
    series = np.zeros_like(small)
    for k in range(16, 1, -1):
        series = small / k * (1.0 + series)
    return np.where(np.abs(x) < 0.5, small * series, np.expm1(x) - x)


def pure_dp(*, epsilon: SupportsFloat, adjacency: Adjacency | str = _DEFAULT) -> Guarantee:
    """(epsilon, 0)-differential privacy.

    >>> pure_dp(epsilon=1).epsilon(delta=0)
    1.0
    """
    epsilon = number("epsilon", epsilon, at_least=0.0, rounding="up")
    profile = RandomizedResponseProfile(epsilon, theorem="pure differential privacy")
    return Guarantee(
        adjacency=parse_adjacency(adjacency),
        theorem="pure differential privacy",
        terms={"mechanism": "pure", "epsilon": epsilon},
        pure_epsilon=epsilon,
        renyi_curve=RandomizedResponseRenyi(epsilon),
        profile=profile,
        lower_profile=AttainedPair(profile.pair_source()),
    )


def approximate_dp(*, epsilon: SupportsFloat, delta: SupportsFloat, adjacency: Adjacency | str = _DEFAULT) -> Guarantee:
    """(epsilon, delta)-differential privacy: epsilon outside a failure mass delta.

    One decomposition serves both directions (Kairouz, Oh, Viswanath 2015, Theorem 3.3), so the Renyi curve of
    randomised response holds outside that mass.

    >>> g = approximate_dp(epsilon=1.0, delta=1e-6)
    >>> g.epsilon(delta=1e-6), g.epsilon(delta=1e-7)
    (1.0, inf)
    """
    epsilon = number("epsilon", epsilon, at_least=0.0, rounding="up")
    delta = number("delta", delta, at_least=0.0, below=1.0, rounding="up")
    profile = RandomizedResponseProfile(epsilon, delta, theorem="approximate differential privacy")
    return Guarantee(
        adjacency=parse_adjacency(adjacency),
        theorem="approximate differential privacy",
        terms={"mechanism": "approximate", "epsilon": epsilon, "delta": delta},
        failure=delta,
        pure_epsilon=epsilon,
        renyi_curve=RandomizedResponseRenyi(epsilon),
        profile=profile,
        lower_profile=AttainedPair(profile.pair_source()),
    )


def zcdp(*, rho: SupportsFloat, adjacency: Adjacency | str = _DEFAULT) -> Guarantee:
    """rho-zero-concentrated differential privacy (Bun, Steinke 2016). Does not imply a Gaussian trade-off curve.

    The Gaussian mechanism of mu = sqrt(2 rho) satisfies it: nothing valid for all of them is below that one.
    """
    rho = number("rho", rho, at_least=0.0, rounding="up")
    return Guarantee(
        adjacency=parse_adjacency(adjacency),
        theorem="zero-concentrated differential privacy (Bun, Steinke 2016)",
        terms={"mechanism": "zcdp", "rho": rho},
        renyi_curve=LinearRenyi(rho),
        lower_profile=AttainedGaussian.of(math.sqrt(2.0 * rho)),
    )


def renyi_dp(*, orders: Sequence[float], epsilons: Sequence[float], adjacency: Adjacency | str = _DEFAULT) -> Guarantee:
    """Renyi differential privacy at some orders (Mironov 2017); chords between them, nothing past the last.

    `orders` above 1 and strictly increasing, `epsilons` of the same length; the bounds hold in both directions. The
    Gaussian mechanism whose line through the origin stays below all of them satisfies it.
    """
    orders = tuple(number("orders", o, above=1.0, rounding="down") for o in orders)
    epsilons = tuple(number("epsilons", e, at_least=0.0, finite=False, rounding="up") for e in epsilons)
    curve = TabulatedRenyi(orders, epsilons)
    slope = min(e / o for e, o in zip(epsilons, orders, strict=True))
    return Guarantee(
        adjacency=parse_adjacency(adjacency),
        theorem="Renyi differential privacy (Mironov 2017)",
        terms={"mechanism": "renyi", "orders": list(orders), "epsilons": list(epsilons)},
        renyi_curve=curve,
        lower_profile=AttainedGaussian.of(math.sqrt(2.0 * slope)) if math.isfinite(slope) else None,
    )


def from_profile(
    epsilons: Sequence[float], deltas: Sequence[float], *, adjacency: Adjacency | str = _DEFAULT
) -> Guarantee:
    """A privacy profile: (epsilons[i], deltas[i])-privacy for every i, in both directions.

    `epsilons` >= 0 and strictly increasing; chords in exp(epsilon) between the points, which lie above the true
    (convex) profile; past the last point its delta holds. The pair whose curve is made of these chords satisfies it.
    """
    epsilons = tuple(number("epsilons", e, at_least=0.0, rounding="up") for e in epsilons)
    deltas = tuple(number("deltas", d, at_least=0.0, at_most=1.0, rounding="up") for d in deltas)
    pure = min((e for e, d in zip(epsilons, deltas, strict=False) if d == 0.0), default=float("inf"))
    profile = TabulatedProfile(epsilons, deltas)
    return Guarantee(
        adjacency=parse_adjacency(adjacency),
        theorem="privacy profile",
        terms={"mechanism": "profile", "epsilons": list(epsilons), "deltas": list(deltas)},
        pure_epsilon=pure,
        profile=profile,
        lower_profile=AttainedPair(profile.pair_source()),
    )


def laplace(*, scale: SupportsFloat, adjacency: Adjacency | str = _DEFAULT) -> Guarantee:
    """Laplace noise of this scale on a number of sensitivity 1, exact.

    >>> laplace(scale=2).epsilon(delta=0)
    0.5
    """
    scale = number("scale", scale, above=0.0, rounding="down")
    epsilon = 1.0 / scale
    if math.isfinite(epsilon) and Fraction(epsilon) * Fraction(scale) < 1:
        epsilon = math.nextafter(epsilon, math.inf)
    profile = LaplaceProfile(epsilon)
    return Guarantee(
        adjacency=parse_adjacency(adjacency),
        theorem="Laplace mechanism",
        terms={"mechanism": "laplace", "scale": scale},
        pure_epsilon=epsilon,
        renyi_curve=LaplaceRenyi(epsilon),
        profile=profile,
        lower_profile=AttainedLaplace.of(epsilon),
    )


def gaussian(*, noise_multiplier: SupportsFloat, adjacency: Adjacency | str = _DEFAULT) -> Guarantee:
    """Gaussian noise of this standard deviation on a vector of L2 sensitivity 1, exact.

    >>> round(gaussian(noise_multiplier=4).epsilon(delta=1e-6), 4)
    1.0607
    """
    noise_multiplier = number("noise_multiplier", noise_multiplier, above=0.0, rounding="down")
    mu = 1.0 / noise_multiplier
    profile = GaussianProfile(mu)
    return Guarantee(
        adjacency=parse_adjacency(adjacency),
        theorem="Gaussian mechanism (Balle, Wang 2018, Theorem 8)",
        terms={"mechanism": "gaussian", "noise_multiplier": noise_multiplier},
        renyi_curve=LinearRenyi(math.nextafter(0.5 * mu * mu * (1 + 1e-15), math.inf)),  # rounded up, and never zero
        profile=profile,
        lower_profile=AttainedGaussian.of(mu),
        gaussian_mu=mu,
    )


def dp_sgd(
    *,
    noise_multiplier: SupportsFloat,
    sampling_rate: SupportsFloat,
    steps: int,
    adjacency: Adjacency | str = _DEFAULT,
) -> Guarantee:
    """`steps` rounds of the Gaussian mechanism on Poisson samples: DP-SGD, under adding or removing one row.

    The Renyi curve is computed by quadrature at every real order (Mironov, Talwar, Zhang 2019), the privacy-loss
    distribution in closed form for a step and composed by transforms, rounded up. Raises `AdjacencyError` under
    replace-one, where it does not apply.
    """
    noise_multiplier = number("noise_multiplier", noise_multiplier, at_least=1e-150, rounding="down")
    sampling_rate = number("sampling_rate", sampling_rate, above=0.0, at_most=1.0, rounding="up")
    steps = integer("steps", steps, at_least=1, at_most=1 << 1000)
    adjacency = parse_adjacency(adjacency)
    if adjacency is not Adjacency.ADD_OR_REMOVE_ONE:
        raise AdjacencyError("dp_sgd is proved for add_or_remove_one; compose your own event for replace_one")
    import dp_accounting  # takes a second to import

    # where several Gaussians lie in one Poisson sample dp-accounting 0.6.0 counts one if their noise is an int: no ints
    event = dp_accounting.SelfComposedDpEvent(
        dp_accounting.PoissonSampledDpEvent(sampling_rate, dp_accounting.GaussianDpEvent(float(noise_multiplier))),
        steps,
    )
    terms = {
        "mechanism": "dp-sgd",
        "noise_multiplier": noise_multiplier,
        "sampling_rate": sampling_rate,
        "steps": steps,
    }
    if sampling_rate == 1.0:  # every row is in every step: Gaussian noise, which composes exactly
        return replace(gaussian(noise_multiplier=noise_multiplier / math.sqrt(steps), adjacency=adjacency), terms=terms)
    curve = SampledGaussianRenyi(noise_multiplier, sampling_rate, steps)
    loss = event_loss(event, adjacency)
    finest = sampled_gaussian_mesh(noise_multiplier=noise_multiplier, sampling_rate=sampling_rate)
    interval = suitable_interval(curve, finest=finest)
    return Guarantee(
        adjacency=adjacency,
        theorem="DP-SGD (Abadi et al. 2016)",
        terms=terms,
        renyi_curve=curve,
        profile=LossProfile(loss, interval, _SAMPLED_LOSSES) if interval is not None else None,
        lower_profile=parts_below([(AttainedSampledGaussian(noise_multiplier, sampling_rate), steps)], interval),
        loss=loss if interval is not None else None,
    )
