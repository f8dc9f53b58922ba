"""One private quantile of a column: the exponential mechanism on ranks, drawn exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal, SupportsFloat, SupportsIndex

from numpy.typing import ArrayLike

from dpselect.errors import ArgumentError, BoundUnavailableError, number
from dpselect.mechanisms import bounded_range
from dpselect.ordered.domains import exact_decimal
from dpselect.ordered.order_statistics.intervals import draw_code
from dpselect.ordered.order_statistics.small_domain import MOST_CODES, draw_flipped
from dpselect.ordered.sources.declared import declare_column
from dpselect.privacy import Adjacency, Guarantee, Release, Spender, paid, pure_dp
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.randomness import RandomSource, resolve

__all__ = [
    "Mechanism",
    "QuantileRelease",
    "median",
    "parse_epsilon",
    "parse_quantile",
    "quantile",
    "quantile_guarantee",
    "quantile_rate",
    "rank_error",
]

Mechanism = Literal["auto", "exponential", "permute_and_flip"]
_FLIPPED = "permute-and-flip (McKenna, Sheldon 2020, Theorem 1)"


@dataclass(frozen=True, kw_only=True)
class QuantileRelease(Release):
    """A private quantile and what is known of its accuracy from public parameters alone.

    `q` is the quantile that was asked for, `rate` and `domain_size` those of the exponential mechanism; a row has
    `units` units of rank (1 without weights).
    """

    q: Fraction
    rate: Fraction
    domain_size: int
    units: int = 1

    def rank_error(self, failure_probability: SupportsFloat = 0.05) -> float:
        """How many ranks the value is off at most, except with this probability, whatever the data are.

        With n rows (weights count in multiples of the largest weight): at least q n - error rows are at most the
        value, and at most q n + error rows are below it. Nothing is paid for this: it holds for every column.
        Ranks are those of the rows rounded to the granularity.
        """
        return rank_error(self.domain_size, self.rate, failure_probability) / self.units


def rank_error(domain_size: int, rate: Fraction, failure_probability: SupportsFloat = 0.05) -> float:
    """log((domain_size - 1)/failure_probability)/rate, rounded up: how far the exponential mechanism's rank may be off.

    The code of the row with rank q n has a score of at least 0 and so weight at least 1; the other codes with a score
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

    With n rows (a row that counts u units is u rows; u <= `units`) the score of z is

        s(z) = min(a(z), b(z)),    a = #{x <= z} - q n,    b = q n - #{x < z}.

    Add one row x: a moves by 1-q for z >= x and by -q for z < x; b moves by -(1-q) for z > x and by q for z <= x. So
    every s(z) moves by at most D = max(q, 1-q) either way, log-weights span a range of at most 2 rate D between
    neighbours, and the mechanism has range 2 rate D (Durfee, Rogers 2019): rate = epsilon/(2 D). At the median that
    is epsilon: with n/2 added the score is min(#{x <= z}, #{x >= z}), which only grows with a row.

    Replace x by y: n stays, the counts move by at most 1, so D = 1. A row that becomes missing or stops to be counts
    as one row removed or added (D <= 1 as well); one whose units change from u to w moves a by at most
    (1-q) w + q u <= `units`.

    At q = 0 the score is -#{x < z}, at q = 1 it is -#{x > z}: one row, more or other, moves all scores the same way,
    by at most `units`, so the range is that of D = 1/2. None of this changes when q n is shifted by a public number of
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
    """q as a fraction: a float stands for its shortest decimal, so that 0.1 is one tenth."""
    exact = q if isinstance(q, Fraction) and 0 <= q <= 1 else exact_decimal(number("q", q, at_least=0.0, at_most=1.0))
    if exact.denominator.bit_length() > 60:  # ranks are counted in parts of it
        raise ArgumentError("q must have a denominator below 2**60: round it")
    return exact


def parse_epsilon(epsilon: SupportsFloat) -> float:
    """A double between 2**-30 and 2**20, for which the rational arithmetic stays short."""
    return number("epsilon", epsilon, at_least=2.0**-30, at_most=2.0**20)


def quantile_guarantee(
    *,
    epsilon: SupportsFloat,
    q: SupportsFloat | Fraction = 0.5,
    mechanism: Mechanism = "exponential",
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
) -> Guarantee:
    """What `quantile` promises: range epsilon, and so pure epsilon; by permute-and-flip pure epsilon alone.

    >>> quantile_guarantee(epsilon=0.5).epsilon(delta=0)
    0.5
    """
    terms = {
        "mechanism": "quantile",
        "law": mechanism,
        "q": float(parse_quantile(q)),
        "epsilon": parse_epsilon(epsilon),
    }
    if mechanism == "permute_and_flip":
        pure = pure_dp(epsilon=parse_epsilon(epsilon), adjacency=adjacency)
        return replace(pure, theorem=_FLIPPED, terms=terms, lower_profile=None)
    if mechanism != "exponential":
        raise BoundUnavailableError(f"mechanism must be 'exponential' or 'permute_and_flip', got {mechanism!r}")
    return replace(bounded_range(epsilon=parse_epsilon(epsilon), adjacency=adjacency), terms=terms)


def quantile(
    values: Any,
    *,
    q: SupportsFloat | Fraction,
    epsilon: SupportsFloat,
    domain_size: SupportsIndex | None = None,
    lower: Any = None,
    upper: Any = None,
    granularity: Any = None,
    categories: Any = None,
    mechanism: Mechanism = "auto",
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
    weights: ArrayLike | None = None,
    largest_weight: SupportsFloat = 1.0,
    assume_sorted: bool = False,
    spender: Spender | None = None,
    label: str = "quantile",
    random: RandomSource | None = None,
) -> QuantileRelease:
    """A private quantile: a value in [lower, upper] that is nearly at rank q n.

    - `mechanism="exponential"`: z with probability proportional to exp(rate * score(z)), exactly. The score is how
      many ranks z is away from being a q-quantile, negative; see `quantile_rate` for it, the rate and the proof. The
      guarantee has range epsilon: pure, and it composes well.
    - `"permute_and_flip"`: the same scores and rate on a domain of at most 4096 values. Never less accurate, but its
      guarantee is pure epsilon and nothing better: for a single release.
    - `"auto"`: permute-and-flip on such a domain, else exponential. On a fine domain the two laws are nearly the same.

    - `values`: see `read_values`: arrays, Arrow, pandas, polars, chunks, Parquet, SQL tables, DuckDB relations. Rows
      without a value (null, NaN, NaT) are not in the column; values beyond the bounds count as the bounds. A list or
      tuple holds doubles: for whole answers give an array of a whole-number type, or a granularity.
    - `domain_size`: the answer is one of the whole numbers 0 .. domain_size - 1. Or:
    - `lower`, `upper`: public bounds of the answer. Without them use `private_range` first, and compose.
    - `granularity`: the answer is a multiple of it, and rows are rounded to the nearest one before they are compared: 1
      by default for whole-number types, 0.01, a `numpy.timedelta64`.
      Floats by default have a power of two, 2**-48 to 2**-49 of the larger bound: 14 digits of it. "float64" makes
      every double an answer: for data of unknown magnitude. A coarse granularity finds heavy atoms with fewer rows.
    - `categories`: an ordered list of values, in place of bounds; other values are missing.
    - `weights`: a row counts as weights/largest_weight rows, cut off to [0, largest_weight] and rounded to multiples
      of largest_weight/1024; NaN counts nothing. The rate is divided by 1024 units accordingly.
    - `assume_sorted`: the values are in increasing order, missing ones last (the caller must ensure it: the answer is
      not private otherwise). Takes well under a millisecond for any number of rows.
    - unsorted arrays take about two passes and little memory, and are not sorted or changed.
    - `spender`: where it is paid: a budget of a ledger. The price is durable there before the rows are read, and stays
      where anything fails after that; `label` names it in the record. The result has the receipt.

    `rank_error` of the result says how far off it may be. Raises `ArgumentError` and `TypeError` for arguments,
    never because of what the values are. How long it takes depends on the values.

    >>> import numpy as np
    >>> from dpselect.randomness import keyed_source
    >>> ages = np.array([23, 31, 31, 45, 52, 58, 60, 71] * 50)
    >>> quantile(ages, q=0.5, lower=0, upper=120, epsilon=1.0, random=keyed_source(5)).value
    52
    """
    epsilon = parse_epsilon(epsilon)
    fraction = parse_quantile(q)
    adjacency = parse_adjacency(adjacency)
    source = resolve(random)
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
    domain, units = declared.domain, declared.units
    rate = quantile_rate(fraction, epsilon_used(epsilon), adjacency, units=units)
    small = domain.size <= MOST_CODES
    chosen: Mechanism = mechanism if mechanism != "auto" else "permute_and_flip" if small else "exponential"
    guarantee = quantile_guarantee(epsilon=epsilon, q=fraction, mechanism=chosen, adjacency=adjacency)
    if chosen == "permute_and_flip" and not small:
        raise ArgumentError(f"mechanism: permute_and_flip needs a domain of at most {MOST_CODES} values")

    def run() -> Any:
        column = declared.ranked()
        draw = draw_flipped if chosen == "permute_and_flip" else draw_code
        code = draw(column, size=domain.size, target=fraction * column.total, rate=rate, random=source)
        return domain.decode(code)

    form = partial(QuantileRelease, q=fraction, rate=rate, domain_size=domain.size, units=units)
    return paid(run, guarantee, spender=spender, label=label, replayable=source.replayable, form=form)


def median(
    values: Any,
    *,
    epsilon: SupportsFloat,
    domain_size: SupportsIndex | None = None,
    lower: Any = None,
    upper: Any = None,
    **options: Any,
) -> QuantileRelease:
    """`quantile` at q = 0.5 with the same options.

    >>> from dpselect.randomness import keyed_source
    >>> median([0.2, 0.4, 0.6] * 100, lower=0.0, upper=1.0, granularity=0.1, epsilon=1.0, random=keyed_source(1)).value
    0.4
    """
    return quantile(
        values, q=Fraction(1, 2), epsilon=epsilon, domain_size=domain_size, lower=lower, upper=upper, **options
    )
