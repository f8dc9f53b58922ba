"""The price of a search whose proposals adapt to earlier runs, within a ratio of a fixed law.

Run j draws its candidate from a law that may depend on everything before it, but whose density with respect to the
prior (one fixed, data-independent law of candidates) is in [c, C]. So given the past, the law of run j's candidate
and output has a density in [c, C] with respect to one draw from the prior, P on one data set and P' on the neighbour.
With v = P(better than y), w(x) = phi'(1 - x), m = E[K], and no matter what the past does,

    A(dy) <= C w(a(v)) P(dy),  a(v) = max(c v, 1 - C (1 - v)): the least that a run can put above y,
    A(dy) >= c w(b(v)) P(dy),  b(v) = min(C v, 1 - c (1 - v)): the most.

Every bound here follows from these two lines, applied to A and to A', and from P(better) against P'(better)
(docs/theory/adaptive-proposals.md). Independence of the runs is used nowhere. Framework: Wang, Gao, Zhang, Shen, Su,
"DP-HyPO: an adaptive private hyperparameter optimization framework", NeurIPS 2023 (arXiv 2306.05734).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import SupportsFloat

import numpy as np

from dpselect.accounting.best_of_k.best_of import best_of, smallest_of
from dpselect.accounting.best_of_k.bounds.optimal import optimal
from dpselect.accounting.best_of_k.bounds.profile import LayeredProfile, Part, layered_bound, shifted_bound
from dpselect.accounting.best_of_k.bounds.pure import pure_best_of
from dpselect.accounting.best_of_k.bounds.renyi import outside_failure, renyi_curve_of
from dpselect.accounting.best_of_k.cells import partition
from dpselect.accounting.best_of_k.feasible_region import Curve, PureTradeOff, TradeOff, trade_offs
from dpselect.accounting.best_of_k.theorems import (
    best_records,
    composition_bound,
    lemma_20,
    supremum,
    with_empty_outcome,
)
from dpselect.caching import CopiedByFields
from dpselect.cures import write_one_of
from dpselect.errors import BoundUnavailableError, number
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array
from dpselect.privacy import Guarantee, approximate_dp, compose
from dpselect.privacy.promises import promise
from dpselect.privacy.renyi import SEARCH_ORDERS
from dpselect.repetitions import Repetitions
from dpselect.repetitions.by_name import expect_law

__all__ = ["AdaptiveProfile", "AdaptiveRenyi", "Ratio", "TiltedTradeOff", "adaptive_best_of", "adaptive_pure"]


_PURE_CELLS = 8000
_MOST_COMPOSED = 32
"""Runs whose composition is worth pricing: with more of them it is never the smallest bound but for tiny epsilons."""


@dataclass(frozen=True)
class Ratio:
    """The box that the density of every proposal with respect to the prior is kept in: 0 < lower <= 1 <= upper."""

    lower: float
    upper: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "lower", number("lower_ratio", self.lower, above=0.0, at_most=1.0))
        object.__setattr__(self, "upper", number("upper_ratio", self.upper, at_least=1.0))

    @property
    def log_spread(self) -> float:
        """log(upper / lower), rounded up."""
        return (math.log(self.upper) - math.log(self.lower)) * ROUND_UP

    def least(self, v: Array) -> Array:
        """a(v): the least that a proposal can make of an event of probability v under the prior."""
        return np.maximum(self.lower * v, 1.0 - self.upper * (1.0 - v))

    def most(self, v: Array) -> Array:
        """b(v): the most."""
        return np.minimum(self.upper * v, 1.0 - self.lower * (1.0 - v))

    def before(self, least: Array) -> Array:
        """The inverse of `least`, rounded up: the largest v with a(v) <= least."""
        return np.minimum(np.minimum(least / self.lower, 1.0 - (1.0 - least) / self.upper) * ROUND_UP, 1.0)


@dataclass(frozen=True)
class TiltedTradeOff:
    """s -> b(T(a^-1(s))): the most that a run puts on an event under the neighbour where some run puts s, T the base's.

    Non-decreasing, and concave where T is: a^-1 and b are both concave and increasing.
    """

    trade_off: TradeOff
    ratio: Ratio

    def __call__(self, v: Array) -> Array:
        return np.minimum(self.ratio.most(self.trade_off(self.ratio.before(v))) * ROUND_UP, 1.0)


def adaptive_pure(*, law: Repetitions, epsilon: float, ratio: Ratio) -> float:
    """The pure epsilon of an adaptive best of K runs of (epsilon, 0)-private candidates, rounded up.

    At most `pure_best_of` at epsilon + log(C/c), which is below the (2 + eta)(epsilon + log(C/c)) of Wang et al. for
    truncated negative binomial K and every gamma. It is also at most the composition of the law's limit.
    """
    if math.isinf(epsilon):
        return epsilon
    wide = epsilon + ratio.log_spread
    tilted = TiltedTradeOff(PureTradeOff(epsilon), ratio)
    largest_shift = float(np.max(partition(law, tilted, points=_PURE_CELLS).shifts))
    found = [pure_best_of(law=law, epsilon=wide), (wide + largest_shift) * ROUND_UP]
    if law.limit is not None:
        found.append(law.limit * epsilon * ROUND_UP)
    return min(found)


@dataclass(frozen=True)
class AdaptiveRenyi(CopiedByFields):
    """The Renyi curve of an adaptive best of K runs of a base without failure mass, both directions, rounded up.

    At order a: the base's curve, log(C/c) + log(C) / (a - 1), and the supremum of Lemma 7 (Papernot, Steinke 2022) over
    the tilted trade-off. Or the composition of all runs, each costing log(C) / (a - 1) more than the base because its
    candidate comes from a proposal. Then the smallest over all larger orders.
    """

    base: Guarantee
    law: Repetitions
    ratio: Ratio
    theorem: str = "Renyi bounds for adaptive proposals (after Wang et al. 2023 and Papernot, Steinke 2022, Lemma 7)"

    @cached_property
    def _records(self) -> Array:
        forward, backward = trade_offs(self.base, loss_distributions=False)
        tilted = TiltedTradeOff(forward, self.ratio)
        return best_records(self.law, (tilted, tilted if backward is forward else TiltedTradeOff(backward, self.ratio)))

    def _at(self, orders: Array) -> Array:
        curve = renyi_curve_of(self.base)
        assert curve is not None, "adaptive_best_of builds this curve only for a base that has one"
        excess = orders - 1.0
        run = np.asarray(curve(orders)) + math.log(self.ratio.upper) / excess
        empty = self.law.zero_probability
        selected = run + self.ratio.log_spread + supremum(self._records, excess) / excess
        selected = with_empty_outcome(selected, orders, empty) * ROUND_UP + 1e-14 / excess
        composed = composition_bound(law=self.law, order=orders, epsilon=run * ROUND_UP)
        return np.maximum(np.fmin(selected, composed), 0.0)

    @cached_property
    def _later(self) -> Array:
        return np.minimum.accumulate(self._at(SEARCH_ORDERS)[::-1])[::-1]

    def __call__(self, orders: Array) -> Array:
        flat = np.asarray(orders, dtype=np.float64).reshape(-1)
        later = np.append(self._later, np.inf)[SEARCH_ORDERS.searchsorted(flat)]
        return np.minimum(self._at(flat), later).reshape(np.shape(orders))


@dataclass(frozen=True)
class AdaptiveProfile(LayeredProfile):
    """The hockey-stick bounds of `LayeredProfile` with both envelopes in place of the one law of the best run.

    H_e(A || A') <= C times the integral of w(s) [P - exp(e - log(C/c) - c(s)) P']_+, s = a(v), c the shift over the
    tilted trade-off. A layer {s <= x} has at most P-mass a^-1(x).
    """

    ratio: Ratio = Ratio(1.0, 1.0)
    theorem: str = "hockey-stick bounds for adaptive proposals"

    def _part(self, trade_off: TradeOff, curve: Curve) -> Part:
        return super()._part(TiltedTradeOff(trade_off, self.ratio), curve)

    def _plain(self, part: Part, flat: Array) -> Array:
        cells, curve = part
        most, asked = self.ratio.upper, flat - self.ratio.log_spread
        shifted = shifted_bound(cells, curve, most * self.law.mean, asked) * ROUND_UP
        masses = most * self.ratio.before(cells.edges[1:]) * ROUND_UP
        slices = (asked[i : i + 32] for i in range(0, flat.size, 32))
        layered = np.concatenate([layered_bound(cells, curve, some, masses, most) for some in slices])
        return np.minimum(np.minimum(shifted, layered), 1.0)


def _pure(base: Guarantee, law: Repetitions, ratio: Ratio) -> Guarantee | None:
    tilted, failure = lemma_20(law=law, failure=base.failure)
    epsilon = adaptive_pure(law=tilted, epsilon=base.pure_epsilon, ratio=ratio)
    if not math.isfinite(epsilon) or failure >= 1.0:
        return None
    priced = approximate_dp(epsilon=epsilon, delta=failure, adjacency=base.adjacency)
    return replace(priced, theorem="pure privacy with adaptive proposals (after Wang et al. 2023)", lower_profile=None)


def _renyi(base: Guarantee, law: Repetitions, ratio: Ratio) -> Guarantee | None:
    tilted, failure = lemma_20(law=law, failure=base.failure)
    inside = outside_failure(base)
    if renyi_curve_of(inside) is None or failure >= 1.0:
        return None
    curve = AdaptiveRenyi(inside, tilted, ratio)
    return Guarantee(adjacency=base.adjacency, theorem=curve.theorem, failure=failure, renyi_curve=curve)


def _profile(base: Guarantee, law: Repetitions, ratio: Ratio) -> Guarantee | None:
    if base.profile is None and base.renyi_curve is None and not math.isfinite(base.pure_epsilon):
        return None
    profile = AdaptiveProfile(base, law, ratio=ratio)
    return Guarantee(adjacency=base.adjacency, theorem=profile.theorem, profile=profile)


def _composition(base: Guarantee, law: Repetitions, ratio: Ratio) -> Guarantee | None:  # noqa: ARG001
    """All runs published, as many as the law allows: the best is a function of them."""
    if law.limit is None or law.limit > _MOST_COMPOSED:
        return None
    profile = compose(*[base] * law.limit).best_profile()
    return Guarantee(adjacency=base.adjacency, theorem="adaptive composition of all runs", profile=profile)


BOUNDS = {"profile": _profile, "renyi": _renyi, "pure": _pure, "composition": _composition}
"""The bounds by name; a builder returns None where its bound does not exist."""


def adaptive_best_of(
    base: Guarantee,
    repetitions: Repetitions,
    *,
    lower_ratio: SupportsFloat,
    upper_ratio: SupportsFloat,
    bound: str | None = None,
) -> Guarantee:
    """Return the guarantee of the best of K runs whose candidates are proposed in the light of earlier runs.

    It is never above the statements of Wang et al. 2023 (arXiv 2306.05734) and holds for every distribution of K.
    Theirs are for truncated negative binomial K: pure epsilon (2 + eta)(epsilon + log(C/c)), and a Renyi curve larger
    by (a/(a-1) + 1 + eta) log(C/c). With both ratios 1 there is nothing to adapt, and the default is the cost
    that `best_of` states.

    You must ensure all of these:

    - K is drawn from `repetitions` independently of the data and of the runs. No run is added or left out in the light
      of others.
    - Every proposal's density is within the two ratios, with respect to one fixed, data-independent prior.
      `dpselect.tuning.AdaptiveProposal` keeps it there.
    - A run's own randomness is fresh.
    - Proposals look at outputs that `base` covers, scores of earlier runs included, and at nothing else of the data.
    - Only the best output is released.

    Args:
        base: the guarantee of one run, its score included. It holds for every candidate, or is the `mixture` of
            candidates with the prior's weights. An average in any other form, such as a profile computed for a
            candidate drawn from the prior, cannot be told from the first kind. Composing it would be wrong. Give such
            an average with `bound="profile"`, which takes averages under the prior only.
        repetitions: the distribution of K, public.
        lower_ratio: the smallest density of a proposal relative to the prior, in (0, 1].
        upper_ratio: the largest such density, at least 1.
        bound: "profile" (hockey-stick bounds), "renyi", "pure" or "composition" (of all runs, if at most 32 are
            possible). None, the default, takes the smallest of all that exist.

    Returns:
        A guarantee with the base's adjacency, rounded up.

    Raises:
        BoundUnavailableError: if the named bound is unknown or does not exist for this base and these repetitions.
        ArgumentError: if the ratios do not fit 0 < lower <= 1 <= upper, or `base` is not a `Guarantee`
            (`PromiseError`).
        TypeError: if `repetitions` is not a distribution or a ratio is not a number.

    Source: docs/theory/adaptive-proposals.md, Lemma 2.

    >>> from dpselect.privacy import pure_dp
    >>> from dpselect.repetitions import Harmonic
    >>> law = Harmonic(limit=50)
    >>> total = adaptive_best_of(pure_dp(epsilon=1.0), law, lower_ratio=0.8, upper_ratio=1.6)
    >>> round(best_of(pure_dp(epsilon=1.0), law).epsilon(delta=0.0), 3), round(total.epsilon(delta=0.0), 3)
    (2.0, 3.365)
    """
    base = promise("base", base)
    expect_law(repetitions)
    ratio = Ratio(lower_ratio, upper_ratio)  # type: ignore[arg-type]
    if bound is not None and bound not in BOUNDS:
        said = f"bound must be one of {', '.join(map(repr, BOUNDS))}, got {bound!r}"
        raise BoundUnavailableError(said + write_one_of("bound", bound, BOUNDS))
    terms = {
        "mechanism": "adaptive-best-of",
        "base": dict(base.terms),
        "repetitions": repetitions.describe(),
        "lower_ratio": ratio.lower,
        "upper_ratio": ratio.upper,
        "bound": bound or "smallest",
    }
    if ratio.lower == ratio.upper and bound is None:
        return replace(best_of(base, repetitions), terms=terms)
    names = list(BOUNDS) if bound is None else [bound]
    found = [
        g
        for name in names
        if not (_is_average(base.terms) and _needs_every_candidate(name, base))
        and (g := BOUNDS[name](base, repetitions, ratio)) is not None
    ]
    if not found:
        raise BoundUnavailableError(f"no bound ({', '.join(names)}) exists for this base")
    plain = optimal(base, repetitions)  # proposals may follow the prior, so the plain search is one of those covered
    return replace(
        smallest_of(*found),
        theorem="the smallest of the bounds for adaptive proposals",
        terms=terms,
        lower_profile=None if plain is None else plain.lower_profile,
    )


def _needs_every_candidate(name: str, base: Guarantee) -> bool:
    """Whether a bound takes the base to hold for every candidate, where an average over the prior may be exceeded.

    Proposals move averages: a run's profile, and the mass of a failure that some candidates have and others have not.
    The profile bound takes its averages under the prior, and so does the Renyi bound.
    """
    return name == "composition" or (name != "profile" and base.failure > 0.0)


def _is_average(terms: object) -> bool:
    """Whether a mixture of candidates, whose curves are averages, is anywhere in a description."""
    if isinstance(terms, Mapping):
        return terms.get("mechanism") == "mixture" or any(map(_is_average, terms.values()))
    return isinstance(terms, (list, tuple)) and any(map(_is_average, terms))
