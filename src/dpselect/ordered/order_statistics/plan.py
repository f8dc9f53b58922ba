"""Which method several quantiles take, what it costs and how far off it is, from public parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, SupportsFloat, Unpack, get_args

from dpselect.errors import ArgumentError, BoundUnavailableError, integer, number
from dpselect.mechanisms import bounded_range
from dpselect.ordered.order_statistics.by_slices import Slicing, plan_slices
from dpselect.ordered.order_statistics.joint import joint_bits, joint_rate
from dpselect.ordered.order_statistics.one import (
    parse_epsilon,
    parse_quantile,
    quantile_guarantee,
    quantile_rate,
    rank_error,
)
from dpselect.ordered.order_statistics.recursive import Cut, cut_rate, cutting_tree, equal_share, recursive_guarantee
from dpselect.ordered.order_statistics.scattered import fine_bits
from dpselect.ordered.order_statistics.small_domain import MOST_CODES
from dpselect.ordered.order_statistics.tree import tree_guarantee
from dpselect.ordered.public_domain import PublicDomain, size_of_domain
from dpselect.privacy import Adjacency, Guarantee, compose
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.privacy.output.amounts import epsilon_used

__all__ = ["Method", "QuantilesPlan", "quantiles_guarantee", "quantiles_plan"]

Method = Literal["auto", "recursive", "joint", "tree", "independent", "slice"]

_MOST_JOINT = 30
_WORK = 1e4
"""The joint method takes time and memory in proportion to the square of the number of quantiles over epsilon."""


@dataclass(frozen=True)
class QuantilesPlan:
    """How quantiles are drawn, from public parameters alone: `qs` increasing, the price, and a cut and a rate for each.

    The joint method has one rate and no cuts; the tree has epsilon for its rate; slices have their own parameters. A
    row counts `units` units of rank at most.
    """

    qs: tuple[Fraction, ...]
    method: str
    cuts: tuple[Cut, ...]
    rates: tuple[Fraction, ...]
    guarantee: Guarantee
    units: int = 1
    slicing: Slicing | None = None

    def check(self, domain_size: int) -> None:
        """Raise `ArgumentError` where the method cannot take a domain of this size."""
        most = {"tree": MOST_CODES, "independent": math.inf}.get(self.method, 2**64)
        if domain_size > most:
            limit = "2**64" if most > MOST_CODES else f"{MOST_CODES}"
            raise ArgumentError(f"method: {self.method} needs a domain of at most {limit} values, by its granularity")

    def rank_errors(self, domain_size: int, failure_probability: SupportsFloat = 0.05) -> list[float]:
        """See `QuantilesRelease.rank_errors`. Raises `BoundUnavailableError` where it takes the released answer."""
        if self.method in ("tree", "slice"):
            raise BoundUnavailableError(f"method: what {self.method} is off by is known with its answer, not before")
        failure = number("failure_probability", failure_probability, above=0.0, below=1.0)
        count = len(self.qs)
        fine = domain_size if self.method == "independent" else domain_size << fine_bits(domain_size)
        if self.method == "joint":
            fine = domain_size << joint_bits(domain_size)
            # some sequence is off by less than one row a group; there are fewer than fine**count others; and a rank is
            # off by at most half of what all groups are
            total = count + 1 + rank_error(fine**count, self.rates[0], failure)
            return [total / 2.0 * (1.0 + 2.0**-48)] * count
        failure /= count
        found: dict[int | None, float] = {None: 0.0}
        for cut, rate in zip(self.cuts, self.rates, strict=True):
            share = float(cut.share)
            ends = (1.0 - share) * found[cut.low] + share * found[cut.high]
            found[cut.index] = (rank_error(fine, rate, failure) / self.units + ends) * (1.0 + 2.0**-48)
        errors = [found[index] for index in range(count)]
        # independent draws are put in order: a value may be another one's, whose error is larger
        return [max(errors)] * count if self.method == "independent" else errors


def quantiles_plan(
    *,
    epsilon: SupportsFloat,
    qs: Iterable[SupportsFloat | Fraction],
    method: Method = "auto",
    delta: SupportsFloat | None = None,
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
    expected_rows: int = 1000,
    units: int = 1,
    **domain: Unpack[PublicDomain],
) -> QuantilesPlan:
    """What `quantiles` with the same arguments will do and cost. "auto" goes by the domain too, where it is given.

    >>> plan = quantiles_plan(epsilon=1.0, qs=[0.25, 0.5, 0.75], method="recursive")
    >>> plan.method, plan.guarantee.epsilon(delta=0), [round(e) for e in plan.rank_errors(1000)]
    ('recursive', 1.0, [145, 97, 145])
    """
    epsilon = parse_epsilon(epsilon)
    adjacency = parse_adjacency(adjacency)
    expected_rows = integer("expected_rows", expected_rows, at_least=1, at_most=1 << 1000)
    units = integer("units", units, at_least=1)
    size = size_of_domain(**domain) if any(given is not None for given in domain.values()) else None
    wanted = tuple(sorted({parse_quantile(q) for q in qs}))
    if not wanted:
        raise ArgumentError("qs must hold at least one quantile")
    if method not in get_args(Method):
        raise BoundUnavailableError(f"method must be one of {', '.join(map(repr, get_args(Method)))}, got {method!r}")
    if (method == "slice") != (delta is not None):
        raise ArgumentError("delta goes with method 'slice', which needs one; the other methods are pure")
    chosen = method if method != "auto" else _automatic(len(wanted), epsilon, adjacency, size, expected_rows)
    if units > 1 and chosen in ("joint", "slice"):
        if method != "auto":
            raise ArgumentError(f"weights: the method {chosen} does not take them")
        chosen = "recursive"
    slicing = None
    cuts: list[Cut] = []
    if chosen == "recursive":
        cuts = cutting_tree(wanted)
        guarantee = recursive_guarantee(cuts, epsilon, adjacency)
        each = epsilon_used(equal_share(epsilon, max(cut.level for cut in cuts) + 1))
        rates = [cut_rate(cut.share, each, adjacency) / units for cut in cuts]
    elif chosen == "tree":
        rates, guarantee = [epsilon_used(epsilon)], tree_guarantee(epsilon, adjacency)
    elif chosen == "joint":
        rates = [joint_rate(wanted, epsilon_used(epsilon), adjacency)]
        guarantee = bounded_range(epsilon=epsilon, adjacency=adjacency)
    elif chosen == "slice":
        assert delta is not None
        slicing, guarantee = plan_slices(wanted, epsilon, number("delta", delta, above=0.0, below=1.0), adjacency)
        rates = slicing.rates
    else:
        cuts = [Cut(index, q, None, None, index) for index, q in enumerate(wanted)]
        share = equal_share(epsilon, len(wanted))
        guarantee = compose(*(quantile_guarantee(epsilon=share, q=q, adjacency=adjacency) for q in wanted))
        rates = [quantile_rate(q, Fraction(share), adjacency, units=units) for q in wanted]
    terms = {"mechanism": "quantiles", "method": chosen, "qs": [float(q) for q in wanted], "epsilon": epsilon}
    guarantee = replace(guarantee, terms=terms | ({} if delta is None else {"delta": float(delta)}))
    return QuantilesPlan(wanted, chosen, tuple(cuts), tuple(rates), guarantee, units, slicing)


def _automatic(count: int, epsilon: float, adjacency: Adjacency, domain_size: int | None, rows: int) -> str:
    """From measurements: the joint method, unless there are few rows for so many quantiles, and unless it is slow.

    The tree is better below about 3 m**2 rows at epsilon 1 (1.5 m**2 for replaced rows, where its noise is doubled and
    the joint method's is not).
    """
    if count == 1:
        return "independent"
    few = epsilon * rows < (3.0 if adjacency is Adjacency.ADD_OR_REMOVE_ONE else 1.5) * count**2
    if few and domain_size is not None and domain_size <= MOST_CODES:
        return "tree"
    small = count <= _MOST_JOINT and count**2 <= _WORK * epsilon
    return "joint" if small else "recursive"


def quantiles_guarantee(
    *,
    epsilon: SupportsFloat,
    qs: Iterable[SupportsFloat | Fraction],
    method: Method = "auto",
    delta: SupportsFloat | None = None,
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
    expected_rows: int = 1000,
    **domain: Unpack[PublicDomain],
) -> Guarantee:
    """What `quantiles` with the same arguments promises; "auto" depends on the domain.

    >>> quantiles_guarantee(epsilon=1.0, qs=[0.25, 0.5, 0.75]).epsilon(delta=0)
    1.0
    """
    return quantiles_plan(
        epsilon=epsilon,
        qs=qs,
        method=method,
        delta=delta,
        adjacency=adjacency,
        expected_rows=expected_rows,
        **domain,
    ).guarantee
