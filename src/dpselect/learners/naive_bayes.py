"""Naive Bayes from noisy sums of the rows of each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, number
from dpselect.learners.balanced_weights import is_balanced
from dpselect.learners.class_sums import members_of
from dpselect.learners.learner import Classifier, OneGaussian
from dpselect.learners.rows import (
    class_numbers,
    labels_of,
    public_classes,
    public_weights,
)
from dpselect.learners.term_weights import CONSTANT, TermWeights, table_of
from dpselect.numerics.search import Array
from dpselect.privacy import Adjacency
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.randomness import resolve

__all__ = ["NaiveBayes"]

_MOST_CLASSES: Final = 128


@dataclass(kw_only=True, eq=False, repr=False)
class NaiveBayes(OneGaussian, Classifier):
    """Multinomial naive Bayes for texts and indicators: one release of noisy sums, in one pass over the rows.

    Rows are divided by `row_norm` and scaled into the unit ball, and a constant is appended. The sum of the rows of
    each class gets Gaussian noise (`dpselect.learners.class_sums` holds the theorem and its proof). The weight of a
    term follows from how much more it occurs in a class than in all classes, shrunk by what the noise may have done.

    It suits rows with many columns that are not negative: counts of words (`HashingVectorizer(alternate_sign=False)`),
    indicators of categories, `PublicBins`. The time is that of reading the rows.

    How `fit` treats the data. It looks at each row alone. A cell that is negative, missing, infinite or not a number
    counts as zero. A row whose label is not in `classes` contributes nothing. It never fails on a value.

    Args:
        noise_multiplier: one over the Gaussian differential privacy parameter mu of one fit, from 0.05 to 100,000.
        row_norm: a public bound on the rows' L2 norm; longer rows are scaled down.
        classes: the class labels, public, 2 to 128. None takes them from y, with a `DataDependentClassesWarning`.
        class_weights: what rows of a class count, for classes that are to count more or less than 1; public. With
            "balanced" all classes count alike. Neither changes the guarantee.
        adjacency: "add_or_remove_one" or "replace_one".
        random: a `RandomSource`, or None for the system's entropy. Each fit draws from it again.

    Attributes:
        classes_, n_features_in_: as in scikit-learn.
        weights_: one array of shape (features + 1, classes), for rows divided by `row_norm`.
        guarantee_: what the fit promises; the same as `guarantee()`.

    Raises at `fit`, before the data is looked at: `ArgumentError` or `TypeError` naming a parameter. Afterwards only
    for a container: shape, complex numbers, or a column whose type says that it holds no numbers, such as dates.

    >>> from dpselect.learners import PrivateNaiveBayes
    >>> from dpselect.randomness import keyed_source
    >>> X = np.repeat([[0.9, 0.1, 0.0], [0.0, 0.2, 0.9]], 500, axis=0)
    >>> model = PrivateNaiveBayes(classes=["a", "b"], noise_multiplier=1.0, random=keyed_source(1))
    >>> model.fit(X, np.repeat(["b", "a"], 500)).predict([[1, 0, 0], [0, 0, 1]]).tolist()
    ['b', 'a']
    """

    row_norm: float = 1.0
    classes: Sequence[Any] | NDArray[Any] | None = None
    class_weights: Mapping[Any, float] | Sequence[float] | str | None = None

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows X of shape (rows, features) and labels y of shape (rows,)."""
        guarantee, random = self.guarantee(), resolve(self.random)
        norm = number("row_norm", self.row_norm, above=0.0)
        learner = TermWeights(
            noise_multiplier=float(self.noise_multiplier),
            row_norm=norm,
            replace=parse_adjacency(self.adjacency) is Adjacency.REPLACE_ONE,
        )
        count, _ = self._prepare(X)
        labels = labels_of(y, count)
        classes = public_classes(self.classes, labels)
        if len(classes) > _MOST_CLASSES:
            raise ArgumentError(f"classes must be at most {_MOST_CLASSES}, got {len(classes)}")
        balanced = is_balanced(self.class_weights)
        weights = public_weights(None if balanced else self.class_weights, classes)
        members, self._intercept = members_of(class_numbers(labels, classes), len(classes)), CONSTANT
        self.weights_ = (learner.learn(table_of(X), members, None if balanced else weights, random),)
        self.classes_, self.guarantee_ = classes, guarantee
        return self

    def _unit_rows(self, X: Any) -> Array:
        return np.asarray(np.maximum(super()._unit_rows(X), 0.0))
