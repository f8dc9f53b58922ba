"""Several private quantiles of one column."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, SupportsFloat, TypeVar, cast, get_args

from dpselect.errors import ArgumentError, BoundUnavailableError, integer, number
from dpselect.mechanisms import Mechanism, bounded_range
from dpselect.ordered.order_statistics.by_slices import Slicing, plan_slices, slice_codes
from dpselect.ordered.order_statistics.intervals import RankedColumn, draw_code
from dpselect.ordered.order_statistics.joint import (
    joint_bits,
    joint_codes,
    joint_error,
    joint_rate,
    joint_spans,
    joint_width,
)
from dpselect.ordered.order_statistics.one import Quantile, parse_epsilon, parse_quantile, quantile_rate, rank_error
from dpselect.ordered.order_statistics.recursive import (
    Cut,
    cut_rate,
    cutting_tree,
    equal_share,
    recursive_codes,
)
from dpselect.ordered.order_statistics.scattered import ScatteredColumn, fine_bits
from dpselect.ordered.order_statistics.small_domain import MOST_CODES
from dpselect.ordered.order_statistics.tree import TreeAnswer, tree_codes
from dpselect.ordered.public_domain import PublicDomain
from dpselect.ordered.sources.columns import ChunkedColumn
from dpselect.ordered.sources.declared import Column
from dpselect.privacy import Adjacency, Guarantee, Release, Spender, compose, pure_dp
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.public_api import options_of
from dpselect.randomness import RandomSource

__all__ = ["Quantiles", "QuantilesRelease", "quantiles"]

Method = Literal["auto", "least_bound", "recursive", "joint", "tree", "independent", "slice"]

T = TypeVar("T")

_USUAL_SIZE = 1 << 49
"""Values of a column of floats without a granularity, where no domain is given yet."""
_MOST_JOINT = 30
_WORK = 1e4
"""The joint method takes time and memory in proportion to the square of the number of quantiles over epsilon."""
_LARGEST = 1 << 64
"""Values of a domain on which ties are broken at random."""


@dataclass(frozen=True, kw_only=True)
class Quantiles(PublicDomain, Mechanism):
    """Several private quantiles of a `Column`, in the order of `qs`, for epsilon altogether.

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
      better. This is the choice with the least error on nearly every column, not the one with the least proved error.
    - `"least_bound"`: the method with the least proved error for the worst column, of independent, recursive and joint
      (see `proved_best`). On most columns its values are further off than those of "auto".

    Joint, recursive and slice break ties at random first. Answers depend on rows through the mechanism alone: what
    `expected_rows` says is never compared with them.

    The domain and `units` (how many units of rank a row counts at most) are those of the column, once there is one;
    before, "auto" goes by the domain if it is given. `rates`: the joint method has one and no `cuts`; the tree has
    epsilon for its rate; slices have their own parameters. Raises `ArgumentError` and `TypeError` for arguments, never
    because of the values.

    >>> asked = Quantiles(epsilon=1.0, qs=[0.25, 0.5, 0.75], method="recursive")
    >>> asked.guarantee.epsilon(delta=0), [round(e) for e in asked.rank_errors(1000)]
    (1.0, [145, 97, 145])
    """

    qs: Any
    epsilon: float
    method: Method = "auto"
    delta: float | None = None
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE
    expected_rows: int = 1000
    units: int = 1

    def __post_init__(self) -> None:
        asked = tuple(parse_quantile(q) for q in self.qs)
        self._parsed(
            qs=asked,
            epsilon=parse_epsilon(self.epsilon),
            adjacency=parse_adjacency(self.adjacency),
            expected_rows=integer("expected_rows", self.expected_rows, at_least=1, at_most=1 << 1000),
            units=integer("units", self.units, at_least=1),
            delta=None if self.delta is None else number("delta", self.delta, above=0.0, below=1.0, rounding="down"),
        )
        if not asked:
            raise ArgumentError("qs must hold at least one quantile")
        if self.method not in get_args(Method):
            known = ", ".join(map(repr, get_args(Method)))
            raise BoundUnavailableError(f"method must be one of {known}, got {self.method!r}")
        if (self.method == "slice") != (self.delta is not None):
            raise ArgumentError("delta goes with method 'slice', which needs one; the other methods are pure")
        if self.units > 1 and self.method in ("joint", "slice"):
            raise ArgumentError(f"weights: the method {self.method} does not take them")
        _ = self.chosen

    @property
    def increasing(self) -> tuple[Fraction, ...]:
        """The quantiles that are drawn: each once, in their order on the column."""
        return tuple(sorted(set(self.qs)))

    def as_asked(self, found: Sequence[T]) -> list[T]:
        """What was found for `increasing`, in the order of `qs`."""
        by_quantile = dict(zip(self.increasing, found, strict=True))
        return [by_quantile[q] for q in self.qs]

    @property
    def chosen(self) -> Method:
        """The method: that of "auto" from measurements.

        The joint method, unless there are few rows for so many quantiles, and unless it is slow. The tree is better
        below about 3 m**2 rows at epsilon 1 (1.5 m**2 for replaced rows, where its noise is doubled and the joint
        method's is not).
        """
        count, size = len(self.increasing), self.size() if self._has_domain else None
        if self.method == "least_bound":
            return self._proved_best[0]
        if self.method != "auto":
            return self.method
        if count == 1:
            return "independent"
        few = (
            self.epsilon * self.expected_rows
            < (3.0 if self.adjacency is Adjacency.ADD_OR_REMOVE_ONE else 1.5) * count**2
        )
        if few and size is not None and size <= MOST_CODES:
            return "tree"
        return "joint" if self._quick and self.units == 1 else "recursive"

    def proved_best(
        self, domain_size: int, failure_probability: SupportsFloat = 0.05
    ) -> tuple[Literal["independent", "recursive", "joint"], float]:
        """Return the method with the least proved error at the same epsilon, and that error in ranks.

        The error is the largest of `rank_errors`. It is compared among the independent, the recursive and the joint
        method, which state theirs before anything is drawn, from public parameters alone.

        Args:
            domain_size: how many values the column can have.
            failure_probability: how often an error may be larger.

        >>> plan = Quantiles(epsilon=1.0, qs=[0.1, 0.25, 0.5, 0.75])
        >>> method, error = plan.proved_best(2**49)
        >>> plan.chosen, round(max(plan.rank_errors(2**49))), method, round(error)
        ('joint', 406, 'independent', 276)
        """
        size = integer("domain_size", domain_size, at_least=1)
        found: tuple[Literal["independent", "recursive", "joint"], float] | None = None
        methods: tuple[Literal["joint", "recursive", "independent"], ...] = ("joint", "recursive", "independent")
        for method in methods:
            if (method == "joint" and (self.units > 1 or not self._quick)) or (
                method != "independent" and size > _LARGEST
            ):
                continue
            errors = replace(self, method=method, delta=None).rank_errors(size, failure_probability)
            if found is None or max(errors) < found[1]:
                found = method, max(errors)
        assert found is not None
        return found

    @cached_property
    def _proved_best(self) -> tuple[Literal["independent", "recursive", "joint"], float]:
        return self.proved_best(self.size() if self._has_domain else _USUAL_SIZE)

    @property
    def _has_domain(self) -> bool:
        given = (self.domain_size, self.lower, self.upper, self.granularity)
        return any(one is not None for one in given)

    @property
    def _quick(self) -> bool:
        """Whether the joint method takes little time."""
        count = len(self.increasing)
        return count <= _MOST_JOINT and count**2 <= _WORK * self.epsilon

    @property
    def slicing(self) -> Slicing | None:
        """The parameters of the slices."""
        return self._planned[2]

    @property
    def cuts(self) -> list[Cut]:
        """What each quantile is of which part, those that bound a part before those inside it."""
        if self.chosen == "recursive":
            return cutting_tree(self.increasing)
        independent = self.chosen == "independent"
        return [Cut(index, q, None, None, index) for index, q in enumerate(self.increasing)] if independent else []

    @property
    def rates(self) -> tuple[Fraction, ...]:
        """Of the exponential mechanisms, one for each cut."""
        return self._planned[0]

    @property
    def guarantee(self) -> Guarantee:
        """What one run promises; with "auto" it depends on the domain."""
        qs, delta = [float(q) for q in self.qs], {} if self.delta is None else {"delta": self.delta}
        terms = {"mechanism": "quantiles", "method": self.chosen, "qs": qs, "epsilon": self.epsilon} | delta
        return replace(self._planned[1], terms=terms)

    @cached_property
    def _planned(self) -> tuple[tuple[Fraction, ...], Guarantee, Slicing | None]:
        """The rates, the price without its terms, and the slices."""
        epsilon, adjacency, units, cuts = self.epsilon, parse_adjacency(self.adjacency), self.units, self.cuts
        if self.chosen == "recursive":
            levels = max(cut.level for cut in cuts) + 1
            each = equal_share(epsilon, levels)
            rates = [cut_rate(cut.share, epsilon_used(each), adjacency) / units for cut in cuts]
            return tuple(rates), compose(*[bounded_range(epsilon=each, adjacency=adjacency)] * levels), None
        if self.chosen == "tree":
            return (epsilon_used(epsilon),), pure_dp(epsilon=epsilon, adjacency=adjacency), None
        if self.chosen == "joint":
            rate = joint_rate(self.increasing, epsilon_used(epsilon), adjacency)
            return (rate,), bounded_range(epsilon=epsilon, adjacency=adjacency), None
        if self.delta is not None:
            slicing, guarantee = plan_slices(self.increasing, epsilon, self.delta, adjacency)
            return tuple(slicing.rates), guarantee, slicing
        share = equal_share(epsilon, len(self.increasing))
        each_one = [Quantile(q=q, epsilon=share, mechanism="exponential", adjacency=adjacency) for q in self.increasing]
        rates = [quantile_rate(q, Fraction(share), adjacency, units=units) for q in self.increasing]
        return tuple(rates), compose(*(one.guarantee for one in each_one)), None

    def settled(self, *data: Any) -> tuple[Quantiles, tuple[Column]]:
        """With the size of the column's domain, and the units of its weights."""
        column = Column.of(data[0], {})
        size = column.domain.size
        found = replace(self.of_size(size), units=column.units)
        most = {"tree": MOST_CODES, "independent": math.inf}.get(found.chosen, _LARGEST)
        if size > most:
            limit = "2**64" if most > MOST_CODES else f"{MOST_CODES}"
            raise ArgumentError(f"method: {found.chosen} needs a domain of at most {limit} values, by its granularity")
        return found, (column,)

    def prepared(self, column: Column) -> Callable[[RandomSource], Any]:
        """The codes for one column, and what else is released."""
        return lambda random: _draw(column, self, random)

    def form(self, *data: Any) -> Callable[..., QuantilesRelease]:
        """The values with what is known of their accuracy."""
        (column,) = data
        domain = column.domain

        def release(value: tuple[list[int], int | None, TreeAnswer | None], **paid_for: Any) -> QuantilesRelease:
            codes, rows, tree = value
            values = self.as_asked([domain.decode(code) for code in codes])
            known: dict[str, Any] = {"plan": self, "domain_size": domain.size, "noisy_rows": rows, "tree": tree}
            return QuantilesRelease(value=values, **known, **paid_for)

        return release

    def rank_errors(self, domain_size: int, failure_probability: SupportsFloat = 0.05) -> list[float]:
        """See `QuantilesRelease.rank_errors`. Raises `BoundUnavailableError` where it takes the released answer."""
        if self.chosen in ("tree", "slice"):
            raise BoundUnavailableError(f"method: what {self.chosen} is off by is known with its answer, not before")
        failure = number("failure_probability", failure_probability, above=0.0, below=1.0)
        count, domain_size = len(self.increasing), integer("domain_size", domain_size, at_least=1)
        fine = domain_size if self.chosen == "independent" else domain_size << fine_bits(domain_size)
        if self.chosen == "joint":
            fine = domain_size << joint_bits(domain_size)
            return [joint_error(count, fine, self.rates[0], failure)] * len(self.qs)
        failure /= count
        found: dict[int | None, float] = {None: 0.0}
        for cut, rate in zip(self.cuts, self.rates, strict=True):
            share = float(cut.share)
            ends = (1.0 - share) * found[cut.low] + share * found[cut.high]
            found[cut.index] = (rank_error(fine, rate, failure) / self.units + ends) * (1.0 + 2.0**-48)
        errors = [found[index] for index in range(count)]
        # independent draws are put in order: a value may be another one's, whose error is larger
        return self.as_asked([max(errors)] * count if self.chosen == "independent" else errors)


@dataclass(frozen=True, kw_only=True)
class QuantilesRelease(Release):
    """Private quantiles: `value[i]` at `qs[i]`, in the order that was asked for, and what is known of their accuracy.

    `noisy_rows`: how many rows (without weights) there are, where the method pays for that: tree and slice.
    """

    plan: Quantiles
    domain_size: int
    noisy_rows: int | None = None
    tree: TreeAnswer | None = None

    @property
    def qs(self) -> tuple[float, ...]:
        """The quantiles that were asked for."""
        return tuple(map(float, self.plan.qs))

    def rank_errors(self, failure_probability: SupportsFloat = 0.05) -> list[float]:
        """How many ranks each value is off at most, all together except with this probability, for every column.

        Rows at most the value: at least q n less the error; rows below it: at most q n plus the error; with weights,
        in multiples of the largest one. From public parameters, and for tree and slice from noisy counts that are paid
        for. A recursive cut's own error adds to a weighted mean of those of the cuts around it. Where ties are broken
        at random, rows that are tied even then (m equal rows: about m/2**15 for floats) come on top.
        """
        failure = number("failure_probability", failure_probability, above=0.0, below=1.0)
        if self.tree is not None:
            errors = self.tree.rank_errors(self.plan.increasing, self.domain_size, failure)
            return self.plan.as_asked([error / self.plan.units for error in errors])
        if self.plan.slicing is not None and self.noisy_rows is not None:
            fine = self.domain_size << fine_bits(self.domain_size)
            return self.plan.as_asked(self.plan.slicing.rank_errors(fine, failure, self.noisy_rows))
        return self.plan.rank_errors(self.domain_size, failure)


@options_of(Quantiles, Column)
def quantiles(
    values: Any,
    *,
    qs: Iterable[SupportsFloat | Fraction],
    epsilon: SupportsFloat,
    method: Method = "auto",
    spender: Spender | None = None,
    label: str = "quantiles",
    random: RandomSource | None = None,
    **options: Any,
) -> QuantilesRelease:
    """Several private quantiles: `Quantiles` of these values, which are a `Column` or have its options here.

    The values are in the order of `qs`, with repeats; each quantile is drawn and paid for once.
    `**options`: those of the column, as for `quantile`, and `delta`, `expected_rows` and `adjacency`.

    >>> from dpselect.randomness import keyed_source
    >>> quantiles(range(10_000), qs=[0.25, 0.5, 0.75], lower=0, upper=10_000, granularity=100, epsilon=1.0,
    ...           random=keyed_source(1)).value
    [2500.0, 5000.0, 7500.0]
    """
    column = Column.of(values, options)
    asked = Quantiles(qs=qs, epsilon=parse_epsilon(epsilon), method=method, **options)
    found = asked(column, spender=spender, label=label, random=random)
    return cast("QuantilesRelease", found)


def _draw(declared: Column, plan: Quantiles, random: RandomSource) -> tuple[list[int], int | None, TreeAnswer | None]:
    size, rates = declared.domain.size, plan.rates
    if plan.chosen == "tree":
        found = tree_codes(
            declared.ranked(),
            plan.increasing,
            size=size,
            epsilon=rates[0],
            adjacency=parse_adjacency(plan.adjacency),
            random=random,
            units=plan.units,
        )
        return found.codes, found.rows if plan.units == 1 else None, found
    if plan.chosen == "independent":
        column = declared.ranked()
        _prefetch(column, plan, size)
        draws = [
            draw_code(column, size=size, target=cut.share * column.total, rate=rate, random=random)
            for cut, rate in zip(plan.cuts, rates, strict=True)
        ]
        return sorted(draws), None, None
    if plan.chosen == "joint":
        column, bits = declared.ranked(), joint_bits(size)
        _prefetch(column, plan, size)
        # rows with their places may have more than 64 bits
        fine = ScatteredColumn(column, bits, random, wide=bits + (size - 1).bit_length() > 64)
        codes = joint_codes(fine, plan.increasing, size=size << bits, rate=rates[0], random=random)
        return [code >> bits for code in codes], None, None
    parts, bits = declared.scattered(random), fine_bits(size)
    if isinstance(parts, ScatteredColumn):
        _prefetch(parts.column, plan, size)
    rows = None
    if plan.slicing is not None:
        codes, rows = slice_codes(parts, plan.slicing, size=size << bits, random=random)
    else:
        codes = recursive_codes(parts, plan.cuts, size=size << bits, rates=rates, random=random)
    return [code >> bits for code in codes], rows, None


def _prefetch(column: RankedColumn, plan: Quantiles, size: int) -> None:
    """Read in one pass what will be looked at, most likely."""
    if not isinstance(column, ChunkedColumn) or plan.slicing is not None:
        return
    total = column.total
    if plan.chosen == "joint":
        width = joint_width(len(plan.increasing), size << joint_bits(size), plan.rates[0])
        column.prefetch(joint_spans(total, plan.increasing, width + 1))
        return
    aside = 100.0 / float(min(plan.rates))
    spans: list[tuple[int, int]] = []
    for q, error in zip(plan.qs, plan.rank_errors(size), strict=True):
        reach = math.ceil(error + aside)
        spans.append((math.floor(q * total) - reach, math.ceil(q * total) + reach))
    column.prefetch(spans)
