"""Putting guarantees together. Only `compose` composes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from dpselect.caching import CopiedByFields, counted
from dpselect.errors import ArgumentError
from dpselect.numerics.logs import ROUND_UP, sum_up
from dpselect.numerics.search import Array
from dpselect.privacy.adjacency import common_adjacency
from dpselect.privacy.below import composed_below
from dpselect.privacy.group import times_up
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.losses.bounded_range import RangeGameProfile, games, lower_game
from dpselect.privacy.losses.composition import BothLosses, compose_distributions
from dpselect.privacy.losses.pld import (
    WIDEST,
    LossProfile,
    LossSource,
    composed_interval,
    discretisable,
    farthest,
    profile_loss,
)
from dpselect.privacy.lower_ends import composition_below, largest_below
from dpselect.privacy.mechanisms.gaussian import gaussian
from dpselect.privacy.profile import PrivacyProfile, RandomizedResponseProfile, epsilon_at
from dpselect.privacy.promises import promises
from dpselect.privacy.renyi import MaximumRenyi, sum_of_curves
from dpselect.steps import each_step

__all__ = ["compose", "compose_counted", "together", "worst_of"]


_NOTHING: Final = RandomizedResponseProfile(0.0, 1.0)
"""The profile that is 1 everywhere: of a composition with a part that may release everything."""


@dataclass(frozen=True)
class ComposedLoss(CopiedByFields, LossSource):
    """The composition of privacy-loss distributions, each with how often it runs."""

    sources: tuple[tuple[LossSource, int], ...]

    @classmethod
    def of(cls, sources: Sequence[tuple[LossSource, int]]) -> ComposedLoss:
        """Their composition. Compositions among them are taken apart, and equal parts are put together."""
        apart: list[tuple[LossSource, int]] = []
        for source, count in sources:
            inner = source.sources if isinstance(source, ComposedLoss) else ((source, 1),)
            apart += [(part, times * count) for part, times in inner]
        return cls(counted(apart))

    @cached_property
    def games(self) -> tuple[tuple[LossSource, int], ...]:
        """The parts that are added up, with games in the place of mechanisms of bounded range."""
        return games(self.sources)

    @property
    def parts(self) -> int:
        """How many distributions are added up, those that a part is made of included."""
        return sum(source.parts * count for source, count in self.games)

    @property
    def transforms(self) -> int:
        """How many laws there are to transform."""
        return sum(source.transforms for source, _ in self.games)

    @property
    def theorem(self) -> str:
        """The sources of the composition."""
        profiles = [source.profile for source, _ in self.games if isinstance(source, profile_loss)]
        played = [profile.theorem for profile in profiles if isinstance(profile, RangeGameProfile)]
        return "; ".join([LossProfile.theorem, *played[:1]])

    @property
    def costly(self) -> int:
        """How many costly profiles are read."""
        return sum(source.costly for source, _ in self.games)

    def __call__(self, interval: float) -> BothLosses:
        costly, games = self.costly, self.games
        places = each_step("parts of the composition", len(games))
        return compose_distributions(
            [(source.among(costly)(interval), count) for source, count in (games[place] for place in places)]
        )


def compose(*guarantees: Guarantee) -> Guarantee:
    """Return the guarantee of running all mechanisms on the same data.

    Each mechanism may be chosen after seeing earlier outputs. You must fix the guarantees themselves in advance: the
    privacy-loss curve of the result is not a filter. A fully adaptive choice of later guarantees needs the ledger.

    Args:
        guarantees: one for each run, all with the same adjacency. Each may be what `as_guarantee` takes.

    Returns:
        One guarantee of all outputs together. It is interactive if one of the mechanisms is.

    Raises:
        AdjacencyError: if adjacencies differ.
        ArgumentError: if no guarantee is given, or something else than a guarantee (`PromiseError`).
    """
    guarantees = _common("compose", guarantees)
    if len(guarantees) == 1:
        return guarantees[0]
    return _composed(
        list(Counter(guarantees).items()),
        failures=[g.failure for g in guarantees],
        pure=sum_up([g.pure_epsilon for g in guarantees]),
        mu=math.hypot(*[g.gaussian_mu or 0.0 for g in guarantees]),
        terms={"composition": [dict(g.terms) for g in guarantees]},
    )


def compose_counted(parts: Sequence[tuple[Guarantee, int]]) -> Guarantee:
    """`compose` of guarantees that each run so many times, which may be very many."""
    counts: Counter[Guarantee] = Counter()
    for guarantee, count in parts:
        counts[guarantee] += count
    distinct = list(counts.items())
    if len(distinct) == 1 and distinct[0][1] == 1:
        return distinct[0][0]
    common_adjacency(g.adjacency for g, _ in distinct)
    found = _composed(
        distinct,
        failures=[times_up(g.failure, count) for g, count in distinct],
        pure=sum_up([times_up(g.pure_epsilon, count) for g, count in distinct]),
        mu=math.hypot(*[(g.gaussian_mu or 0.0) * math.sqrt(count) for g, count in distinct]) * ROUND_UP,
        terms={"composition": [{"count": count, **g.terms} for g, count in distinct]},
    )
    if found.gaussian_mu is None:
        return found
    # not of the mu that was rounded up
    return replace(found, lower_profile=composed_below([(g.lower_profile, count) for g, count in distinct], None))


def _composed(
    distinct: Sequence[tuple[Guarantee, int]],
    *,
    failures: Sequence[float],
    pure: float,
    mu: float,
    terms: Mapping[str, Any],
) -> Guarantee:
    """The composition of distinct guarantees by their counts, given the sums of their numbers, rounded up."""
    adjacency = distinct[0][0].adjacency
    interactive = any(g.interactive for g, _ in distinct)
    if all(g.gaussian_mu is not None for g, _ in distinct):
        whole = gaussian(noise_multiplier=1.0 / mu, adjacency=adjacency)
        return replace(whole, interactive=interactive)
    curves = [(g.renyi_curve, count) for g, count in distinct]
    # one minus a product of one minus each, without cancellation, or their sum where that rounds better
    product = -math.expm1(math.fsum(count * math.log1p(-g.failure) for g, count in distinct)) * ROUND_UP
    known = [(curve, count) for curve, count in curves if curve is not None]
    curve = sum_of_curves(known) if len(known) == len(curves) else None
    loss = ComposedLoss.of([(g.loss_source(), count) for g, count in distinct])
    reach = pure
    if curve is None and math.isinf(pure):
        far = sum(min(g.pure_epsilon, farthest(g.best_profile())) * count for g, count in distinct)
        reach = min(far, WIDEST)
    interval = composed_interval(curve, reach, loss.parts, loss.transforms)
    if not all(g.loss is not None or discretisable(g.best_profile(), g.renyi_curve, g.failure) for g, _ in distinct):
        interval = None
    profile = None if interval is None else LossProfile(loss, interval, loss.theorem)
    return Guarantee(
        adjacency=adjacency,
        theorem="adaptive composition",
        terms=terms,
        failure=min(product, sum_up(failures), 1.0),
        pure_epsilon=pure,
        renyi_curve=curve,
        profile=_NOTHING if profile is None and curve is None and math.isinf(pure) else profile,
        lower_profile=lower_game(loss.sources)
        or composition_below([(g.lower_profile, count) for g, count in distinct], interval),
        loss=loss if interval is not None else None,
        interactive=interactive,
    )


def together(*parts: Guarantee) -> Guarantee:
    """The composition of mechanisms that are all named before one answers.

    A game with an adversary who chooses them one after the other is a bound from above. No lower end is known.
    """
    return parts[0] if len(parts) == 1 else replace(compose(*parts), lower_profile=None)


@dataclass(frozen=True)
class WorstProfile(PrivacyProfile):
    """The pointwise maximum of the profiles of guarantees. Each is inverted by all that it states."""

    guarantees: tuple[Guarantee, ...]

    def remove(self, epsilons: Array) -> Array:
        """A bound on H_{exp(epsilon)}(P || P')."""
        return np.max([g.best_profile().remove(epsilons) for g in self.guarantees], axis=0)

    def add(self, epsilons: Array) -> Array:
        """A bound on H_{exp(epsilon)}(P' || P)."""
        return np.max([g.best_profile().add(epsilons) for g in self.guarantees], axis=0)

    def epsilon(self, delta: float) -> float:
        """The largest of the guarantees' epsilons.

        One whose pure bound is not above another's epsilon need not be computed.
        """
        pure = [(epsilon_at(RandomizedResponseProfile(g.pure_epsilon, g.failure), delta), g) for g in self.guarantees]
        found = 0.0
        for bound, g in sorted(pure, key=lambda each: -each[0]):
            if bound > found:
                found = max(found, g.epsilon(delta))
        return found


def worst_of(*guarantees: Guarantee) -> Guarantee:
    """Return the pointwise maximum of guarantees, for a row that pays exactly one of them.

    Use it for neighbours that differ in a row which only one of the mechanisms sees. You must ensure that the parts are
    disjoint and fixed row by row, independently of the data. Hockey-stick and Renyi divergences are quasi-convex, so
    mixing over the row's part stays below the maximum.

    Args:
        guarantees: the guarantee of each part's mechanism, or what `as_guarantee` takes, all with the same adjacency.

    Returns:
        A guarantee that holds whichever part the row is in.

    Raises:
        AdjacencyError: if adjacencies differ.
        ArgumentError: if no guarantee is given, or something else than a guarantee (`PromiseError`).
    """
    guarantees = _common("worst_of", guarantees)
    if len(guarantees) == 1:
        return guarantees[0]
    curves = [g.renyi_curve for g in guarantees]
    return Guarantee(
        adjacency=guarantees[0].adjacency,
        theorem="the larger of disjoint parts (quasi-convexity): "
        + "; ".join(dict.fromkeys(g.theorem for g in guarantees)),
        terms={"worst_of": [dict(g.terms) for g in guarantees]},
        failure=max(g.failure for g in guarantees),
        pure_epsilon=max(g.pure_epsilon for g in guarantees),
        renyi_curve=MaximumRenyi(tuple(c for c in curves if c is not None)) if None not in curves else None,
        profile=WorstProfile(tuple(guarantees)),
        lower_profile=largest_below([g.lower_profile for g in guarantees]),
        interactive=any(g.interactive for g in guarantees),
    )


def _common(function: str, guarantees: tuple[Any, ...]) -> tuple[Guarantee, ...]:
    if not guarantees:
        raise ArgumentError(f"{function} needs at least one guarantee")
    parsed = promises("guarantees", guarantees)
    common_adjacency(g.adjacency for g in parsed)
    return parsed
