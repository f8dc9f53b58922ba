"""Best-of-K over a finite pair at one epsilon: gains, slopes, and bounds on the sign of the cross derivative.

K has generating function phi; F[a, b) and F'[a, b) are the P- and P'-masses of the atoms between nodes a and b, l_i the
losses. With E = exp(epsilon),

    slope(a, b) = exp(l_b) phi'(F[a, b)) - E phi'(F'[a, b))     what b adds in S on top of [a, b), per P'-mass
    g(i, j)     = p_i p_j phi''(F) - E q_i q_j phi''(F')        what atom i in the interval adds to that, for atom j
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpselect.accounting.optimal.atoms import Array, Atoms, Index
from dpselect.repetitions import Repetitions

__all__ = ["Problem", "scaled"]

Truth = NDArray[np.bool_]
_LARGEST_EXPONENT = 690.0
_POWERS = 64


@dataclass(frozen=True)
class Problem:
    """Atoms, a law of K and epsilon >= 0; columns are the atoms that can gain anything in S."""

    atoms: Atoms
    law: Repetitions
    epsilon: float

    @cached_property
    def first(self) -> int:
        """The first column. For E >= 1 an interval of losses <= 0 has F <= F', so its end never gains."""
        return int(np.searchsorted(self.atoms.losses, 0.0, side="right"))

    @cached_property
    def columns(self) -> Index:
        """The atoms of positive loss."""
        return np.arange(self.first, self.atoms.size)

    def gains(self, a: Index) -> Array:
        """For every column b what atom b adds to S on top of [a, b); a = b + 1 keeps the interval empty within b."""
        return self.gains_of(a, self.columns)

    def gains_of(self, a: Index, b: Index, *, rounding: float = 0.0) -> Array:
        """The same for some columns; less a share `rounding` of both terms, where it must not be too large."""
        t, within = self.atoms, np.minimum(a, b)
        rise = self.law.increment(complement_after=t.outside_p(within, b + 1), mass=t.p[b])
        cost = self.law.increment(complement_after=t.outside_q(within, b + 1), mass=t.q[b])
        alone = float(self.law.pmf(1.0))
        rise, cost = np.where(a > b, alone * t.p[b], rise), np.where(a > b, alone * t.q[b], cost)
        return np.asarray(rise * (1.0 - rounding) - scaled(self.epsilon, cost) * (1.0 + rounding))

    def slope_terms(self, a: Index, b: Index) -> tuple[Array, Array]:
        """The two terms of slope(a, b) / E at the start of atom b."""
        t, log = self.atoms, self.law.log_derivative
        rise = t.losses[b] - self.epsilon + log(t.outside_p(a, b))
        return np.exp(np.minimum(rise, _LARGEST_EXPONENT)), np.exp(log(t.outside_q(a, b)))

    def range_in_column(self, a: Index) -> tuple[Array, Array]:
        """Bounds, for every column b, on the gain density at the places inside atom b, on top of [a, b).

        From phi' at both ends, or from the density there and bounds on its derivative, whichever is better.
        """
        t, b, law = self.atoms, self.columns, self.law
        v_p, v_q = ([outside(a, b), outside(a, b + 1)] for outside in (t.outside_p, t.outside_q))
        p_start, p_end = (t.p[b] * np.exp(law.log_derivative(v)) for v in v_p)
        q_start, q_end = (scaled(self.epsilon, t.q[b] * np.exp(law.log_derivative(v))) for v in v_q)
        # with a = b + 1 the interval stays empty, and the density the same
        p, q = np.where(a <= b, t.p[b], 0.0) * t.p[b], np.where(a <= b, t.q[b], 0.0) * t.q[b]
        with np.errstate(over="ignore"):
            p_slow, p_fast = (p * law.second_derivative(v) for v in v_p)
            q_slow, q_fast = (scaled(self.epsilon, q * law.second_derivative(v)) for v in v_q)
        start, end = p_start - q_start, p_end - q_end
        fall, rise = np.minimum(p_slow - q_fast, 0.0), np.maximum(p_fast - q_slow, 0.0)
        low = np.maximum(p_start - q_end, np.maximum(start + fall, end - rise))
        high = np.minimum(p_end - q_start, np.minimum(start + rise, end - fall))
        return low, np.maximum(low, high)

    def rises(self, a: Index, b: Index) -> Truth:
        """Whether leaving atom a out of the interval raises the slope of b: g < 0 in the middle of the cell."""
        t = self.atoms
        a = np.minimum(a, b)
        inside = np.where(a < b, 0.5, 0.0)
        v_p = np.clip(t.outside_p(a, b) + inside * t.p[a] - 0.5 * t.p[b], 0.0, 1.0)
        v_q = np.clip(t.outside_q(a, b) + inside * t.q[a] - 0.5 * t.q[b], 0.0, 1.0)
        with np.errstate(divide="ignore"):
            keep, drop = np.log(self.law.second_derivative(v_p)), np.log(self.law.second_derivative(v_q))
        keep, drop = np.maximum(keep, -1e300), np.maximum(drop, -1e300)
        return np.asarray(t.losses[a] + t.losses[b] - self.epsilon + keep < drop)

    def cross_bounds(self, i: Index, i_end: Index, j: Index, j_end: Index) -> tuple[Array, Array]:
        """Upper and lower bounds on g / (E q_i q_j) over the cells i .. i_end-1 by j .. j_end-1 with row <= column.

        Three bounds, of which the best: phi'' is monotone, so its values at two corners serve; phi''(F) / phi''(F') is
        bounded from F / F' and the elasticity of phi''; and the value in the middle plus half the largest derivatives,
        which are differences of the same kind as g, so that their leading parts cancel as in g itself.
        """
        t, second, third = self.atoms, self.law.second_derivative, self.law.third_derivative
        single = (i_end == i + 1) & (i == j) & (j_end == j + 1)
        apart = i_end <= j
        p_0, q_0 = t.outside_p(i, j_end), t.outside_q(i, j_end)
        inner = np.minimum(i_end, j)
        p_1 = np.where(apart, t.outside_p(inner, j), 1.0)
        q_1 = np.where(apart, t.outside_q(inner, j), 1.0)
        p_large, q_large, p_small, q_small = second(p_0), second(q_0), second(p_1), second(q_1)
        largest = t.losses[i_end - 1] + t.losses[j_end - 1] - self.epsilon
        ratio_1 = np.exp(np.minimum(largest, _LARGEST_EXPONENT))
        ratio_0 = np.exp(np.minimum(t.losses[i] + t.losses[j] - self.epsilon, _LARGEST_EXPONENT))
        top = ratio_1 * p_large - q_small
        bottom = ratio_0 * p_small - q_large
        # where the corners leave the sign open
        k = np.flatnonzero((top > 0.0) & (bottom < 0.0))
        if k.size:
            low, high = self._elastic_bounds(i[k], i_end[k], j[k], j_end[k])
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
            p_middle = second(np.minimum(p_0[k] + 0.5 * (p_rows + p_columns), 1.0))
            q_middle = second(np.minimum(q_0[k] + 0.5 * (q_rows + q_columns), 1.0))
            # masses of P and P' grow along a curve, not a chord, where losses differ inside the block
            bend = 0.25 * (q_rows * _spread(t.losses, i, i_end) + q_columns * _spread(t.losses, j, j_end))
            reach_0, reach_1 = ratio_0 * p_third[1] * bend, ratio_1 * p_third[1] * bend
            for p, q in ((p_rows, q_rows), (p_columns, q_columns)):
                reach_0 = reach_0 + 0.5 * _largest(ratio_0 * p, q, p_third, q_third)
                reach_1 = reach_1 + 0.5 * _largest(ratio_1 * p, q, p_third, q_third)
            top[k] = np.minimum(top[k], ratio_1 * p_middle - q_middle + reach_1)
            bottom[k] = np.maximum(bottom[k], ratio_0 * p_middle - q_middle - reach_0)
        return np.where((largest > _LARGEST_EXPONENT) & (p_large > 0.0), np.inf, top), bottom

    def _elastic_bounds(self, i: Index, i_end: Index, j: Index, j_end: Index) -> tuple[Array, Array]:
        """Lower and upper bounds on log(p_i p_j phi''(F) / (E q_i q_j phi''(F'))) over blocks of cells.

        F / F' is a mean of likelihood ratios, and the elasticity m(x) = x phi'''(x) / phi''(x) of a power sum with
        non-negative coefficients does not fall with x. If F <= r F', the logarithm of phi''(F) / phi''(F') is at most
        log(r) m(largest F) where r >= 1 and log(r) m(smallest F) where r < 1; likewise from below. This settles narrow
        intervals, over which F and F' vary by large factors but together.
        """
        t, apart = self.atoms, i_end < j
        inner = np.minimum(i_end, j)
        p_0, q_0 = (np.where(apart, x, 0.0) for x in t.between(inner, j))
        p_1, q_1 = t.between(i, j_end)
        with np.errstate(divide="ignore", invalid="ignore"):
            low = np.fmax(t.losses[i], np.log(p_0 / q_1))
            high = np.fmin(t.losses[j_end - 1], np.log(p_1 / q_0))
        m_p = self._elasticity(p_1, t.outside_p(i, j_end)), self._elasticity(p_0, t.outside_p(inner, j))
        m_q = self._elasticity(q_0, t.outside_q(inner, j)), self._elasticity(q_1, t.outside_q(i, j_end))
        return (
            t.losses[i] + t.losses[j] - self.epsilon + low * np.where(low >= 0.0, *m_q),
            t.losses[i_end - 1] + t.losses[j_end - 1] - self.epsilon + high * np.where(high >= 0.0, *m_p),
        )

    def _elasticity(self, mass: Array, complement: Array) -> Array:
        """x phi'''(x) / phi''(x) at x = mass = 1 - complement; its limit where x is 0 or phi'' underflows."""
        second = self.law.second_derivative(complement)
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
    """exp of the largest minus exp of the smallest loss of a range; capped, for ranges that use it."""
    high, low = (np.minimum(losses[x], _LARGEST_EXPONENT) for x in (end - 1, start))
    return np.asarray(np.exp(high) - np.exp(low))


def scaled(epsilon: float, values: Array) -> Array:
    """exp(epsilon) times values, in two steps so that only the product can leave the range."""
    half = np.exp(0.5 * epsilon)
    return np.asarray(values * half * half)
