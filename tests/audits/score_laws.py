"""Exact laws of the mechanisms on short score vectors: what the samplers must follow and the guarantees must cover.

`rate` is epsilon / (2 sensitivity) as in `dpselect.mechanisms`. Every function works on the last axis and broadcasts
over the others unless it says otherwise.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import laplace

from dpselect.numerics.search import Array

__all__ = ["exponential_law", "noisy_max_law", "permute_and_flip_law", "top_k_law"]


def exponential_law(scores: ArrayLike, rate: float) -> Array:
    """Probabilities proportional to exp(rate * score).

    >>> exponential_law([0.0, np.log(3.0)], 1.0).round(12).tolist()
    [0.25, 0.75]
    """
    scores = np.asarray(scores, dtype=np.float64)
    weights = np.exp(rate * (scores - scores.max(axis=-1, keepdims=True)))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def permute_and_flip_law(scores: ArrayLike, rate: float) -> Array:
    """The integral over t in [0, 1] of p_i * prod over j != i of (1 - p_j t), p the coins' probabilities.

    Give every candidate a uniform time: one at time t wins when its coin lands heads and no other candidate is earlier
    with heads. The integrand is a polynomial, which enough Gauss-Legendre nodes integrate exactly.

    >>> permute_and_flip_law([0.0, 0.0], 1.0).round(12).tolist()
    [0.5, 0.5]
    """
    scores = np.asarray(scores, dtype=np.float64)
    heads = np.exp(rate * (scores - scores.max(axis=-1, keepdims=True)))
    nodes, weights = np.polynomial.legendre.leggauss(scores.shape[-1] // 2 + 1)
    tails = 1.0 - heads[..., None] * (0.5 * (nodes + 1.0))
    count = scores.shape[-1]
    others = np.stack([np.prod(np.delete(tails, i, axis=-2), axis=-2) for i in range(count)], axis=-2)
    return np.asarray(heads * np.sum(others * (0.5 * weights), axis=-1))


def noisy_max_law(scores: ArrayLike, rate: float) -> Array:
    """argmax of rate * score + standard Laplace noise, for one vector of distinct or equal scores, by quadrature.

    Between the scores every distribution function is smooth, so Gauss-Legendre nodes on the pieces converge fast.

    >>> noisy_max_law([0.0, 0.0], 1.0).round(12).tolist()
    [0.5, 0.5]
    """
    centres = rate * np.asarray(scores, dtype=np.float64)
    x, weights = piecewise_nodes(centres)
    gap = x - centres[:, None]
    density, below = laplace.pdf(gap), laplace.cdf(gap)
    return np.array(
        [np.sum(weights * density[i] * np.prod(np.delete(below, i, axis=0), axis=0)) for i in range(len(gap))]
    )


def piecewise_nodes(breaks: ArrayLike, reach: float = 45.0, step: float = 2.0) -> tuple[Array, Array]:
    """Gauss-Legendre nodes and weights between the breaks and `reach` beyond them, on pieces no longer than `step`."""
    breaks = np.unique(np.asarray(breaks, dtype=np.float64))
    edges = np.concatenate([[breaks[0] - reach], breaks, [breaks[-1] + reach]])
    parts = [np.linspace(a, b, int(np.ceil((b - a) / step)) + 1)[:-1] for a, b in itertools.pairwise(edges)]
    cuts = np.append(np.concatenate(parts), edges[-1])
    nodes, weights = np.polynomial.legendre.leggauss(24)
    half = np.diff(cuts)[:, None] / 2.0
    return (cuts[:-1, None] + half * (nodes + 1.0)).ravel(), (half * weights).ravel()


def top_k_law(scores: ArrayLike, rate: float, count: int) -> dict[tuple[int, ...], float]:
    """Ordered choices of `count` candidates by peeling: an exponential mechanism at a time, without replacement.

    >>> sum(top_k_law([0.0, 1.0, 2.0], 1.0, 2).values())
    1.0
    """
    weights = np.exp(rate * np.asarray(scores, dtype=np.float64))
    law = {}
    for order in itertools.permutations(range(len(weights)), count):
        probability, left = 1.0, float(weights.sum())
        for index in order:
            probability *= float(weights[index]) / left
            left -= float(weights[index])
        law[order] = probability
    return law
