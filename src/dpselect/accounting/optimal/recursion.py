"""The recursions over intervals: exact on the atoms (V), and certified for every splitting of them (W).

O(n^2) time and O(n) memory, along diagonals of constant interval length, for several epsilons at once: the increments
of phi do not depend on epsilon. `columns` is faster by orders of magnitude and as tight for most laws of K. This is
the reference it is tested against, and the fall-back for laws of K whose phi' has several scales.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpselect.accounting.optimal.atoms import Atoms
from dpselect.numerics.search import Array
from dpselect.repetitions import Repetitions

__all__ = ["ROUND_DOWN", "attained", "certified"]


_SELF_STEPS = 16

ROUND_DOWN = 1e-11
"""Share of both terms of a gain that attained values are lowered by: masses and increments of phi err by less."""


def attained(atoms: Atoms, law: Repetitions, epsilons: Array) -> Array:
    """V(0, n) at each epsilon >= 0: the best order of the atoms as they are, so some mechanism attains it.

    V(a, a) = 0 and V(a, b) = max(V(a+1, b), V(a, b-1) + gain(a, b)): on top of the interval of outcomes consumed so
    far goes either atom a, outside S, or atom b-1, inside S. Rounded down.
    """
    factors = _factors(epsilons)
    values = np.zeros((epsilons.size, atoms.size + 1))
    for length in range(1, atoms.size + 1):
        a = np.arange(atoms.size - length + 1)
        values = np.maximum(values[:, 1:], values[:, :-1] + _gains(atoms, law, factors, a, a + length, ROUND_DOWN))
    return _finish(atoms, law, values, ROUND_DOWN)


def certified(atoms: Atoms, law: Repetitions, epsilons: Array) -> Array:
    """W(0, n) at each epsilon >= 0: an upper bound for every splitting of the atoms.

    Rounding a path to whole atoms at random keeps its value up to the oscillation of g over the cells it crosses, one
    cell for every interval length. W adds the larger oscillation of the two cells that the path may cross there.
    """
    n, factors = atoms.size, _factors(epsilons)
    oscillation = _self_oscillation(atoms, law, factors)
    values = _corners(oscillation)
    shorter, same = _derivatives(atoms, law, 0, up=False), _derivatives(atoms, law, 1, up=False)
    for length in range(1, n + 1):
        a = np.arange(n - length + 1)
        values = np.maximum(values[:, 1:], values[:, :-1] + _gains(atoms, law, factors, a, a + length))
        if length == n:
            break
        longer = _derivatives(atoms, law, length + 1, up=True)
        # cells (i, i + length): F runs from F[i+1, i+length) to F[i, i+length+1)
        bottom = tuple(d[1:-1] for d in shorter)
        oscillation = _oscillation(atoms, factors, length, bottom, longer)
        values += _corners(oscillation)
        shorter, same = same, _derivatives(atoms, law, length + 1, up=False)
    return np.minimum(_finish(atoms, law, values), 1.0)


def _factors(epsilons: Array) -> Array:
    return np.exp(np.minimum(np.asarray(epsilons, dtype=np.float64), 650.0))[:, None]


def _gains(
    atoms: Atoms, law: Repetitions, factors: Array, a: NDArray[np.intp], b: NDArray[np.intp], rounding: float = 0.0
) -> Array:
    rise, cost = atoms.increments(law, a, b, b - 1, up=rounding == 0.0)
    return np.asarray(rise * (1.0 - rounding) - factors * cost * (1.0 + rounding))


def _finish(atoms: Atoms, law: Repetitions, values: Array, rounding: float = 0.0) -> Array:
    """The P-mass of infinite loss goes on top of everything, inside S. P'-mass of loss -inf is never worth placing."""
    return values[:, 0] + float(law.increment(complement_after=0.0, mass=atoms.infinite)) * (1.0 - rounding)


def _corners(cells: Array) -> Array:
    """For each node (a, a + length) the larger of the cells (a, a + length) and (a - 1, a + length - 1)."""
    none = np.zeros((cells.shape[0], 1))
    return np.maximum(np.concatenate((cells, none), axis=1), np.concatenate((none, cells), axis=1))


def _derivatives(atoms: Atoms, law: Repetitions, length: int, *, up: bool) -> tuple[Array, Array, Array, Array]:
    """phi'' and phi''' at F[a, a + length) and at F'[a, a + length), for every a, for masses rounded up or down."""
    a = np.arange(atoms.size - length + 1)
    v_p, v_q = atoms.outside_p(a, a + length), atoms.outside_q(a, a + length)
    if length == 0:
        v_p, v_q = np.ones(a.size), np.ones(a.size)
    # the calls take the time here, more than the lengths
    both = np.stack([atoms.smaller(v) if up else atoms.larger(v) for v in (v_p, v_q)])
    return (*law.second_derivative(both), *law.third_derivative(both))


def _oscillation(atoms: Atoms, factors: Array, length: int, bottom: tuple[Array, ...], top: tuple[Array, ...]) -> Array:
    """A bound on the integral of (g - mean g)+ over the cells (i, i + length), by Efron and Stein, and by the range."""
    p_i, q_i = atoms.p[: atoms.size - length], atoms.q[: atoms.size - length]
    p_j, q_j = atoms.p[length:], atoms.q[length:]
    second_p, second_q, third_p, third_q = bottom
    top_second_p, top_second_q, top_third_p, top_third_q = top
    p, q = p_i * p_j, factors * (q_i * q_j)
    squares = np.zeros(q.shape)
    with np.errstate(over="ignore"):
        for step_p, step_q in ((p_i, q_i), (p_j, q_j)):
            rising = np.abs(p * step_p * top_third_p - q * step_q * third_q)
            falling = np.abs(p * step_p * third_p - q * step_q * top_third_q)
            squares += np.maximum(rising, falling) ** 2
        spread = p * (top_second_p - second_p) + q * (top_second_q - second_q)
    return np.asarray(np.minimum(np.sqrt(squares / 48.0), 0.25 * spread))


def _self_oscillation(atoms: Atoms, law: Repetitions, factors: Array) -> Array:
    """For each atom the integral over 0 < s < 1 of (1 - s) |p^2 phi''(p s) - E q^2 phi''(q s)|, rounded up.

    The triangle of an atom with itself, of which a path takes a part. phi'' is monotone, so ends of steps bound it.
    """
    total = np.zeros((factors.shape[0], atoms.size))
    for k in range(_SELF_STEPS):
        low, high = k / _SELF_STEPS, (k + 1) / _SELF_STEPS
        ends = (atoms.larger, low), (atoms.smaller, high)
        p_low, p_high = (law.second_derivative(to(1.0 - atoms.p * s)) * atoms.p**2 for to, s in ends)
        q_low, q_high = (factors * (law.second_derivative(to(1.0 - atoms.q * s)) * atoms.q**2) for to, s in ends)
        largest = np.maximum(np.maximum(p_high - q_low, 0.0), np.maximum(q_high - p_low, 0.0))
        total += (1.0 - low) / _SELF_STEPS * largest
    return total
