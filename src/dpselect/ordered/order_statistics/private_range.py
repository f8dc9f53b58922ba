"""Private bounds of a column whose range is not known, and private intervals around a quantile."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, SupportsFloat, SupportsIndex

from numpy.typing import ArrayLike

from dpselect.errors import number
from dpselect.ordered.domains import Binades
from dpselect.ordered.order_statistics.intervals import draw_code
from dpselect.ordered.order_statistics.one import (
    parse_epsilon,
    parse_quantile,
    quantile_guarantee,
    quantile_rate,
    rank_error,
)
from dpselect.ordered.sources.adapters import read_values
from dpselect.ordered.sources.columns import PaddedColumn
from dpselect.ordered.sources.declared import declare_column
from dpselect.privacy import Adjacency, Guarantee, Release, Spender, compose, paid
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.randomness import RandomSource, resolve

__all__ = ["private_range", "quantile_interval", "range_guarantee"]


def private_range(
    values: Any,
    *,
    epsilon: SupportsFloat,
    failure_probability: SupportsFloat = 0.05,
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
    assume_sorted: bool = False,
    spender: Spender | None = None,
    label: str = "private range",
    random: RandomSource | None = None,
) -> Release:
    """(lower, upper) for numbers of any magnitude, from the data and paid for.

    Each end is an exponential mechanism at epsilon/2 over the 4094 powers of two with a sign. With e the rank error
    of one of them (see `rank_error`; 25/epsilon rows or so), all but at most 2 e rows at either end lie within the
    range, except with `failure_probability`. Use it as the bounds of `quantile` or of clipping, and compose the two
    guarantees. With few rows it is arbitrary, and as private.

    Raises `TypeError` for timestamps and text, which need declared bounds.

    >>> from dpselect.randomness import keyed_source
    >>> private_range([1.5 * i for i in range(1000)], epsilon=1.0, random=keyed_source(1)).value
    (64.0, 2048.0)
    """
    epsilon = parse_epsilon(epsilon)
    failure = number("failure_probability", failure_probability, above=0.0, below=1.0)
    adjacency = parse_adjacency(adjacency)
    drawn = resolve(random)
    source = read_values(values, assume_sorted=assume_sorted)
    if source.dtype.kind not in "iuf":
        raise TypeError("values must be numbers here")
    domain = Binades()
    guarantee = range_guarantee(epsilon=epsilon, adjacency=adjacency)

    def run() -> tuple[Any, Any]:
        column = source.ranked(domain)
        half = epsilon_used(epsilon) / 2
        rate = quantile_rate(Fraction(0), half, adjacency, shifted=True)  # the same at q = 1
        shift = Fraction(rank_error(domain.size, rate, failure / 2.0))
        ends = [
            domain.decode(draw_code(column, size=domain.size, target=target, rate=rate, random=drawn))
            for target in (shift, column.total - shift)
        ]
        (low, _), (_, high) = sorted(ends)
        return (low, high)

    return paid(run, guarantee, spender=spender, label=label, replayable=drawn.replayable)


def range_guarantee(*, epsilon: SupportsFloat, adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE) -> Guarantee:
    """What `private_range` promises: two exponential mechanisms of range epsilon/2.

    >>> range_guarantee(epsilon=1.0).epsilon(delta=0)
    1.0
    """
    half = parse_epsilon(epsilon) / 2.0
    return compose(*(quantile_guarantee(epsilon=half, q=q, adjacency=adjacency) for q in (0.0, 1.0)))


def quantile_interval(
    values: Any,
    *,
    q: SupportsFloat | Fraction,
    epsilon: SupportsFloat,
    domain_size: SupportsIndex | None = None,
    lower: Any = None,
    upper: Any = None,
    granularity: Any = None,
    categories: Any = None,
    failure_probability: SupportsFloat = 0.05,
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
    weights: ArrayLike | None = None,
    largest_weight: SupportsFloat = 1.0,
    assume_sorted: bool = False,
    spender: Spender | None = None,
    label: str = "quantile interval",
    random: RandomSource | None = None,
) -> Release:
    """(low, high) around the q-quantile of these rows, which it holds except with `failure_probability`.

    Two exponential mechanisms at epsilon/2, whose targets lie as many ranks below and above q n as the error of one of
    them (`rank_error` at half the failure probability): at most q n rows are below `low`, and at least q n are at most
    `high`, whatever the rows are and however few, cut off to the bounds and rounded to the granularity. For that, as
    many rows are added at either bound. The targets move with n as q n does, and what is added is public, so the
    privacy is that of `quantile`. The options are those of `quantile`. Sampling error, of the rows themselves, is not
    in it.

    >>> from dpselect.randomness import keyed_source
    >>> low, high = quantile_interval(
    ...     range(10_000), q=0.5, lower=0, upper=10_000, epsilon=1.0, random=keyed_source(1)
    ... ).value
    >>> 4900 < low < 5000 < high < 5100
    True
    """
    epsilon = parse_epsilon(epsilon)
    fraction = parse_quantile(q)
    adjacency = parse_adjacency(adjacency)
    failure = number("failure_probability", failure_probability, above=0.0, below=1.0)
    drawn = resolve(random)
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
    domain = declared.domain
    rate = quantile_rate(fraction, epsilon_used(epsilon) / 2, adjacency, units=declared.units, shifted=True)
    shift = Fraction(rank_error(domain.size, rate, failure / 2.0))
    one = quantile_guarantee(epsilon=epsilon / 2.0, q=fraction, adjacency=adjacency)
    guarantee = compose(one, one)

    def run() -> tuple[Any, Any]:
        column = declared.ranked()
        # with fewer than `shift` rows at hand the targets would lie outside, and anything might be drawn
        padded = PaddedColumn(column, domain.size, math.ceil(shift))
        middle = fraction * column.total + padded.pad
        codes = sorted(
            draw_code(padded, size=domain.size, target=target, rate=rate, random=drawn)
            for target in (middle - shift, middle + shift)
        )
        return (domain.decode(codes[0]), domain.decode(codes[1]))

    return paid(run, guarantee, spender=spender, label=label, replayable=drawn.replayable)
