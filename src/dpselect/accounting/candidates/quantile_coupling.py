"""How far apart two counts of one query can be when both are drawn by their quantiles from one uniform number.

A query of a sparse vector by sampling counts X ~ Bin(N, p) passing draws on one data set and Y ~ Bin(N, p') on its
neighbour, fresh draws for each query. Only the law of each count matters for what is released, so both may be read from
one uniform u for the proof: X = Q(u; p) and Y = Q(u; p'). Say p <= p' (else exchange the data sets). Then X <= Y for
every u, and as the statistic rises with the count, it can be further apart than the sensitivity S in one order only:

    the query errs on  E = {u : statistic(Y) > statistic(X) + S} = {u : Q(u; p') > close(Q(u; p))},

close(k) being the largest count whose statistic is within S of that of k. Outside of the union of these events over
the queries all statistics differ by at most S, and the sparse vector's ratio holds for every u. Integrated over u, for
every set of outputs: P(out) <= exp(epsilon) P'(out) + queries sup P(E). The queries may be chosen by what was released:
along the one path of negative answers each is fixed by the path. (A batch that serves several thresholds has counts
that depend on each other, and no such coupling: there `far_apart_probability` counts two tails.)

P(E) is a finite sum. With F and F' the two distribution functions, X = k for u in (F(k-1), F(k)], and the query errs on
the part above F'(close(k)):

    P(E) = sum over k of max(0, F(k) - max(F(k-1), F'(close(k)))).

Counts a .. b-1 in one block cost at most max(0, F(b-1) - max(F(a-1), F'(close(a)))), as close rises: with a block for
each count the sum is exact, with fewer it is rounded up. Source of the mechanism: Liu, Talwar 2019, Section 4.2. They
bound the same probability, for independent counts, by Lemma 4.3.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betainc, betaincc

from dpselect.numerics.search import Array

__all__ = ["apart_by_quantiles", "blocks", "tail_error"]


_REACH = 13.0
"""How far from the mean blocks begin, in standard deviations."""
_FINE = 100


def tail_error(samples: int) -> float:
    """The relative error that SciPy's binomial tails may have: more than 20 times what mpmath shows up to 1e9 draws."""
    return 1e-12 + 1e-13 * samples


def apart_by_quantiles(close: Array, breaks: Array, samples: int, low: Array, far: Array) -> Array:
    """P(E) for p = `low` and p' = `far` (arrays of one length), rounded up.

    `breaks` of shape (cells, blocks + 1) are where the blocks begin, from 0 to samples + 1. `close` of shape (cells,
    blocks) is the largest count close to the first one of each block. P(E) falls with p and rises with p'.
    """
    error = tail_error(samples)
    up, down = 1.0 + error, 1.0 - error
    n = float(samples)
    p, q = low[:, None], np.clip(far, 0.0, 1.0)[:, None]
    below, above = _tails(breaks - 1.0, n, p)
    near, beyond = _tails(np.floor(close), n, q)
    # the smaller form of the two: no digits are lost to a difference of numbers near 1
    first = up * below[:, 1:] - down * np.maximum(below[:, :-1], near)
    second = up * np.minimum(above[:, :-1], beyond) - down * above[:, 1:]
    masses = np.where(breaks[:, 1:] > breaks[:, :-1], np.maximum(np.minimum(first, second), 0.0), 0.0)
    return np.asarray(np.minimum(np.sum(masses, axis=1) * up, 1.0))


def blocks(samples: int, low: Array, count: int) -> Array:
    """The begins of about `count` blocks of counts: at every count if they are few, else evenly in deviations.

    The first counts, and the last ones, are blocks of their own if there are many blocks: next to 0 one count more
    is a large change.
    """
    if samples < count:
        return np.broadcast_to(np.arange(samples + 2, dtype=np.float64), (low.size, samples + 2))
    single = np.arange(count // 3, dtype=np.float64) if count >= _FINE else np.zeros(1)
    reach = np.linspace(-_REACH, _REACH, count - 2 * single.size)
    deviation = np.sqrt(samples * low * (1.0 - low))
    places = samples * low[:, None] + np.outer(deviation, reach) + np.sign(reach) * 0.5 * reach**2
    inside = np.floor(np.clip(places, 0.0, samples))
    fixed = np.broadcast_to(np.concatenate((single, samples + 1.0 - single)), (low.size, 2 * single.size))
    return np.sort(np.concatenate((inside, fixed), axis=1), axis=1)


def _tails(counts: Array, n: float, p: Array) -> tuple[Array, Array]:
    """P(count <= k) and P(count > k) of Bin(n, p), for k from -1."""
    k = np.clip(counts, 0.0, n - 1.0)
    inside = (counts >= 0.0) & (counts < n)
    with np.errstate(under="ignore"):
        below = np.where(inside, betaincc(k + 1.0, n - k, p), np.where(counts >= n, 1.0, 0.0))
        above = np.where(inside, betainc(k + 1.0, n - k, p), np.where(counts >= n, 0.0, 1.0))
    return below, above
