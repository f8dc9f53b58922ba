"""Private bounds of a column whose range is not known, and private intervals around a quantile."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, SupportsFloat

from dpselect.errors import ArgumentError, number
from dpselect.mechanisms import Mechanism
from dpselect.ordered.domains import Binades
from dpselect.ordered.order_statistics.intervals import draw_code
from dpselect.ordered.order_statistics.one import Quantile, parse_epsilon, parse_quantile, quantile_rate, rank_error
from dpselect.ordered.round_values import measure_of, points_at_most
from dpselect.ordered.sources.adapters import read_values
from dpselect.ordered.sources.columns import PaddedColumn
from dpselect.ordered.sources.declared import Column
from dpselect.privacy import Adjacency, Guarantee, Release, Spender, paid
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.privacy.composition import together
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.public_api import options_of
from dpselect.randomness import RandomSource, resolve

__all__ = ["PrivateRange", "private_range", "quantile_interval"]


def _end(
    q: Fraction, epsilon: float, failure: float, adjacency: Adjacency, size: int, units: int = 1
) -> tuple[Fraction, Fraction]:
    """The rate of either end, and by how many ranks it is off at most except with half of `failure`."""
    rate = quantile_rate(q, epsilon_used(epsilon) / 2, adjacency, units=units, shifted=True)
    return rate, Fraction(rank_error(points_at_most(size), rate, failure / 2.0))


@dataclass(frozen=True, kw_only=True)
class PrivateRange(Mechanism):
    """(lower, upper) for numbers of any magnitude, from the data and paid for.

    Each end is an exponential mechanism at epsilon/2 over the 4094 powers of two with a sign. Let e be the rank error
    of one of them, 25/epsilon rows or so (see `rank_error`). All but at most 2 e rows at either end are within the
    range, except with `failure_probability`. Use it as the bounds of `quantile` or of clipping, and compose the two
    guarantees. With few rows it is arbitrary, and as private.

    Raises `TypeError` for timestamps and text, which need declared bounds.

    >>> PrivateRange(epsilon=1.0).guarantee.epsilon(delta=0)
    1.0
    """

    epsilon: float
    failure_probability: float = 0.05
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE

    def __post_init__(self) -> None:
        number("failure_probability", self.failure_probability, above=0.0, below=1.0)
        _ = self.guarantee  # checks the rest

    @property
    def guarantee(self) -> Guarantee:
        """Two exponential mechanisms of range epsilon/2."""
        half: dict[str, Any] = {"epsilon": parse_epsilon(self.epsilon) / 2.0, "mechanism": "exponential"}
        return together(*(Quantile(q=q, adjacency=self.adjacency, **half).guarantee for q in (0, 1)))

    def prepared(self, values: Any, *, assume_sorted: bool = False) -> Callable[[RandomSource], tuple[Any, Any]]:
        """Both ends. Of the values only the type is looked at now."""
        source, domain = read_values(values, assume_sorted=assume_sorted), Binades()
        if source.dtype.kind not in "iuf":
            raise TypeError("values must be numbers here")
        public = (parse_epsilon(self.epsilon), float(self.failure_probability), parse_adjacency(self.adjacency))
        rate, shift = _end(Fraction(0), *public, domain.size)  # the same at q = 1

        def run(random: RandomSource) -> tuple[Any, Any]:
            column = source.ranked(domain)
            ends = [
                domain.decode(draw_code(column, size=domain.size, target=target, rate=rate, random=random))
                for target in (shift, column.total - shift)
            ]
            (low, _), (_, high) = sorted(ends)
            return (low, high)

        return run


@options_of(PrivateRange)
def private_range(
    values: Any,
    *,
    assume_sorted: bool = False,
    spender: Spender | None = None,
    label: str = "private range",
    random: RandomSource | None = None,
    **options: Any,
) -> Release:
    """Return private bounds (lower, upper) of numbers of any magnitude.

    Each end is an exponential mechanism at epsilon/2 over the 4094 powers of two with a sign. Write e for the rank
    error of one of them (25/epsilon rows or so). Except with `failure_probability`, all but at most 2 e rows at either
    end are within the range. With few rows the range is arbitrary, and as private.

    Use it for the bounds of `quantile` or of clipping, and compose the two guarantees.

    Args:
        values: the numbers, private: the values that a `Column` takes, without declared bounds.
        assume_sorted: the values are in increasing order, missing ones last. You must ensure this: the answer is not
            private otherwise.
        spender: pays the cost before the rows are read. None charges no budget.
        label: the public name of the charge in the spender's record.
        random: the source of randomness. By default it is a fresh one from system entropy.
        **options: `epsilon`, the privacy cost of both ends together. `failure_probability`, 0.05 by default: how often
            more rows may be outside. `adjacency`: which data sets are neighbours.

    Returns:
        A `Release` with (lower, upper) as `value`, and with the guarantee, pure epsilon.

    Raises:
        ArgumentError: if an argument does not fit.
        TypeError: if the values are timestamps or text, which need declared bounds.
        BudgetError: if the spender refuses.

    >>> from dpselect.randomness import keyed_source
    >>> private_range([1.5 * i for i in range(1000)], epsilon=1.0, random=keyed_source(1)).value
    (64.0, 2048.0)
    """
    found = PrivateRange(**options)
    return found(values, assume_sorted=assume_sorted, spender=spender, label=label, random=random)


@options_of(Quantile, Column)
def quantile_interval(
    values: Any,
    *,
    q: SupportsFloat | Fraction,
    epsilon: SupportsFloat,
    failure_probability: SupportsFloat = 0.05,
    spender: Spender | None = None,
    label: str = "quantile interval",
    random: RandomSource | None = None,
    **options: Any,
) -> Release:
    """Return a private interval (low, high) that holds the q-quantile of these rows, except with `failure_probability`.

    At most q n rows are below `low`, and at least q n are at most `high`. This holds for any rows, however few, clipped
    to the bounds and rounded to the granularity. It leaves out the sampling error of the rows themselves.

    Two exponential mechanisms at epsilon/2 each aim below and above q n. They aim as many ranks away as the error of
    one of them (`rank_error` at half the failure probability). For that, as many rows are added at either bound. The
    targets move with n as q n does, and the added rows are public. So the privacy is that of `quantile`.

    Args:
        values: a `Column`, or the values that one takes, private.
        q: the quantile, from 0 to 1, public.
        epsilon: the privacy cost of both ends together, from 2**-30 to 2**20.
        failure_probability: how often the interval may miss the quantile, above 0 and below 1.
        spender: pays the cost before the rows are read. None charges no budget.
        label: the public name of the charge in the spender's record.
        random: the source of randomness. By default it is a fresh one from system entropy.
        **options: `adjacency`. If `values` is not a `Column`, also the attributes of one, as for `quantile`. The
            mechanism is always "exponential".

    Returns:
        A `Release` with (low, high) as `value`, and with the guarantee of two exponential mechanisms.

    Raises:
        ArgumentError: if an argument does not fit.
        TypeError: if an argument or the type of the values does not fit.
        BudgetError: if the spender refuses.

    >>> from dpselect.randomness import keyed_source
    >>> low, high = quantile_interval(
    ...     range(10_000), q=0.5, lower=0, upper=10_000, epsilon=1.0, random=keyed_source(1)
    ... ).value
    >>> 4900 < low < 5000 < high < 5100
    True
    """
    if options.pop("mechanism", "exponential") != "exponential":
        raise ArgumentError("mechanism is always 'exponential' in quantile_interval: leave it out")
    epsilon, fraction, source = parse_epsilon(epsilon), parse_quantile(q), resolve(random)
    failure = number("failure_probability", failure_probability, above=0.0, below=1.0)
    column = Column.of(values, options)
    half = Quantile(q=fraction, epsilon=epsilon / 2.0, mechanism="exponential", **options)
    rows = column.rows_for(half.adjacency, half.rows_per_person)
    one = replace(half, rows_per_person=rows).guarantee
    domain, measure = column.domain, measure_of(column.domain)
    rate, shift = _end(fraction, epsilon, failure, one.adjacency, domain.size, column.units * (rows or 1))

    def run() -> tuple[Any, Any]:
        # with fewer than `shift` rows at hand the targets would be outside, and anything might be drawn
        padded = PaddedColumn(column.ranked(), domain.size, math.ceil(shift))
        middle = fraction * padded.column.total + padded.pad
        codes = sorted(
            draw_code(padded, size=domain.size, target=target, rate=rate, random=source, measure=measure)
            for target in (middle - shift, middle + shift)
        )
        return (domain.decode(codes[0]), domain.decode(codes[1]))

    return paid(run, together(one, one), spender=spender, label=label, replayable=source.replayable)
