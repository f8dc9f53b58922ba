"""Several private quantiles of one column."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, SupportsFloat

from dpselect.errors import ArgumentError, BoundUnavailableError, number
from dpselect.mechanisms.bounded_range import bounded_range
from dpselect.ordered.columns import ChunkedColumn
from dpselect.ordered.intervals import RankedColumn, draw_code
from dpselect.ordered.joint_quantiles import joint_codes, joint_rate
from dpselect.ordered.quantile import (
    open_ranks,
    parse_epsilon,
    parse_quantile,
    quantile_guarantee,
    quantile_rate,
    rank_error,
)
from dpselect.ordered.recursive_quantiles import (
    Cut,
    cut_rate,
    cutting_tree,
    equal_share,
    recursive_codes,
    recursive_guarantee,
)
from dpselect.ordered.scattered import ScatteredColumn, fine_bits
from dpselect.ordered.small_domain import MOST_CODES
from dpselect.ordered.tree_quantiles import tree_codes, tree_guarantee
from dpselect.privacy import Adjacency, Guarantee, Release, compose
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.randomness import RandomSource, resolve

__all__ = ["Method", "QuantilesPlan", "QuantilesRelease", "quantiles", "quantiles_guarantee", "quantiles_plan"]

Method = Literal["auto", "recursive", "joint", "tree", "independent"]
_METHODS = ("auto", "recursive", "joint", "tree", "independent")


@dataclass(frozen=True)
class QuantilesPlan:
    """How quantiles are drawn, from public parameters alone: `qs` increasing, the price, and a cut and a rate for each.

    The joint method has one rate and no cuts; the tree has epsilon for its rate.
    """

    qs: tuple[Fraction, ...]
    method: str
    cuts: tuple[Cut, ...]
    rates: tuple[Fraction, ...]
    guarantee: Guarantee

    def check(self, domain_size: int) -> None:
        """Raise `ArgumentError` where the method cannot take a domain of this size."""
        most = {"tree": MOST_CODES, "independent": math.inf}.get(self.method, 2**64)
        if domain_size > most:
            limit = "2**64" if most > MOST_CODES else f"{MOST_CODES}"
            raise ArgumentError(f"method: {self.method} needs a domain of at most {limit} values, by its granularity")

    def rank_errors(self, domain_size: int, failure_probability: SupportsFloat = 0.05) -> list[float]:
        """See `QuantilesRelease.rank_errors`. Raises `BoundUnavailableError` for the tree."""
        if self.method == "tree":
            raise BoundUnavailableError("method: the tree has no proved bound on ranks here")
        failure = number("failure_probability", failure_probability, above=0.0, below=1.0)
        count = len(self.qs)
        fine = domain_size if self.method == "independent" else domain_size << fine_bits(domain_size)
        if self.method == "joint":
            # some sequence is off by less than one row a group; there are fewer than fine**count others; and a rank is
            # off by at most half of what all groups are
            total = count + 1 + rank_error(fine**count, self.rates[0], failure)
            return [total / 2.0 * (1.0 + 2.0**-48)] * count
        failure /= count
        found: dict[int | None, float] = {None: 0.0}
        for cut, rate in zip(self.cuts, self.rates, strict=True):
            share = float(cut.share)
            ends = (1.0 - share) * found[cut.low] + share * found[cut.high]
            found[cut.index] = (rank_error(fine, rate, failure) + ends) * (1.0 + 2.0**-48)
        return [found[index] for index in range(count)]


@dataclass(frozen=True, kw_only=True)
class QuantilesRelease(Release):
    """Private quantiles: `value[i]` at `plan.qs[i]`, increasing, and what is known of their accuracy."""

    plan: QuantilesPlan
    domain_size: int

    def rank_errors(self, failure_probability: SupportsFloat = 0.05) -> list[float]:
        """How many ranks each value is off at most, all together except with this probability, for every column.

        Rows at most the value: at least q n less the error; rows below it: at most q n plus the error. A recursive
        cut's own error adds to a weighted mean of those of the cuts around it; rows that are tied even after their
        ties are broken (m equal rows: about m/2**15 for floats) come on top.
        """
        return self.plan.rank_errors(self.domain_size, failure_probability)


def quantiles_plan(
    *,
    epsilon: SupportsFloat,
    qs: Iterable[SupportsFloat | Fraction],
    method: Method = "auto",
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
    domain_size: int | None = None,
) -> QuantilesPlan:
    """What `quantiles` with the same arguments will do and cost; without a `domain_size` "auto" does not take the tree.

    >>> plan = quantiles_plan(epsilon=1.0, qs=[0.25, 0.5, 0.75])
    >>> plan.method, plan.guarantee.epsilon(delta=0), [round(e) for e in plan.rank_errors(1000)]
    ('recursive', 1.0, [145, 97, 145])
    """
    epsilon = parse_epsilon(epsilon)
    adjacency = parse_adjacency(adjacency)
    wanted = tuple(sorted({parse_quantile(q) for q in qs}))
    if not wanted:
        raise ArgumentError("qs must hold at least one quantile")
    if method not in _METHODS:
        raise BoundUnavailableError(f"method must be one of {', '.join(map(repr, _METHODS))}, got {method!r}")
    chosen = method if method != "auto" else _automatic(len(wanted), epsilon, domain_size)
    if chosen == "recursive":
        cuts = cutting_tree(wanted)
        guarantee = recursive_guarantee(cuts, epsilon, adjacency)
        each = Fraction(equal_share(epsilon, max(cut.level for cut in cuts) + 1))
        rates = [cut_rate(cut.share, each, adjacency) for cut in cuts]
    elif chosen == "tree":
        cuts, rates, guarantee = [], [Fraction(epsilon)], tree_guarantee(epsilon, adjacency)
    elif chosen == "joint":
        cuts, rates = [], [joint_rate(wanted, Fraction(epsilon), adjacency)]
        guarantee = bounded_range(epsilon=epsilon, adjacency=adjacency)
    else:
        cuts = [Cut(index, q, None, None, index) for index, q in enumerate(wanted)]
        share = equal_share(epsilon, len(wanted))
        guarantee = compose(*(quantile_guarantee(epsilon=share, q=q, adjacency=adjacency) for q in wanted))
        rates = [quantile_rate(q, Fraction(share), adjacency) for q in wanted]
    terms = {"mechanism": "quantiles", "method": chosen, "qs": [float(q) for q in wanted], "epsilon": epsilon}
    return QuantilesPlan(wanted, chosen, tuple(cuts), tuple(rates), replace(guarantee, terms=terms))


def _automatic(count: int, epsilon: float, domain_size: int | None) -> str:
    """Measured on 1000 rows: the tree is better from about 12 quantiles on, and from 5 where the noise is large."""
    if count == 1:
        return "independent"
    many = count >= 12 or (count >= 5 and epsilon < 0.5)
    return "tree" if many and domain_size is not None and domain_size <= MOST_CODES else "recursive"


def quantiles(
    values: Any,
    *,
    qs: Iterable[SupportsFloat | Fraction],
    epsilon: SupportsFloat,
    lower: Any = None,
    upper: Any = None,
    granularity: Any = None,
    categories: Any = None,
    method: Method = "auto",
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
    assume_sorted: bool = False,
    random: RandomSource | None = None,
) -> QuantilesRelease:
    """Several private quantiles, increasing, for epsilon altogether.

    - `method="recursive"` (Kaplan, Schnapp, Stemmer 2022): cut at the middle quantile, go on in both parts; a row is in
      one part of a level, so log2(m + 1) levels share epsilon instead of m quantiles. Ties are broken at random first.
    - `"joint"` (Gillenwater, Joseph, Kulesza 2021): one exponential mechanism over all increasing sequences; ties are
      broken too. Time and memory grow as m times the number of rows.
    - `"tree"` (Hay, Rastogi, Miklau, Suciu 2010): noisy counts of a domain of at most 4096 values, good for any number
      of quantiles at once. Pure epsilon and no more, and no `rank_errors`.
    - `"independent"`: m times `quantile`, at epsilon/m.
    - `"auto"`: recursive for two and more; the tree, where it can be, for 12 and more, or 5 and more below epsilon 0.5.

    The other arguments are those of `quantile`; the values and the guarantee (levels of a bounded range, composed) are
    exact in the same sense. Raises `ArgumentError` and `TypeError` for arguments, never because of the values.

    >>> from dpselect.randomness import keyed_source
    >>> quantiles(range(10_000), qs=[0.25, 0.5, 0.75], lower=0, upper=10_000, granularity=100, epsilon=1.0,
    ...           random=keyed_source(1)).value
    [2500.0, 5000.0, 7500.0]
    """
    qs = list(qs)
    adjacency = parse_adjacency(adjacency)
    quantiles_plan(epsilon=epsilon, qs=qs, method=method, adjacency=adjacency)  # arguments first
    source = resolve(random)
    column, domain, _ = open_ranks(
        values,
        lower=lower,
        upper=upper,
        granularity=granularity,
        categories=categories,
        assume_sorted=assume_sorted,
    )
    plan = quantiles_plan(epsilon=epsilon, qs=qs, method=method, adjacency=adjacency, domain_size=domain.size)
    plan.check(domain.size)
    codes = _draw(column, plan, domain.size, source)
    return QuantilesRelease(
        value=[domain.decode(code) for code in codes],
        guarantee=plan.guarantee,
        replayable=source.replayable,
        plan=plan,
        domain_size=domain.size,
    )


def _draw(column: RankedColumn, plan: QuantilesPlan, size: int, random: RandomSource) -> list[int]:
    if plan.method == "tree":
        adjacency, epsilon = plan.guarantee.adjacency, plan.rates[0]
        return tree_codes(column, plan.qs, size=size, epsilon=epsilon, adjacency=adjacency, random=random)
    if isinstance(column, ChunkedColumn) and plan.method != "joint":
        column.prefetch(_ranks(column.total, plan, size))
    if plan.method == "independent":
        draws = [
            draw_code(column, size=size, target=cut.share * column.total, rate=rate, random=random)
            for cut, rate in zip(plan.cuts, plan.rates, strict=True)
        ]
        return sorted(draws)
    bits = fine_bits(size)
    fine = ScatteredColumn(column, bits, random)
    if plan.method == "joint":
        found = joint_codes(fine, plan.qs, size=size << bits, rate=plan.rates[0], random=random)
    else:
        found = recursive_codes(fine, plan.cuts, size=size << bits, rates=plan.rates, random=random)
    return [code >> bits for code in found]


def _ranks(total: int, plan: QuantilesPlan, size: int) -> Sequence[tuple[int, int]]:
    """Ranks that will be looked at, most likely."""
    aside = 100.0 / float(min(plan.rates))
    spans = []
    for q, error in zip(plan.qs, plan.rank_errors(size), strict=True):
        reach = math.ceil(error + aside)
        spans.append((math.floor(q * total) - reach, math.ceil(q * total) + reach))
    return spans


def quantiles_guarantee(
    *,
    epsilon: SupportsFloat,
    qs: Iterable[SupportsFloat | Fraction],
    method: Method = "auto",
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
) -> Guarantee:
    """What `quantiles` with the same arguments promises.

    >>> quantiles_guarantee(epsilon=1.0, qs=[0.25, 0.5, 0.75]).epsilon(delta=0)
    1.0
    """
    return quantiles_plan(epsilon=epsilon, qs=qs, method=method, adjacency=adjacency).guarantee
