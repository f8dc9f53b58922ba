"""What Reorder-Slice-Compute costs (Cohen, Lyu, Nelson, Sarlos, Stemmer 2022, Theorems 2.1 and 2.3), three ways.

The proof replays a run against a holder of the secret bit. Each query to the holder either synchronises the two data
sets for good or fails; a failed query shows two slices that differ by a swap, the successful one two that differ by
an insertion; slices before and after cost nothing. Everything below prices that transcript.

Where the paper's constants do not hold these are used instead: a swap costs (1 + exp(E)) delta, not 2 delta (group
privacy); k computations multiply the cost of each failed slice, they do not add to their number (Corollary 2.2 as
printed does not follow); the exact probability of failure stands for 5/6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from dpselect.errors import AdjacencyError, ArgumentError, integer, number
from dpselect.numerics import ROUND_UP
from dpselect.ordered.slice_price_loss import SlicePairProfile
from dpselect.ordered.synchronisation import Synchronisation, synchronisation
from dpselect.privacy import Adjacency, Guarantee, approximate_dp, compose, pure_dp
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.privacy.profile import MinimumProfile, PrivacyProfile, RenyiProfile, SymmetricProfile, TabulatedProfile
from dpselect.privacy.renyi import RenyiCurve

__all__ = [
    "SlicePrice",
    "plain_slicing_guarantee",
    "reorder_slice_compute_guarantee",
    "slice_price",
    "swap_of",
]

Array = NDArray[np.float64]

_PAPER = "Reorder-Slice-Compute (Cohen et al. 2022, Theorem 2.1)"
_MOST_PLAIN = 1 << 14
_SMALLEST_TAIL = 1e-15


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


@dataclass(frozen=True)
class TwoStepProfile(SymmetricProfile):
    """delta(e) of two steps, each with the given profile: (1 + exp(e/2)) delta(e/2)."""

    one: PrivacyProfile
    theorem: str = "group privacy of two"

    def at(self, epsilons: Array) -> Array:
        """The divergence at epsilon >= 0."""
        half = np.asarray(epsilons, dtype=np.float64) / 2.0
        step = np.maximum(self.one.remove(half), self.one.add(half))
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(np.where(step > 0.0, np.minimum((1.0 + np.exp(half)) * step * ROUND_UP, 1.0), 0.0))


@dataclass(frozen=True)
class SliceRenyi:
    """The closed Renyi curve of one application, for any number of slices; outside the components' failure.

    A run is (failed query, swap) then the same again, or (synchronised, insertion) then nothing, so the moment M
    solves M = S R1 + Phi R2 M, direction by direction; inf where Phi R2 reaches one. With maps that may turn an
    insertion round (`maps_grow` False) the worse direction is taken in each step. `failure` is the mass of all leaks:
    without them both laws keep the same weight on each path, and conditioning on that adds its logarithm.
    """

    sync: Synchronisation
    insertion: RenyiCurve
    swap: RenyiCurve
    failure: float
    maps_grow: bool
    theorem: str = "Reorder-Slice-Compute, Renyi divergence of the holder's transcript (Cohen et al. 2022, Lemma 2.5)"

    def __call__(self, orders: Array) -> Array:
        a = np.asarray(orders, dtype=np.float64)
        sync = self.sync
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            inserted, swapped = (a - 1.0) * self.insertion(a), (a - 1.0) * self.swap(a)
            stop = [np.log(sync.moment(b)) + inserted for b in (a, 1.0 - a)]
            again = [math.log(sync.fail_lower) + b * sync.epsilon + swapped for b in (a, 1.0 - a)]
            if not self.maps_grow:
                stop, again = [np.maximum(*stop)] * 2, [np.maximum(*again)] * 2
            rounded = 1e-13
            moments = [
                np.where(g < -rounded, s - np.log(-np.expm1(np.minimum(g + rounded, -1e-300))), np.inf)
                for s, g in zip(stop, again, strict=True)
            ]
            moment = np.maximum(*moments) + rounded
            moment = np.where(np.isfinite(inserted) & np.isfinite(swapped), moment, np.inf)
            curve = moment / (a - 1.0) - a / (a - 1.0) * math.log1p(-self.failure)
        return np.asarray(np.maximum(curve, 0.0) * ROUND_UP)


@dataclass(frozen=True)
class SmallestRenyi:
    """The pointwise minimum of curves that bound the same mechanism."""

    curves: tuple[RenyiCurve, ...]

    def __call__(self, orders: Array) -> Array:
        return np.asarray(np.min([curve(orders) for curve in self.curves], axis=0))


@dataclass(frozen=True)
class SlicePrice:
    """Everything that prices `applications` runs of at most `slices` slices each (None: any number).

    `insertion` and `swap` are the guarantees of all computations on one slice together, under add_or_remove_one and
    replace_one; they must hold for slices of every size.
    """

    slice_epsilon: float
    insertion: Guarantee
    swap: Guarantee
    slices: int | None
    applications: int = 1
    maps_grow: bool = True

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

        `delta` is for the count alone; epsilon is the largest of the slice noise's, the insertion's and half the
        swap's. inf for a slice noise of more than one, or computations without a finite epsilon.
        """
        e = max(self.slice_epsilon, self.insertion.pure_epsilon, self.swap.pure_epsilon / 2.0)
        if not math.isfinite(e) or self.slice_epsilon > 1.0 or delta <= 0.0:
            return math.inf
        k, w = float(self.applications), self.applications
        while betainc(w - k + 1.0, k, 5.0 / 6.0) > delta:  # P(Bin(w, 1/6) <= k - 1)
            w += 1
        return 3.0 * e * w * ROUND_UP

    def table(self) -> TabulatedProfile | None:
        """Basic composition, by the number of failed queries; None without a finite epsilon of the computations."""
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
        """The curve of all applications together; None where the computations have none."""
        inserted, swapped = _curve(self.insertion), _curve(self.swap)
        if inserted is None or swapped is None or self.leak >= 1.0:
            return None
        one = SliceRenyi(self.sync, inserted, swapped, self.leak / self.applications, self.maps_grow)
        return _Times(one, self.applications)

    def numeric(self) -> Guarantee | None:
        """The transcript's privacy losses, composed numerically; None where directions may turn round."""
        if not self.maps_grow:
            return None
        single = Guarantee(
            adjacency=Adjacency.ADD_OR_REMOVE_ONE,
            theorem=_PAPER + ", privacy losses",
            terms={"mechanism": "reorder-slice-compute"},
            profile=SlicePairProfile(self.slice_epsilon, self.insertion, self.swap, self.slices),
        )
        return compose(*[single] * self.applications)

    def noisy(self) -> Guarantee:
        """What the noise proves under add_or_remove_one, whichever of the three is smallest."""
        curve, table, numeric = self.renyi(), self.table(), self.numeric()
        profiles: list[PrivacyProfile] = [] if table is None else [table]
        if numeric is not None:
            profiles.append(numeric.best_profile())
        if curve is not None:
            profiles.append(RenyiProfile(curve, self.leak))
        if not profiles:
            raise ArgumentError("insertion and swap must make some statement: an epsilon, a Renyi curve or a profile")
        return Guarantee(
            adjacency=Adjacency.ADD_OR_REMOVE_ONE,
            theorem=_PAPER,
            terms=self.terms(),
            failure=self.leak if curve is not None else 0.0,
            renyi_curve=curve,
            profile=MinimumProfile(tuple(profiles)),
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


def _curve(guarantee: Guarantee) -> RenyiCurve | None:
    curves = [guarantee.renyi_curve] if guarantee.renyi_curve is not None else []
    if math.isfinite(guarantee.pure_epsilon):
        pure = pure_dp(epsilon=guarantee.pure_epsilon).renyi_curve
        assert pure is not None
        curves.append(pure)
    return SmallestRenyi(tuple(curves)) if curves else None


@dataclass(frozen=True)
class _Times:
    curve: Callable[[Array], Array]
    count: int

    def __call__(self, orders: Array) -> Array:
        return self.count * self.curve(orders)


def plain_slicing_guarantee(
    *, swap: Guarantee, slices: int, applications: int = 1, maps_grow: bool = True, adjacency: Adjacency | str
) -> Guarantee:
    """The price without any help from the noise: every slice is charged a swap, or two.

    Given the sizes of the slices, which are drawn without looking at the data, an inserted row changes each slice by
    one swap at most, and so does a replaced row where the maps only order, filter and rewrite rows (`maps_grow`): the
    two lists keep all but one row each in common. Otherwise a replaced row counts as two steps.
    """
    adjacency = parse_adjacency(adjacency)
    steps = 2 if adjacency is Adjacency.REPLACE_ONE and not maps_grow else 1
    runs = slices * applications * steps
    charged = replace(swap, adjacency=adjacency)
    total = compose(*[charged] * runs)
    terms = {"mechanism": "slicing", "slices": slices, "applications": applications, "swap": dict(swap.terms)}
    return replace(total, theorem="slices charged a swap each", terms=terms)


def reorder_slice_compute_guarantee(
    *,
    slice_epsilon: SupportsFloat,
    insertion: Guarantee,
    swap: Guarantee | None = None,
    slices: int | None = None,
    applications: int = 1,
    maps_grow: bool = True,
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
) -> Guarantee:
    """The guarantee of `applications` adaptive runs of Reorder-Slice-Compute: the smallest of what is proved.

    Cohen et al. (2022), Theorems 2.1 and 2.3: basic composition with the exact failure rate, the closed Renyi curve
    and the privacy losses of the holder's transcript, and plain composition where the number of slices is limited.

    Args:
        slice_epsilon: every slice has `size` + G rows, P(G >= k) = exp(-slice_epsilon k). From 1e-5 to 2.
        insertion: all computations on one slice, add_or_remove_one; it must hold for slices of every size (owed).
        swap: the same for replace_one; from `insertion` by group privacy when None.
        slices: at most this many slices in one application; None for any number.
        applications: runs on the same data, each chosen after seeing the earlier ones.
        maps_grow: whether adding a row can only add to what the maps return (orders, filters and maps of single rows
            do); otherwise any adjacency-preserving map is covered, at a higher price.
        adjacency: replace_one is two steps of add_or_remove_one for what the noise saves, and one swap a slice
            without it.

    Raises `AdjacencyError` for components with the wrong adjacency, `ArgumentError` for parameters out of range.

    >>> g = reorder_slice_compute_guarantee(slice_epsilon=0.05, insertion=pure_dp(epsilon=0.05))
    >>> round(g.epsilon(delta=1e-6), 3)
    0.928
    """
    price = slice_price(
        slice_epsilon=slice_epsilon,
        insertion=insertion,
        swap=swap,
        slices=slices,
        applications=applications,
        maps_grow=maps_grow,
    )
    adjacency = parse_adjacency(adjacency)
    noisy = price.noisy()
    if adjacency is Adjacency.REPLACE_ONE:
        noisy = replace(swap_of(replace(noisy, pure_epsilon=math.inf)), terms=noisy.terms, theorem=noisy.theorem)
    if price.slices is None or price.slices * price.applications > _MOST_PLAIN:
        return noisy
    plain = plain_slicing_guarantee(
        swap=price.swap,
        slices=price.slices,
        applications=price.applications,
        maps_grow=maps_grow,
        adjacency=adjacency,
    )
    return _smaller(plain, noisy)


def slice_price(
    *,
    slice_epsilon: SupportsFloat,
    insertion: Guarantee,
    swap: Guarantee | None = None,
    slices: int | None = None,
    applications: int = 1,
    maps_grow: bool = True,
) -> SlicePrice:
    """The checked parameters; see `reorder_slice_compute_guarantee`."""
    parsed = number("slice_epsilon", slice_epsilon, at_least=1e-5, at_most=2.0)
    if insertion.adjacency is not Adjacency.ADD_OR_REMOVE_ONE:
        raise AdjacencyError("insertion must be a guarantee for add_or_remove_one")
    swap = swap_of(insertion) if swap is None else swap
    if swap.adjacency is not Adjacency.REPLACE_ONE:
        raise AdjacencyError("swap must be a guarantee for replace_one")
    if slices is not None:
        slices = integer("slices", slices, at_least=1)
    return SlicePrice(parsed, insertion, swap, slices, integer("applications", applications, at_least=1), maps_grow)


def _smaller(plain: Guarantee, noisy: Guarantee) -> Guarantee:
    """Both hold; failure masses do not mix, so the curves outside them are those of the smaller one (or of both)."""
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
