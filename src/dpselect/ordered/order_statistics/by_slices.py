"""Many quantiles by slicing: a single quantile in each slice of Reorder-Slice-Compute (Cohen et al. 2022)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

from dpselect.errors import BoundUnavailableError
from dpselect.mechanisms import NoisyCount, bounded_range, noisy_count
from dpselect.ordered.interior_points.draws import SecretDraws
from dpselect.ordered.order_statistics.intervals import RankedColumn, draw_code
from dpselect.ordered.order_statistics.one import quantile_rate, rank_error
from dpselect.ordered.order_statistics.scattered import ColumnPart
from dpselect.ordered.slices.price import SlicePrice
from dpselect.privacy import Adjacency, Guarantee, compose
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.randomness import RandomSource

__all__ = ["Slicing", "plan_slices", "slice_codes"]

_COUNT_SHARE = 1 / 16
"""Of epsilon, for the number of rows, from which the sizes of the slices are made."""


@dataclass(frozen=True)
class Slicing:
    """Slices from the smallest row upwards, one for each quantile, that end half-way to the next quantile.

    `edges`: 0, the shares of rows at which the slices should end, 1. A slice has a geometric number of rows more than
    planned, of parameter `slice_epsilon`. In each slice a quantile is drawn at range `computation_epsilon`.
    """

    qs: tuple[Fraction, ...]
    count_epsilon: float
    slice_epsilon: float
    computation_epsilon: float
    delta: float

    @property
    def edges(self) -> list[Fraction]:
        return [Fraction(0), *((a + b) / 2 for a, b in pairwise(self.qs)), Fraction(1)]

    @property
    def shares(self) -> list[Fraction]:
        """The position in its slice at which each quantile is expected."""
        return [(q - a) / (b - a) for q, (a, b) in zip(self.qs, pairwise(self.edges), strict=True)]

    @property
    def rates(self) -> list[Fraction]:
        """Of the exponential mechanism in each slice: one row more or less is a range of `computation_epsilon`."""
        epsilon = epsilon_used(self.computation_epsilon)
        return [quantile_rate(share, epsilon, Adjacency.ADD_OR_REMOVE_ONE) for share in self.shares]

    def guarantee(self, adjacency: Adjacency) -> Guarantee:
        """Of the count and the slices together.

        A swap in a slice moves all scores by at most one (`quantile_rate`), a range of 2 rate <= 2 epsilon.
        """
        swap = bounded_range(epsilon=2.0 * self.computation_epsilon, adjacency=Adjacency.REPLACE_ONE)
        parts: dict[str, Any] = {"insertion": bounded_range(epsilon=self.computation_epsilon), "swap": swap}
        price = SlicePrice(slice_epsilon=self.slice_epsilon, **parts, slices=len(self.qs))
        slices = price.guarantee(adjacency=adjacency)
        return compose(NoisyCount(epsilon=self.count_epsilon, adjacency=adjacency).guarantee, slices)

    def sizes(self, count: int) -> list[int]:
        """Planned sizes of all slices but the last, for a noisy number of rows, less the mean of what is added."""
        added, found = 1.0 / math.expm1(self.slice_epsilon), [0]
        for place, edge in enumerate(self.edges[1:-1], start=1):
            found.append(max(math.floor(edge * count - place * Fraction(added)) - sum(found), 0))
        return found[1:]

    def rank_errors(self, domain_size: int, failure_probability: float, count: int) -> list[float]:
        """How many ranks each is off at most, all together except with this probability, regardless of the rows.

        A third of the probability goes to each of the noisy count, the ends of the slices, and the draws. The noisy
        count is off by c. The end of slice i is off by its share of c and by how far the sizes planned for `count` are
        from the wanted ones. It is also off by how far a sum of i geometric numbers is from its mean (Chernoff). The
        place in a slice is a mean of its ends.

        A draw that may be off by all rows of its slice on one side may be anywhere on that side. In increasing order a
        value is off downwards by no more than the worst from it on, and upwards by the worst up to it.
        """
        third = failure_probability / 3.0
        each = third / len(self.qs)
        counted = math.log(2.0 / third) / self.count_epsilon + 1.0
        ends, planned = [0.0], 0
        for place, (edge, size) in enumerate(zip(self.edges[1:-1], self.sizes(count), strict=True), start=1):
            planned += size
            off = abs(planned + place / math.expm1(self.slice_epsilon) - float(edge * count))
            ends.append(float(edge) * counted + off + _geometric_error(place, self.slice_epsilon, each))
        ends.append(0.0)  # the last slice ends with the last row
        down, up = [], []
        for place, (share, rate) in enumerate(zip(self.shares, self.rates, strict=True)):
            low, high, drawn = ends[place], ends[place + 1], rank_error(domain_size, rate, each)
            rows = float(self.edges[place + 1] - self.edges[place]) * (count - counted) - low - high
            near, q = float(1 - share) * low + float(share) * high + drawn, float(self.qs[place])
            most = count + counted  # rows there are
            down.append(near if place == 0 or drawn < float(share) * rows else max(q * most, near))
            last = place == len(self.qs) - 1
            up.append(near if last or drawn < float(1 - share) * rows else max((1.0 - q) * most, near))
        worst = zip(reversed(list(accumulate(reversed(down), max))), accumulate(up, max), strict=True)
        return [max(pair) * (1.0 + 2.0**-40) for pair in worst]


def _geometric_error(count: int, epsilon: float, failure: float) -> float:
    """How far a sum of geometric numbers is from its mean at most, but for this probability (Chernoff)."""
    mean = count / math.expm1(epsilon)
    most = math.inf
    least = math.inf
    for step in range(1, 400):
        above = epsilon * step / 400.0
        growth = math.log(-math.expm1(-epsilon)) - math.log(-math.expm1(above - epsilon))
        most = min(most, (count * growth + math.log(2.0 / failure)) / above - mean)
        below = epsilon * step / 50.0
        shrink = math.log(-math.expm1(-epsilon)) - math.log(-math.expm1(-below - epsilon))
        least = min(least, (count * shrink + math.log(2.0 / failure)) / below + mean)
    return max(most, min(least, mean))


@lru_cache(maxsize=64)
def plan_slices(
    qs: tuple[Fraction, ...], epsilon: float, delta: float, adjacency: Adjacency
) -> tuple[Slicing, Guarantee]:
    """The slicing whose price at `delta` is at most epsilon and not much less, by a few evaluations, and that price.

    Raises `BoundUnavailableError` where none is found.
    """
    share = epsilon / 4.0
    best: tuple[Slicing, Guarantee] | None = None
    for _ in range(4):  # nearly in proportion
        slicing = Slicing(qs, epsilon * _COUNT_SHARE, share, share, delta)
        guarantee = slicing.guarantee(adjacency)
        price = guarantee.epsilon(delta)
        if price <= epsilon:
            best = slicing, guarantee
        if 0.95 * epsilon < price <= epsilon:
            break
        share = min(share * 0.985 * epsilon / price, 1.0)
    if best is None:
        raise BoundUnavailableError(f"method: no slicing has epsilon {epsilon} at delta {delta}; take a larger delta")
    return best


def slice_codes(
    column: RankedColumn, slicing: Slicing, *, size: int, random: RandomSource, draws: SecretDraws | None = None
) -> tuple[list[int], int]:
    """One code for each quantile, made increasing, and the noisy count. `column` should have few ties.

    This is Reorder-Slice-Compute with the rows in increasing order in every step, so that a slice is a range of ranks.
    The planned sizes come from a count that is paid for. The last slice is all that is left: a size without end.
    """
    secret = SecretDraws(random) if draws is None else draws
    count = noisy_count(column.total, epsilon=slicing.count_epsilon, random=random)
    stops = [0]
    for planned in slicing.sizes(count):
        stops.append(min(stops[-1] + planned + secret.geometric(slicing.slice_epsilon), column.total))
    codes = []
    for share, rate, (start, stop) in zip(slicing.shares, slicing.rates, pairwise([*stops, column.total]), strict=True):
        target = share * (stop - start)
        codes.append(draw_code(ColumnPart(column, start, stop, 0), size=size, target=target, rate=rate, random=random))
    return sorted(codes), count
