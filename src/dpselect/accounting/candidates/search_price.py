"""The price of a search that stops at its first positive test: what was found, or that nothing was."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dpselect.errors import BoundUnavailableError
from dpselect.privacy import Adjacency, Guarantee, OutputGuarantee

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


def first_positive_price(
    *, epsilon: float, tests: int | None, failure: float, adjacency: Adjacency, theorem: str, terms: Mapping[str, Any]
) -> PriceByOutput:
    """The sparse vector that halts at its first positive, with noise 2S/epsilon and 4S/epsilon, S the sensitivity.

    epsilon for a positive and epsilon/2 for none, tight as the number of tests grows. A single test costs epsilon/4
    both ways: the probability that the difference of the two noises reaches x falls no faster than exp(-x /
    (4S/epsilon)), by the larger of their scales. `failure` is the probability that some statistic moves by more than S.
    Raises `BoundUnavailableError` when it reaches 1. Source: Hartmann et al. 2022, Lemma 8.
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
    return PriceByOutput(output, theorem, terms)
