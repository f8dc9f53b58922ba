"""Mechanisms that run on a random sample of the rows: their profiles from the profile of the mechanism alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from scipy.special import gammaln

from dpselect.caching import CopiedByFields
from dpselect.errors import AdjacencyError, ArgumentError, integer, number
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array
from dpselect.privacy.adjacency import Adjacency
from dpselect.privacy.exports.event_of import MORE, event_of
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.mechanisms.pure import RandomizedResponseRenyi
from dpselect.privacy.profile import PrivacyProfile, SymmetricProfile, TwoSidedProfile, both_directions

__all__ = [
    "FixedSampleProfile",
    "PoissonSampleProfile",
    "RepeatedSampleProfile",
    "fixed_sample",
    "poisson_sample",
    "repeated_sample",
]

_NEGLIGIBLE: Final = 1e-30
_MOST_COPIES: Final = 400
_DOWN: Final = 1.0 - 1e-14


def _inside(epsilons: Array, rate: float) -> Array:
    """log(1 + (exp(e) - 1) / rate), rounded down: the epsilon of the mechanism alone, at e >= 0."""
    e = np.asarray(epsilons, dtype=np.float64)
    near = np.log1p(np.expm1(np.minimum(e, 1.0)) / rate)
    far = e + np.log1p((rate - 1.0) * np.exp(-np.maximum(e, 1.0))) - math.log(rate)
    return np.asarray(np.where(e < 1.0, near, far) * _DOWN)


@dataclass(frozen=True)
class PoissonSampleProfile(TwoSidedProfile):
    """The profile of a mechanism on a Poisson sample, under adding or removing a row.

    If (P, Q) dominates the mechanism, ((1-q) Q + q P, Q) dominates it on the sample, and the other way round.
    Source: docs/theory/samples.md, Theorem 1; Zhu, Dong, Wang 2022, Theorem 11.
    """

    inner: PrivacyProfile
    rate: float
    theorem: str = "mechanism on a Poisson sample (Zhu, Dong, Wang 2022, Theorem 11)"

    def at(self, direction: int, epsilons: Array) -> Array:
        """The divergence at epsilon >= 0."""
        e, q = np.asarray(epsilons, dtype=np.float64), self.rate
        if direction == 0:
            return np.asarray(np.minimum(q * self.inner.remove(_inside(e, q)) * ROUND_UP, 1.0))
        # H_a(Q || (1-q) Q + q P) = w H_(a q / w)(Q || P) with w = 1 - (1-q) a, and 0 if w is not positive
        weight = q - (1.0 - q) * np.expm1(np.minimum(e, 700.0)) + 4e-16
        usable = np.maximum(weight, 1e-300)
        inside = np.maximum(e + math.log(q) - np.log(np.maximum(usable, q * 1e-15)), 0.0) * _DOWN - 1e-15
        found = usable * self.inner.add(np.maximum(inside, 0.0)) * ROUND_UP
        return np.asarray(np.where(weight > 0.0, np.minimum(found, 1.0), 0.0))


@event_of.register(PoissonSampleProfile)
def _event(part: PoissonSampleProfile, adjacency: Adjacency) -> Any:
    from dp_accounting.dp_event import PoissonSampledDpEvent

    inner = event_of(part.inner, adjacency)
    return None if inner is None else PoissonSampledDpEvent(min(part.rate * MORE, 1.0), inner)


@dataclass(frozen=True)
class FixedSampleProfile(SymmetricProfile):
    """The profile of a mechanism on a sample of fixed size without replacement, under replacing a row.

    Source: Balle, Barthe, Gaboardi 2018, Theorem 9.
    """

    inner: PrivacyProfile
    rate: float
    theorem: str = "mechanism on a sample without replacement (Balle, Barthe, Gaboardi 2018, Theorem 9)"

    def at(self, epsilons: Array) -> Array:
        """The divergence at epsilon >= 0."""
        return np.asarray(self.rate * both_directions(self.inner, _inside(epsilons, self.rate)) * ROUND_UP)


@dataclass(frozen=True)
class RepeatedSampleProfile(CopiedByFields, SymmetricProfile):
    """The profile of a mechanism on `draws` rows drawn with replacement from `size` ones, under replacing a row.

    A row that is drawn k times is a group of k rows. Source: Balle, Barthe, Gaboardi 2018, Theorem 10.
    """

    mechanism: Guarantee
    size: int
    draws: int
    theorem: str = "mechanism on a sample with replacement (Balle, Barthe, Gaboardi 2018, Theorem 10)"

    @property
    def rate(self) -> float:
        """The probability that a row is drawn at all, rounded up."""
        return repeated_rate(self.size, self.draws)

    @cached_property
    def _copies(self) -> tuple[tuple[tuple[float, PrivacyProfile], ...], float]:
        """The profile of each number of copies with its probability, rounded up, and the probability of more."""
        kept, k = [], 0
        while k < self.draws and k < _MOST_COPIES:
            k += 1
            log_mass = _log_binomial(self.draws, k, self.size)
            kept.append((math.exp(log_mass) * (1.0 + 1e-9), self.mechanism.of_rows(k).best_profile()))
            if k > self.draws / self.size and log_mass < math.log(_NEGLIGIBLE):
                # beyond the mean the masses fall by at least half past twice the mean
                break
        return tuple(kept), _tail_above(self.draws, k, self.size)

    def at(self, epsilons: Array) -> Array:
        """The divergence at epsilon >= 0."""
        inside = _inside(epsilons, self.rate)
        kept, beyond = self._copies
        found = sum((mass * both_directions(profile, inside) for mass, profile in kept), np.zeros(np.shape(inside)))
        return np.asarray(np.minimum((found + beyond) * ROUND_UP, 1.0))


def repeated_rate(size: int, draws: int) -> float:
    """1 - (1 - 1/size)^draws, rounded up."""
    return 1.0 if size == 1 else min(1.0, -math.expm1(draws * math.log1p(-1.0 / size)) * ROUND_UP)


def _log_binomial(draws: int, k: int, size: int) -> float:
    """log of the probability that a row is drawn k times."""
    if size == 1:
        return 0.0 if k == draws else -math.inf
    ways = gammaln(draws + 1) - gammaln(k + 1) - gammaln(draws - k + 1)
    return float(ways - k * math.log(size) + (draws - k) * math.log1p(-1.0 / size))


def _tail_above(draws: int, k: int, size: int) -> float:
    """A bound on the probability that a row is drawn more than k times: a geometric series from the next mass on."""
    if k >= draws:
        return 0.0
    ratio = (draws - k - 1) / (k + 2) / max(size - 1, 1)
    return min(1.0, math.exp(_log_binomial(draws, k + 1, size)) / (1.0 - ratio) * (1.0 + 1e-9)) if ratio < 1.0 else 1.0


def _sampled(inner: Guarantee, profile: PrivacyProfile, rate: float) -> Guarantee:
    """The guarantee of a mechanism on a sample with this profile. A row is in the sample with this probability."""
    grown = math.expm1(inner.pure_epsilon) if inner.pure_epsilon < 700.0 else math.inf
    epsilon = math.log1p(rate * grown) * ROUND_UP if grown < math.inf else math.inf
    return Guarantee(
        adjacency=inner.adjacency,
        theorem=profile.theorem,
        terms={"mechanism": "sampled", "sampling_rate": rate, "base": dict(inner.terms)},
        failure=min(rate * inner.failure * ROUND_UP, 1.0) if epsilon < math.inf else 0.0,
        pure_epsilon=epsilon,
        renyi_curve=RandomizedResponseRenyi(epsilon) if epsilon < math.inf else None,
        profile=profile,
        interactive=inner.interactive,
    )


def poisson_sample(inner: Guarantee, sampling_rate: float) -> Guarantee:
    """The guarantee of a mechanism on a Poisson sample, under adding or removing a row.

    Raises `AdjacencyError` for replace-one, where a row that is not sampled may differ too.

    >>> from dpselect.privacy import pure_dp
    >>> print(round(poisson_sample(pure_dp(epsilon=1.0), 0.1).epsilon(delta=0), 4))
    0.1586
    """
    rate = number("sampling_rate", sampling_rate, above=0.0, at_most=1.0, rounding="up")
    if inner.adjacency is not Adjacency.ADD_OR_REMOVE_ONE:
        raise AdjacencyError("a Poisson sample of any mechanism is proved for add_or_remove_one only")
    return inner if rate == 1.0 else _sampled(inner, PoissonSampleProfile(inner.best_profile(), rate), rate)


def _under_replacement(inner: Guarantee, size: int, draws: int, *, at_most: int | None) -> tuple[int, int]:
    if inner.adjacency is not Adjacency.REPLACE_ONE:
        raise AdjacencyError("a sample of fixed size is proved for replace_one only: the number of rows is public")
    size = integer("source_dataset_size", size, at_least=1)
    return size, integer("sample_size", draws, at_least=1, at_most=at_most)


def fixed_sample(inner: Guarantee, *, size: int, draws: int) -> Guarantee:
    """The guarantee of a mechanism on `draws` of `size` rows without replacement, under replacing a row.

    >>> from dpselect.privacy import pure_dp
    >>> inner = pure_dp(epsilon=1.0, adjacency="replace_one")
    >>> print(round(fixed_sample(inner, size=100, draws=10).epsilon(delta=0), 4))
    0.1586
    """
    size, draws = _under_replacement(inner, size, draws, at_most=integer("source_dataset_size", size, at_least=1))
    if draws == size:
        return inner
    rate = min(draws / size * ROUND_UP, 1.0)
    return _sampled(inner, FixedSampleProfile(inner.best_profile(), rate), rate)


def repeated_sample(inner: Guarantee, *, size: int, draws: int) -> Guarantee:
    """The guarantee of a mechanism on `draws` rows drawn with replacement from `size` ones, under replacing a row.

    It states no epsilon without a delta, since all draws may be one row.

    >>> from dpselect.privacy import gaussian
    >>> inner = gaussian(noise_multiplier=1.0, adjacency="replace_one")
    >>> print(round(repeated_sample(inner, size=1000, draws=10).epsilon(delta=1e-5), 3))
    0.259
    """
    size, draws = _under_replacement(inner, size, draws, at_most=10_000_000)
    profile = RepeatedSampleProfile(inner, size, draws)
    if draws / size > _MOST_COPIES / 4:
        raise ArgumentError("sample_size must be at most 100 times source_dataset_size")
    return Guarantee(
        adjacency=inner.adjacency,
        theorem=profile.theorem,
        terms={"mechanism": "sampled", "size": size, "draws": draws, "base": dict(inner.terms)},
        profile=profile,
        interactive=inner.interactive,
    )
