"""Many quantiles by cutting the data at the middle one and going on in both parts (Kaplan, Schnapp, Stemmer 2022)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpselect.ordered.order_statistics.intervals import RankedColumn, draw_ranked
from dpselect.ordered.order_statistics.one import quantile_rate
from dpselect.ordered.order_statistics.scattered import ColumnPart
from dpselect.privacy import Adjacency
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.randomness import RandomSource

__all__ = ["Cut", "cut_rate", "cutting_tree", "equal_share", "level_shares", "recursive_codes"]


@dataclass(frozen=True)
class Cut:
    """Quantile number `index` as the `share`-quantile of the rows between the cuts `low` and `high` (None: the ends).

    Cuts at the same `level` are in different parts.
    """

    index: int
    share: Fraction
    low: int | None
    high: int | None
    level: int


def cutting_tree(qs: Sequence[Fraction]) -> list[Cut]:
    """The cuts for increasing quantiles, those that bound a part before those inside it.

    >>> [(cut.index, cut.share, cut.level) for cut in cutting_tree([Fraction(k, 4) for k in (1, 2, 3)])]
    [(1, Fraction(1, 2), 0), (0, Fraction(1, 2), 1), (2, Fraction(1, 2), 1)]
    """
    cuts: list[Cut] = []
    waiting: list[tuple[int, int, int]] = [(-1, len(qs), 0)]
    for low, high, level in waiting:
        if high - low < 2:
            continue
        index = (low + high) // 2  # searches: the tree of cuts; nothing is searched
        start = qs[low] if low >= 0 else Fraction(0)
        stop = qs[high] if high < len(qs) else Fraction(1)
        share = (qs[index] - start) / (stop - start)
        cuts.append(Cut(index, share, low if low >= 0 else None, high if high < len(qs) else None, level))
        waiting += [(low, index, level + 1), (index, high, level + 1)]
    return cuts


def cut_rate(share: Fraction, epsilon: Fraction, adjacency: Adjacency) -> Fraction:
    """The rate at which all cuts of a level together have range epsilon.

    The parts of a level are disjoint and fixed by what was drawn before. One row more or less is in one part: the rate
    of `quantile_rate`. A replaced row leaves one part, which has one row less, and joins another, with one row more.
    Each may have range epsilon/2. So the rate is half of that for one row more or less. If both are in one part, the
    scores there move by at most 1 (`quantile_rate`), a range of 2 rate <= epsilon.
    """
    one_more = quantile_rate(share, epsilon, Adjacency.ADD_OR_REMOVE_ONE)
    return one_more if adjacency is Adjacency.ADD_OR_REMOVE_ONE else one_more / 2


def equal_share(epsilon: float, parts: int) -> float:
    """The largest float64 for which the sum of `parts` copies is at most epsilon.

    >>> equal_share(1.0, 2)
    0.5
    """
    share = epsilon / parts
    return share if Fraction(share) * parts <= epsilon_used(epsilon) else math.nextafter(share, 0.0)


def level_shares(epsilon: float, levels: int, fade: Fraction) -> list[float]:
    """Float64 shares, each `fade` times the one before, with a sum of at most epsilon.

    >>> [round(share, 3) for share in level_shares(1.0, 3, Fraction(1, 2))], level_shares(1.0, 2, Fraction(1))
    ([0.571, 0.286, 0.143], [0.5, 0.5])
    """
    if fade == 1:
        return [equal_share(epsilon, levels)] * levels
    # a float64 stands for its shortest decimal when it is charged, which may be above it
    whole = epsilon_used(epsilon) * (1 - Fraction(1, 2**40))
    parts = [fade**level for level in range(levels)]
    return [float(whole * part / sum(parts)) for part in parts]


def recursive_codes(
    column: RankedColumn,
    cuts: Sequence[Cut],
    *,
    size: int,
    rates: Sequence[Fraction],
    random: RandomSource,
) -> list[int]:
    """The codes of all cuts, by their index. `column` should have few ties (see `ScatteredColumn`).

    A cut's target is its share of the rows in its part. Rows at most the code drawn are the part below, the others
    the part above.
    """
    drawn: dict[int, tuple[int, int]] = {}
    for cut, rate in zip(cuts, rates, strict=True):
        low_code, start = drawn[cut.low] if cut.low is not None else (-1, 0)
        last, stop = drawn[cut.high] if cut.high is not None else (size - 1, column.total)
        origin = min(low_code + 1, last)
        part = ColumnPart(column, start, stop, origin)
        target = cut.share * part.total
        code, at_most = draw_ranked(part, size=last - origin + 1, target=target, rate=rate, random=random)
        drawn[cut.index] = (origin + code, start + at_most)
    return [drawn[index][0] for index in sorted(drawn)]
