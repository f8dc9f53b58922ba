"""The choosing mechanism: a good candidate among any number of them when one row can raise the counts of only a few."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from dpselect.errors import AdjacencyError
from dpselect.mechanisms.exponential import draw_exponential
from dpselect.mechanisms.mechanism import Mechanism, real, whole
from dpselect.mechanisms.scores import Scores, declared_scores, read_scores
from dpselect.numerics.logs import ROUND_UP
from dpselect.privacy import Adjacency, Guarantee, approximate_dp
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.randomness import RandomSource
from dpselect.randomness.lazy import coin, tail_enclosure

__all__ = ["ChoosingMechanism"]


@dataclass(frozen=True, kw_only=True)
class ChoosingMechanism(Mechanism):
    """A choice for integer scores of k-bounded growth. The number of candidates does not enter.

    Scores have k-bounded growth (Beimel, Nissim, Stemmer 2013, Definition 3.6) when they are 0 on the empty data set
    and one row more lowers none. It may raise the scores of at most k candidates, by one each.

    Step 1: stop with None unless (largest score) + Laplace(2/epsilon) reaches `threshold`. Step 2: an index with score
    at least one, with probability proportional to exp(epsilon score / 2).

    Claim: (epsilon, delta)-private with threshold t = 1 + log(k/delta)/h, h = epsilon/2. Source: Beimel, Nissim,
    Stemmer 2013, Lemma 3.7 (with a larger threshold). Proof. Let S2 be S1 and a row, m the largest scores, Z the
    normalisers, G the candidates with score at least one. Step 1 costs h. In step 2 Z1 <= Z2 <= exp(h) Z1 + k exp(h),
    since at most k candidates join G, with score one. On G1, P2 <= exp(h) P1. Outside it P2 has mass at most k exp(h
    (1 - m2)). The other way P1 <= exp(h) (1 + x) P2 with x = k exp(-h m1), hence P1(E) <= exp(h) P2(E) + x. Step 1
    passes with probability exp(-h (t - m))/2 for m <= t. So in either direction the excess is at most k exp(h (1 -
    t)) = delta. For a small m the pass is unlikely, and for a large one the mass is small. When G1 is empty, S1 gives
    None, and S2 anything else with probability exp(-h (t - 1))/2 <= delta.

    Accuracy: if the largest score exceeds `threshold` amply, the loss is about 2 log(k/delta)/epsilon at most,
    regardless of the number of candidates. Only candidates with score one or more count, and there are at most k times
    the rows of them.

    Args:
        growth: k, an integer of at least 1: how many scores one row raises at most. You must ensure this.
        epsilon: the price, in [2**-40, 2**10].
        delta: the price, in [1e-300, 0.25].
        adjacency: add_or_remove_one, the default and the only one that is proved.

    Raises:
        ArgumentError: if a parameter is out of range.
        AdjacencyError: for an adjacency other than add_or_remove_one.

    >>> mechanism = ChoosingMechanism(growth=1, epsilon=1.0, delta=1e-6)
    >>> round(mechanism.threshold, 1), mechanism.guarantee.epsilon(delta=1e-6)
    (28.6, 1.0)
    >>> mechanism([0, 300, 2]).value
    1
    """

    growth: int = field(metadata=whole(at_least=1))
    epsilon: float = field(metadata=real(at_least=2.0**-40, at_most=2.0**10, rounding="down"))
    delta: float = field(metadata=real(at_least=1e-300, at_most=0.25, rounding="down"))
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.adjacency is not Adjacency.ADD_OR_REMOVE_ONE:
            raise AdjacencyError("the choosing mechanism is proved for add_or_remove_one")

    @property
    def threshold(self) -> float:
        """The bar that the noisy largest score must reach, rounded up."""
        return (1.0 + (math.log(self.growth) - math.log(self.delta)) * 2.0 / self.epsilon) * ROUND_UP

    @property
    def guarantee(self) -> Guarantee:
        """(epsilon, delta)."""
        terms = {"mechanism": "choosing", "epsilon": self.epsilon, "delta": self.delta, "growth": self.growth}
        claimed = approximate_dp(epsilon=self.epsilon, delta=self.delta, adjacency=self.adjacency)
        theorem = "choosing mechanism (Beimel, Nissim, Stemmer 2013, Lemma 3.7)"
        return replace(claimed, theorem=theorem, terms=terms, lower_profile=None)

    def prepared(self, scores: ArrayLike) -> Callable[[RandomSource], int | None]:
        """The choice among candidates with these scores: integers (others are rounded down), held in memory."""
        read = declared_scores(scores)
        return lambda random: self._chosen(read(), random)

    def _chosen(self, scores: Scores, random: RandomSource) -> int | None:
        half = epsilon_used(self.epsilon) / 2
        counts = np.concatenate([np.floor(chunk) for chunk in scores.chunks()])
        needed = half * (Fraction(self.threshold) - Fraction(max(float(counts.max()), 0.0)))
        if not coin(lambda bits: tail_enclosure(needed, needed, bits), random):
            return None
        counts[counts < 1.0] = -np.inf
        if not np.any(counts > -np.inf):
            return None
        return draw_exponential(read_scores(counts), half, random)
