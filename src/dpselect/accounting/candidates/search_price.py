"""The price of a search that stops at its first positive test: what was found, or that nothing was."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpselect.errors import BoundUnavailableError
from dpselect.mechanisms.sparse_vector_prices import sparse_vector_guarantee
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array
from dpselect.privacy import Adjacency, Guarantee, OutputGuarantee
from dpselect.privacy.profile import PrivacyProfile, SymmetricProfile, epsilon_at

__all__ = ["PriceByOutput", "first_positive_price", "something_found"]


def something_found(value: Any) -> bool:
    """The cell of a release: whether its value is not None."""
    return value is not None


@dataclass(frozen=True)
class PriceByOutput:
    """The guarantee of a search by its output, and where it comes from."""

    by_output: OutputGuarantee
    theorem: str
    terms: Mapping[str, Any]

    @property
    def guarantee(self) -> Guarantee:
        """The worst case, when something is found."""
        return replace(self.by_output.worst(), theorem=self.theorem, terms=dict(self.terms))


@dataclass(frozen=True)
class _OutsideFailure(SymmetricProfile):
    """failure + (1 - failure) times a profile: that of two laws which share a part of this mass, and differ there."""

    inside: PrivacyProfile
    failure: float

    @property
    def theorem(self) -> str:
        """That of the profile."""
        return self.inside.theorem

    def at(self, epsilons: Array) -> Array:
        """The divergence at epsilon >= 0, rounded up."""
        return np.minimum((self.failure + (1.0 - self.failure) * self.inside.remove(epsilons)) * ROUND_UP, 1.0)

    def epsilon(self, delta: float) -> float:
        """The epsilon of the profile at what is left of delta, rounded up."""
        left = (delta - self.failure) / (1.0 - self.failure) * (2.0 - ROUND_UP)
        return epsilon_at(self.inside, left) if left > 0.0 else float("inf")


def first_positive_price(
    *, epsilon: float, tests: int | None, failure: float, adjacency: Adjacency, theorem: str, terms: Mapping[str, Any]
) -> PriceByOutput:
    """The sparse vector that halts at its first positive, with noise 2S/epsilon and 4S/epsilon, S the sensitivity.

    epsilon for a positive and epsilon/2 for none, tight as the number of tests grows. A single test costs epsilon/4
    both ways: the probability that the difference of the two noises reaches x falls no faster than exp(-x /
    (4S/epsilon)), by the larger of their scales. `failure` is the probability that some statistic moves by more than S.
    Outside of it the search is a game of coins, which says what a delta saves. Raises `BoundUnavailableError` when it
    reaches 1. Source: Hartmann et al. 2022, Lemma 8; docs/theory/sparse-vector.md, Theorem 6.
    """
    if not failure < 1.0:
        raise BoundUnavailableError(
            "no bound exists for this search: its failure probability reaches 1; give more smoothing, a larger slack, "
            "a smaller max_queries or fewer thresholds, or a base with a smaller failure mass"
        )
    prices: dict[Hashable, float] = {True: epsilon, False: 0.5 * epsilon}
    if tests == 1:
        prices = dict.fromkeys(prices, 0.25 * epsilon)
        theorem = f"{theorem}; a single test, exact"
    output = OutputGuarantee(cell=something_found, epsilons=prices, delta=failure, adjacency=adjacency)
    if tests == 1:  # both answers cost that much: nothing is left for a delta to save
        return PriceByOutput(output, theorem, terms)
    played = sparse_vector_guarantee(
        epsilon_threshold=0.5 * epsilon,
        epsilon_queries=0.5 * epsilon,
        max_positives=1,
        monotonic=False,
        max_queries=tests,
        adjacency=adjacency,
    ).worst()
    profile = played.profile
    if failure > 0.0 and profile is not None:
        profile = _OutsideFailure(profile, failure)
    ordinary = replace(
        played,
        theorem=theorem,
        terms=dict(terms),  # those of the game say nothing of the failure
        pure_epsilon=output.worst_epsilon,
        failure=output.delta,
        profile=profile,
        lower_profile=None,  # the strategy that attains it needs statistics that move by S wherever they are
    )
    return PriceByOutput(replace(output, ordinary=ordinary), theorem, terms)
