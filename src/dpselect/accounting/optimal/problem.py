"""Best-of-K over a finite pair at some epsilons: gains, slopes, and bounds on the sign of the cross derivative.

K has generating function phi. F[a, b) and F'[a, b) are the P- and P'-masses of the atoms between nodes a and b, l_i the
losses. With E = exp(epsilon),

    slope(a, b) = exp(l_b) phi'(F[a, b)) - E phi'(F'[a, b))     what b adds in S on top of [a, b), per P'-mass
    g(i, j)     = p_i p_j phi''(F) - E q_i q_j phi''(F')        what atom i in the interval adds to that, for atom j

Epsilons are worked on together, since the time goes into the number of calls more than into their length: a column is
an epsilon and an atom b that can gain something in S, and columns are numbered epsilon by epsilon.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpselect.accounting.optimal.atoms import Atoms, Index
from dpselect.numerics.search import Array
from dpselect.repetitions import Repetitions

__all__ = ["ROUNDING", "Density", "Problem", "Truth", "scaled"]

Truth = NDArray[np.bool_]
Value = TypeVar("Value", bound=np.generic)
_Range = tuple[Array, Array]
_LARGEST_EXPONENT = 690.0
_POWERS = 64

ROUNDING = 1e-12
"""Share of both terms of a gain that bounds are raised by; attained values are lowered by more."""


class Density(NamedTuple):
    """The gain of outcomes inside atoms per unit of the atom: at both ends, bounds on its derivative and on itself."""

    start: Array
    end: Array
    steepest_fall: Array
    steepest_rise: Array
    least: Array
    most: Array
    rounding: Array

    def range(self) -> tuple[Array, Array]:
        """The smallest and the largest density, from phi' at both ends and from the derivative, whichever is better."""
        fall, rise = np.minimum(self.steepest_fall, 0.0), np.maximum(self.steepest_rise, 0.0)
        low = np.maximum(self.least, np.maximum(self.start + fall, self.end - rise))
        high = np.minimum(self.most, np.minimum(self.start + rise, self.end - fall))
        return low - self.rounding, np.maximum(low, high) + self.rounding

    def excess_over(self, other: Density) -> Array:
        """A bound on how far this density can be above another anywhere inside the same atom."""
        rise = np.maximum(self.steepest_rise - other.steepest_fall, 0.0)
        fall = np.maximum(other.steepest_rise - self.steepest_fall, 0.0)
        ends = np.maximum(self.start - other.start, self.end - other.end)
        return np.asarray(ends + np.minimum(rise, fall) + self.rounding + other.rounding)

    def of(self, columns: Index) -> Density:
        """Those of some columns."""
        return Density(*(x[columns] for x in self))


@dataclass(frozen=True)
class Problem:
    """Atoms, a law of K and some epsilons >= 0."""

    atoms: Atoms
    law: Repetitions
    epsilons: Array

    @cached_property
    def first(self) -> int:
        """The first atom with a column. For E >= 1 an interval of losses <= 0 has F <= F', so its end never gains."""
        return int(np.searchsorted(self.atoms.losses, 0.0, side="right"))

    @property
    def width(self) -> int:
        """The number of columns of one epsilon: of atoms of positive loss."""
        return self.atoms.size - self.first

    @cached_property
    def columns(self) -> Index:
        """The numbers of all columns."""
        return np.arange(self.epsilons.size * self.width)

    @cached_property
    def ends(self) -> Index:
        """The atom b of every column."""
        return np.tile(np.arange(self.first, self.atoms.size), self.epsilons.size)

    @cached_property
    def epsilon(self) -> Array:
        """The epsilon of every column."""
        return np.repeat(self.epsilons, self.width)

    def rows(self, values: NDArray[Value]) -> NDArray[Value]:
        """Values of the columns, a row for each epsilon."""
        return values.reshape(self.epsilons.size, self.width)

    def of(self, chosen: Index) -> Problem:
        """The same with some of the epsilons, given by their places."""
        return Problem(self.atoms, self.law, self.epsilons[chosen])

    def numbers(self, chosen: Index) -> Index:
        """The numbers of the columns of some of the epsilons."""
        return np.ravel(chosen[:, None] * self.width + np.arange(self.width))

    def gains(self, a: Index, *, rounding: float = -ROUNDING) -> Array:
        """For every column the gain of atom b in S on top of [a, b). a = b + 1 keeps the interval empty within b.

        Rounded up, less a share `rounding` of both terms if it must not be too large.
        """
        t, b = self.atoms, self.ends
        rise, cost = t.increments(self.law, np.minimum(a, b), b + 1, b, up=rounding < 0.0)
        alone = float(self.law.pmf(1.0))
        rise, cost = np.where(a > b, alone * t.p[b], rise), np.where(a > b, alone * t.q[b], cost)
        return np.asarray(rise * (1.0 - rounding) - scaled(self.epsilon, cost) * (1.0 + rounding))

    def slope_terms(self, a: Index, columns: Index) -> tuple[Array, Array]:
        """The two terms of slope(a, b) / E at the start of the atom b of each column."""
        t, log, b = self.atoms, self.law.log_derivative, self.ends[columns]
        rise = t.losses[b] - self.epsilon[columns] + log(t.outside_p(a, b))
        return np.exp(np.minimum(rise, _LARGEST_EXPONENT)), np.exp(log(t.outside_q(a, b)))

    def density(self, a: Index, columns: Index) -> Density:
        """The gain density inside the atoms b on top of [a, b). With a = b + 1 the interval stays empty there too."""
        t, law, b, epsilon = self.atoms, self.law, self.ends[columns], self.epsilon[columns]
        within = np.minimum(a, b)
        v_p, v_q = ((outside(within, b), outside(within, b + 1)) for outside in (t.outside_p, t.outside_q))
        # the interval has less mass at the start: bounds need that rounded down, and the end's rounded up; an empty one
        # has none
        v_p, v_q = ((t.larger(start), np.where(a <= b, t.smaller(end), 1.0)) for start, end in (v_p, v_q))
        v_p, v_q = ((np.where(a <= b, start, 1.0), end) for start, end in (v_p, v_q))
        p_start, p_end = (t.p[b] * np.exp(law.log_derivative(v)) for v in v_p)
        q_start, q_end = (scaled(epsilon, t.q[b] * np.exp(law.log_derivative(v))) for v in v_q)
        # the derivative is p^2 phi''(F) - E q^2 phi''(F'), and only its relative size tells near terms apart
        masses = t.between(within, b), t.between(within, b + 1)
        low, high = self._tilt(
            (masses[0][1], masses[1][1]),
            v_p,
            v_q,
            (t.apart(within, b)[0], t.apart(within, b + 1)[1]),
            (t.losses[within], t.losses[b]),
        )
        p, q = np.where(a <= b, t.p[b], 0.0) * t.p[b], np.where(a <= b, t.q[b], 0.0) * t.q[b]
        twice = 2.0 * t.losses[b] - epsilon
        with np.errstate(over="ignore"):
            p_slow, p_fast = (p * law.second_derivative(v) for v in v_p)
            q_slow, q_fast = (scaled(epsilon, q * law.second_derivative(v)) for v in v_q)
            p_bend, q_bend = (
                t.p[b] * law.second_derivative(v_p[1]),
                scaled(epsilon, t.q[b] * law.second_derivative(v_q[1])),
            )
            least, most = (np.expm1(np.minimum(twice + x, _LARGEST_EXPONENT)) for x in (low, high))
            fall = np.maximum(p_slow - q_fast, least * np.where(least < 0.0, q_fast, q_slow))
            rise = np.minimum(p_fast - q_slow, most * np.where(most > 0.0, q_fast, q_slow))
        return Density(
            start=p_start - q_start,
            end=p_end - q_end,
            steepest_fall=fall,
            steepest_rise=rise,
            least=p_start - q_end,
            most=p_end - q_start,
            rounding=ROUNDING * (p_end + q_end) + np.where(a <= b, 2.0 * t.uncertainty * (p_bend + q_bend), 0.0),
        )

    def rises(self, a: Index, columns: Index) -> Truth:
        """Whether leaving atom a out of the interval raises the slope of b: g < 0 in the middle of the cell."""
        t, b = self.atoms, self.ends[columns]
        a = np.minimum(a, b)
        inside = np.where(a < b, 0.5, 0.0)
        v_p = t.outside_p(a, b) + inside * t.p[a] - 0.5 * t.p[b]
        v_q = t.outside_q(a, b) + inside * t.q[a] - 0.5 * t.q[b]
        # the calls take the time here, more than the lengths
        both = self.law.second_derivative(np.clip(np.stack((v_p, v_q)), 0.0, 1.0))
        with np.errstate(divide="ignore"):
            keep, drop = np.maximum(np.log(both), -1e300)
        return np.asarray(t.losses[a] + t.losses[b] - self.epsilon[columns] + keep < drop)

    def cross_bounds(self, i: Index, i_end: Index, j: Index, j_end: Index, epsilon: Array) -> tuple[Array, Array]:
        """Upper and lower bounds on g / (E q_i q_j) over the cells i .. i_end-1 by j .. j_end-1 with row <= column.

        Each block of cells has an epsilon of its own.

        The best of three bounds is taken. phi'' is monotone, so its values at two corners serve. The second bounds
        phi''(F) / phi''(F') from F / F' and the elasticity of phi'', which errs by a share of g itself, however small
        losses are. The third is the value in the middle plus half the largest derivatives, whose leading parts cancel
        as in g.
        """
        t, second, third = self.atoms, self.law.second_derivative, self.law.third_derivative
        single = (i_end == i + 1) & (i == j) & (j_end == j + 1)
        apart = i_end <= j
        p_0, q_0 = t.outside_p(i, j_end), t.outside_q(i, j_end)
        inner = np.minimum(i_end, j)
        p_1 = np.where(apart, t.outside_p(inner, j), 1.0)
        q_1 = np.where(apart, t.outside_q(inner, j), 1.0)
        p_0, q_0, p_1, q_1 = t.smaller(p_0), t.smaller(q_0), t.larger(p_1), t.larger(q_1)
        p_large, q_large, p_small, q_small = second(p_0), second(q_0), second(p_1), second(q_1)
        largest = t.losses[i_end - 1] + t.losses[j_end - 1] - epsilon
        ratio_1 = np.exp(np.minimum(largest, _LARGEST_EXPONENT))
        ratio_0 = np.exp(np.minimum(t.losses[i] + t.losses[j] - epsilon, _LARGEST_EXPONENT))
        with np.errstate(over="ignore"):
            top, bottom = ratio_1 * p_large - q_small, ratio_0 * p_small - q_large
        # where the corners leave the sign open
        k = np.flatnonzero((top > 0.0) & (bottom < 0.0))
        if k.size:
            low, high = self._elastic_bounds(i[k], i_end[k], j[k], j_end[k], epsilon[k])
            with np.errstate(over="ignore"):
                top[k] = np.minimum(top[k], q_large[k] * np.expm1(np.maximum(high, 0.0)))
            bottom[k] = np.maximum(bottom[k], q_large[k] * np.expm1(np.minimum(low, 0.0)))
        # where it is still open, and the block is a rectangle or one atom with itself
        k = np.flatnonzero((top > 0.0) & (bottom < 0.0) & (apart | single) & (largest <= _LARGEST_EXPONENT))
        if k.size:
            i, i_end, j, j_end = i[k], i_end[k], j[k], j_end[k]
            apart, ratio_0, ratio_1 = apart[k], ratio_0[k], ratio_1[k]
            p_third, q_third = (third(p_1[k]), third(p_0[k])), (third(q_1[k]), third(q_0[k]))
            p_rows, q_rows = (np.where(apart, x, 0.0) for x in t.between(i, i_end))
            p_columns, q_columns = t.between(j, j_end)
            p_middle, q_middle = p_0[k] + 0.5 * (p_rows + p_columns), q_0[k] + 0.5 * (q_rows + q_columns)
            # both were rounded down once
            (p_least, p_most), (q_least, q_most) = (
                (second(t.larger(t.larger(x))), second(t.smaller(np.minimum(x, 1.0)))) for x in (p_middle, q_middle)
            )
            # masses of P and P' grow along a curve, not a chord, where losses differ inside the block
            bend = 0.25 * (q_rows * _spread(t.losses, i, i_end) + q_columns * _spread(t.losses, j, j_end))
            reach_0, reach_1 = ratio_0 * p_third[1] * bend, ratio_1 * p_third[1] * bend
            for p, q in ((p_rows, q_rows), (p_columns, q_columns)):
                reach_0 = reach_0 + 0.5 * _largest(ratio_0 * p, q, p_third, q_third)
                reach_1 = reach_1 + 0.5 * _largest(ratio_1 * p, q, p_third, q_third)
            top[k] = np.minimum(top[k], ratio_1 * p_most - q_least + reach_1)
            bottom[k] = np.maximum(bottom[k], ratio_0 * p_least - q_most - reach_0)
        return np.where((largest > _LARGEST_EXPONENT) & (p_large > 0.0), np.inf, top), bottom

    def _elastic_bounds(self, i: Index, i_end: Index, j: Index, j_end: Index, epsilon: Array) -> tuple[Array, Array]:
        """Lower and upper bounds on log(p_i p_j phi''(F) / (E q_i q_j phi''(F'))) over blocks of cells."""
        t, apart = self.atoms, i_end < j
        inner, end = np.minimum(i_end, j), np.minimum(i_end, j_end)
        smallest, largest = t.between(inner, j), t.between(i, j_end)
        # where excess_below is largest among the nodes of the rows
        peak = np.clip(self.first, i, end)
        low, high = self._tilt(
            (np.where(apart, smallest[1], 0.0), largest[1]),
            (t.outside_p(inner, j), t.outside_p(i, j_end)),
            (t.outside_q(inner, j), t.outside_q(i, j_end)),
            (t.apart(np.where(t.excess_below[i] <= t.excess_below[end], i, end), j)[0], t.apart(peak, j_end)[1]),
            (t.losses[i], t.losses[j_end - 1]),
        )
        return (
            t.losses[i] + t.losses[j] - epsilon + low,
            t.losses[i_end - 1] + t.losses[j_end - 1] - epsilon + high,
        )

    def _tilt(
        self, q: _Range, outside_p: _Range, outside_q: _Range, apart: _Range, losses: _Range
    ) -> tuple[Array, Array]:
        """Lower and upper bounds on log(phi''(F) / phi''(F')), from ranges of F', 1 - F, 1 - F', F - F', and losses.

        log(F / F') is between the extreme losses, and follows from F - F', which is small where losses are. The
        elasticity m(x) = x phi'''(x) / phi''(x) of a power sum with non-negative coefficients does not fall with x. If
        F <= r F', the logarithm of phi''(F) / phi''(F') is at most log(r) m(largest F) where r >= 1 and
        log(r) m(smallest F) where r < 1; likewise from below. Nothing of the size of phi'' is subtracted.
        """
        less, more = apart
        with np.errstate(divide="ignore", invalid="ignore"):
            low = np.log1p(np.fmax(less / np.where(less >= 0.0, q[1], q[0]), -1.0))
            high = np.log1p(np.fmax(more / np.where(more >= 0.0, q[0], q[1]), -1.0))
        # where F' may be 0 the losses alone say something
        low, high = (np.clip(np.where(np.isnan(x), y, x), *losses) for x, y in zip((low, high), losses, strict=True))
        m_p, m_q = (
            (self._elasticity(self.atoms.larger(least)), self._elasticity(self.atoms.smaller(most)))
            for least, most in (outside_p, outside_q)
        )
        return low * np.where(low >= 0.0, *m_q), high * np.where(high >= 0.0, *m_p[::-1])

    def _elasticity(self, complement: Array) -> Array:
        """x phi'''(x) / phi''(x) at x = 1 - complement, or its limit if x is 0 or phi'' underflows."""
        mass, second = 1.0 - complement, self.law.second_derivative(complement)
        inside = (second > 0.0) & (mass > 0.0)
        third = self.law.third_derivative(complement)
        return np.where(inside, mass * third / np.where(inside, second, 1.0), self._lowest_power)

    @cached_property
    def _lowest_power(self) -> float:
        """The lowest power of phi'', or less: the smallest possible K that is at least 2, minus 2."""
        possible = np.asarray(self.law.pmf(np.arange(2.0, 2.0 + _POWERS))) > 0.0
        return float(np.argmax(possible)) if np.any(possible) else float(_POWERS)


def _largest(p: Array, q: Array, p_third: tuple[Array, Array], q_third: tuple[Array, Array]) -> Array:
    """The largest size of p x - q y for x, y between the given bounds."""
    return np.maximum(np.abs(p * p_third[1] - q * q_third[0]), np.abs(p * p_third[0] - q * q_third[1]))


def _spread(losses: Array, start: Index, end: Index) -> Array:
    """exp of the largest minus exp of the smallest loss of a range, capped, for ranges that use it."""
    high, low = (np.minimum(losses[x], _LARGEST_EXPONENT) for x in (end - 1, start))
    return np.asarray(np.exp(high) - np.exp(low))


def scaled(epsilon: Array, values: Array) -> Array:
    """exp(epsilon) times values, in two steps so that only the product can leave the range."""
    half = np.exp(0.5 * epsilon)
    return np.asarray(values * half * half)
