"""The privacy cost of Reorder-Slice-Compute, three ways (Cohen, Lyu, Nelson, Sarlos, Stemmer 2022, Theorems 2.1, 2.3).

The proof replays a run against a holder of the secret bit. Each query to the holder either synchronises the two data
sets for good or fails. A failed query shows two slices that differ by a swap, or by an insertion where the rows run
out. The successful one shows two that differ by an insertion. Slices before and after cost nothing. Everything below
prices that transcript.

If the paper's constants do not hold, these are used instead. A swap costs (1 + exp(E)) delta, not 2 delta (group
privacy). The k computations multiply the cost of each failed slice, they do not add to their number (Corollary 2.2 as
printed does not follow). The exact probability of failure replaces 5/6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import betainc

from dpselect.errors import AdjacencyError, ArgumentError, BoundUnavailableError, integer, number
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array, first_true
from dpselect.ordered.slices.price_loss import SlicePairProfile
from dpselect.ordered.slices.price_renyi import RepeatedRenyi, SliceRenyi, SmallestRenyi, curve_of
from dpselect.ordered.slices.synchronisation import Synchronisation, synchronisation
from dpselect.privacy import Adjacency, Guarantee, approximate_dp, compose, pure_dp, worst_of
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.privacy.exports.event_of import ComposedSources
from dpselect.privacy.losses.bounded_range import BoundedRangeProfile
from dpselect.privacy.losses.pld import LossProfile, profile_loss
from dpselect.privacy.profile import (
    LaplaceProfile,
    MinimumProfile,
    PrivacyProfile,
    RandomizedResponseProfile,
    RenyiProfile,
    SymmetricProfile,
    TabulatedProfile,
)
from dpselect.privacy.promises import promise
from dpselect.privacy.renyi import PureRenyi, RenyiCurve, SumRenyi

__all__ = ["SlicePrice", "Way", "failed_slice", "plain_slicing_guarantee", "swap_of"]

Way = Literal["smallest", "paper", "basic", "renyi", "losses", "plain"]

_PAPER = "Reorder-Slice-Compute (Cohen et al. 2022, Theorem 2.1)"
_WAYS = {
    "paper": "constants of the paper",
    "basic": "basic composition, exact rates",
    "renyi": "Renyi divergence",
    "losses": "privacy losses",
}
_MOST_PLAIN = 1 << 14
_MOST_SLICES = 1 << 40
_SMALLEST_TAIL = 1e-15
_SMALLEST_PAPER_TAIL = 1e-60
"""So small because replacing a row, as two steps, multiplies it by exp(epsilon/2)."""


def swap_of(insertion: Guarantee) -> Guarantee:
    """The price of replacing a row, as removing one and adding another, from the price of adding or removing one.

    Group privacy: (2 E, (1 + exp(E)) delta) from every (E, delta). Pass the mechanism's own replace-one guarantee
    wherever one is known: it may be as small as that of an insertion.

    >>> g = swap_of(approximate_dp(epsilon=1.0, delta=1e-6))
    >>> round(g.epsilon(delta=3.72e-6), 6), g.adjacency.value
    (2.0, 'replace_one')
    """
    if insertion.adjacency is not Adjacency.ADD_OR_REMOVE_ONE:
        raise AdjacencyError("insertion must be a guarantee for add_or_remove_one")
    one, failure = insertion.pure_epsilon, insertion.failure
    if failure == 0.0 and math.isfinite(one):
        return pure_dp(epsilon=2.0 * one, adjacency=Adjacency.REPLACE_ONE)
    if math.isfinite(one):
        grown = min(failure * (1.0 + math.exp(min(one, 700.0))) * ROUND_UP, 1.0)
        if grown < 1.0:
            return approximate_dp(epsilon=2.0 * one, delta=grown, adjacency=Adjacency.REPLACE_ONE)
    return Guarantee(
        adjacency=Adjacency.REPLACE_ONE,
        theorem="group privacy of two",
        terms={"swap_of": dict(insertion.terms)},
        profile=TwoStepProfile(insertion.best_profile()),
    )


def failed_slice(insertion: Guarantee, swap: Guarantee) -> Guarantee:
    """The price of a slice of a failed query: its rows differ by a swap, or by a missing row where the rows run out.

    If fewer rows are left than a slice takes, it is all of them, and its neighbour has one more. So a swap that costs
    less than an insertion is no bound. One that dominates it in every statement is returned as it is.

    Raises `AdjacencyError` unless `swap` is for replace_one.

    >>> cheap = pure_dp(epsilon=0.1, adjacency="replace_one")
    >>> failed_slice(pure_dp(epsilon=1.0), cheap).epsilon(delta=0)
    1.0
    """
    if swap.adjacency is not Adjacency.REPLACE_ONE:
        raise AdjacencyError("swap must be a guarantee for replace_one")
    inserted = replace(insertion, adjacency=Adjacency.REPLACE_ONE)
    return swap if _dominates(swap, inserted) else worst_of(swap, inserted)


def _dominates(larger: Guarantee, smaller: Guarantee) -> bool:
    """Whether every statement of one guarantee is implied by the other, by the one number that both are made of."""
    if larger.gaussian_mu is not None and smaller.gaussian_mu is not None:
        return larger.gaussian_mu >= smaller.gaussian_mu
    if isinstance(larger.profile, TwoStepProfile):
        return larger.profile.one == smaller.best_profile()
    (kind, number), (other, least) = _made_of(larger), _made_of(smaller)
    return kind is not None and kind == other and number >= least and larger.failure >= smaller.failure


def _made_of(guarantee: Guarantee) -> tuple[Any, float]:
    """The kind of a guarantee that is made of one epsilon, as often as it is composed, and that epsilon."""
    profile, curve, count = guarantee.profile, guarantee.renyi_curve, 1
    if isinstance(profile, LossProfile) and isinstance(profile.source, ComposedSources) and isinstance(curve, SumRenyi):
        if len(profile.source.sources) != 1 or len(curve.curves) != 1:
            return None, 0.0
        ((source, count),), ((curve, _),) = profile.source.sources, curve.curves
        profile = source.profile if isinstance(source, profile_loss) else None
    one = isinstance(profile, (RandomizedResponseProfile, LaplaceProfile, BoundedRangeProfile))
    if one and isinstance(curve, PureRenyi) and curve.epsilon == profile.epsilon0:
        return (type(profile), type(curve), count), profile.epsilon0
    return None, 0.0


@dataclass(frozen=True)
class TwoStepProfile(SymmetricProfile):
    """delta(e) of two steps, each with the given profile: (1 + exp(e/2)) delta(e/2)."""

    one: PrivacyProfile
    theorem: str = "group privacy of two"

    def at(self, epsilons: Array) -> Array:
        """The divergence at epsilon >= 0."""
        # what holds at 700 holds at every larger epsilon, where the factor would overflow
        half = np.minimum(np.asarray(epsilons, dtype=np.float64), 700.0) / 2.0
        step = np.maximum(self.one.remove(half), self.one.add(half))
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(np.where(step > 0.0, np.minimum((1.0 + np.exp(half)) * step * ROUND_UP, 1.0), 0.0))


@dataclass(frozen=True, kw_only=True)
class SlicePrice:
    """Everything that prices adaptive runs of Reorder-Slice-Compute, in every way that is proved.

    Attributes:
        slice_epsilon: every slice has `size` + G rows, P(G >= k) = exp(-slice_epsilon k). From 1e-5 to 2.
        insertion: all computations on one slice together, add_or_remove_one; it must hold for slices of every size (the
            caller must ensure it).
        swap: the same for replace_one; from `insertion` by group privacy when None. `failed_slice` takes its place once
            the price is made.
        slices: at most this many slices in one application; None for any number.
        applications: runs on the same data, each chosen after seeing the earlier ones.
        maps_grow: whether adding a row can only add to what the maps return (orders, filters and maps of single rows
            do); otherwise any adjacency-preserving map is covered, at a higher price.

    Raises `AdjacencyError` for components with the wrong adjacency, `ArgumentError` for parameters out of range.

    >>> price = SlicePrice(slice_epsilon=0.05, insertion=pure_dp(epsilon=0.05))
    >>> round(price.guarantee("losses").epsilon(delta=1e-6), 3)
    0.928
    >>> [round(price.guarantee(way).epsilon(delta=1e-6), 3) for way in ("paper", "basic", "renyi")]
    [11.37, 1.747, 1.166]
    """

    slice_epsilon: float
    insertion: Guarantee
    swap: Guarantee = None  # type: ignore[assignment]  # never once it is made
    slices: int | None = None
    applications: int = 1
    maps_grow: bool = True

    def __post_init__(self) -> None:
        insertion, slices = promise("insertion", self.insertion), self.slices
        if insertion.adjacency is not Adjacency.ADD_OR_REMOVE_ONE:
            raise AdjacencyError("insertion must be a guarantee for add_or_remove_one")
        parsed = {
            "swap": swap_of(insertion) if self.swap is None else promise("swap", self.swap),
            "slice_epsilon": number("slice_epsilon", self.slice_epsilon, at_least=1e-5, at_most=2.0, rounding="down"),
            "slices": None if slices is None else integer("slices", slices, at_least=1, at_most=_MOST_SLICES),
            "applications": integer("applications", self.applications, at_least=1, at_most=_MOST_SLICES),
        }
        for name, value in parsed.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "swap", failed_slice(insertion, self.swap))

    def guarantee(
        self, way: Way = "smallest", *, adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE
    ) -> Guarantee:
        """The guarantee of all applications: the smallest of what is proved, or one proof by itself.

        Basic composition with the exact failure rate, the closed Renyi curve and the privacy losses of the holder's
        transcript, and plain composition where the number of slices is limited.

        Args:
            way: "smallest", or one proof: "paper" (the paper's constants), "basic", "renyi", "losses" or "plain".
            adjacency: replace_one is two steps of add_or_remove_one for what the noise saves, and one swap a slice
                without it.

        Raises `BoundUnavailableError` for a way that proves nothing about them.
        Source: Cohen et al. 2022, Theorems 2.1 and 2.3; docs/theory/reorder-slice-compute.md, Theorems A and C;
        docs/theory/reorder-slice-compute.md, Theorem B.
        """
        if way not in get_args(Way):
            raise ArgumentError(f"way must be one of {get_args(Way)}, got {way!r}")
        adjacency, plain = parse_adjacency(adjacency), None
        limited = self.slices is not None and self.slices * self.applications <= _MOST_PLAIN
        if limited and way in ("smallest", "plain"):
            plain = self.plain(adjacency)
        if way == "plain":
            if plain is None:
                raise BoundUnavailableError(f"way='plain' needs a number of slices, at most {_MOST_PLAIN} in all")
            return plain
        noisy = self.noisy(way)
        if adjacency is Adjacency.REPLACE_ONE:
            noisy = replace(swap_of(replace(noisy, pure_epsilon=math.inf)), terms=noisy.terms, theorem=noisy.theorem)
        return noisy if plain is None else _smaller(plain, noisy)

    def plain(self, adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE) -> Guarantee:
        """`plain_slicing_guarantee`, for a limited number of slices."""
        assert self.slices is not None
        options: dict[str, Any] = {"applications": self.applications, "maps_grow": self.maps_grow}
        return plain_slicing_guarantee(swap=self.swap, slices=self.slices, adjacency=adjacency, **options)

    @property
    def sync(self) -> Synchronisation:
        """The synchronisation maps of Lemma 2.4."""
        return synchronisation(self.slice_epsilon)

    @property
    def leak(self) -> float:
        """All failure masses of the components: query j happens with probability at most f^(j-1), so delta_2/(1-f)."""
        queries = 1.0 / self.sync.success_least
        if self.slices is not None:
            queries = min(queries, float(self.slices))
        largest = max(self.insertion.failure, self.swap.failure)
        return min(1.0, largest * queries * self.applications * ROUND_UP)

    def more_failures_than(self, failures: int) -> float:
        """P(more than `failures` failed queries in all applications), at most: fewer than k successes in that many."""
        k = self.applications
        return float(betainc(failures + 1.0, float(k), 1.0 - self.sync.success_least)) * ROUND_UP

    def paper(self, delta: float) -> float:
        """The paper's own constants: w = the least with P(Bin(w, 1/6) < k) <= delta queries, each 3 epsilon.

        `delta` is for the count alone. epsilon is the largest of the slice noise's, the insertion's and half the
        swap's. It is inf for a slice noise of more than one, or computations without a finite epsilon.
        """
        e = self._paper_epsilon
        if not math.isfinite(e) or delta <= 0.0:
            return math.inf
        k = self.applications
        w = first_true(lambda queries: self._paper_tail(queries) <= delta, k, None, start=k, step=k)
        return 3.0 * e * w * ROUND_UP

    @property
    def _paper_epsilon(self) -> float:
        e = max(self.slice_epsilon, self.insertion.pure_epsilon, self.swap.pure_epsilon / 2.0)
        return e if self.slice_epsilon <= 1.0 else math.inf

    def _paper_tail(self, queries: int) -> float:
        """P(Bin(queries, 1/6) <= applications - 1)."""
        k = float(self.applications)
        return float(betainc(queries - k + 1.0, k, 5.0 / 6.0)) * ROUND_UP

    def paper_table(self) -> TabulatedProfile | None:
        """`paper` at every delta, with what the computations may leak, or None if it proves nothing."""
        e, epsilons, deltas, w, tail = self._paper_epsilon, [], [], self.applications, 1.0
        if not math.isfinite(e):
            return None
        while tail >= _SMALLEST_PAPER_TAIL:
            tail = min(1.0, self._paper_tail(w))
            epsilons.append(3.0 * e * w * ROUND_UP)
            deltas.append(min(1.0, tail + self.leak))
            w += 1
        return TabulatedProfile(tuple(epsilons), tuple(deltas), theorem=_PAPER + ", constants of the paper")

    def table(self) -> TabulatedProfile | None:
        """Basic composition, by the number of failed queries, or None without a finite epsilon of the computations."""
        one, two = self.insertion.pure_epsilon, self.swap.pure_epsilon
        if not (math.isfinite(one) and math.isfinite(two)):
            return None
        k, g = self.applications, self.slice_epsilon
        # every slice of every application paid as a swap: no mass is left over
        most = math.inf if self.slices is None else k * self.slices * (g + max(one, two)) * ROUND_UP
        epsilons, deltas, failures, tail = [], [], 0, 1.0
        while tail >= _SMALLEST_TAIL:
            paid = (failures * (g + two) + k * (g + one)) * ROUND_UP
            tail = self.more_failures_than(failures) if paid < most else 0.0
            epsilons.append(min(paid, most))
            deltas.append(min(1.0, tail + self.leak))
            failures += 1
        return TabulatedProfile(tuple(epsilons), tuple(deltas), theorem=_PAPER + ", basic composition, exact rates")

    def renyi(self) -> RenyiCurve | None:
        """The curve of all applications together, or None if the computations have none."""
        inserted, swapped = curve_of(self.insertion), curve_of(self.swap)
        if inserted is None or swapped is None or self.leak >= 1.0:
            return None
        one = SliceRenyi(self.sync, inserted, swapped, self.leak / self.applications, self.maps_grow)
        return RepeatedRenyi(one, self.applications)

    def numeric(self) -> Guarantee | None:
        """The transcript's privacy losses, composed numerically, or None if directions may turn round."""
        if not self.maps_grow:
            return None
        single = Guarantee(
            adjacency=Adjacency.ADD_OR_REMOVE_ONE,
            theorem=_PAPER + ", privacy losses",
            terms={"mechanism": "reorder-slice-compute"},
            profile=SlicePairProfile(self.slice_epsilon, self.insertion, self.swap, self.slices),
        )
        return compose(*[single] * self.applications)

    def noisy(self, way: Way = "smallest") -> Guarantee:
        """The guarantee that the noise proves under add_or_remove_one: by one proof, or the smallest of them."""
        wanted = ("basic", "renyi", "losses") if way == "smallest" else (way,)
        curve = self.renyi() if "renyi" in wanted else None
        numeric = self.numeric() if "losses" in wanted else None
        profiles: list[PrivacyProfile | None] = [
            self.paper_table() if "paper" in wanted else None,
            self.table() if "basic" in wanted else None,
            None if numeric is None else numeric.best_profile(),
            None if curve is None else RenyiProfile(curve, self.leak),
        ]
        found = tuple(profile for profile in profiles if profile is not None)
        if not found:
            raise BoundUnavailableError(
                f"way={way!r} proves nothing here: insertion and swap must have a finite epsilon (with slice_epsilon "
                "at most 1 for 'paper'), a Renyi curve or a profile, and maps must grow for 'losses'"
            )
        return Guarantee(
            adjacency=Adjacency.ADD_OR_REMOVE_ONE,
            theorem=_PAPER if way == "smallest" else f"{_PAPER}, {_WAYS[way]}",
            terms=self.terms(),
            failure=self.leak if curve is not None else 0.0,
            renyi_curve=curve,
            profile=found[0] if len(found) == 1 else MinimumProfile(found),
        )

    def terms(self) -> dict[str, Any]:
        """A JSON-able description."""
        return {
            "mechanism": "reorder-slice-compute",
            "slice_epsilon": self.slice_epsilon,
            "slices": self.slices,
            "applications": self.applications,
            "insertion": dict(self.insertion.terms),
            "swap": dict(self.swap.terms),
            "maps_grow": self.maps_grow,
        }


def plain_slicing_guarantee(
    *, swap: Guarantee, slices: int, applications: int = 1, maps_grow: bool = True, adjacency: Adjacency | str
) -> Guarantee:
    """The price without any help from the noise: every slice is charged a swap, or a swap of two rows.

    `swap` must cover a missing row too (`failed_slice`). The sizes of the slices are drawn without looking at the data.
    Given them, an inserted row changes each slice by one swap at most, or by one row where the rows run out. So does a
    replaced row if the maps only order, filter and rewrite rows (`maps_grow`). Then the two lists keep all but one row
    each in common. Otherwise each slice may differ by two swaps: its mechanism is that of a person with two rows, which
    costs more than two mechanisms.
    """
    adjacency = parse_adjacency(adjacency)
    steps = 2 if adjacency is Adjacency.REPLACE_ONE and not maps_grow else 1
    charged = replace(swap.of_rows(steps), adjacency=adjacency)
    total = compose(*[charged] * (slices * applications))
    terms = {"mechanism": "slicing", "slices": slices, "applications": applications, "swap": dict(swap.terms)}
    return replace(total, theorem="slices charged a swap each", terms=terms, lower_profile=None)


def _smaller(plain: Guarantee, noisy: Guarantee) -> Guarantee:
    """Both hold. Failure masses do not mix, so the curves outside them are those of the smaller one (or of both)."""
    same = plain.failure == noisy.failure == 0.0
    kept = plain if plain.failure <= noisy.failure or noisy.renyi_curve is None else noisy
    curves = [g.renyi_curve for g in ((plain, noisy) if same else (kept,)) if g.renyi_curve is not None]
    return Guarantee(
        adjacency=plain.adjacency,
        theorem=noisy.theorem,
        terms=noisy.terms,
        failure=kept.failure,
        pure_epsilon=kept.pure_epsilon if not same else min(plain.pure_epsilon, noisy.pure_epsilon),
        renyi_curve=SmallestRenyi(tuple(curves)) if curves else None,
        profile=MinimumProfile((plain.best_profile(), noisy.best_profile())),
    )
