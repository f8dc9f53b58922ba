"""The guarantee of a mechanism: a privacy curve for one adjacency.

A guarantee is a set of statements about one mechanism, each an upper bound that holds by itself. The smallest of them
answers each question (`epsilon`, `delta`). Nothing here knows which mechanism it describes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, SupportsFloat, overload

import numpy as np

from dpselect.errors import ArgumentError, BracketError, integer, number
from dpselect.numerics.search import Array
from dpselect.privacy.adjacency import Adjacency
from dpselect.privacy.below import attained_pairs
from dpselect.privacy.exports.event_of import event_of
from dpselect.privacy.exports.gaussian_bound import GaussianBound, gaussian_bound
from dpselect.privacy.exports.loss_distribution import loss_distribution, mesh_for
from dpselect.privacy.exports.renyi_table import RenyiTable, renyi_table
from dpselect.privacy.group import (
    failure_of_rows,
    lower_of_rows,
    profile_of_rows,
    renyi_of_rows,
    times_up,
)
from dpselect.privacy.losses.discretise import DominatingPair
from dpselect.privacy.losses.pairs import PairSource, ProfilePairs
from dpselect.privacy.losses.pld import LossProfile, LossSource, profile_loss
from dpselect.privacy.notebook import bound, card
from dpselect.privacy.profile import (
    GaussianProfile,
    LaplaceProfile,
    MinimumProfile,
    PrivacyProfile,
    RandomizedResponseProfile,
    RenyiProfile,
    both_directions,
    epsilon_at,
)
from dpselect.privacy.renyi import RenyiCurve, epsilon_from_renyi, theorem_of

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

__all__ = ["Guarantee", "Statement"]

_SMALLEST_DELTA: Final = 1e-300


def _without_infinity(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_infinity(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_infinity(part) for part in value]
    return None if isinstance(value, float) and np.isinf(value) else value


def _exceeded(attained: PrivacyProfile, delta: float, upper: float) -> float:
    """The lower end at a delta. A tail below the range of doubles is lost at 0, where what exceeds 1e-300 serves.

    Some tails end in rounding instead, which is above 1e-300: what they say there is not believed past the upper end.
    """
    found = attained.epsilon_lower_bound(delta)
    if delta >= _SMALLEST_DELTA:
        return found
    near = attained.epsilon_lower_bound(_SMALLEST_DELTA)
    return max(found, near) if near <= upper else found


@dataclass(frozen=True)
class Statement:
    """An epsilon and the theorem that gives it."""

    epsilon: float
    theorem: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Guarantee:
    """An upper bound on privacy loss for one adjacency, in both directions.

    Attributes:
        adjacency: which data sets are neighbours.
        theorem: where the bound comes from.
        terms: a JSON-able description of what it was made from; public numbers only.
        failure: a probability outside which `pure_epsilon` and `renyi_curve` hold, by one decomposition of the two
            output laws that serves every order and both directions. Zero for most mechanisms.
        pure_epsilon: a bound on the loss outside `failure`; inf when there is none.
        renyi_curve: a vectorised bound on the Renyi divergence outside `failure` in both directions, or None.
        profile: the privacy profile, `failure` included, or None when only the other curves are known.
        lower_profile: a profile that no valid bound can be below, or None: what a mechanism that satisfies every
            statement attains, see `privacy.below`.
        loss: a recipe for a privacy-loss distribution (dp-accounting), or None.
        interactive: whether the mechanism answers queries that may depend on what else was released meanwhile. A ledger
            then lets nothing else run on the same data until it is settled.
        gaussian_mu: set when the mechanism is dominated by N(0,1) against N(mu,1). Such mechanisms compose exactly.
    """

    adjacency: Adjacency
    theorem: str
    terms: Mapping[str, Any] = field(default_factory=dict)
    failure: float = 0.0
    pure_epsilon: float = float("inf")
    renyi_curve: RenyiCurve | None = None
    profile: PrivacyProfile | None = None
    lower_profile: PrivacyProfile | None = None
    loss: LossSource | None = None
    gaussian_mu: float | None = None
    interactive: bool = False

    def __post_init__(self) -> None:
        if not (self.pure_epsilon >= 0.0 and 0.0 <= self.failure <= 1.0):
            raise ArgumentError("pure_epsilon must be at least 0, and failure from 0 to 1")
        for name, profile in (("profile", self.profile), ("lower_profile", self.lower_profile)):
            if not isinstance(profile, PrivacyProfile | None):
                raise ArgumentError(f"{name} must be a PrivacyProfile or None: `from_profile` makes one of points")

    def _statements(self, delta: float) -> Iterator[Statement]:
        """Every epsilon that the curves give at `delta`, each valid by itself."""
        if delta >= self.failure:
            yield Statement(self.pure_epsilon, self.theorem)
        if self.profile is not None:
            profile = self.profile
            epsilon = epsilon_at(profile, delta)
            yield Statement(epsilon, profile.theorem or self.theorem)
        if self.renyi_curve is not None and delta > self.failure:
            inside = (delta - self.failure) / (1.0 - self.failure)
            epsilon = epsilon_from_renyi(self.renyi_curve, inside)
            yield Statement(epsilon, theorem_of(self.renyi_curve) or self.theorem)

    def statement(self, *, delta: SupportsFloat) -> Statement:
        """The smallest epsilon at `delta` with the theorem that gives it."""
        delta = number("delta", delta, at_least=0.0, at_most=1.0, rounding="down")
        if delta == 1.0:
            return Statement(0.0, self.theorem)
        found = list(self._statements(delta))
        return min(found, key=lambda s: s.epsilon) if found else Statement(float("inf"), self.theorem)

    def epsilon(self, delta: SupportsFloat) -> float:
        """The smallest epsilon >= 0 such that (epsilon, delta)-privacy is proved, inf if none is.

        Rounded up. Raises `ArgumentError` unless 0 <= delta <= 1.
        """
        return self.statement(delta=delta).epsilon

    @overload
    def delta(self, epsilon: Array) -> Array: ...  # type: ignore[overload-overlap]
    @overload
    def delta(self, epsilon: SupportsFloat) -> float: ...
    def delta(self, epsilon: SupportsFloat | Array) -> float | Array:
        """The smallest delta proved at `epsilon` >= 0 (a number or an array). Rounded up, at most 1."""
        if not isinstance(epsilon, np.ndarray):
            return float(
                self.delta(np.array([number("epsilon", epsilon, at_least=0.0, finite=False, rounding="down")]))[0]
            )
        asked = np.asarray(epsilon, dtype=np.float64)
        if np.any(np.isnan(asked)) or np.any(asked < 0.0):
            raise ArgumentError(f"epsilon must be at least 0, got {epsilon!r}")
        result = np.ones(asked.shape)
        finite = np.minimum(asked, 1e6)
        result = np.where((asked >= self.pure_epsilon) & np.isfinite(self.pure_epsilon), self.failure, result)
        if self.profile is not None:
            result = np.minimum(result, both_directions(self.profile, finite))
        if self.renyi_curve is not None:
            result = np.minimum(result, RenyiProfile(self.renyi_curve, self.failure).remove(finite))
        return np.asarray(result)

    def renyi(self, order: SupportsFloat) -> float:
        """A bound on the Renyi divergence of this order (above 1, inf allowed) in both directions, or inf.

        With a positive `failure` no order has a finite bound. `renyi_curve` then holds outside that mass.
        """
        order = number("order", order, above=1.0, finite=False)
        if self.failure > 0.0:
            return float("inf")
        curved = float("inf")
        if self.renyi_curve is not None and np.isfinite(order):
            curved = float(np.asarray(self.renyi_curve(np.array([order])))[0])
        return min(curved, self.pure_epsilon)

    def epsilon_bracket(self, delta: SupportsFloat) -> tuple[float, float]:
        """Return (lower, upper). Nothing valid is below lower, which is 0 if none is known. Upper is `epsilon(delta)`.

        Below lower, some mechanism that satisfies every statement of this guarantee exceeds `delta`. So no function of
        the guarantee can promise less. If the guarantee names a mechanism, it is that one. Both ends are rounded
        outwards. Raises `BracketError` if they cross, which is a fault of this library.
        """
        upper = self.epsilon(delta)
        attained = self.lower_profile
        lower = 0.0 if attained is None or float(delta) >= 1.0 else _exceeded(attained, float(delta), upper)
        if lower > upper:
            raise BracketError(
                f"{self!r} has a lower end above its upper one at delta {float(delta)!r}: {lower!r} > {upper!r}. One "
                "of them is wrong, and so may be every price made of it: please report this with the call that led here"
            )
        return lower, upper

    def of_rows(self, k: int) -> Guarantee:
        """The guarantee for a person with `k` rows, or for any k rows at once (group privacy).

        Exact for Gaussian, Laplace and pure guarantees. Others get the best that is proved along a chain of k
        neighbours. Epsilon grows at least k times, and at the same delta mostly much more: k rows are not k
        mechanisms. Of a search, price `best_of(base.of_rows(k), law)`: that is quicker and smaller.

        Args:
            k: the largest number of rows of one person, from 1 to 10,000. It must hold for everyone.

        Returns:
            A guarantee for data sets that differ in at most k rows: added or removed together under
            add_or_remove_one, replaced by others under replace_one. What is composed with it must be for as many.

        Raises:
            ArgumentError: if `k` is not an integer in that range.

        Source: Dong, Roth, Su 2022, Theorem 2.14. Renyi curves: Mironov 2017, Proposition 11.

        >>> from dpselect.privacy import gaussian
        >>> one = gaussian(noise_multiplier=1.39066)
        >>> round(one.of_rows(2).epsilon(delta=1e-5), 3)
        6.706
        """
        k = integer("k", k, at_least=1, at_most=10_000)
        if k == 1:
            return self
        known = isinstance(self.profile, (GaussianProfile, LaplaceProfile))
        profile = self.profile if known and self.profile is not None else self._least_profile()
        corners = (self.pure_epsilon, *profile.corners)
        failure = failure_of_rows(self.pure_epsilon, self.failure, k)
        held = failure < 1.0
        curve = renyi_of_rows(self.renyi_curve, k) if self.renyi_curve is not None and self.failure == 0.0 else None
        return Guarantee(
            adjacency=self.adjacency,
            theorem=f"group privacy of {k} rows: {self.theorem}",
            terms={"rows": k, "one_row": dict(self.terms)},
            failure=failure if held else 0.0,
            pure_epsilon=times_up(self.pure_epsilon, k) if held else float("inf"),
            renyi_curve=curve,
            profile=profile_of_rows(profile, k, one_way=self.adjacency is Adjacency.ADD_OR_REMOVE_ONE, corners=corners),
            lower_profile=lower_of_rows(self.lower_profile, k),
            gaussian_mu=None if self.gaussian_mu is None else times_up(self.gaussian_mu, k),
            interactive=self.interactive,
        )

    def worst(self) -> Guarantee:
        """Itself: what the `worst` of an output guarantee gives, for callers that have either."""
        return self

    def best_profile(self) -> PrivacyProfile:
        """Return the profile, or the one that the other curves imply; `ArgumentError` if nothing is known."""
        if self.profile is not None:
            return self.profile
        if self.renyi_curve is not None:
            return RenyiProfile(self.renyi_curve, self.failure)
        if np.isfinite(self.pure_epsilon):
            return RandomizedResponseProfile(self.pure_epsilon, self.failure)
        raise ArgumentError("this guarantee makes no statement: it has no curve to convert")

    def pair_source(self) -> PairSource:
        """A recipe for finite pairs around both directions: the profile's own, else from the curves."""
        own = None if self.profile is None else self.profile.pair_source()
        return ProfilePairs(self._least_profile()) if own is None else own

    def _least_profile(self) -> PrivacyProfile:
        """The pointwise minimum of everything that the curves say."""
        curves = [self.best_profile()]
        if np.isfinite(self.pure_epsilon):
            curves.append(RandomizedResponseProfile(self.pure_epsilon, self.failure))
        if self.profile is not None and self.renyi_curve is not None:
            curves.append(RenyiProfile(self.renyi_curve, self.failure))
        return curves[0] if len(curves) == 1 else MinimumProfile(tuple(curves))

    def attained_pairs(self) -> PairSource | None:
        """A recipe for a pair of laws that some mechanism has which satisfies every statement, or None.

        Only the optimistic ends of its enclosures are for use.
        """
        return attained_pairs(self.lower_profile)

    def loss_source(self) -> LossSource:
        """The recipe for its privacy-loss distribution: its own, or one that connects the dots of its profile."""
        return self.loss if self.loss is not None else profile_loss(self.best_profile())

    def dominating_pair(self, *, interval: float = 1e-3) -> tuple[DominatingPair, DominatingPair]:
        """Finite pairs for (P, P') and (P', P) with losses on a mesh of width `interval`, pessimistic."""
        return LossProfile(self.loss_source(), number("interval", interval, above=0.0)).pairs

    def to_pld(self, *, interval: SupportsFloat | None = None) -> PrivacyLossDistribution:
        """Return a privacy-loss distribution of dp-accounting that dominates this guarantee in both directions.

        Its epsilons are at most one `interval` above those of `epsilon` for a base mechanism, and 0.3 % for a search.
        They may be below those of a table of few points, between which the distribution uses convexity. Losses past
        600 count as infinite. A failure mass is raised by two millionths at most: ask at a delta above that.
        dp-accounting composes the distribution with others of the same interval. It does not round that composition
        outwards, so expect errors of about 1e-15 in delta.

        Args:
            interval: the width of the mesh of losses, from 1e-9 to 1. None, the default, takes 1e-4 as dp-accounting
                does, or that times a power of two if epsilon is tiny or large. To compose, give that of the others.

        Returns:
            A `dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution`, pessimistic. Its removal is that of
            the row that the larger data set has.

        Raises:
            ArgumentError: if the guarantee makes no statement, or `interval` is out of range or too fine.

        >>> from dpselect.privacy import laplace
        >>> round(laplace(scale=2).to_pld().get_epsilon_for_delta(1e-6), 4)
        0.5
        """
        width = mesh_for(self.epsilon) if interval is None else number("interval", interval, at_least=1e-9, at_most=1.0)
        return loss_distribution(self._least_profile(), width)

    def to_dp_event(self) -> DpEvent:
        """Return an event of dp-accounting that costs at least as much as this guarantee.

        Gaussian and Laplace noise, DP-SGD, zCDP, their compositions and searches of them have one, and so has what
        `from_dp_event` read. A pure guarantee becomes a discrete Laplace event of sensitivity 1, which has the same
        losses. Searches become a `RepeatAndSelectDpEvent`, which dp-accounting prices higher than dpselect does.
        Parameters are rounded outwards by 0.005 %. Account the event under `adjacency`.

        Raises:
            ArgumentError: for any other guarantee. dp-accounting 0.6 has no event for (epsilon, delta), a privacy
                profile or a table of Renyi orders. Use `to_pld` or `to_renyi` for these.

        >>> from dpselect.privacy import dp_sgd
        >>> dp_sgd(noise_multiplier=1.0, sampling_rate=0.01, steps=1000).to_dp_event().count
        1000
        """
        curve = self.renyi_curve if self.failure == 0.0 else None
        for part in (self.loss, self.profile, curve):
            event = None if part is None else event_of(part, self.adjacency)
            if event is not None:
                return event
        raise ArgumentError(
            f"{self.theorem} under {self.adjacency.value} has no event in dp-accounting that costs as much: use "
            "to_pld() or to_renyi()"
        )

    def to_renyi(self, orders: Sequence[SupportsFloat] | None = None) -> RenyiTable:
        """Return bounds on the Renyi divergence at some orders, for accountants that add them up.

        `dp_accounting.rdp.compute_epsilon(*table, delta)` and Opacus's `get_privacy_spent` take such a table. An
        epsilon that comes from it is larger than `epsilon` if the guarantee also has a privacy profile.

        Args:
            orders: orders above 1, in the order in which you want the bounds. None, the default, takes 400 orders from
                1.05 to 20,001 and those of the guarantee's own table.

        Returns:
            The orders and the epsilons. They are inf where nothing is known.

        Raises:
            ArgumentError: if `orders` is empty or has one that is not above 1. If the guarantee has a failure mass, or
                no Renyi curve, which leaves every divergence infinite.

        >>> from dpselect.privacy import zcdp
        >>> table = zcdp(rho=0.5).to_renyi([2, 10])
        >>> table.orders, [round(epsilon, 6) for epsilon in table.epsilons]
        ((2.0, 10.0), [1.0, 5.0])
        """
        return renyi_table(self.renyi_curve, self.pure_epsilon, self.failure, orders)

    def gaussian_mu_bound(self, *, smallest_delta: SupportsFloat = 1e-10) -> GaussianBound:
        """Return the smallest mu such that Gaussian DP with mu dominates this guarantee, and the regret of saying mu.

        Args:
            smallest_delta: mu holds for every delta from this one to 1. Nothing is claimed for smaller ones, at which
                many profiles end in a failure mass or in rounding.

        Returns:
            mu within 0.1 % of the smallest for most mechanisms, the regret, and `smallest_delta`. If the regret
            is below 0.01, mu says nearly all that the profile does.

        Raises:
            ArgumentError: if no epsilon is proved at `smallest_delta`, or it is not in (0, 1). If losses are so large,
                with mu above about 10, that rounding hides whether a Gaussian dominates.

        Source: Dong, Roth, Su 2022, Corollary 2.13.

        >>> from dpselect.privacy import gaussian
        >>> gaussian(noise_multiplier=2).gaussian_mu_bound()
        GaussianBound(mu=0.5, regret=0.0, smallest_delta=1e-10)
        """
        smallest_delta = number("smallest_delta", smallest_delta, above=0.0, below=1.0, rounding="down")
        if self.gaussian_mu is not None:
            return GaussianBound(self.gaussian_mu, 0.0, smallest_delta)
        epsilon = self.epsilon(smallest_delta)
        if not np.isfinite(epsilon):
            raise ArgumentError(
                f"smallest_delta {smallest_delta!r}: this guarantee proves no epsilon there, so no Gaussian mechanism "
                "dominates it down to that delta. Give a larger one"
            )
        return gaussian_bound(self._least_profile(), epsilon, smallest_delta)

    def describe(self, *, delta: SupportsFloat) -> dict[str, Any]:
        """A JSON-able summary at one delta: epsilon, delta, adjacency, theorem and what it was made from.

        JSON has no infinity: None stands for it, as where no finite epsilon is proved.
        """
        best = self.statement(delta=delta)
        summary = {
            "epsilon": best.epsilon,
            "delta": float(delta),
            "adjacency": self.adjacency.value,
            "theorem": best.theorem if best.theorem == self.theorem else f"{self.theorem}; {best.theorem}",
            "terms": dict(self.terms),
        }
        return {key: _without_infinity(value) for key, value in summary.items()}

    def notebook_rows(self) -> list[tuple[str, Any]]:
        """The rows of a notebook's table: epsilon at a few deltas, the adjacency, the theorem, the ingredients."""
        deltas = (0.0, 1e-6, 1e-5) if self.pure_epsilon < float("inf") and self.failure == 0.0 else (1e-6, 1e-5)
        return [
            *((f"epsilon at delta {delta:g}", bound(self.epsilon(delta))) for delta in deltas),
            ("adjacency", self.adjacency.value),
            ("theorem", self.theorem),
            ("made of", dict(self.terms)),
        ]

    def _repr_html_(self) -> str:
        return card("Guarantee", self.notebook_rows())

    def __repr__(self) -> str:
        made = ", ".join(f"{k}={v!r}" for k, v in self.terms.items())
        return f"Guarantee({made}; {self.adjacency.value})"
