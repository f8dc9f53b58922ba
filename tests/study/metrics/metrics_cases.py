"""Tiny tables of answers and labels, and the largest privacy loss of a metric over all neighbours."""

import itertools
from unittest.mock import patch

import numpy as np

from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source
from dpselect.study.metrics import ScoreNoise
from dpselect.study.target import Target

ADD, REPLACE = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE
TWO = Target(("no", "yes"))
NUMBER = Target(bounds=(-3.0, 7.0))


class Answers:
    """Answers what stands in the rows: the probability of the second class, or the number itself."""

    def __init__(self, target=TWO):
        self.target = target

    def predict(self, X):
        return X[:, 0] if self.target.bounds else (X[:, 0] > 0.5).astype(int)

    def predict_proba(self, X):
        return np.stack([1.0 - X[:, 0], X[:, 0]], axis=1)


def universe(target):
    """Rows that matter: (answer, label), regardless of their kind."""
    if target.bounds:
        return list(itertools.product((-3.0, 0.5, 7.0, -1e300, np.inf, np.nan), (-3.0, 2.0, 7.0)))
    return list(itertools.product((0.0, 0.3, 1.0, np.nan), (-1, 0, 1)))


def cells_of(metric, rows):
    target = NUMBER if rows and isinstance(rows[0][1], float) else TWO
    X = np.array([[answer] for answer, _ in rows], dtype=np.float64).reshape(-1, 1)
    y = np.array([label for _, label in rows], dtype=np.float64 if target.bounds else np.int64)
    return metric.cells(Answers(target), X, y)


def tables(target):
    rows = universe(target)
    return [(), *((row,) for row in rows), *itertools.product(rows, repeat=2)]


def neighbours(target, adjacency):
    """All pairs of neighbours of up to two rows."""
    for table in tables(target):
        for place in range(len(table)):
            if adjacency is ADD:
                yield table, table[:place] + table[place + 1 :]
            else:
                yield from ((table, (*table[:place], row, *table[place + 1 :])) for row in universe(target))


PURE, GAUSSIAN = {"epsilon": 1.0}, {"epsilon": None, "multiplier": 4.0}


def loss_between(metric, adjacency, first, second, noise):
    """The largest log-ratio of the laws of what `noisy` gives for these cells, in units of epsilon.

    Any noisy counts that were drawn are held fixed, the same for both: the ratio at such a point is the product
    of those of the single noises, each exp(-epsilon_i d_i/moved_i) at the worst, and all else that is given must be a
    function of the noisy counts. Of Gaussian noise: the L2 distance of the cells in units of the deviations, times the
    multiplier, which an adaptive composition of Gaussian mechanisms has as its parameter.
    """
    noise = ScoreNoise(adjacency=adjacency, **noise)
    given, asked = [], []
    for cells in (first, second):
        calls = []

        def added(self, cells, reach, random, calls=calls):
            scale = self.a_step(reach.total) if self.multiplier is None else 1.0 / self.deviation(reach.squares)
            calls.append((np.array(cells), float(scale)))
            return np.arange(cells.size).reshape(cells.shape) * (7 + len(calls)) % 11

        with patch.object(ScoreNoise, "added", added):
            given.append(metric.noisy(cells, noise, keyed_source(1)))
        asked.append(calls)
    np.testing.assert_array_equal(*given)
    moved = [rate * np.abs(one - other) for (one, rate), (other, _) in zip(*asked, strict=True)]
    if noise.multiplier is not None:
        return noise.multiplier * np.sqrt(sum(np.sum(each**2) for each in moved))
    return sum(np.sum(each) for each in moved)


def worst_loss(metric, target, adjacency, noise=PURE):
    cells = {table: cells_of(metric, table) for table in tables(target)}
    pairs = neighbours(target, adjacency)
    seen, worst = set(), 0.0
    for first, second in pairs:
        key = (cells[first].tobytes(), cells[second].tobytes())
        if key not in seen:
            seen.add(key)
            worst = max(worst, loss_between(metric, adjacency, cells[first], cells[second], noise))
    return worst
