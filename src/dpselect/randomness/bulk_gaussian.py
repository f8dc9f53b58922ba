"""Discrete Gaussian noise in bulk, exact: a table proposes, and a coin that is nearly always sure accepts.

The integers are cut into blocks of equal width b, a power of two (1 for small variances). One of 2**16 table
entries is drawn. Each names a block, in proportion to at least its largest density, and a uniform place within the
block is proposed. It is accepted with probability scale * b * density / (entries of the block) <= 1, exactly.
The lower bound of that probability over the block is in the table too: a coin below it is accepted without looking
at the density. The few others compute the density in double precision, and those too close to call (2**-32 of them)
are decided by more random bits and rational arithmetic. No rounding enters the law: the table's numbers of entries are
a choice, not an approximation, as long as they are large enough, which double precision decides with a margin.

One entry stands for everything beyond the blocks, where a geometric number of steps is proposed instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from dpselect.numerics.search import Array
from dpselect.randomness.lazy import LazyUniform, exponential_enclosure
from dpselect.randomness.stream import BitStream, Shape, parse_shape

__all__ = ["LARGEST_VARIANCE", "discrete_gaussian_numbers"]

_CHUNK = 1 << 14
_ENTRIES = 1 << 16
_MOST_BLOCKS = 1 << 10
_FEW = 1 << 16
LARGEST_VARIANCE = 2.0**116
_REACH = 9.6
_COIN = 2.0**32
_MARGIN = 2.0**-8
"""In units of 2**-32: how far a probability computed in double precision may be off. Its exponent is below 60 in
magnitude and right to a few units of 2**-53 relative, which is 2**-44 of the probability and 2**-12 of these units."""


def discrete_gaussian_numbers(variance: Fraction, size: Shape, random: BitStream) -> NDArray[np.int64]:
    """Independent integers with P(X = x) proportional to exp(-x**2 / (2*variance)).

    The variance is at most `LARGEST_VARIANCE`. Exact as long as NumPy's exp is within a factor 1 +- 2**-44.
    """
    table = _table(variance)
    shape = parse_shape(size)
    drawn = np.empty(math.prod(shape), dtype=np.int64)
    for start in range(0, len(drawn), _CHUNK):
        part = drawn[start : start + _CHUNK]
        missing = table.propose(part, random)
        while len(missing):
            again = np.empty(len(missing), dtype=np.int64)
            rejected = table.propose(again, random)
            part[missing] = again
            missing = missing[rejected]
    return drawn.reshape(shape)


@dataclass(frozen=True, eq=False)
class _Table:
    """Proposals for one variance. Blocks are numbered from the left, and the last number is that of the tails.

    Attributes:
        variance: exactly.
        scale: a double, taken exactly: x is proposed and accepted with mass scale * density(x) / 2**16.
        width: of a block.
        edge: where the blocks end. They cover -edge .. edge - 1.
        block: for each entry of the table its block.
        entries: for each block its number of entries.
        share: for each block scale * width / entries, which times the density accepts, and 0 for the tails.
        sure: for each block the 32-bit coins below this are accepted, wherever in the block.
    """

    variance: Fraction
    scale: float
    width: int
    edge: int
    block: NDArray[np.uint16]
    entries: NDArray[np.int64]
    share: Array
    sure: NDArray[np.uint32]

    def propose(self, out: NDArray[np.int64], random: BitStream) -> NDArray[np.intp]:
        """Fill `out` with proposals and return the places of those that were rejected."""
        halves = random.words(len(out)).view("<u4").reshape(-1, 2)
        coin, high = halves[:, 0], halves[:, 1]
        block = self.block.take(high >> np.uint32(16)).astype(np.intp)
        np.multiply(block, self.width, out=out)
        if self.width > _FEW:
            out += (random.words(len(out)) & np.uint64(self.width - 1)).view(np.int64)
        elif self.width > 1:
            out += high & np.uint32(self.width - 1)
        out -= self.edge
        unsure = np.flatnonzero(coin >= self.sure.take(block))
        return unsure[~self._accepted(out, unsure, block[unsure], coin[unsure], random)]

    def _accepted(
        self,
        out: NDArray[np.int64],
        places: NDArray[np.intp],
        block: NDArray[np.intp],
        coin: NDArray[np.uint32],
        random: BitStream,
    ) -> NDArray[np.bool_]:
        """Tell which of these proposals are accepted. One from the tails gets its number here."""
        value = out[places].astype(np.float64)
        level = _density(value, self.variance) * self.share[block] * _COIN - coin
        accepted = level >= 1.0 + _MARGIN
        for k in np.flatnonzero((level > -_MARGIN) & ~accepted):
            uniform = LazyUniform(random, int(coin[k]), 32)
            weight = Fraction(self.scale) * self.width / int(self.entries[block[k]])
            if block[k] == len(self.entries) - 1:
                out[places[k]], weight = self._beyond(random)
            accepted[k] = uniform.below(partial(self._exactly, int(out[places[k]]), weight))
        return accepted

    def _beyond(self, random: BitStream) -> tuple[int, Fraction]:
        """A number beyond the edge, and what its density times is to be accepted with.

        It is edge + step * V + U on either side, with V geometric of ratio 1/2 and U uniform below step. As
        step >= variance/edge, the density falls at least as fast as the proposals, so `_table` checks the edge only.
        """
        step = _tail_step(self.variance, self.edge)
        rounds = 0
        while random.bits(1):
            rounds += 1
        size = self.edge + step * rounds + random.below(step)
        return (-1 - size if random.bits(1) else size), Fraction(self.scale) * step * 2 ** (rounds + 2)

    def _exactly(self, x: int, weight: Fraction, bits: int) -> tuple[Fraction, Fraction]:
        more = max(weight.numerator.bit_length() - weight.denominator.bit_length(), 0) + 1
        low, high = exponential_enclosure(x * x / (2 * self.variance), bits + more)
        return low * weight, high * weight


def _density(x: Array, variance: Fraction) -> Array:
    with np.errstate(under="ignore", over="ignore"):
        return np.asarray(np.exp(x * x * (-0.5 / float(variance))))


def _tail_step(variance: Fraction, edge: int) -> int:
    return 1 << math.ceil(variance / edge).bit_length()


@lru_cache(maxsize=16)
def _table(variance: Fraction) -> _Table:
    reach = math.ceil(_REACH * math.sqrt(variance)) + 1
    width = 1 << max((2 * reach // _MOST_BLOCKS).bit_length(), 0)
    edge = -(-reach // width) * width
    left = np.arange(-edge, edge, width, dtype=np.float64)
    right = left + (width - 1)
    highest = _density(np.where(left < 0.0, right, left), variance)
    lowest = _density(np.where(left < 0.0, left, right), variance)
    scale = (_ENTRIES - 2 - len(left)) / (width * float(highest.sum())) * (1.0 - 2.0**-20)
    needed = np.floor(scale * width * highest * (1.0 + 2.0**-30)).astype(np.int64) + 1
    needed[np.argmax(needed)] += _ENTRIES - 1 - int(needed.sum())  # all entries but the one of the tails
    share = scale * width / needed
    sure = np.floor(share * lowest * (_COIN * (1.0 - 2.0**-30)))
    farthest = float(_density(np.array([float(edge)]), variance)[0])
    # a coin of 1 or more is too high for every number beyond the edge
    if not (int(needed.min()) > 0 and scale * farthest * 4.0 * _tail_step(variance, edge) * _COIN < 0.5):
        raise RuntimeError("the table does not cover the law")
    entries = np.append(needed, 1)
    return _Table(
        variance=variance,
        scale=scale,
        width=width,
        edge=edge,
        block=np.repeat(np.arange(len(entries), dtype=np.uint16), entries),
        entries=entries,
        share=np.append(share, 0.0),
        sure=np.append(np.maximum(sure - 1.0, 0.0), 0.0).astype(np.uint32),
    )
