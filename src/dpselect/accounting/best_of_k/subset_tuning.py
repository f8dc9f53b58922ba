"""The price of tuning on a random subset of the rows and training once more with what was found.

Every row is in the subset X1 with probability q, independently and in secret. A search on X1 gives hyperparameters t.
A final run with t uses the rest of the rows ("rest") or all of them ("all"). Let the larger data set have one row more,
A and A' be the search with and without it, B and B' the final run. The larger data set's output distribution is then

    rest:  q (A, B') + (1 - q) (A', B)        all:  q (A, B) + (1 - q) (A', B)        against (A', B').

So the pair made in the same way of dominating pairs of search and final run, independent of each other, dominates the
whole, in both directions, by data processing alone (docs/theory/subset-tuning.md): what is computed here is the exact
worst case, up to the cutting of both pairs into atoms. Framework: Koskela and Kulkarni, "Practical differentially
private hyperparameter tuning with subsampling", NeurIPS 2023 (arXiv 2301.11989), who bound its Renyi divergences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Final, Literal, SupportsFloat

import numpy as np
from scipy.special import gammaln, logsumexp

from dpselect.accounting.best_of_k.bounds.renyi import renyi_curve_of
from dpselect.accounting.best_of_k.mixture import mixture
from dpselect.caching import CopiedByFields, kept_while_alive
from dpselect.errors import AdjacencyError, ArgumentError, integer, number
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array
from dpselect.privacy import Adjacency, Guarantee, compose
from dpselect.privacy.adjacency import common_adjacency
from dpselect.privacy.losses.discretise import DominatingPair
from dpselect.privacy.losses.pairs import PairSource
from dpselect.privacy.lower_ends import sampled_below
from dpselect.privacy.profile import TwoSidedProfile
from dpselect.privacy.promises import promise
from dpselect.privacy.renyi import RenyiCurve

__all__ = ["SubsetProfile", "SubsetRenyi", "tune_on_subset"]

FinalRows = Literal["rest", "all"]

ATOMS: Final = 800
_LARGEST_SUM: Final = 128
"""Orders up to which moments are summed term by term; beyond them Minkowski's inequality serves."""

_SUMMING: Final = 1e-9
"""More than the relative errors of the sums over the atoms of a product, 1.1e-16 times their number."""


@dataclass(frozen=True)
class SubsetProfile(CopiedByFields, TwoSidedProfile):
    """The privacy profile of tuning on a subset, exact for the two guarantees' pairs, rounded up."""

    search: Guarantee
    final: Guarantee
    sampling_rate: float
    final_rows: FinalRows
    atoms: int = ATOMS
    theorem: str = "worst case of tuning on a subset (after Koskela, Kulkarni 2023)"

    @cached_property
    def _products(self) -> tuple[_Product, _Product]:
        search, final = _pairs_of(self.search)(self.atoms), _pairs_of(self.final)(self.atoms)
        q, rows = self.sampling_rate, self.final_rows
        return (
            _Product.of(search[0].pessimistic, final[0].pessimistic, q, rows),
            _Product.of(search[1].pessimistic.swapped(), final[1].pessimistic.swapped(), q, rows),
        )

    def at(self, direction: int, epsilons: Array) -> Array:
        """The divergence at epsilon >= 0."""
        return self._products[direction].divergence(np.asarray(epsilons, dtype=np.float64), with_row=direction == 0)


@kept_while_alive
def _pairs_of(guarantee: Guarantee) -> PairSource:
    """Its recipe for pairs, which keeps them: a plan asks for those of one search at several sampling rates."""
    return cache(guarantee.pair_source())


@dataclass(frozen=True, eq=False)
class _Product:
    """The masses of all pairs of atoms of search and final run, with and without the row, without a table of them.

    Let v and m be the final run's masses with and without the row. The pair of atom i of the search and j of the final
    run has the mass alone[i] m[j] without the row. With the row it has first[i] m[j] + second[i] v[j]. The ratio of
    both grows with v / m. So for each i the pairs above a threshold are a tail of the j. Tails are summed once.
    """

    alone: Array
    first: Array
    second: Array
    ratios: Array
    heads: tuple[Array, Array]
    tails: tuple[Array, Array]
    infinite: float

    @classmethod
    def of(cls, search: DominatingPair, final: DominatingPair, q: float, final_rows: FinalRows) -> _Product:
        """Of pairs with the row (upper) and without it (lower)."""
        if final_rows == "rest":
            first, second = q * search.upper, (1.0 - q) * search.lower
        else:
            second = q * search.upper + (1.0 - q) * search.lower
            first = np.zeros_like(second)
        i, j = search.lower > 0.0, final.lower > 0.0
        order = np.argsort(final.upper[j] / final.lower[j], kind="stable")
        v, m = final.upper[j][order], final.lower[j][order]
        # what has no mass without the row
        infinite = float(np.sum(first[~i])) * float(np.sum(final.lower))
        infinite += float(np.sum(second[~i])) * float(np.sum(final.upper))
        infinite += float(np.sum(second[i])) * float(np.sum(final.upper[~j]))
        heads = np.append(0.0, np.cumsum(v)), np.append(0.0, np.cumsum(m))
        tails = np.append(np.cumsum(v[::-1])[::-1], 0.0), np.append(np.cumsum(m[::-1])[::-1], 0.0)
        return cls(search.lower[i], first[i], second[i], v / m, heads, tails, infinite)

    def divergence(self, epsilons: Array, *, with_row: bool) -> Array:
        """The hockey-stick divergence from with the row to without it, or the other way. Rounded up."""
        # a little smaller than exp(epsilon), by more than the rounding of a ratio
        factors = np.exp(np.minimum(epsilons, 700.0)) * (1.0 - 1e-14)
        return np.array([self._divergence(a, with_row) for a in factors.ravel().tolist()]).reshape(epsilons.shape)

    def _divergence(self, a: float, with_row: bool) -> float:
        with np.errstate(divide="ignore", over="ignore"):
            bounds = ((a if with_row else 1.0 / a) * self.alone - self.first) / self.second
        k = np.searchsorted(self.ratios, bounds, side="right" if with_row else "left")
        v, m = (each[k] for each in (self.tails if with_row else self.heads))
        more = float(np.dot(self.first, m) + np.dot(self.second, v)) + (self.infinite if with_row else 0.0)
        less = float(np.dot(self.alone, m))
        # what the sums may be wrong by
        found = more * (1.0 + _SUMMING) - a * less if with_row else less * (1.0 + _SUMMING) - a * more
        return max(found, 0.0)


@dataclass(frozen=True)
class SubsetRenyi(CopiedByFields):
    """A bound on the Renyi divergences of tuning on a subset, in both directions, for parts without failure mass.

    With a and b the likelihood ratios of search and final run, independent and of mean 1 without the row, the ratio is
    L = q a + (1 - q) b for "rest" and (q a + 1 - q) b for "all". Row removed: E[L^order] at whole orders by the
    binomial theorem, as in Koskela and Kulkarni, chords of its logarithm between them (it is convex in the order), and
    Minkowski's inequality at every order. Row added: E[L^(1 - order)] by convexity, and by the inequality of the
    arithmetic and geometric means.
    """

    search: RenyiCurve
    final: RenyiCurve
    sampling_rate: float
    final_rows: FinalRows
    theorem: str = "Renyi bound for tuning on a subset (after Koskela, Kulkarni 2023)"

    def __call__(self, orders: Array) -> Array:
        flat = np.asarray(orders, dtype=np.float64).reshape(-1)
        a = self._moments(self.search, flat)
        b = self._moments(self.final, flat)
        alone = b if self.final_rows == "rest" else np.zeros_like(b)
        found = np.maximum(self._removed(flat, a, alone), self._added(flat, a, alone))
        total = found if self.final_rows == "rest" else found + b
        return np.asarray(np.maximum(total / (flat - 1.0), 0.0) * ROUND_UP).reshape(np.shape(orders))

    @staticmethod
    def _moments(curve: RenyiCurve, orders: Array) -> Array:
        """Bounds on log E[ratio^order], which are those on log E[ratio^(1 - order)] of the other direction too."""
        return np.asarray((orders - 1.0) * curve(orders))

    def _removed(self, orders: Array, a: Array, b: Array) -> Array:
        """log E[(q a + (1 - q) b)^order]."""
        minkowski = orders * self._weighted(a / orders, b / orders)
        low = np.minimum(np.floor(orders).astype(int), _LARGEST_SUM - 1)
        table = self._table
        part = orders - low
        with np.errstate(invalid="ignore"):  # no moment beyond some order: Minkowski's inequality says so too
            chord = np.where(part > 0.0, table[low] + (table[low + 1] - table[low]) * part, table[low])
        return np.where(orders <= _LARGEST_SUM, np.fmin(chord, minkowski), minkowski)

    def _added(self, orders: Array, a: Array, b: Array) -> Array:
        """log E[(q a + (1 - q) b)^(1 - order)]."""
        q, excess = self.sampling_rate, orders - 1.0
        geometric = self._moments(self.search, 1.0 + q * excess)
        if self.final_rows == "rest" and q < 1.0:
            geometric = geometric + self._moments(self.final, 1.0 + (1.0 - q) * excess)
        return np.fmin(self._weighted(a, b), geometric)

    def _weighted(self, a: Array, b: Array) -> Array:
        """log(q exp(a) + (1 - q) exp(b))."""
        q = self.sampling_rate
        with np.errstate(divide="ignore"):
            return np.logaddexp(np.log(q) + a, np.log1p(-q) + b) if q < 1.0 else a

    @cached_property
    def _table(self) -> Array:
        """log E[(q a + (1 - q) b)^n] for n = 0, 1, ..., by the binomial theorem. Moments 0 and 1 are 1."""
        n = np.arange(_LARGEST_SUM + 1)
        whole = n[2:].astype(np.float64)
        a = np.concatenate(([0.0, 0.0], self._moments(self.search, whole)))
        b = np.zeros_like(a)
        if self.final_rows == "rest":
            b[2:] = self._moments(self.final, whole)
        q = self.sampling_rate
        if q == 1.0:
            return a
        choose = gammaln(n + 1.0)
        table = np.zeros(n.size)
        for order in n[2:]:
            j = n[: order + 1]
            logs = choose[order] - choose[j] - choose[order - j] + j * math.log(q) + (order - j) * math.log1p(-q)
            table[order] = logsumexp(logs + a[j] + b[order - j])
        return table * ROUND_UP + 1e-13  # logarithms of factorials are rounded


def tune_on_subset(
    *,
    search: Guarantee,
    final: Guarantee,
    sampling_rate: SupportsFloat,
    final_rows: FinalRows = "rest",
    atoms: int = ATOMS,
) -> Guarantee:
    """Return the guarantee of a search on a random subset of the rows and one final run, with both outputs released.

    Each row goes to the search with probability `sampling_rate`, independently of everything. The final run takes the
    hyperparameters that the search found.

    Under add-or-remove-one the profile is the exact worst case for the two guarantees' pairs, and the Renyi curve is a
    bound. Under replace-one "rest" is the average of both guarantees, as if the split were published.

    You must ensure both of these:

    - The split stays secret: which rows the search had, and their number. `dpselect.tuning.split_rows` draws it.
    - The final run's hyperparameters are a function of the search's output and of public numbers. A learning rate may
      be scaled by the ratio of expected sizes, q and 1 - q. Scaling by counted rows would be one more look at the data.

    Args:
        search: the guarantee of the whole search (of `best_of`, say) on the rows it is given.
        final: the guarantee of the final run, regardless of the hyperparameters.
        sampling_rate: the probability that a row goes to the search, in (0, 1]; public.
        final_rows: "rest", the default, if the final run is on the rows that the search did not see; "all" for all
            rows.
        atoms: into how many pieces each pair is cut under add-or-remove-one, from 16 to 4,000, 800 unless given.

    Returns:
        A guarantee of both outputs together, rounded up.

    Raises:
        AdjacencyError: if the adjacencies differ, or `final_rows` is "all" under replace-one. The subset of the
            neighbour is then not a neighbouring subset of the other row's absence, about which the guarantee says
            nothing.
        ArgumentError: if a number is out of range, `final_rows` is unknown, or a guarantee is not a `Guarantee`
            (`PromiseError`).
        TypeError: if `sampling_rate` or `atoms` is not a number.

    Source: docs/theory/subset-tuning.md, Theorem 1 (after Koskela and Kulkarni 2023).

    >>> from dpselect.accounting import best_of
    >>> from dpselect.privacy import gaussian
    >>> from dpselect.repetitions import Harmonic
    >>> run = gaussian(noise_multiplier=4.0)
    >>> search = best_of(run, Harmonic(limit=50), bound="profile")
    >>> both = tune_on_subset(search=search, final=run, sampling_rate=0.1)
    >>> round(search.epsilon(delta=1e-6), 3), round(both.epsilon(delta=1e-6), 3)
    (1.58, 1.02)
    """
    search = promise("search", search)
    final = promise("final", final)
    q = number("sampling_rate", sampling_rate, above=0.0, at_most=1.0)
    atoms = integer("atoms", atoms, at_least=16, at_most=4000)
    if final_rows not in ("rest", "all"):
        raise ArgumentError(f"final_rows must be 'rest' or 'all', got {final_rows!r}")
    adjacency = common_adjacency((search.adjacency, final.adjacency))
    terms = {
        "mechanism": "tune-on-subset",
        "search": dict(search.terms),
        "final": dict(final.terms),
        "sampling_rate": q,
        "final_rows": final_rows,
    }
    if adjacency is not Adjacency.ADD_OR_REMOVE_ONE:
        if final_rows == "all":
            raise AdjacencyError(f"final_rows='all' is proved for add_or_remove_one, not for {adjacency.value}")
        average = search if q == 1.0 else mixture([search, final], [q, 1.0 - q])
        theorem = "tuning on a subset, as if the split were published"  # which it is not: that mixture is no lower end
        return replace(average, theorem=theorem, terms=terms, lower_profile=None)
    if q == 1.0:  # the final run has no rows, or all of them
        return replace(search if final_rows == "rest" else compose(search, final), terms=terms)
    curves = [renyi_curve_of(g) for g in (search, final)]
    curve = SubsetRenyi(curves[0], curves[1], q, final_rows) if curves[0] and curves[1] else None
    return Guarantee(
        adjacency=adjacency,
        theorem="tuning on a subset (after Koskela, Kulkarni 2023)",
        terms=terms,
        failure=-math.expm1(math.log1p(-search.failure) + math.log1p(-final.failure)) * ROUND_UP,
        pure_epsilon=_pure(search.pure_epsilon, final.pure_epsilon, q, final_rows),
        renyi_curve=curve,
        profile=SubsetProfile(search, final, q, final_rows, atoms),
        # of the final run's output alone; that of a search would take seconds
        lower_profile=sampled_below(final.lower_profile, 1.0 - q) if final_rows == "rest" else final.lower_profile,
    )


def _pure(search: float, final: float, q: float, final_rows: FinalRows) -> float:
    """The log of the largest ratio. The smallest is nearer to 1, by the inequality of the means."""
    if final_rows == "all":
        return float(np.logaddexp(math.log(q) + search, math.log1p(-q)) + final) * ROUND_UP
    return float(np.logaddexp(math.log(q) + search, math.log1p(-q) + final)) * ROUND_UP
