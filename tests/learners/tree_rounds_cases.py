"""Fits of boosted trees whose releases are watched, or told in advance: an attacker knows all that came before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpselect.learners.tree_rounds as module
from dpselect.learners import PrivateBoostingClassifier, PrivateBoostingRegressor
from dpselect.learners.dp_sgd import GradientSchedule
from dpselect.learners.least_squares import LeastSquares
from dpselect.learners.random_trees import RandomTree
from dpselect.learners.tree_sums import TreeSums
from dpselect.randomness import keyed_source

CLASSES = ["x", "y", "z"]
KINDS = ["regression", "classes", "weights"]
ADJACENCIES = ["add_or_remove_one", "replace_one"]


@dataclass
class Transcript:
    """What a fit asked the table, and what it was given.

    Attributes:
        asked: the exact sums and the deviation of their noise, in order.
        given: what the fit saw of them.
        drawn: the public counts and weights that trees were drawn by, and the trees.
        rows: those of the linear start, and their labels and weights.
        linear: mu squared of the linear start.
        start: its weights.
        weights: those of the model.
    """

    asked: list[tuple[Any, float]] = field(default_factory=list)
    given: list[Any] = field(default_factory=list)
    drawn: list[tuple[Any, Any, RandomTree]] = field(default_factory=list)
    rows: Any = None
    linear: float = 0.0
    start: Any = None
    weights: Any = None

    def sums(self) -> Any:
        """All exact sums in units of their noise, as one vector."""
        return np.concatenate([np.ravel(sums) / deviation for sums, deviation in self.asked])


Fit = Callable[..., Transcript]


def nothing(sums: Any, *_: Any) -> Any:
    """The answer of a round in which noise and sums cancel."""
    return np.zeros_like(sums)


def one_leaf(known: Any, ranks: Any, weights: Any, depth: int, random: Any) -> RandomTree:
    """A tree that sends all rows to its first leaf."""
    return RandomTree(np.zeros(depth, dtype=np.intp), np.zeros((depth, known.width), dtype=bool))


def watcher(patch: pytest.MonkeyPatch) -> Fit:
    """Returns the function `fit(model, X, y, past=None, answer=None, tree=None)`.

    `past` is another fit's transcript. The fit is given what that one was, whatever it asks. `answer` makes each answer
    from the exact sums, and `tree` each tree, in place of what the library draws. With `nothing` the linear start is
    zero, too.
    """
    noisy, draw, run, least = module.add_noise, module.draw_tree, GradientSchedule.run, LeastSquares.fit

    def fit(model: Any, X: Any, y: Any, *, past: Any = None, answer: Any = None, tree: Any = None) -> Transcript:
        found = Transcript()

        def add(sums: Any, deviation: float, random: Any) -> Any:
            place = len(found.asked)
            found.asked.append((np.array(sums), deviation))
            found.given.append(past.given[place] if past else (answer or noisy)(sums, deviation, random))
            return found.given[-1].copy()

        def drawn(known: Any, ranks: Any, weights: Any, depth: int, random: Any) -> RandomTree:
            new = past.drawn[len(found.drawn)][2] if past else (tree or draw)(known, ranks, weights, depth, random)
            found.drawn.append(([each.copy() for each in ranks], weights.copy(), new))
            return new

        def trained(self: Any, *arguments: Any) -> Any:
            found.rows = (arguments[1].cells, *arguments[2:3], *arguments[4:])
            found.linear = self.steps / self.noise_multiplier**2
            found.start = past.start if past else run(self, *arguments)
            if answer is nothing:
                found.start = tuple(np.zeros_like(each) for each in found.start)
            return found.start

        def fitted(self: Any, X: Any, y: Any) -> Any:
            found.rows, found.linear = (X, y), 1 / self.noise_multiplier**2
            least(self, X, y)
            self.weights_ = past.start if past else self.weights_
            if answer is nothing:
                self.weights_ = tuple(np.zeros_like(each) for each in self.weights_)
            found.start = self.weights_
            return self

        patch.setattr(LeastSquares, "fit", fitted)
        patch.setattr(module, "add_noise", add)
        patch.setattr(module, "draw_tree", drawn)
        patch.setattr(GradientSchedule, "run", trained)
        found.weights = model.fit(X, y).weights_
        return found

    return fit


def learner(kind: str, **options: Any) -> Any:
    """A small learner of three columns of numbers and a group of two indicators."""
    shared = {
        "bounds": [(-1, 1), (0, 1), (-5, 5)],
        "indicators": [[3, 4]],
        "nominal_rows": 40,
        "n_estimators": 6,
        "max_depth": 3,
        "random": keyed_source(5),
        **options,
    }
    if kind == "regression":
        return PrivateBoostingRegressor(label_bounds=(-2, 6), **shared)
    return PrivateBoostingClassifier(
        classes=CLASSES, class_weights={"x": 0.3, "z": 7.0} if kind == "weights" else None, **shared
    )


def labelled(random: np.random.Generator, kind: str, count: int) -> tuple[Any, Any]:
    """Rows with missing, infinite and far cells, and labels that some are none."""
    X = random.normal(size=(count, 5)) * 10.0 ** random.integers(-2, 3, size=(count, 1))
    X[:, 3:] = random.random((count, 2)) < 0.5
    X[random.random(X.shape) < 0.1] = random.choice([np.nan, np.inf, -np.inf, 1e300])
    if kind == "regression":
        return X, random.choice([-2.0, 6.0, 1e9, np.nan, -np.inf, 3.3], count)
    return X, random.choice([*CLASSES, "other"], count)


def neighbour(random: np.random.Generator, kind: str, adjacency: str, X: Any, y: Any) -> tuple[Any, Any]:
    """The table with another row removed or replaced."""
    place = int(random.integers(len(X)))
    if adjacency == "add_or_remove_one":
        return np.delete(X, place, axis=0), np.delete(y, place)
    X, y = X.copy(), y.copy()
    X[place], y[place] = (part[0] for part in labelled(random, kind, 1))
    return X, y


def squares(sums: TreeSums) -> tuple[Fraction, Fraction]:
    """Exact squares of what a row moves at most in units of the noise: of the ranks, and of a round."""
    of = {name: Fraction(getattr(sums, f"{name}_deviation")) ** 2 for name in ("gradient", "count", "clipped")}
    ranks = (
        Fraction(sums.ranked * (1 + sums.replace)) / Fraction(sums.rank_deviation) ** 2 if sums.ranked else Fraction()
    )
    if sums.replace:
        return ranks, 4 / of["gradient"] + 1 / of["clipped"]
    return ranks, 1 / of["gradient"] + 1 / of["count"] + 1 / of["clipped"]
