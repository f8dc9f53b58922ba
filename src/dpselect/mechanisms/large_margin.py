"""The large margin mechanism: its error depends on how many candidates are near the best, not on how many there are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from dpselect.errors import ArgumentError
from dpselect.mechanisms.exponential import exponential_mechanism
from dpselect.mechanisms.mechanism import Mechanism, real, whole
from dpselect.mechanisms.scores import declared_scores
from dpselect.mechanisms.sparse_vector import SparseVector
from dpselect.numerics.search import Array
from dpselect.privacy import Adjacency, Guarantee, approximate_dp
from dpselect.randomness import RandomSource

__all__ = ["LargeMarginMechanism"]

_ROUNDING = 1.0 + 2.0**-20


@dataclass(frozen=True, kw_only=True)
class LargeMarginMechanism(Mechanism):
    """Find privately how many candidates stand close to the best, then choose among that many.

    After Chaudhuri, Hsu, Song (2014), with our constants and proof. Let the scores be sorted downwards, d the
    sensitivity, h = epsilon/2. (1) A sparse vector with epsilon h asks about r = 1, 2, 4, ... below `candidates`. It
    asks whether the gap q(1) - q(r+1), of sensitivity 2 d, is above `threshold(r)`. The first yes gives r, none gives
    all candidates. (2) An exponential mechanism with epsilon h among the r best (ties by index).

    Claim: (epsilon, delta)-private. Proof. Fix r and call it good on D when the gap is at least margin(r) = 2 d (1 +
    log(2 r/delta)/h). For good r, let S, S' be the r best on D and on a neighbour D'. (a) Each i in S and not in S' has
    q_i <= q(1) - margin + 2 d, as some j of S' outside S beats it on D'. The r of them have mass at most r exp(-h
    (margin - 2 d)/(2 d)) = delta/2 in step 2 on D. (b) On D the weights of S sum to at least those of S'. So the
    normaliser on D' is at most exp(h/2) that on D, and the rest of S costs exp(h). A bad r is chosen with probability
    delta/2 at most: `threshold(r)` exceeds margin(r) by what the two Laplace noises exceed together with probability
    delta/2, over all r asked. Step 1 costs exp(h).

    Args:
        candidates: how many there are, an integer in [1, 2**40]. Public.
        sensitivity: how far a score moves between neighbours at most, in [1e-90, 1e90]. You must ensure this.
        epsilon: the price, in [2**-10, 2**10].
        delta: the price, in [1e-300, 0.5].
        adjacency: which data sets are neighbours, as `Adjacency` or its text. The default is add_or_remove_one.

    Raises:
        ArgumentError: for a parameter out of range. A call raises it if the scores are not as many as `candidates`.
        AdjacencyError: if `adjacency` is neither of the two.

    >>> choose = LargeMarginMechanism(candidates=501, sensitivity=1.0, epsilon=1.0, delta=1e-6)
    >>> choose([0.0] * 500 + [400.0]).value
    500
    """

    candidates: int = field(metadata=whole(at_least=1, at_most=1 << 40))
    sensitivity: float = field(metadata=real(at_least=1e-90, at_most=1e90, rounding="up"))
    epsilon: float = field(metadata=real(at_least=2.0**-10, at_most=2.0**10, rounding="down"))
    delta: float = field(metadata=real(at_least=1e-300, at_most=0.5, rounding="down"))
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE

    @property
    def ranks(self) -> list[int]:
        """The r that step 1 asks about, in order."""
        return [1 << j for j in range((self.candidates - 1).bit_length())]

    def margin(self, rank: int) -> float:
        """The gap that makes choosing among the `rank` best private, rounded up."""
        half = self.epsilon / 2.0
        return 2.0 * self.sensitivity * (1.0 + math.log(2.0 * rank / self.delta) / half) * _ROUNDING

    def threshold(self, rank: int) -> float:
        """margin(rank) plus a bound that the noise of step 1 exceeds with probability delta/2 at most, rounded up."""
        half, width = self.epsilon / 2.0, 2.0 * self.sensitivity * _ROUNDING
        asked = max(len(self.ranks), 1)
        # threshold noise of scale width/(half/2), query noise twice that: tails delta/4 and delta/(4 asked)
        slack = (
            math.log(2.0 / self.delta) * 2.0 * width / half + math.log(2.0 * asked / self.delta) * 4.0 * width / half
        )
        return self.margin(rank) + slack * _ROUNDING

    @property
    def guarantee(self) -> Guarantee:
        """(epsilon, delta)."""
        terms = {
            "mechanism": "large-margin",
            "sensitivity": self.sensitivity,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "candidates": self.candidates,
        }
        claimed = approximate_dp(epsilon=self.epsilon, delta=self.delta, adjacency=self.adjacency)
        theorem = "large margin mechanism (Chaudhuri, Hsu, Song 2014)"
        return replace(claimed, theorem=theorem, terms=terms, lower_profile=None)

    def prepared(self, scores: ArrayLike) -> Callable[[RandomSource], int]:
        """The choice among candidates with these scores, which are held in memory and sorted."""
        read = declared_scores(scores, self._check_count)
        return lambda random: self._chosen(read().vector(), random)

    def _check_count(self, count: int) -> None:
        if count != self.candidates:
            raise ArgumentError(f"scores must be as many as candidates, got {count}")

    def _chosen(self, values: Array, random: RandomSource) -> int:
        order = np.argsort(-values, kind="stable")
        rank = self._rank(values[order], random)
        near = order[:rank]
        chosen = exponential_mechanism(
            values[near], sensitivity=self.sensitivity, epsilon=self.epsilon / 2.0, random=random
        )
        return int(near[chosen])

    def _rank(self, ordered: Array, random: RandomSource) -> int:
        # a gap clipped far above every threshold keeps its rounding below 2**-30 of the sensitivity
        ceiling = 2.0 * self.threshold(self.candidates)
        search = SparseVector(
            epsilon_threshold=self.epsilon / 4.0,
            epsilon_queries=self.epsilon / 4.0,
            max_positives=1,
            sensitivity=2.0 * self.sensitivity * _ROUNDING,
            random=random,
        )
        for rank in self.ranks:
            with np.errstate(invalid="ignore", over="ignore"):
                gap = ordered[0] - ordered[rank]
            if search.above(min(float(np.nan_to_num(gap, nan=0.0, posinf=ceiling)), ceiling), self.threshold(rank)):
                return rank
        return self.candidates
