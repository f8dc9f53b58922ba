"""Adversaries of the sparse vector, played out exactly: what its game may not fall below."""

from __future__ import annotations

import math
from functools import cache

import numpy as np


def geometric_tail(a):
    """P(k >= u) of discrete Laplace noise with P(k) ~ a^|k|."""
    return lambda u: a**u / (1 + a) if u >= 0 else 1 - a ** (1 - u) / (1 + a)


def laplace_tail(rate):
    """P(nu >= u) of Laplace noise."""
    return lambda u: 0.5 * math.exp(-rate * u) if u >= 0 else 1 - 0.5 * math.exp(rate * u)


def best_adaptive(tail, threshold, *, levels, moves, queries, positives, growth, fresh=False):
    """The largest sum of (w - growth w')_+ over the leaves, of all deterministic strategies with these queries.

    `threshold` lists (noise, probability). A query of level t is positive when noise >= t + threshold noise, on the
    neighbour t + threshold noise - d with d in `moves`. The adversary sees the answers alone: its state is the joint
    weight of the history and of each threshold noise, on either data set. With `fresh` the threshold noise is drawn
    again after each positive.
    """
    noises = [r for r, _ in threshold]
    start = tuple(p for _, p in threshold)
    here = {t: np.array([tail(t + r) for r in noises]) for t in levels}
    there = {(t, d): np.array([tail(t + r - d) for r in noises]) for t in levels for d in moves}

    @cache
    def value(w, v, left, asked):
        best = max(sum(w) - growth * sum(v), 0.0)
        if left == 0 or asked == 0:
            return best
        upper, lower = np.array(w), np.array(v)
        for (t, _), q in there.items():
            p = here[t]
            yes, yes_too = upper * p, lower * q
            if fresh:
                yes, yes_too = yes.sum() * np.array(start), yes_too.sum() * np.array(start)
            found = value(tuple(yes.tolist()), tuple(yes_too.tolist()), left - 1, asked - 1)
            found += value(tuple((upper * (1 - p)).tolist()), tuple((lower * (1 - q)).tolist()), left, asked - 1)
            best = max(best, found)
        return best

    return value(start, start, positives, queries)


def moments_of_sequence(tail, threshold, queries, positives, order, *, each=0.0):
    """log of sum w^a w'^(1-a) over the leaves of a fixed sequence of queries (level, move), cut at the positives.

    A leaf's term is lowered by the factor exp(-each) for each of its positives.
    """
    noises, p = [r for r, _ in threshold], np.array([p for _, p in threshold])
    states = {0: [(p, p)]}
    leaves = []
    for t, d in queries:
        up = np.array([tail(t + r) for r in noises])
        down = np.array([tail(t + r - d) for r in noises])
        following = {}
        for k, pairs in states.items():
            for w, v in pairs:
                following.setdefault(k, []).append((w * (1 - up), v * (1 - down)))
                yes = (w * up, v * down)
                if k + 1 == positives:
                    leaves.append((k + 1, *yes))
                else:
                    following.setdefault(k + 1, []).append(yes)
        states = following
    leaves += [(k, *pair) for k, pairs in states.items() for pair in pairs]
    return math.log(sum(math.exp(-each * k) * w.sum() ** order * v.sum() ** (1 - order) for k, w, v in leaves))


def signed_counts(
    tail, threshold, *, level, positives, spread=0.5, for_positive=1, for_negative=0, size=1024, fresh=False
):
    """The law of a sum over a session on both data sets, one query after another drawn as up or as down by a fair coin.

    Queries that are up have level `level` + spread and move down, the others the reverse, so that the neighbour has the
    two exchanged. The sum counts each answer with a sign by which query it answers and whether it is positive.
    `threshold` lists (noise, probability); the transform of the law is ((s(z) / (1 - f(z)))^c given the noise. With
    `fresh` the noise is drawn again after each positive.
    """
    noise, mass = (np.array(part) for part in zip(*threshold, strict=True))
    z = np.exp(-2j * np.pi * np.arange(size // 2 + 1) / size)

    def law(up, down):
        up, down = up[:, None], down[:, None]
        positive = 0.5 * (up * z**-for_positive + down * z**for_positive)
        negative = 0.5 * ((1 - up) * z**for_negative + (1 - down) * z**-for_negative)
        one = positive / (1 - negative)
        return np.fft.irfft((mass @ one) ** positives if fresh else mass @ one**positives, size)

    rows = [np.array([tail(level + r + sign * spread) for r in noise]) for sign in (1, -1)]
    return law(*rows), law(*rows[::-1])


def tracking_laws(rate, positives, *, first, level, for_positive=2, for_negative=1, size=4096, panels=24):
    """The laws on both data sets of an analyst who first learns the threshold noise, no matter what law that has.

    `first` positives far below the threshold: the names of the queries that gave them are randomised responses, and
    how long they took tells the noise up to the logarithm of a Gamma variable over `rate`. Then the others at a level
    (in scales) from what was learned, with a signed count: docs/theory/sparse-vector.md. Rows are names, columns sums.
    """
    low, high = math.log(first) - 12 / math.sqrt(first), math.log(first) + 7 / math.sqrt(first) + 0.5
    x, w = np.polynomial.legendre.leggauss(6)
    # the law of the noise has kinks where one of the two levels is at the threshold
    kinks = [math.log(first) + level + sign * rate / 2 for sign in (-1, 1)]
    edges = np.unique(np.concatenate([np.linspace(low, high, panels + 1), kinks]))
    half = 0.5 * np.diff(edges)[:, None]
    y, w = (0.5 * (edges[1:] + edges[:-1])[:, None] + half * x).ravel(), (half * w).ravel()
    mass = np.exp(first * y - np.exp(y) - math.lgamma(first)) * w
    missed = -(y - math.log(first)) / rate
    here, there = signed_counts(
        laplace_tail(rate),
        list(zip(missed.tolist(), mass.tolist(), strict=True)),
        level=level / rate,
        positives=positives - first,
        for_positive=for_positive,
        for_negative=for_negative,
        size=size,
    )
    names = np.array([math.comb(first, j) * math.exp(j * rate) for j in range(first + 1)])
    names /= names.sum()
    return np.outer(names, np.maximum(here, 0.0)), np.outer(names[::-1], np.maximum(there, 0.0))


def hockey_stick(upper, lower, epsilon):
    """sum of (p - exp(epsilon) q)_+."""
    return float(np.sum(np.maximum(upper - math.exp(epsilon) * lower, 0.0)))


def laplace_nodes(rate, *, reach=30.0, panels=24, points=8):
    """Laplace noise as finitely many (noise, probability): a quadrature."""
    edges = np.linspace(-reach / rate, reach / rate, panels + 1)
    x, w = np.polynomial.legendre.leggauss(points)
    centres, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
    nodes = (centres[:, None] + half[:, None] * x).ravel()
    masses = (half[:, None] * w).ravel() * 0.5 * rate * np.exp(-rate * np.abs(nodes))
    return list(zip(nodes.tolist(), (masses / masses.sum()).tolist(), strict=True))


def laplace_losses(size, cells=100):
    """The loss of Laplace noise that moves by `size` of its scale, rounded down: finitely many (loss, probability)."""
    edges = np.linspace(-size, size, cells + 1)
    masses = np.diff(0.5 * np.exp(0.5 * (edges - size)))
    return [(size, 0.5), (-size, 0.5 * math.exp(-size)), *zip(edges[:-1].tolist(), masses.tolist(), strict=True)]


def published_game(rate, positives, moves, *, after=(), last=(), width, low, high, rounds=200, levels=17):
    """From below: (losses, values) of the game with Laplace noise whose analyst asks at finitely many levels.

    No polygons, no chords: values are read at the next smaller loss of a mesh, so they are attained by some strategy
    against published threshold noises. `after` lists laws [(loss, probability), ...] that are suffered after each
    positive but the last, `last` the ones after the last.
    """
    losses = np.arange(math.floor(low / width), math.ceil(high / width) + 1) * width
    tail, places = laplace_tail(rate), np.arange(losses.size)

    def read(values, loss):
        at = places + math.floor(loss / width + 1e-9)
        return np.where(at < 0, 0.0, values[np.clip(at, 0, losses.size - 1)])

    coins = [(tail(u), tail(u + h)) for h in moves for u in np.linspace(-2.0, 2.0, levels) / rate]
    values = np.maximum(-np.expm1(-losses), 0.0)
    for k in range(positives):
        reached = values
        for law in after if k else last:
            reached = sum(p * read(reached, loss) for loss, p in law)
        gains = [s * read(reached, math.log(s / t)) for s, t in coins]
        values = np.maximum(values, reached)
        for _ in range(rounds):
            more = values
            for gain, (s, t) in zip(gains, coins, strict=True):
                more = np.maximum(more, gain + (1 - s) * read(values, math.log((1 - s) / (1 - t))))
            if np.max(more - values) < 1e-7:
                break
            values = more
    return losses, values
