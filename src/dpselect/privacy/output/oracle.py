"""Exact output privacy of finite mechanisms: what every declared output guarantee can be checked against."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence

from dpselect.errors import ArgumentError, number
from dpselect.privacy.output.guarantee import OutputGuarantee
from dpselect.privacy.promises import output_promise

__all__ = ["output_delta", "satisfies"]


def output_delta(
    upper: Sequence[float], lower: Sequence[float], *, cells: Sequence[Hashable], epsilons: Mapping[Hashable, float]
) -> float:
    """The smallest delta for which P(S) <= delta + sum_C exp(epsilon(C)) P'(S and C) holds for every set S.

    sum_y [upper(y) - exp(epsilon(cell(y))) lower(y)]_+, the hockey stick with an epsilon for each cell: the worst S
    collects the outputs where the bracket is positive. `upper`, `lower` and `cells` list the outputs in one order. Ask
    for both orders of a pair of neighbours. Exact up to rounding in double precision (about 1e-15 absolute).

    >>> e = math.exp(0.7)
    >>> p = [0.03, 0.97 * e / (1 + e), 0.97 / (1 + e), 0.0]
    >>> round(output_delta(p, p[::-1], cells="aaaa", epsilons={"a": 0.7}), 12)
    0.03
    """
    if not len(upper) == len(lower) == len(cells):
        raise ArgumentError("upper, lower and cells must be of one length")
    prices = {cell: number("epsilons", e, at_least=0.0, rounding="up") for cell, e in epsilons.items()}
    if any(cell not in prices for cell in cells):
        raise ArgumentError("cells: every output must fall in a cell that epsilons prices")
    masses = [
        (number("upper", p, at_least=0.0), number("lower", q, at_least=0.0)) for p, q in zip(upper, lower, strict=True)
    ]
    return math.fsum(max(p - math.exp(prices[c]) * q, 0.0) for (p, q), c in zip(masses, cells, strict=True))


def satisfies(
    guarantee: OutputGuarantee,
    pairs: Iterable[tuple[Mapping[Hashable, float], Mapping[Hashable, float]]],
    *,
    tolerance: float = 1e-12,
) -> bool:
    """Whether a finite mechanism keeps an output guarantee: both orders of every pair of laws (output -> mass).

    `tolerance` allows for rounding of the masses. Raises `ArgumentError` when an output falls in no priced cell, or
    when a law does not add up to 1.

    >>> flip = OutputGuarantee(cell=lambda output: output, epsilons={"yes": math.log(3), "no": math.log(3)})
    >>> satisfies(flip, [({"yes": 0.75, "no": 0.25}, {"yes": 0.25, "no": 0.75})])
    True
    """
    guarantee = output_promise("guarantee", guarantee)
    for one, other in pairs:
        for law in (one, other):
            if abs(math.fsum(law.values()) - 1.0) > 1e-9:
                raise ArgumentError("a distribution of outputs must add up to 1")
        outputs = sorted({*one, *other}, key=repr)
        cells = [guarantee.cell(output) for output in outputs]
        prices = {cell: guarantee.price(cell) for cell in cells}
        laws = [[law.get(output, 0.0) for output in outputs] for law in (one, other)]
        for upper, lower in (laws, laws[::-1]):
            if output_delta(upper, lower, cells=cells, epsilons=prices) > guarantee.delta + tolerance:
                return False
    return True
