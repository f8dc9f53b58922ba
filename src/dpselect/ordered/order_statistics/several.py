"""Several private quantiles of one column."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, SupportsFloat, SupportsIndex

from numpy.typing import ArrayLike

from dpselect.errors import number
from dpselect.ordered.order_statistics.by_slices import slice_codes
from dpselect.ordered.order_statistics.intervals import RankedColumn, draw_code
from dpselect.ordered.order_statistics.joint import joint_bits, joint_codes, joint_spans, joint_width
from dpselect.ordered.order_statistics.plan import Method, QuantilesPlan, quantiles_guarantee, quantiles_plan
from dpselect.ordered.order_statistics.recursive import recursive_codes
from dpselect.ordered.order_statistics.scattered import ScatteredColumn, fine_bits
from dpselect.ordered.order_statistics.scattered_pairs import PairedColumn
from dpselect.ordered.order_statistics.tree import TreeAnswer, tree_codes
from dpselect.ordered.sources.columns import ChunkedColumn
from dpselect.ordered.sources.declared import DeclaredColumn, declare_column
from dpselect.privacy import Adjacency, Release, Spender, paid
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.randomness import RandomSource, resolve

__all__ = ["QuantilesPlan", "QuantilesRelease", "quantiles", "quantiles_guarantee", "quantiles_plan"]


@dataclass(frozen=True, kw_only=True)
class QuantilesRelease(Release):
    """Private quantiles: `value[i]` at `plan.qs[i]`, increasing, and what is known of their accuracy.

    `noisy_rows`: how many rows (without weights) there are, where the method pays for that: tree and slice.
    """

    plan: QuantilesPlan
    domain_size: int
    noisy_rows: int | None = None
    tree: TreeAnswer | None = None

    def rank_errors(self, failure_probability: SupportsFloat = 0.05) -> list[float]:
        """How many ranks each value is off at most, all together except with this probability, for every column.

        Rows at most the value: at least q n less the error; rows below it: at most q n plus the error; with weights,
        in multiples of the largest one. From public parameters, and for tree and slice from noisy counts that are paid
        for. A recursive cut's own error adds to a weighted mean of those of the cuts around it. Where ties are broken
        at random, rows that are tied even then (m equal rows: about m/2**15 for floats) come on top.
        """
        failure = number("failure_probability", failure_probability, above=0.0, below=1.0)
        if self.tree is not None:
            errors = self.tree.rank_errors(self.plan.qs, self.domain_size, failure)
            return [error / self.plan.units for error in errors]
        if self.plan.slicing is not None and self.noisy_rows is not None:
            fine = self.domain_size << fine_bits(self.domain_size)
            return self.plan.slicing.rank_errors(fine, failure, self.noisy_rows)
        return self.plan.rank_errors(self.domain_size, failure)


def quantiles(
    values: Any,
    *,
    qs: Iterable[SupportsFloat | Fraction],
    epsilon: SupportsFloat,
    domain_size: SupportsIndex | None = None,
    lower: Any = None,
    upper: Any = None,
    granularity: Any = None,
    categories: Any = None,
    method: Method = "auto",
    delta: SupportsFloat | None = None,
    expected_rows: int = 1000,
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
    weights: ArrayLike | None = None,
    largest_weight: SupportsFloat = 1.0,
    assume_sorted: bool = False,
    spender: Spender | None = None,
    label: str = "quantiles",
    random: RandomSource | None = None,
) -> QuantilesRelease:
    """Several private quantiles, increasing, for epsilon altogether.

    - `method="joint"` (Gillenwater, Joseph, Kulesza 2021): one exponential mechanism over all increasing sequences,
      drawn exactly from the ranks around the quantiles. Time and memory grow with the square of their number over
      epsilon, and hardly with the rows. No weights.
    - `"recursive"` (Kaplan, Schnapp, Stemmer 2022): cut at the middle quantile, go on in both parts; a row is in one
      part of a level, so log2(m + 1) levels share epsilon instead of m quantiles.
    - `"tree"` (Hay, Rastogi, Miklau, Suciu 2010): noisy counts of a domain of at most 4096 values, good for any number
      of quantiles at once and for few rows.
    - `"slice"` (Cohen, Lyu, Nelson, Sarlos, Stemmer 2022): a quantile in each slice of Reorder-Slice-Compute. Costs
      (epsilon, `delta`), hardly more for many quantiles than for eight.
    - `"independent"`: m times `quantile`, at epsilon/m.
    - `"auto"`: by the number of quantiles, epsilon, adjacency, the size of the domain and `expected_rows`, about how
      many rows there are, which is public (the caller must ensure it): tree where there are few rows for many quantiles
      on a small domain; else joint, or recursive where that would be slow. 1000 rows are expected unless you know
      better.

    Joint, recursive and slice break ties at random first. Answers depend on rows through the mechanism alone: what
    `expected_rows` says is never compared with them.

    The other arguments are those of `quantile`; the values and the guarantee are exact in the same sense. Raises
    `ArgumentError` and `TypeError` for arguments, never because of the values.

    >>> from dpselect.randomness import keyed_source
    >>> quantiles(range(10_000), qs=[0.25, 0.5, 0.75], lower=0, upper=10_000, granularity=100, epsilon=1.0,
    ...           random=keyed_source(1)).value
    [2500.0, 5000.0, 7500.0]
    """
    declared = declare_column(
        values,
        domain_size=domain_size,
        lower=lower,
        upper=upper,
        granularity=granularity,
        categories=categories,
        weights=weights,
        largest_weight=largest_weight,
        assume_sorted=assume_sorted,
    )
    size = declared.domain.size
    plan = quantiles_plan(
        epsilon=epsilon,
        qs=qs,
        method=method,
        delta=delta,
        adjacency=parse_adjacency(adjacency),
        domain_size=size,
        expected_rows=expected_rows,
        units=declared.units,
    )
    plan.check(size)
    source = resolve(random)

    def release(value: tuple[list[int], int | None, TreeAnswer | None], **paid_for: Any) -> QuantilesRelease:
        codes, rows, tree = value
        values = [declared.domain.decode(code) for code in codes]
        return QuantilesRelease(value=values, plan=plan, domain_size=size, noisy_rows=rows, tree=tree, **paid_for)

    return paid(
        lambda: _draw(declared, plan, source),
        plan.guarantee,
        spender=spender,
        label=label,
        replayable=source.replayable,
        form=release,
    )


def _draw(
    declared: DeclaredColumn, plan: QuantilesPlan, random: RandomSource
) -> tuple[list[int], int | None, TreeAnswer | None]:
    size = declared.domain.size
    if plan.method == "tree":
        found = tree_codes(
            declared.ranked(),
            plan.qs,
            size=size,
            epsilon=plan.rates[0],
            adjacency=plan.guarantee.adjacency,
            random=random,
            units=plan.units,
        )
        return found.codes, found.rows if plan.units == 1 else None, found
    if plan.method == "independent":
        column = declared.ranked()
        _prefetch(column, plan, size)
        draws = [
            draw_code(column, size=size, target=cut.share * column.total, rate=rate, random=random)
            for cut, rate in zip(plan.cuts, plan.rates, strict=True)
        ]
        return sorted(draws), None, None
    if plan.method == "joint":
        column, bits = declared.ranked(), joint_bits(size)
        _prefetch(column, plan, size)
        # rows up to 64 bits with their places are whole numbers of NumPy
        kind = ScatteredColumn if bits + (size - 1).bit_length() <= 64 else PairedColumn
        codes = joint_codes(kind(column, bits, random), plan.qs, size=size << bits, rate=plan.rates[0], random=random)
        return [code >> bits for code in codes], None, None
    fine, bits = declared.scattered(random), fine_bits(size)
    if isinstance(fine, ScatteredColumn):
        _prefetch(fine.column, plan, size)
    rows = None
    if plan.slicing is not None:
        codes, rows = slice_codes(fine, plan.slicing, size=size << bits, random=random)
    else:
        codes = recursive_codes(fine, plan.cuts, size=size << bits, rates=plan.rates, random=random)
    return [code >> bits for code in codes], rows, None


def _prefetch(column: RankedColumn, plan: QuantilesPlan, size: int) -> None:
    """Read in one pass what will be looked at, most likely."""
    if not isinstance(column, ChunkedColumn) or plan.slicing is not None:
        return
    total = column.total
    if plan.method == "joint":
        width = joint_width(len(plan.qs), size << joint_bits(size), plan.rates[0])
        column.prefetch(joint_spans(total, plan.qs, width + 1))
        return
    aside = 100.0 / float(min(plan.rates))
    spans: list[tuple[int, int]] = []
    for q, error in zip(plan.qs, plan.rank_errors(size), strict=True):
        reach = math.ceil(error + aside)
        spans.append((math.floor(q * total) - reach, math.ceil(q * total) + reach))
    column.prefetch(spans)
