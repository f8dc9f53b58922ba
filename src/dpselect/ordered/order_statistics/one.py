"""One private quantile of a column: the exponential mechanism on ranks, drawn exactly."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal, SupportsFloat, cast, get_args

from dpselect.cures import write_one_of
from dpselect.errors import ArgumentError, BoundUnavailableError, number
from dpselect.mechanisms import Mechanism, bounded_range
from dpselect.ordered.domains import exact_decimal
from dpselect.ordered.order_statistics.intervals import draw_code
from dpselect.ordered.order_statistics.small_domain import MOST_CODES, MOST_PARTS, draw_flipped
from dpselect.ordered.round_values import measure_of, points_at_most
from dpselect.ordered.sources.declared import Column, parse_rows_per_person, person_terms
from dpselect.privacy import Adjacency, Guarantee, Release, Spender, pure_dp
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.public_api import options_of
from dpselect.randomness import RandomSource

__all__ = [
    "Quantile",
    "QuantileRelease",
    "median",
    "parse_epsilon",
    "parse_quantile",
    "quantile",
    "quantile_rate",
    "rank_error",
]

Law = Literal["auto", "exponential", "permute_and_flip"]
_FLIPPED = "permute-and-flip (McKenna, Sheldon 2020, Theorem 1)"


@dataclass(frozen=True, kw_only=True)
class QuantileRelease(Release):
    """A private quantile and what is known of its accuracy from public parameters alone.

    `q` is the quantile that was asked for, `rate` and `domain_size` those of the exponential mechanism. A row has
    `units` units of rank (1 without weights).
    """

    q: Fraction
    rate: Fraction
    domain_size: int
    units: int = 1

    def rank_error(self, failure_probability: SupportsFloat = 0.05) -> float:
        """How many ranks the value is off at most, except with this probability, regardless of the data.

        With n rows, at least q n - error rows are at most the value, and at most q n + error rows are below it. Weights
        count in multiples of the largest weight. Nothing is paid for this: it holds for every column. Ranks are those
        of the rows rounded to the granularity.
        """
        return rank_error(points_at_most(self.domain_size), self.rate, failure_probability) / self.units


def rank_error(domain_size: int, rate: Fraction, failure_probability: SupportsFloat = 0.05) -> float:
    """log((domain_size - 1)/failure_probability)/rate, rounded up: how far the exponential mechanism's rank may be off.

    With unequal weights `domain_size` is the weight of all codes over the least one (`points_at_most`).

    The code of the row with rank q n has a score of at least 0 and so weight at least 1. The other codes with a score
    of -a or less have at most weight exp(-rate a) each. Permute-and-flip takes such a code only if its coin of that
    probability at most lands heads. Source: McSherry, Talwar 2007, Theorem 6 (with the constants kept).

    >>> round(rank_error(2**32, Fraction(1), 0.05), 2)
    25.18
    """
    failure = number("failure_probability", failure_probability, above=0.0, below=1.0)
    if domain_size < 2:
        return 0.0
    return math.nextafter((math.log(domain_size - 1) - math.log(failure)) / float(rate) * (1.0 + 2.0**-48), math.inf)


def quantile_rate(
    q: Fraction, epsilon: Fraction, adjacency: Adjacency, *, units: int = 1, shifted: bool = False
) -> Fraction:
    """The largest rate at which the exponential mechanism on quantile scores is epsilon-private.

    With n rows (a row that counts u units is u rows, u <= `units`) the score of z is

        s(z) = min(a(z), b(z)),    a = #{x <= z} - q n,    b = q n - #{x < z}.

    Add one row x. Then a moves by 1-q for z >= x and by -q for z < x. In turn b moves by -(1-q) for z > x and by q for
    z <= x. So every s(z) moves by at most D = max(q, 1-q) either way. Log-weights span a range of at most 2 rate D
    between neighbours. The mechanism has range 2 rate D (Durfee, Rogers 2019): rate = epsilon/(2 D). At the median that
    is epsilon: with n/2 added the score is min(#{x <= z}, #{x >= z}), which only grows with a row.

    Replace x by y: n stays, the counts move by at most 1, so D = 1. A row that becomes missing or stops to be counts as
    one row removed or added (D <= 1 as well). One whose units change from u to w moves a by at most (1-q) w + q u <=
    `units`.

    At q = 0 the score is -#{x < z}, at q = 1 it is -#{x > z}. One row, more or other, moves all scores the same way, by
    at most `units`. So the range is that of D = 1/2. None of this changes when q n is shifted by a public number of
    ranks, but for the last: then `shifted` must be set.

    >>> quantile_rate(Fraction(1, 2), Fraction(1), Adjacency.ADD_OR_REMOVE_ONE)
    Fraction(1, 1)
    >>> quantile_rate(Fraction(1, 2), Fraction(1), Adjacency.REPLACE_ONE)
    Fraction(1, 2)
    """
    moves = max(q, 1 - q) if adjacency is Adjacency.ADD_OR_REMOVE_ONE else Fraction(1)
    if q in (0, 1) and not shifted:
        moves = Fraction(1, 2)
    return epsilon / (2 * moves * units)


def parse_quantile(q: SupportsFloat | Fraction) -> Fraction:
    """q as a fraction: a float stands for its shortest decimal, so that 0.1 is one tenth.

    A decimal of too many places stands for the fraction next to it: np.linspace(0, 1, 301)[1] is 1/300.
    """
    given = isinstance(q, Fraction) and 0 <= q <= 1
    exact = q if isinstance(q, Fraction) and given else exact_decimal(number("q", q, at_least=0.0, at_most=1.0))
    if exact.denominator.bit_length() <= 60:  # ranks are counted in parts of it
        return exact
    if given:
        raise ArgumentError("q must have a denominator below 2**60: round it")
    simple = exact.limit_denominator(1_000_000)
    return simple if abs(simple - exact) < exact / 2**50 else exact.limit_denominator(2**59)


def parse_epsilon(epsilon: SupportsFloat) -> float:
    """A double between 2**-30 and 2**20, for which the rational arithmetic stays short."""
    return number("epsilon", epsilon, at_least=2.0**-30, at_most=2.0**20, rounding="down")


@dataclass(frozen=True, kw_only=True)
class Quantile(Mechanism):
    """A private quantile of a `Column`: a value of its domain that is nearly at rank q n.

    How long a run takes depends on the values.

    Args:
        q: the quantile, from 0 to 1, public. A float represents its shortest decimal, so 0.1 is one tenth. A `Fraction`
            needs a denominator below 2**60.
        epsilon: the privacy cost, from 2**-30 to 2**20.
        mechanism: one of

            - "exponential": z with probability proportional to w(z) exp(rate * score(z)), exactly. The weights w are
              public: more for round numbers on a large domain (docs/theory/round-values.md). The score is how many
              ranks z is away from being a q-quantile, negative. `quantile_rate` has the score, the rate and the proof.
              The guarantee has range epsilon: it is pure, and it composes well.
            - "permute_and_flip": the same scores and rate on a domain of at most 4096 values, with a q of a denominator
              up to 2**20 (1024 with weights). It is never less accurate, but its guarantee is pure epsilon and nothing
              better. Use it for a single release.
            - "auto": permute-and-flip on such a domain with such a q, else exponential. On a fine domain the two
              distributions are nearly the same.
        adjacency: which data sets are neighbours.
        rows_per_person: the most rows of a person that take part, or None if rows are protected. A run takes it from
            the column. The guarantee is then for persons. Source: docs/theory/persons.md, Theorem 3.

    Raises:
        ArgumentError: if an argument is out of range, or the domain is too large for "permute_and_flip", or q too
            fine. The values themselves never raise.
        BoundUnavailableError: if `mechanism` is none of these.
        TypeError: if an argument is of another type.

    >>> from dpselect.ordered import Column
    >>> from dpselect.randomness import keyed_source
    >>> third = Quantile(q=0.75, epsilon=1.0, mechanism="exponential")
    >>> third.guarantee.epsilon(delta=0), third(Column(range(900), domain_size=900), random=keyed_source(1)).value
    (1.0, 674)
    """

    q: Any
    epsilon: float
    mechanism: Law = "auto"
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE
    rows_per_person: int | None = None

    def __post_init__(self) -> None:
        epsilon, adjacency = parse_epsilon(self.epsilon), parse_adjacency(self.adjacency)
        rows = parse_rows_per_person(self.rows_per_person, adjacency)
        self._parsed(q=parse_quantile(self.q), epsilon=epsilon, adjacency=adjacency, rows_per_person=rows)
        if self.mechanism not in get_args(Law):
            said = f"mechanism must be one of {get_args(Law)}, got {self.mechanism!r}"
            raise BoundUnavailableError(said + write_one_of("mechanism", self.mechanism, get_args(Law)))

    @property
    def guarantee(self) -> Guarantee:
        """Range epsilon, and so pure epsilon. By permute-and-flip, and if "auto" may take it, pure epsilon alone."""
        terms = {"mechanism": "quantile", "law": self.mechanism, "q": float(self.q), "epsilon": self.epsilon}
        terms |= person_terms(self.rows_per_person)
        if self.mechanism == "exponential":
            return replace(bounded_range(epsilon=self.epsilon, adjacency=self.adjacency), terms=terms)
        pure = pure_dp(epsilon=self.epsilon, adjacency=self.adjacency)
        return replace(pure, theorem=_FLIPPED, terms=terms, lower_profile=None)

    def bind(self, *data: Any) -> tuple[Quantile, tuple[Column]]:
        """By the law for the column's domain."""
        column = Column.of(data[0], {})
        parts = MOST_PARTS // column.units
        small = column.domain.size <= MOST_CODES and self.q.denominator <= parts
        if self.mechanism == "permute_and_flip" and not small:
            raise ArgumentError(
                f"mechanism: permute_and_flip needs a domain of at most {MOST_CODES} values, and a q with a "
                f"denominator of at most {parts}: round q, or take exponential"
            )
        law: Law = self.mechanism if self.mechanism != "auto" else "permute_and_flip" if small else "exponential"
        rows = column.rows_for(self.adjacency, self.rows_per_person)
        return replace(self, mechanism=law, rows_per_person=rows), (column,)

    def _rate(self, column: Column) -> Fraction:
        epsilon, adjacency = epsilon_used(self.epsilon), parse_adjacency(self.adjacency)
        return quantile_rate(self.q, epsilon, adjacency, units=column.units * (self.rows_per_person or 1))

    def prepared(self, column: Column) -> Callable[[RandomSource], Any]:
        """The value for one column."""
        flipped = self.mechanism == "permute_and_flip"
        draw = draw_flipped if flipped else partial(draw_code, measure=measure_of(column.domain))
        rate, size = self._rate(column), column.domain.size

        def run(random: RandomSource) -> Any:
            ranked = column.ranked()
            return column.domain.decode(draw(ranked, size=size, target=self.q * ranked.total, rate=rate, random=random))

        return run

    def form(self, *data: Any) -> Callable[..., QuantileRelease]:
        """With what is known of the accuracy."""
        (column,) = data
        size, units = column.domain.size, column.units
        return partial(QuantileRelease, q=self.q, rate=self._rate(column), domain_size=size, units=units)


@options_of(Quantile, Column)
def quantile(
    values: Any,
    *,
    q: SupportsFloat | Fraction,
    epsilon: SupportsFloat,
    spender: Spender | None = None,
    label: str = "quantile",
    random: RandomSource | None = None,
    **options: Any,
) -> QuantileRelease:
    """Return a private quantile of the values, with what is known of its accuracy.

    It runs `Quantile` on a `Column` of the values. `rank_error` of the result says how far off it may be.

    Args:
        values: a `Column`, or the values that one takes, private.
        q: the quantile, from 0 to 1, public.
        epsilon: the privacy cost, from 2**-30 to 2**20.
        spender: pays the cost, such as a budget of a ledger. The charge is durable there before the rows are read, and
            stays if anything fails after that. The result has the receipt. None charges no budget.
        label: the public name of the charge in the spender's record.
        random: the source of randomness. By default it is a fresh one from system entropy.
        **options: `mechanism` and `adjacency` of `Quantile`. If `values` is not a `Column`, also the attributes of one:
            `lower`, `upper` and `granularity`, or `domain_size`, or `categories`. And `weights`, `largest_weight` and
            `assume_sorted`. `persons` and `rows_per_person` protect persons with several rows.

    Returns:
        A `QuantileRelease`, with the quantile as `value`.

    Raises:
        ArgumentError: if an argument does not fit, or column options come with a `Column`.
        TypeError: if an argument or the type of the values does not fit.
        BudgetError: if the spender refuses.

    >>> import numpy as np
    >>> from dpselect.randomness import keyed_source
    >>> ages = np.array([23, 31, 31, 45, 52, 58, 60, 71] * 50)
    >>> quantile(ages, q=0.5, lower=0, upper=120, epsilon=1.0, random=keyed_source(5)).value
    52
    """
    column = Column.of(values, options)
    found = Quantile(q=q, epsilon=parse_epsilon(epsilon), **options)(
        column, spender=spender, label=label, random=random
    )
    return cast("QuantileRelease", found)


@options_of(quantile)
def median(values: Any, *, epsilon: SupportsFloat, **options: Any) -> QuantileRelease:
    """Return a private median: `quantile` at q = 0.5 with the same options.

    Args:
        values: a `Column`, or the values that one takes, private.
        epsilon: the privacy cost, from 2**-30 to 2**20.
        **options: those of `quantile`: the attributes of the column, `mechanism`, `adjacency`, `spender`, `label` and
            `random`.

    Raises:
        ArgumentError: if an argument does not fit.
        TypeError: if an argument or the type of the values does not fit.
        BudgetError: if the spender refuses.

    >>> from dpselect.randomness import keyed_source
    >>> median([0.2, 0.4, 0.6] * 100, lower=0.0, upper=1.0, granularity=0.1, epsilon=1.0, random=keyed_source(1)).value
    0.4
    """
    return quantile(values, q=Fraction(1, 2), epsilon=epsilon, **options)
