"""Small trees for the tests of TreeLog: points, embeddings, distances, and parameters with laws to enumerate."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpselect.ordered.interior_points.search_tree import heavy_path, path_labels
from dpselect.ordered.interior_points.stable_choice import StableChoice
from dpselect.ordered.interior_points.tree_log import TreeLogParameters, draw_tree_log
from tests.ordered.enumerated_draws import exact_law

UNIT, RATIO = math.log(2.0), Fraction(1, 2)
WIDE = tuple(Fraction(2) ** k for k in range(14))
"""Factors exp(epsilon) up to beyond the whole price of the small parameters below."""

SMALL = TreeLogParameters(
    epsilon_threshold=3 * UNIT,
    epsilon_heavy=3 * UNIT,
    epsilon_border=2 * UNIT,
    rate_base=UNIT,
    choice=StableChoice(UNIT, 0.004),
    border=2,
    deepest=22,
    threshold=7,
    heavy_threshold=1,
    promise=4,
    base_bits=2,
)
"""One level over 16 codes: the bad events have small probabilities, exp(-epsilon) = 1/8 in both tests."""

TWO = replace(SMALL, base_bits=1)
"""Sixteen codes, then four, then two: two levels above a base of two codes."""


def array(values):
    return np.array(sorted(values), dtype=np.uint64)


def multisets(size, count):
    return itertools.combinations_with_replacement(range(size), count)


def embedding(points, bits):
    codes = array(points)
    leaf, gamma, _ = heavy_path(codes, bits)
    labels = path_labels(codes, leaf, bits)
    order = np.argsort(labels, kind="stable")[::-1]
    return gamma, leaf, [(int(labels[i]), int(codes[i])) for i in order]


def apart(first, second):
    """Elements only in the first, and only in the second, of two multisets."""
    a, b = Counter(first), Counter(second)
    return (a - b).total(), (b - a).total()


def embedded_parts(points, bits, taken):
    _, _, found = embedding(points, bits)
    return [x for _, x in found[:taken]], [label for label, _ in found[taken:]]


def cumulative_distance(first, second, size):
    return max(abs(sum(x <= y for x in first) - sum(x <= y for x in second)) for y in range(size))


def shapes(count, bits, rng):
    top, leaf = 1 << bits, rng.getrandbits(bits)
    start = rng.randrange(top - count)
    return {
        "uniform": [rng.getrandbits(bits) for _ in range(count)],
        "constant": [leaf] * count,
        "run": [start + i for i in range(count)],
        "ends": [0, top - 1] * (count // 2),
        "powers": [(1 << rng.randrange(bits)) - rng.randrange(2) for _ in range(count)],
        "straddle": [top // 2 - 1, top // 2] * (count // 2),
        "path": [leaf ^ (1 << rng.randrange(bits)) for _ in range(count)],
        "steep": [leaf ^ (1 << max(0, bits - 1 - int(rng.expovariate(0.7)))) for _ in range(count)],
    }


def law_of(points, parameters, bits=4, **caps):
    codes = array(points)
    return exact_law(lambda draws: draw_tree_log(codes, bits, parameters, draws), RATIO, **{"laplace_cap": 5, **caps})


def random_data(rng, count):
    """Points that make deep paths, heavy siblings or ties."""
    leaf = rng.randrange(16)
    kind = rng.randrange(4)
    if kind == 0:
        return [rng.randrange(16) for _ in range(count)]
    if kind == 1:
        return [leaf ^ (1 << rng.randrange(4)) for _ in range(count)]
    if kind == 2:
        return [leaf if rng.random() < 0.7 else rng.randrange(16) for _ in range(count)]
    return [rng.choice((leaf, 15 - leaf)) for _ in range(count)]
