"""Exact laws of what private selectors release, for candidates with finitely many outputs: no sampling anywhere.

Each function takes the law of one run and gives the probabilities of the releases, in a fixed order.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from tests.audits.score_laws import piecewise_nodes


def random_response_pair(random, size, epsilon, concentration=0.6):
    """A random pair of laws with log-ratios within epsilon: every such pair is randomised response, processed."""
    rows = random.dirichlet(np.full(size, concentration), size=2)
    heads = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    return heads * rows[0] + (1 - heads) * rows[1], (1 - heads) * rows[0] + heads * rows[1]


def split_response_pair(epsilon, part=1e-6):
    """Randomised response whose worse answer is split: the pair that makes the constants of best-of-K tight."""
    low = 1.0 / (1.0 + math.exp(epsilon))
    p = np.array([1.0 - low, part, low - part])
    q = np.array([0.0, part * math.exp(-epsilon), (low - part) * math.exp(epsilon)])
    q[0] = 1.0 - q.sum()
    return p, q


def hockey_sticks(p, q, epsilon):
    """The divergences of both directions."""
    factor = math.exp(epsilon)
    return max(float(np.sum(np.maximum(a - factor * b, 0.0))) for a, b in ((p, q), (q, p)))


def log_ratio(p, q):
    """The largest log-ratio, both ways."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(np.asarray(p)) - np.log(np.asarray(q))
    return float(np.nanmax(np.abs(ratios)))


def first_above_law(masses, passing, tries):
    """The passing outputs in order, then none: the first of a random number of tries."""
    masses, passing = np.asarray(masses), np.asarray(passing, dtype=bool)
    u = min(float(masses[passing].sum()), 1.0)
    some = tries.success_probability(u) / u if u > 0.0 else tries.mean
    return np.append(masses[passing] * some, tries.pgf(1.0 - u))


def first_positive_law(queries, level, *, epsilon, sensitivity):
    """At which query a sparse vector halts, or never: [1, ..., R, none].

    `queries`: for each, the possible statistics and their probabilities. Noise 2S/epsilon on the level, drawn once,
    and 4S/epsilon on every query.
    """
    common, fresh = 2.0 * sensitivity / epsilon, 4.0 * sensitivity / epsilon
    breaks = np.concatenate([np.asarray(values) for values, _ in queries] + [[level]]) - level
    x, weights = piecewise_nodes(breaks / common)
    noise = x * common
    running = weights * 0.5 * np.exp(-np.abs(x))
    law = []
    for values, masses in queries:
        excess = (noise[None, :] + level - np.asarray(values)[:, None]) / fresh
        small = 0.5 * np.exp(-np.abs(excess))
        positive = np.asarray(masses) @ np.where(excess >= 0.0, small, 1.0 - small)
        law.append(float(np.sum(running * positive)))
        running = running * (1.0 - positive)
    return np.array([*law, float(running.sum())])


def binomial_masses(samples, probability):
    """P(X = 0), ..., P(X = samples)."""
    return np.array(
        [math.comb(samples, k) * probability**k * (1 - probability) ** (samples - k) for k in range(samples + 1)]
    )


def sampled_search_law(probabilities, statistic, target, *, epsilon):
    """The sparse vector by sampling: a fresh batch for each query, of these passing probabilities."""
    n = statistic.samples
    values = [statistic.statistic(k) for k in range(n + 1)]
    queries = [(values, binomial_masses(n, p)) for p in probabilities]
    return first_positive_law(
        queries, statistic.statistic(n * target), epsilon=epsilon, sensitivity=statistic.sensitivity
    )


def batches(samples, masses):
    """All count vectors of independent draws, with their probabilities."""
    for cuts in itertools.combinations(range(samples + len(masses) - 1), len(masses) - 1):
        ends = (-1, *cuts, samples + len(masses) - 1)
        counts = [b - a - 1 for a, b in itertools.pairwise(ends)]
        ways = math.factorial(samples)
        probability = 1.0
        for count, mass in zip(counts, masses, strict=True):
            ways //= math.factorial(count)
            probability *= mass**count
        yield np.array(counts), ways * probability


def threshold_search_law(masses, statistic, target, *, epsilon):
    """One batch for all thresholds: `masses` of the score levels from the best; the last reaches no threshold."""
    law = np.zeros(len(masses))
    level = statistic.statistic(statistic.samples * target)
    for counts, probability in batches(statistic.samples, masses):
        if probability == 0.0:
            continue
        reached = np.cumsum(counts[:-1])
        queries = [([statistic.statistic(float(k))], [1.0]) for k in reached]
        law += probability * first_positive_law(queries, level, epsilon=epsilon, sensitivity=statistic.sensitivity)
    return law


def dummies_law(masses, weights, runs, dummy):
    """Each output, then the dummy: drawn by weight among `runs` draws and a dummy of this weight."""
    masses, weights = np.asarray(masses), np.asarray(weights)
    others = [(float(c @ weights), p) for c, p in batches(runs - 1, masses)]
    law = [
        runs * m * w * sum(p / (w + dummy + s) for s, p in others) if w > 0.0 else 0.0
        for m, w in zip(masses, weights, strict=True)
    ]
    return np.array([*law, sum(p * dummy / (dummy + float(c @ weights)) for c, p in batches(runs, masses))])
