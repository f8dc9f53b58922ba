"""Boosted trees on a table with texts: the words become a few scores first, and trees learn from all columns.

Claim. Let a share s of 1/sigma^2 pay for the weights of the words (`TermWeights`) and the rest for the trees. Both
together are a Gaussian mechanism of noise multiplier sigma.

Proof. The weights are a Gaussian mechanism of noise multiplier sigma/sqrt(s). Given them, the scores of a row are a
function of that row, so that neighbouring tables stay neighbours. The trees on the scores and the other columns are a
Gaussian mechanism of noise multiplier sigma/sqrt(1 - s), for any weights. Gaussian mechanisms that are chosen
by earlier outputs compose to one, as in `tree_sums`: s/sigma^2 + (1 - s)/sigma^2 = 1/sigma^2. QED
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, integer, number
from dpselect.learners.boosted_trees import BoostedTreesClassification, BoostedTreesRegression
from dpselect.learners.class_sums import MEMBERSHIP_STEP, members_of
from dpselect.learners.fixed_point import truncate
from dpselect.learners.learner import Classifier, OneGaussian, Regressor
from dpselect.learners.rows import (
    class_numbers,
    doubles,
    labels_of,
    number_table,
    public_bounds,
    public_classes,
    targets_of,
)
from dpselect.learners.term_weights import TermWeights, table_of
from dpselect.numerics.search import Array
from dpselect.privacy import Adjacency
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.randomness import RandomSource, resolve

__all__ = ["TextBoostingClassification", "TextBoostingRegression"]

_UP: Final = 1.0 + 2.0**-48
_FAR: Final = 8.0
"""A score that is smaller than the largest by more is as improbable."""
_MOST_NOISE: Final = 1e5
"""Of the part that has more of it."""


@dataclass(kw_only=True, eq=False, repr=False)
class _TextBoosting(OneGaussian):
    """The parameters that both learners share."""

    texts: Sequence[Sequence[int]] = ()
    indicators: Sequence[Sequence[int]] = ()
    text_share: float = 0.5
    n_estimators: int | None = None
    max_depth: int | None = None
    learning_rate: float = 0.8
    linear_share: float | None = None
    max_bins: int = 255
    nominal_rows: float | None = None
    row_norm = 1.0

    def __post_init__(self) -> None:
        self._places: list[int] = []
        self._others: list[int] = []
        self._words: Array = np.zeros((1, 0))
        self._trees: Any = None

    def _noise(self) -> float:
        most = math.floor(_MOST_NOISE * math.sqrt(min(self._share, 1.0 - self._share)))
        return number("noise_multiplier", self.noise_multiplier, at_least=0.05, at_most=most, rounding="down")

    @property
    def _share(self) -> float:
        return number("text_share", self.text_share, at_least=0.1, at_most=0.9)

    @property
    def weights_(self) -> tuple[Array, ...]:
        """The weights of the words, and those of the trees."""
        return (self._words, *self._trees.weights_)

    @weights_.setter
    def weights_(self, weights: tuple[Array, ...]) -> None:
        self._words, self._trees = weights[0], copy.copy(self._trees)
        self._trees.weights_ = weights[1:]

    def fit_nothing(self, features: int) -> Self:
        """The shape that a fit leaves, as `PrivateLearner.fit_nothing` says."""
        places, others = self._columns(features)
        self._trees = self._boosting(others, None).fit_nothing(len(others) + self._outputs)
        self._keep(places, others, np.zeros((len(places) + 1, self._members)))
        return self

    @property
    @abstractmethod
    def _members(self) -> int:
        """The number of classes that words have weights for."""

    @property
    @abstractmethod
    def _outputs(self) -> int:
        """The number of scores of a row."""

    @abstractmethod
    def _boosting(self, others: Sequence[int], random: RandomSource | None) -> Any:
        """The trees, unfitted, for these columns and the scores."""

    @abstractmethod
    def _columns_of(self, scores: Array) -> Array:
        """The columns in [-1, 1] that the trees see of scores by words, each row's from that row alone."""

    def _columns(self, features: int) -> tuple[list[int], list[int]]:
        """The places of the words' features and of the other columns, of so many. Raises `ArgumentError`."""
        places = [integer("a place in texts", place) for group in self.texts for place in group]
        if not places or len(set(places)) < len(places) or not all(0 <= place < features for place in places):
            raise ArgumentError(
                f"texts must hold a list of places for each text column, each place of the {features} columns once at "
                "most, and at least one"
            )
        taken = set(places)
        if any(place in taken for group in self.indicators for place in group):
            raise ArgumentError("indicators must hold no place that is in texts")
        return places, [place for place in range(features) if place not in taken]

    def _settings(self, others: Sequence[int]) -> dict[str, Any]:
        """The parameters of the trees that follow from those of this learner."""
        position = {place: new for new, place in enumerate(others)}
        groups = [[position.get(place, len(others) + place) for place in group] for group in self.indicators]
        names = ("n_estimators", "max_depth", "learning_rate", "linear_share", "max_bins", "nominal_rows", "adjacency")
        return {
            **{name: getattr(self, name) for name in names},
            "indicators": groups,
            "noise_multiplier": self._noise() / math.sqrt(1.0 - self._share) * _UP,
        }

    def _keep(self, places: Sequence[int], others: Sequence[int], words: Array) -> None:
        self._places, self._others, self._words = list(places), list(others), words

    def _train(self, X: Any, members: Array, labels: NDArray[Any], random: RandomSource) -> None:
        """Learn the weights of words and then the trees.

        A row that does not train has no members, and the trees leave it out by its label. They are given it all the
        same: how many rows do not train is private, and the bound on gradients follows from the number of all rows.
        """
        places, others = self._columns(X.shape[1])
        trees, noise = self._boosting(others, random), self._noise() / math.sqrt(self._share) * _UP
        replaced = parse_adjacency(self.adjacency) is Adjacency.REPLACE_ONE
        words = TermWeights(noise, 1.0, replaced, places).learn(X, members, None, random)
        self._keep(places, others, words)
        self._trees = trees.fit(self._seen(X), labels)

    def _seen(self, X: Any) -> Array:
        """The columns that the trees see: the others, and the scores by words."""
        table = table_of(X)
        scores = TermWeights(1.0, 1.0, replace=False, places=self._places).scores(table, self._words)
        return np.hstack([doubles(table[:, self._others]), self._columns_of(scores)])


@dataclass(kw_only=True, eq=False, repr=False)
class TextBoostingClassification(_TextBoosting, Classifier):
    """A classifier of rows with texts: naive Bayes on the words, and boosted trees on its scores and other columns.

    The words of all texts give a row one score for each class, by the weights of `PrivateNaiveBayes`. The trees are
    those of `PrivateBoostingClassifier`, with the scores as columns of numbers. Both together are one Gaussian
    mechanism.

    Args:
        noise_multiplier: one over the Gaussian differential privacy parameter mu of one fit, from 0.05 to
            70,000, and to 31,000 with the least or the largest `text_share`.
        texts: the places of the hashed words, a list for each column of text. They are taken together.
        indicators: the places of the columns that are indicators of categories, a list for each categorical column.
            All other columns are numbers in [-1, 1].
        text_share: the part of mu squared that pays for the weights of words, from 0.1 to 0.9.
        n_estimators, max_depth, learning_rate, linear_share, max_bins: those of the trees.
        classes: the class labels, public, up to 128. None takes them from y, with a `DataDependentClassesWarning`.
        class_weights: as `PrivateBoostingClassifier` takes them.
        nominal_rows: a public guess of the number of rows. None takes the number itself, with a
            `PublicRowCountWarning`.
        adjacency: "add_or_remove_one" or "replace_one".
        random: a `RandomSource`, or None for the system's entropy. Each fit draws from it again.
    """

    classes: Sequence[Any] | NDArray[Any] | None = None
    class_weights: Mapping[Any, float] | Sequence[float] | Literal["balanced"] | None = None

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows X of shape (rows, features) and labels y of shape (rows,)."""
        guarantee, random = self.guarantee(), resolve(self.random)
        count, features = self._prepare(X)
        self._columns(features)
        labels = labels_of(y, count)
        self.classes_ = public_classes(self.classes, labels)
        members = members_of(class_numbers(labels, self.classes_), len(self.classes_))
        self._train(table_of(X), members, labels, random)
        self.guarantee_ = guarantee
        return self

    def fit_nothing(self, features: int) -> Self:
        """The shape that a fit leaves, as `PrivateLearner.fit_nothing` says."""
        self.classes_ = public_classes(self.classes, np.zeros(0, dtype=np.int64))
        return super().fit_nothing(features)

    @property
    def _members(self) -> int:
        return len(self.classes_)

    _outputs = _members

    def _boosting(self, others: Sequence[int], random: RandomSource | None) -> Any:
        public: dict[str, Any] = {"classes": self.classes_, "class_weights": self.class_weights}
        return BoostedTreesClassification(**self._settings(others), **public, random=random)

    def _columns_of(self, scores: Array) -> Array:
        below = np.maximum(scores - scores.max(axis=1, keepdims=True), -_FAR)
        return 1.0 + below * (2.0 / _FAR)

    def _scores(self, X: Any) -> Array:
        number_table(X)
        return np.asarray(self._trees._scores(self._seen(X)))


@dataclass(kw_only=True, eq=False, repr=False)
class TextBoostingRegression(_TextBoosting, Regressor):
    """A regression on rows with texts: weights of words, and boosted trees on their score and other columns.

    As `TextBoostingClassification`. Labels are scaled to [0, 1], and a row belongs by so much to the large labels, and
    by the rest to the small ones. The score is the difference of both scores. The trees are those of
    `PrivateBoostingRegressor`.

    Args:
        label_bounds: the least and the largest label, public; labels beyond are clipped, and so are answers.
        noise_multiplier: one over the Gaussian differential privacy parameter mu of one fit, from 0.05 to
            70,000, and to 31,000 with the least or the largest `text_share`.
        texts: the places of the hashed words, a list for each column of text. They are taken together.
        indicators: the places of the columns that are indicators of categories, a list for each categorical column.
            All other columns are numbers in [-1, 1].
        text_share: the part of mu squared that pays for the weights of words, from 0.1 to 0.9.
        n_estimators, max_depth, learning_rate, linear_share, max_bins: those of the trees.
        nominal_rows: a public guess of the number of rows. None takes the number itself, with a
            `PublicRowCountWarning`.
        adjacency: "add_or_remove_one" or "replace_one".
        random: a `RandomSource`, or None for the system's entropy. Each fit draws from it again.
    """

    label_bounds: tuple[float, float] | None = None
    _members = 2
    _outputs = 1

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows X of shape (rows, features) and numbers y of shape (rows,)."""
        guarantee, bounds, random = self.guarantee(), public_bounds(self.label_bounds), resolve(self.random)
        count, features = self._prepare(X)
        self._columns(features)
        targets = targets_of(y, count, bounds)
        known = ~np.isnan(targets)
        high = truncate(np.where(known, targets, 0.0) / 2.0 + 0.5, MEMBERSHIP_STEP)
        members = np.column_stack([1.0 - high, high]) * known[:, None]
        self._train(table_of(X), members, labels_of(y, count), random)
        self._bounds, self.guarantee_ = bounds, guarantee
        return self

    def predict(self, X: Any) -> Array:
        """The expected label of each row, between the bounds, shape (rows,)."""
        number_table(X)
        return np.asarray(self._trees.predict(self._seen(X)))

    def _boosting(self, others: Sequence[int], random: RandomSource | None) -> Any:
        return BoostedTreesRegression(**self._settings(others), label_bounds=self.label_bounds, random=random)

    def _columns_of(self, scores: Array) -> Array:
        return np.clip(scores[:, 1:] - scores[:, :1], -_FAR, _FAR) / _FAR
