"""An intercept that is chosen privately, once the weights are private already.

Noise on the intercept moves every score by the same amount. So a model that ranks rows well can give nearly all of them
one class. The intercept is then worth a choice of its own, by the number of rows that it answers correctly.

Claim. `choose_intercept` is `epsilon`-differentially private in the rows, for fixed weights.

Proof. The candidates depend on the weights and on public numbers only. A candidate's score is the number of rows that
it answers correctly, an exact integer. Adding a row raises each score by 0 or 1, so scores are monotonic with
sensitivity 1. Replacing a row moves each score by at most 1. `ExponentialMechanism` draws with rate `epsilon` in the
first case and with rate `epsilon`/2 in the second, and is `epsilon`-private in both. If an `epsilon_w`-private
mechanism released the weights, both releases together are (`epsilon_w` + `epsilon`)-private by adaptive composition.

Source: Durfee, Rogers 2019, Lemma 4.2.

Two classes have constant answers among the candidates, and so do more classes. So the model is rarely worse than the
best constant answer by more than (2/`epsilon`) log(candidates) rows, twice that under replacement.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpselect.learners.fixed_point import WEIGHT_LIMIT, exact_products
from dpselect.mechanisms import ExponentialMechanism
from dpselect.numerics.search import Array
from dpselect.privacy import Adjacency
from dpselect.randomness import RandomSource

__all__ = ["choose_intercept", "correct_answers", "intercept_candidates"]

_CANDIDATES: Final = 129
"""Intercepts of two classes. On 341 rows accuracy rose from 33 to 129 of them."""
_BEYOND: Final = 1.01
"""The outermost intercepts are so many times the largest score: they answer one class for every row."""
_LEAST_SCORE: Final = 2.0**-10


def choose_intercept(
    weights: Array, rows: Array, numbers: NDArray[np.intp], epsilon: float, adjacency: Adjacency, random: RandomSource
) -> Array:
    """Return the weights with their last row, the intercept, replaced by a private choice.

    Args:
        weights: the private weights, shape (features + 1, 1) for two classes, else (features + 1, classes).
        rows: rows of `unit_rows` with the constant 1 appended, shape (rows, features + 1). Private.
        numbers: the class of each row, from 0, shape (rows,). Private.
        epsilon: the cost of the choice, under `adjacency`.
        random: one number is drawn from it, and from that number a source of its own. So the words that later draws
            take do not depend on the rows.
    """
    candidates = intercept_candidates(weights)
    scores = exact_products(rows[:, :-1], weights[:-1])
    mechanism = ExponentialMechanism(
        sensitivity=1.0,
        epsilon=epsilon,
        monotonic=adjacency is Adjacency.ADD_OR_REMOVE_ONE,
        adjacency=adjacency,
    )
    own = random.spawn(int(random.words(1)[0]))
    chosen = mechanism(correct_answers(scores, numbers, candidates), random=own).value
    return np.vstack([weights[:-1], candidates[chosen]])


def intercept_candidates(weights: Array) -> Array:
    """The intercepts to choose from, shape (candidates, outputs). A function of the weights alone.

    Two classes have a grid over all scores that a row can have. More classes have the intercept as it is, and one for
    each class that answers that class for every row.
    """
    slopes = np.clip(weights[:-1], -WEIGHT_LIMIT, WEIGHT_LIMIT)
    largest = max(float(np.max(np.linalg.norm(slopes, axis=0), initial=0.0)), _LEAST_SCORE)
    if weights.shape[1] == 1:
        return np.linspace(-_BEYOND * largest, _BEYOND * largest, _CANDIDATES)[:, None]
    return np.vstack([weights[-1:], 2.0 * _BEYOND * largest * np.eye(weights.shape[1])])


def correct_answers(scores: Array, numbers: NDArray[np.intp], candidates: Array) -> Array:
    """The number of rows that each candidate answers correctly, shape (candidates,).

    `scores` are those without an intercept, shape (rows, outputs). Two classes have one score, and class 1 is answered
    if it is above 0.
    """
    if candidates.shape[1] > 1:
        found = [np.count_nonzero(np.argmax(scores + each, axis=1) == numbers) for each in candidates]
        return np.array(found, dtype=np.float64)
    ends = -candidates[:, 0]
    first, second = (np.sort(scores[numbers == place, 0]) for place in (0, 1))
    below = np.searchsorted(first, ends, side="right")
    return np.asarray(below + (len(second) - np.searchsorted(second, ends, side="right")), dtype=np.float64)
