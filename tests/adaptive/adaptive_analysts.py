"""Simulated adaptive analysts on populations without any signal, at the level of block values.

Every analyst gets `answer(values)`, which stands for the mechanism, and returns whether each of its answers is in
the inter-quartile interval of its estimator, and its last claim. The truth is always zero (one half for accuracies).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

Answer = Callable[[NDArray[np.float64]], float]
QUARTILE = 0.6744897501960817


@dataclass(frozen=True)
class Outcome:
    claim: float
    interim_valid: float
    final_valid: bool

    @property
    def valid(self) -> bool:
        return self.final_valid and self.interim_valid == 1.0


def sign_aggregation(rng: np.random.Generator, answer: Answer, *, blocks: int, size: int, features: int) -> Outcome:
    """Freedman's paradox: ask each correlation, then the mean along the signs of all answers.

    A block value is a mean of `size` standard normals. On the whole sample the claim is sqrt(2k/(pi n)) on average.
    """
    values = rng.normal(0.0, 1.0 / math.sqrt(size), (features, blocks))
    answers = np.array([answer(one) for one in values])
    final = np.sign(answers) @ values / math.sqrt(features)
    claim = answer(final)
    half = QUARTILE / math.sqrt(size)
    return Outcome(claim, float(np.mean(np.abs(answers) < half)), abs(claim) < half)


def random_walk(rng: np.random.Generator, answer: Answer, *, blocks: int, size: int, features: int) -> Outcome:
    """Walk to where the last answer was larger: each question mixes the best direction so far with a fresh one."""
    best = rng.normal(0.0, 1.0 / math.sqrt(size), blocks)
    best_answer, half, good = answer(best), QUARTILE / math.sqrt(size), 0
    for _ in range(features - 1):
        fresh = rng.normal(0.0, 1.0 / math.sqrt(size), blocks)
        angle = 0.5
        tried = math.cos(angle) * best + math.sin(angle) * fresh
        found = answer(tried)
        good += abs(found) < half
        if found > best_answer:
            best, best_answer = tried, found
    claim = answer(best)
    return Outcome(claim, good / max(features - 1, 1), abs(claim) < half)


def holdout(rng: np.random.Generator, answer: Answer, *, blocks: int, size: int, features: int) -> Outcome:
    """The reusable-holdout protocol: select features by training set and holdout, then ask the classifier's accuracy.

    Signs for features and labels; a value is the share of agreements on a block, in steps of 1/size.
    """
    rows = blocks * size
    agree = rng.integers(0, 2, (features, rows), dtype=np.int8)  # feature times label, on the holdout
    train = rng.normal(0.0, 1.0, features)  # standardised correlations of an independent training set
    shares = agree.reshape(features, blocks, size).mean(axis=2)
    answers = np.array([answer(one) for one in shares])
    kept = (answers - 0.5) * train > 0
    if not kept.any():
        kept[:] = True
    votes = np.sign(train[kept]) @ (2 * agree[kept].astype(np.int32) - 1)
    correct = (votes > 0) + 0.5 * (votes == 0)
    claim = answer(correct.reshape(blocks, size).mean(axis=1))
    law = binom(size, 0.5)

    def inside(value: float) -> bool:
        return bool(law.cdf(value * size + 1e-9) > 0.25 and law.cdf(math.ceil(value * size - 1e-9) - 1) < 0.75)

    return Outcome(claim, float(np.mean([inside(one) for one in answers])), inside(claim))


def expected_claim(features: int, rows: int) -> float:
    return math.sqrt(2.0 * features / (math.pi * rows))
