"""Several private quantiles of one column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, SupportsFloat, SupportsIndex, TypeVar, cast

from dpselect.cures import write_one_of
from dpselect.errors import ArgumentError, BoundUnavailableError, integer, number
from dpselect.mechanisms import Mechanism
from dpselect.ordered.order_statistics.by_slices import Slicing
from dpselect.ordered.order_statistics.methods.method import (
    CHOICES,
    LARGEST,
    METHODS,
    AskedQuantiles,
    DrawnCodes,
    ProvedMethod,
    QuantileMethod,
)
from dpselect.ordered.order_statistics.one import parse_epsilon, parse_quantile
from dpselect.ordered.order_statistics.recursive import Cut
from dpselect.ordered.order_statistics.scattered import fine_bits
from dpselect.ordered.order_statistics.small_domain import MOST_CODES
from dpselect.ordered.order_statistics.tree import TreeAnswer
from dpselect.ordered.public_domain import PublicDomain
from dpselect.ordered.sources.declared import Column, parse_rows_per_person, person_terms
from dpselect.privacy import Adjacency, Guarantee, Release, Spender
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.public_api import options_of
from dpselect.randomness import RandomSource

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Quantiles", "QuantilesRelease", "quantiles"]

_FEWEST_PLACES: Final = 1 << 12
PROVED: Final = ("joint", "recursive", "independent")
"""Methods that "least_bound" compares; the first of equals."""

T = TypeVar("T")

_USUAL_SIZE = 1 << 49
"""Values of a column of floats without a granularity, where no domain is given yet."""


@dataclass(frozen=True, kw_only=True)
class Quantiles(PublicDomain, Mechanism):
    """Several private quantiles of a `Column`, in the order of `qs`, for epsilon altogether.

    Joint, recursive and slice break ties at random first. Answers depend on rows through the mechanism alone:
    `expected_rows` is never compared with them.

    With `rows_per_person` the guarantee is for persons, and each row has epsilon/rows_per_person. The method "slice"
    has no such price. Source: docs/theory/persons.md, Theorem 3.

    `rates`: the joint method has one and no `cuts`. The tree has epsilon for its rate. Slices have their own
    parameters.

    Args:
        qs: the quantiles, each from 0 to 1, in any order and with repeats, public.
        epsilon: the privacy cost of all quantiles together, from 2**-30 to 2**20.
        method: how the quantiles are drawn:

            - "joint" (Gillenwater, Joseph, Kulesza 2021): one exponential mechanism over all increasing sequences,
              drawn exactly from the ranks around the quantiles. Time and memory grow with the square of their number
              over epsilon, and hardly with the rows. It takes no weights.
            - "recursive" (Kaplan, Schnapp, Stemmer 2022): cut at the middle quantile, and continue in both parts. A row
              is in one part of a level, so log2(m + 1) levels share epsilon instead of m quantiles.
            - "tree" (Hay, Rastogi, Miklau, Suciu 2010): noisy counts of a domain of at most 4096 values. It is good for
              any number of quantiles at once and for few rows.
            - "slice" (Cohen, Lyu, Nelson, Sarlos, Stemmer 2022): a quantile in each slice of Reorder-Slice-Compute. It
              costs (epsilon, `delta`), hardly more for many quantiles than for eight. It takes no weights.
            - "independent": m times `quantile`, at epsilon/m.
            - "auto": by the number of quantiles, epsilon, adjacency, domain and `expected_rows`. It takes independent
              for one quantile. For few rows it takes tree on a small domain and recursive on another. Three quantiles
              are recursive too, unless rows are replaced. Else it takes joint, or recursive if joint would be slow or
              rows have weights. This has the least error on nearly every column, not the least proved error.
            - "least_bound": the method with the least proved error for the worst column, of independent, recursive and
              joint (see `proved_best`). On most columns its values are further off than those of "auto".
        delta: for "slice" alone, which needs one above 0 and below 1. The other methods are pure.
        adjacency: which data sets are neighbours.
        expected_rows: about how many rows there are, public (you must ensure this), for "auto" and "recursive". 1000
            rows are expected unless you know better.
        units: how many units of rank a row counts at most: 1 without weights. A run takes it from the column.
        rows_per_person: the most rows of a person that take part, or None for rows. A run takes that of the column.
        domain_size: the domain is 0 .. domain_size - 1, for "auto" and "least_bound" before there is a column. A run
            takes the domain of the column.
        lower, upper: or the smallest and the largest value of the domain, public.
        granularity: the values are its multiples between the bounds, as for `quantile`.

    Raises:
        ArgumentError: if an argument does not fit, never because of the values.
        BoundUnavailableError: if `method` is none of these, or no slicing costs at most epsilon at `delta`.
        TypeError: if an argument is of another type.

    >>> asked = Quantiles(epsilon=1.0, qs=[0.25, 0.5, 0.75], method="recursive")
    >>> asked.guarantee.epsilon(delta=0), [round(e) for e in asked.rank_errors(1000)]
    (1.0, [145, 97, 145])
    >>> from dpselect.ordered import Column
    >>> low, middle, high = asked(Column(range(1000), lower=0, upper=999)).value
    >>> low <= middle <= high
    True
    """

    qs: Any
    epsilon: float
    method: str = "auto"
    delta: float | None = None
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE
    expected_rows: int = 1000
    units: int = 1
    rows_per_person: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.qs, Iterable) or isinstance(self.qs, str):
            raise TypeError(f"qs must hold quantiles, got {self.qs!r}. Write qs=[0.5]")
        given = tuple(self.qs)
        if given and all(isinstance(q, (int, float)) and 1 < q <= 100 for q in given):
            raise ArgumentError(f"qs must be at most 1, got {self.qs!r}. Write qs={[q / 100 for q in given]}")
        asked = tuple(parse_quantile(q) for q in given)
        self._parsed(
            qs=asked,
            epsilon=parse_epsilon(self.epsilon),
            adjacency=parse_adjacency(self.adjacency),
            expected_rows=integer("expected_rows", self.expected_rows, at_least=1, at_most=1 << 1000),
            units=integer("units", self.units, at_least=1),
            rows_per_person=parse_rows_per_person(self.rows_per_person, parse_adjacency(self.adjacency)),
            delta=None if self.delta is None else number("delta", self.delta, above=0.0, below=1.0, rounding="down"),
        )
        if not asked:
            raise ArgumentError("qs must hold at least one quantile")
        if self.method not in CHOICES and self.method not in METHODS:
            known = (*CHOICES, *METHODS)
            said = f"method must be one of {', '.join(map(repr, known))}, got {self.method!r}"
            raise BoundUnavailableError(said + write_one_of("method", self.method, known))
        named = None if self.method in CHOICES else METHODS[self.method]
        if (named is not None and named.needs_delta) != (self.delta is not None):
            raise ArgumentError("delta goes with method 'slice' alone: it needs one, and the other methods are pure")
        if self.rows_per_person is not None and named is not None and named.needs_delta:
            raise ArgumentError("method: 'slice' has no price for persons. Take another method, such as 'recursive'")
        if self.units > 1 and named is not None and not named.weights:
            raise ArgumentError(f"weights: the method {self.method} does not take them")
        _ = self.chosen

    @property
    def increasing(self) -> tuple[Fraction, ...]:
        """The quantiles that are drawn: each once, in their order on the column."""
        return tuple(sorted(set(self.qs)))

    def as_asked(self, found: Sequence[T]) -> list[T]:
        """Return the values that belong to `increasing`, in the order of `qs`."""
        by_quantile = dict(zip(self.increasing, found, strict=True))
        return [by_quantile[q] for q in self.qs]

    @property
    def chosen(self) -> str:
        """The method: that of "auto" from measurements (`benchmarks/quantiles_ties.py rule`).

        On a small domain it is the tree below about 3 m**2 rows over epsilon. For replaced rows this is 1.5 m**2, since
        they double the noise of the tree and not that of the joint method. On a larger domain it is the recursive
        method below 4 m**2 rows over epsilon, or m**2 for replaced rows. It finds point masses from fewer rows than the
        joint one. Three quantiles are only two of its levels, so they are better by it unless rows are replaced. Else
        it is the joint method, unless it is slow. The recursive method is left out where 64 bits break too few ties.
        """
        count, size = len(self.increasing), self.size() if self._has_domain else None
        if self.method == "least_bound":
            return self._proved_best[0]
        if self.method != "auto":
            return self.method
        if count == 1:
            return "independent"
        work = self._asked.row_epsilon * self.expected_rows / count**2
        added = self.adjacency is Adjacency.ADD_OR_REMOVE_ONE
        if size is not None and size <= MOST_CODES and work < (3.0 if added else 1.5):
            return "tree"
        if size is not None and size > MOST_CODES and work < (4.0 if added else 1.0) and self._breaks_ties(size):
            return "recursive"
        if count == 3 and added and (size is None or self._breaks_ties(size)):
            return "recursive"
        return "joint" if METHODS["joint"](self._asked).quick and self.units == 1 else "recursive"

    def proved_best(self, domain_size: int, failure_probability: SupportsFloat = 0.05) -> tuple[str, float]:
        """Return the method with the least proved error at the same epsilon, and that error in ranks.

        The error is the largest of `rank_errors`. It is compared among the independent, the recursive and the joint
        method, which state theirs before anything is drawn, from public parameters alone.

        Args:
            domain_size: how many values the column can have.
            failure_probability: how often an error may be larger.

        >>> plan = Quantiles(epsilon=1.0, qs=[0.1, 0.25, 0.5, 0.75])
        >>> method, error = plan.proved_best(2**49)
        >>> plan.chosen, round(max(plan.rank_errors(2**49))), method, round(error)
        ('joint', 409, 'independent', 279)
        """
        size = integer("domain_size", domain_size, at_least=1)
        found: tuple[str, float] | None = None
        for name in PROVED:
            method = METHODS[name](self._asked)
            if name == "recursive" and not self._breaks_ties(size):
                continue
            if size <= method.most_values and method.quick and (method.weights or self.units == 1):
                error = max(replace(self, method=name, delta=None).rank_errors(size, failure_probability))
                if found is None or error < found[1]:
                    found = name, error
        assert found is not None
        return found

    def _breaks_ties(self, size: int) -> bool:
        """Whether the recursive method's fine places leave hardly a tie among the rows that are expected."""
        return 1 << fine_bits(size) >= max(self.expected_rows, _FEWEST_PLACES)

    @cached_property
    def _proved_best(self) -> tuple[str, float]:
        return self.proved_best(self.size() if self._has_domain else _USUAL_SIZE)

    @property
    def _has_domain(self) -> bool:
        given = (self.domain_size, self.lower, self.upper, self.granularity)
        return any(one is not None for one in given)

    @property
    def _asked(self) -> AskedQuantiles:
        adjacency = parse_adjacency(self.adjacency)
        rows = self.rows_per_person or 1
        return AskedQuantiles(
            self.increasing, self.epsilon, adjacency, self.units, self.delta, self.expected_rows, rows
        )

    @cached_property
    def _drawn_by(self) -> QuantileMethod:
        return METHODS[self.chosen](self._asked)

    @property
    def slicing(self) -> Slicing | None:
        """The parameters of the slices."""
        return self._drawn_by.planned.slicing

    @property
    def cuts(self) -> list[Cut]:
        """Each quantile as a share of a part, those that bound a part before those inside it."""
        return list(self._drawn_by.planned.cuts)

    @property
    def rates(self) -> tuple[Fraction, ...]:
        """Of the exponential mechanisms, one for each cut."""
        return self._drawn_by.planned.rates

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one run. With "auto" it depends on the domain."""
        qs, delta = [float(q) for q in self.qs], {} if self.delta is None else {"delta": self.delta}
        terms = {"mechanism": "quantiles", "method": self.chosen, "qs": qs, "epsilon": self.epsilon} | delta
        terms |= person_terms(self.rows_per_person)
        return replace(self._drawn_by.planned.guarantee, terms=terms)

    def bind(self, *data: Any) -> tuple[Quantiles, tuple[Column]]:
        """With the size of the column's domain, and the units of its weights."""
        column = Column.of(data[0], {})
        size = column.domain.size
        rows = column.rows_for(self.adjacency, self.rows_per_person)
        found = replace(self.of_size(size), units=column.units, rows_per_person=rows)
        most = found._drawn_by.most_values
        if size > most:
            limit = "2**64" if most == LARGEST else f"{most:.0f}"
            raise ArgumentError(f"method: {found.chosen} needs a domain of at most {limit} values, by its granularity")
        return found, (column,)

    def prepared(self, column: Column) -> Callable[[RandomSource], Any]:
        """The codes for one column, and what else is released."""
        return lambda random: self._drawn_by.draw(column, random)

    def form(self, *data: Any) -> Callable[..., QuantilesRelease]:
        """The values with what is known of their accuracy."""
        (column,) = data
        domain = column.domain

        def release(value: DrawnCodes, **paid_for: Any) -> QuantilesRelease:
            values = self.as_asked([domain.decode(code) for code in value.codes])
            known = {"plan": self, "domain_size": domain.size, "noisy_rows": value.rows, "tree": value.tree}
            return QuantilesRelease(value=values, **known, **paid_for)

        return release

    def rank_errors(self, domain_size: int, failure_probability: SupportsFloat = 0.05) -> list[float]:
        """See `QuantilesRelease.rank_errors`. Raises `BoundUnavailableError` where it takes the released answer."""
        failure = number("failure_probability", failure_probability, above=0.0, below=1.0)
        size = integer("domain_size", domain_size, at_least=1)
        if not isinstance(self._drawn_by, ProvedMethod):
            raise BoundUnavailableError(
                f"method: the error of {self.chosen} is known with its answer, not before: ask the release"
            )
        return self.as_asked(self._drawn_by.rank_errors(size, failure))


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

        Rows at most the value: at least q n less the error. Rows below it: at most q n plus the error. With weights,
        both are in multiples of the largest one. From public parameters, and for tree and slice from noisy counts that
        are paid for. A recursive cut's own error adds to a weighted mean of those of the cuts around it. If ties are
        broken at random, rows that are tied even then (m equal rows: about m/2**14 for floats) come on top.
        """
        failure = number("failure_probability", failure_probability, above=0.0, below=1.0)
        drawn = DrawnCodes([], self.noisy_rows, self.tree)
        return self.plan.as_asked(self.plan._drawn_by.released_errors(drawn, self.domain_size, failure))

    def plot(
        self, ax: Any = None, *, rows: SupportsIndex | None = None, failure_probability: SupportsFloat = 0.05
    ) -> Axes:
        """Plot the distribution function that these quantiles are on, with a band that holds the true one.

        The band is that of `rank_errors` for the rows clipped to the bounds and rounded to the granularity. It holds
        everywhere at once, except with `failure_probability`. It costs no privacy. This needs the extra "plot".

        Args:
            ax: axes of Matplotlib to draw on. None draws on those of a new figure.
            rows: how many rows have a value, if anyone may know it (you must ensure this). Missing cells do not count:
                with them the band would be too narrow. Rank errors are counts of rows, so without it there is no band.
            failure_probability: how often the true function may leave the band, above 0 and below 1.

        Returns:
            The axes.

        Raises:
            ArgumentError: if an argument does not fit, or `rows` are given for weighted rows.
            MissingExtraError: if Matplotlib is not installed.

        Example:
            >>> from dpselect.randomness import keyed_source
            >>> release = quantiles(range(10_000), qs=[0.25, 0.5, 0.75], lower=0, upper=9_999, epsilon=1.0,
            ...                     random=keyed_source(1))
            >>> axes = release.plot(rows=10_000)  # doctest: +SKIP
        """
        from dpselect.ordered.order_statistics.distribution_plot import plot_distribution

        failure = number("failure_probability", failure_probability, above=0.0, below=1.0)
        count = None if rows is None else integer("rows", rows, at_least=1)
        if count is not None and self.plan.units > 1:
            raise ArgumentError("rows: the errors of weighted rows are no counts of rows, so leave it out")
        errors = dict(zip(self.plan.qs, self.rank_errors(failure), strict=True))
        values = dict(zip(self.plan.qs, self.value, strict=True))
        increasing = self.plan.increasing
        shares = None if count is None else [errors[q] / count for q in increasing]
        return plot_distribution(ax, [float(q) for q in increasing], [values[q] for q in increasing], shares)


@options_of(Quantiles, Column)
def quantiles(
    values: Any,
    *,
    qs: Iterable[SupportsFloat | Fraction],
    epsilon: SupportsFloat,
    method: str = "auto",
    spender: Spender | None = None,
    label: str = "quantiles",
    random: RandomSource | None = None,
    **options: Any,
) -> QuantilesRelease:
    """Return several private quantiles of the values, with what is known of their accuracy.

    It runs `Quantiles` on a `Column` of the values. Each quantile is drawn and paid for once, even if `qs` repeats it.

    Args:
        values: a `Column`, or the values that one takes, private.
        qs: the quantiles, each from 0 to 1, in any order and with repeats, public.
        epsilon: the privacy cost of all quantiles together, from 2**-30 to 2**20.
        method: how they are drawn, see `Quantiles`. "auto" chooses by public facts.
        spender: pays the cost before the rows are read. None charges no budget.
        label: the public name of the charge in the spender's record.
        random: the source of randomness. By default it is a fresh one from system entropy.
        **options: `delta`, `expected_rows` and `adjacency` of `Quantiles`. If `values` is not a `Column`, also the
            attributes of one, as for `quantile`.

    Returns:
        A `QuantilesRelease`. Its `value` is a list in the order of `qs`, with repeats.

    Raises:
        ArgumentError: if an argument does not fit, never because of the values.
        BoundUnavailableError: if there is no such method, or no slicing costs at most epsilon at `delta`.
        TypeError: if an argument or the type of the values does not fit.
        BudgetError: if the spender refuses.

    >>> from dpselect.randomness import keyed_source
    >>> quantiles(range(10_000), qs=[0.25, 0.5, 0.75], lower=0, upper=10_000, granularity=100, epsilon=1.0,
    ...           random=keyed_source(1)).value
    [2500.0, 5000.0, 7500.0]
    """
    column = Column.of(values, options)
    asked = Quantiles(qs=qs, epsilon=parse_epsilon(epsilon), method=method, **options)
    found = asked(column, spender=spender, label=label, random=random)
    return cast("QuantilesRelease", found)
