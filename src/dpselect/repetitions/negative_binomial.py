"""The truncated negative binomial laws of K (Papernot and Steinke 2022, Definition 1), geometric and logarithmic too.

With rho = (1 - gamma) / gamma, a = log(1 / gamma) and q(x) = (1 - exp(-eta x)) / eta (x itself at eta = 0):

    phi'(1 - v) = E[K] (1 + rho v)**-(eta + 1),    E[K] = rho / q(a),
    phi(1 - C) - phi(1 - C - m) = (1 + rho C)**-eta q(w) / q(a),    w = log1p(rho m / (1 + rho C)).

Both are smooth through eta = 0 and subtract nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from scipy.special import betaincc, gammaln

from dpselect.errors import ArgumentError, number
from dpselect.numerics.search import root_between
from dpselect.randomness import RandomSource
from dpselect.repetitions.distribution import Family, FloatArray, repetition_law
from dpselect.repetitions.exact_walk import Ratio, Walked, draw_decreasing_tail, power_of_two_fraction
from dpselect.repetitions.gamma_ratio import log_gamma_ratio
from dpselect.repetitions.one_run import OneRun, RenyiForm

__all__ = [
    "Geometric",
    "Logarithmic",
    "TruncatedNegativeBinomial",
    "second_order_cost",
]

_SMALLEST_GAMMA = 1e-100
# Below this, eta x is no longer resolved and makes no difference.
_ETA_IS_ZERO = 1e-200
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


@dataclass(frozen=True, kw_only=True)
class _NegativeBinomial(Walked):
    """The base of the three laws: P(K = k) proportional to (1 - gamma)**k Gamma(k + eta) / k! on k = 1, 2, ..."""

    convex_log_derivative = True
    minimum = 1
    """K is never 0."""

    limit = None
    """K has no limit."""

    eta: float
    gamma: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", number("eta", self.eta, above=-1.0, at_most=1e6))
        object.__setattr__(self, "gamma", number("gamma", self.gamma, at_least=_SMALLEST_GAMMA, below=1.0))

    @property
    def mean(self) -> float:
        """E[K], in closed form for this very gamma."""
        return self._rho / self._q_full

    def negative_binomial_shape(self) -> float:
        """The shape, eta."""
        return self.eta

    @cached_property
    def _a(self) -> float:
        return -math.log(self.gamma)

    @cached_property
    def _rho(self) -> float:
        return (1.0 - self.gamma) / self.gamma

    def _q(self, x: FloatArray) -> FloatArray:
        return -np.expm1(-self.eta * x) / self.eta if abs(self.eta) > _ETA_IS_ZERO else np.asarray(x)

    @cached_property
    def _q_full(self) -> float:
        return _full(self.eta, self._a)

    def _log_pmf(self, k: FloatArray) -> FloatArray:
        inside = np.maximum(k, 1.0)
        shape = 1.0 + self.eta
        # Gamma(k + eta) / (Gamma(1 + eta) Gamma(k + 1)), the larger pair differenced with care
        coefficient = np.where(
            inside >= self.eta,
            log_gamma_ratio(inside + 1.0, self.eta - 1.0) - gammaln(shape),
            log_gamma_ratio(shape, inside - 1.0) - gammaln(inside + 1.0),
        )
        scale = -self.eta * self._a - math.log(self._q_full)
        return np.where(k >= 1.0, inside * math.log1p(-self.gamma) + coefficient + scale, -np.inf)

    def _survival(self, k: FloatArray) -> FloatArray:
        if self.eta >= 0.5:
            untruncated = betaincc(self.eta, k + 1.0, self.gamma)
            return np.asarray(np.where(k < 1.0, 1.0, untruncated / -math.expm1(-self.eta * self._a)))
        flat = k.reshape(-1)
        chunks = [self._tail_integral(flat[i : i + 1024]) for i in range(0, flat.size, 1024)]
        return np.concatenate([*chunks, np.empty(0)]).reshape(k.shape)

    def _tail_integral(self, k: FloatArray) -> FloatArray:
        """P(K > k) for eta < 1/2, where the incomplete beta function fails (eta <= 0) or cancels (eta near 0).

        P(K >= m) = Gamma(m + eta) / (Gamma(1 + eta) Gamma(m)) times the integral over y in [0, a] of
        (1 - gamma e^y)**(m - 1) e^(eta y), over its value at m = 1. Gauss-Legendre in steps of at most 1.5. The
        truncated part is below e**-45 of the whole.
        """
        cut = np.minimum(self._a, np.log1p(45.0 / (np.maximum(k, 1e-3) * self.gamma)))[:, None]
        panels = max(4, math.ceil(float(cut.max()) / 1.5))
        place = ((np.arange(panels)[:, None] + (_NODES + 1.0) / 2.0) / panels).reshape(-1)
        y = cut * place
        logs = k[:, None] * np.log1p(-np.minimum(self.gamma * np.exp(y), 1.0 - 1e-16)) + (y - self._a) * self.eta
        integral = cut[:, 0] * (np.exp(logs) @ np.tile(_WEIGHTS / (2.0 * panels), panels))
        log_front = log_gamma_ratio(k + 1.0, self.eta) - gammaln(1.0 + self.eta)
        return np.minimum(np.exp(log_front) * integral / self._q_full, 1.0)

    def _size_biased_survival(self, m: FloatArray) -> FloatArray:
        # k P(K = k) / E[K] = P(N = k - 1) for N untruncated negative binomial with shape eta + 1
        return np.where(m < 1.0, 1.0, betaincc(self.eta + 1.0, np.maximum(m, 1.0), self.gamma))

    def _pgf(self, s: FloatArray) -> FloatArray:
        excess = self._rho * (1.0 - s)
        finite = excess > -1.0
        log_base = np.log1p(np.where(finite, excess, 0.0))
        missing = (1.0 - self.gamma) * s
        # w = -log(1 - missing) = -log(gamma (1 + excess)), whichever does not cancel
        w = np.where(missing < 0.5, -np.log1p(-np.minimum(missing, 0.5)), self._a - log_base)
        value = np.exp(-self.eta * log_base) * self._q(w) / self._q_full
        return np.where(finite, value, np.inf)

    def _increment(self, complement: FloatArray, mass: FloatArray) -> FloatArray:
        missing = self._rho * complement
        w = np.log1p(self._rho * mass / (1.0 + missing))
        return np.exp(-self.eta * np.log1p(missing)) * self._q(w) / self._q_full

    def _log_derivative(self, v: FloatArray) -> FloatArray:
        return math.log(self.mean) - (self.eta + 1.0) * np.log1p(self._rho * v)

    def _second_derivative(self, v: FloatArray) -> FloatArray:
        log_top = math.log(self.mean) + math.log(self.eta + 1.0) + math.log(self._rho)
        return np.exp(log_top - (self.eta + 2.0) * np.log1p(self._rho * v))

    def _third_derivative(self, v: FloatArray) -> FloatArray:
        log_top = math.log(self.mean) + math.log((self.eta + 1.0) * (self.eta + 2.0)) + 2.0 * math.log(self._rho)
        return np.exp(log_top - (self.eta + 3.0) * np.log1p(self._rho * v))

    def expected_quantile(self) -> float:
        """E[K / (K + 1)] = (1 - r) / (1 - gamma), r = gamma E((1 - eta) a) / E(-eta a) with E(x) = expm1(x) / x."""
        log_r = -self._a + _log_expm1_ratio((1.0 - self.eta) * self._a) - _log_expm1_ratio(-self.eta * self._a)
        return -math.expm1(log_r) / (1.0 - self.gamma)

    def _tilted(self, s: float) -> Self:
        # the family is closed under tilting: 1 - gamma' = (1 - gamma) s
        gamma = self.gamma + (1.0 - self.gamma) * (1.0 - s)
        return replace(self, gamma=min(gamma, math.nextafter(1.0, 0.0)))

    def pure_shift(self, epsilon: float) -> float:
        """(1 + eta) log((exp(epsilon) + gamma) / (1 + gamma exp(epsilon))), at v = 1 / (1 + exp(epsilon))."""
        # without the cancellation of two logarithms at a small epsilon
        return (1.0 + self.eta) * math.log1p(
            -math.expm1(-epsilon) * (1.0 - self.gamma) / (math.exp(-epsilon) + self.gamma)
        )

    def renyi_forms(self, run: OneRun) -> tuple[RenyiForm, ...]:
        """The refined Theorem 2 (Papernot, Steinke 2022), its second order optimised, 1 and infinity included."""

        at_one = (1.0 + self.eta) * math.log(1.0 / self.gamma)
        at_infinity = (1.0 + self.eta) * run.pure_epsilon
        constant = partial(second_order_cost, self)
        best = min(run.smallest(constant, constant(run.orders, run.epsilons), zooms=2)[1], at_one, at_infinity)
        log_mean = math.log(self.mean)
        return (lambda orders, epsilons: epsilons + best + log_mean / (orders - 1.0),)

    def _exact_first(self, context: Any) -> Any:
        gamma, eta = context.mpf(self.gamma), context.mpf(self.eta)
        a = -context.log(gamma)
        return (1 - gamma) / a if eta == 0 else (1 - gamma) * eta / context.expm1(eta * a)

    def _exact_ratio(self) -> Ratio:
        gamma, gamma_bits = power_of_two_fraction(self.gamma)
        keep = (1 << gamma_bits) - gamma
        eta, eta_bits = power_of_two_fraction(self.eta)
        return lambda k: (keep * ((k << eta_bits) + eta), (k + 1) << (gamma_bits + eta_bits))

    def _sample_beyond(self, k: int, source: RandomSource) -> int | None:
        if (1.0 - self.gamma) * (k + self.eta) >= k + 1:
            return None  # still below the mode

        def log_weight(context: Any, j: int) -> Any:
            eta, keep = context.mpf(self.eta), 1 - context.mpf(self.gamma)
            return j * context.log(keep) + context.loggamma(j + eta) - context.loggamma(context.mpf(j) + 1)

        return draw_decreasing_tail(start=k + 1, log_weight=log_weight, random=source)


@repetition_law("negative-binomial")
@dataclass(frozen=True, kw_only=True)
class TruncatedNegativeBinomial(_NegativeBinomial):
    """The truncated negative binomial D(eta, gamma) on 1, 2, ... (Papernot and Steinke 2022, Definition 1).

    P(K = k) = (1 - gamma)**k / (gamma**-eta - 1) times the product over l < k of (l + eta) / (l + 1).

    Args:
        eta: the shape, above -1, at most 1e6. 1 gives the geometric distribution, 0 the logarithmic one. A larger eta
            has lighter tails and costs more privacy.
        gamma: from 1e-100 to below 1. The smaller it is, the larger is the mean.

    Raises:
        ArgumentError: if a parameter is out of range; the message names it.
        TypeError: if a parameter is not a number; the message names it.

    >>> law = TruncatedNegativeBinomial(eta=0.5, gamma=0.0625)
    >>> round(law.mean, 12), round(law.expected_quantile(), 12), law.quantile(0.999)
    (10.0, 0.8, 88)
    """

    @classmethod
    def with_mean(cls, *, eta: float, mean: float) -> Self:
        """The law with this shape and E[K] = mean > 1. gamma is rounded down, so `.mean` is at least `mean`.

        Raises `ArgumentError` if the mean would need a gamma below 1e-100 (a heavy tail: eta near -1).
        """
        return cls(eta=eta, gamma=_gamma_for(eta, mean))

    @classmethod
    def families(cls) -> Sequence[Family]:
        """By mean, at a few shapes. With eta below 0 the winner's expected quantile saturates."""

        def family(eta: float) -> Family:
            return Family(
                f"negative binomial, eta {eta:g}",
                lambda mean: cls.with_mean(eta=eta, mean=mean),
                saturates=eta < 0.0,
                representative=eta in (0.0, 1.0),
            )

        return [family(eta) for eta in (-0.5, 0.0, 0.25, 0.5, 1.0, 2.0, 4.0)]


@repetition_law("geometric")
@dataclass(frozen=True, kw_only=True)
class Geometric(_NegativeBinomial):
    """The geometric distribution on 1, 2, ...: P(K = k) = gamma (1 - gamma)**(k - 1). That of Liu and Talwar (2019).

    Args:
        gamma: the probability that a run is the last, from 1e-100 to below 1. The mean is 1 / gamma.

    Attributes:
        eta: always 1.

    Raises:
        ArgumentError: if `gamma` is out of range.
        TypeError: if `gamma` is not a number.

    >>> Geometric.with_mean(mean=10).quantile(0.99)
    44
    """

    eta: float = field(default=1.0, init=False, repr=False)

    def first_as_best(self) -> Logarithmic:
        """The logarithmic law of this gamma: phi' of it is (1 - phi(1 - v)) / v of this one, up to a factor."""
        return Logarithmic(gamma=self.gamma)

    @classmethod
    def with_mean(cls, *, mean: float) -> Self:
        """The law with E[K] = mean > 1. gamma is rounded down, so `.mean` is at least `mean`."""
        return cls(gamma=_gamma_for(1.0, mean))


@repetition_law("logarithmic")
@dataclass(frozen=True, kw_only=True)
class Logarithmic(_NegativeBinomial):
    """The logarithmic distribution on 1, 2, ...: P(K = k) = (1 - gamma)**k / (k log(1 / gamma)).

    Args:
        gamma: from 1e-100 to below 1. The smaller it is, the larger is the mean.

    Attributes:
        eta: always 0.

    Raises:
        ArgumentError: if `gamma` is out of range.
        TypeError: if `gamma` is not a number.

    >>> round(Logarithmic(gamma=0.1).mean, 12)
    3.908650337129
    """

    eta: float = field(default=0.0, init=False, repr=False)

    @classmethod
    def with_mean(cls, *, mean: float) -> Self:
        """The law with E[K] = mean > 1. gamma is rounded down, so `.mean` is at least `mean`."""
        return cls(gamma=_gamma_for(0.0, mean))


def second_order_cost(law: _NegativeBinomial, hat_orders: FloatArray, hat_epsilons: FloatArray) -> FloatArray:
    """The part of the refined Theorem 2 that does not depend on the order, unchecked. Minimise it once a curve."""
    excess = hat_orders - 1.0
    tail = np.log((1.0 - law.gamma) / law.gamma + np.exp(-excess * hat_epsilons))
    return np.asarray((1.0 + law.eta) * (excess * hat_epsilons + tail) / hat_orders)


def _full(eta: float, a: float) -> float:
    """(1 - gamma**eta) / eta at a = log(1 / gamma), continuous at eta = 0."""
    return -math.expm1(-eta * a) / eta if abs(eta) > _ETA_IS_ZERO else a


def _gamma_for(eta: float, mean: float) -> float:
    """The largest gamma, up to rounding, whose computed mean is at least `mean`: the mean decreases in gamma."""
    mean = number("mean", mean, above=1.0)

    def reaches(gamma: float) -> bool:
        # the same operations as `mean`, so that it holds for the law's own mean
        return (1.0 - gamma) / gamma / _full(eta, -math.log(gamma)) >= mean

    low, high = TruncatedNegativeBinomial(eta=eta, gamma=_SMALLEST_GAMMA).gamma, math.nextafter(1.0, 0.0)
    if not reaches(low):
        raise ArgumentError(f"mean must be smaller for eta={eta!r}, got {mean!r}: it would need a gamma below 1e-100")
    return high if reaches(high) else root_between(reaches, safe=low, unsafe=high, start=min(1.0 / mean, 0.5))


def _log_expm1_ratio(x: float) -> float:
    """log((exp(x) - 1) / x), 0 at x = 0, with full relative accuracy for every x."""
    if abs(x) > 50.0:
        return max(x, 0.0) - math.log(abs(x)) + math.log1p(-math.exp(-abs(x)))
    y = 0.5 * x
    if abs(y) > 0.5:
        return y + math.log(math.sinh(y) / y)
    # log(sinh(y) / y) = sum of 2**(2 n) B(2 n) y**(2 n) / (2 n (2 n)!)
    t = y * y
    terms = (1 / 6, -1 / 180, 1 / 2835, -1 / 37800, 1 / 467775, -691 / 3831077250, 2 / 127702575, -3617 / 2605132530000)
    series = 0.0
    for term in reversed(terms):
        series = series * t + term
    return y + t * series
