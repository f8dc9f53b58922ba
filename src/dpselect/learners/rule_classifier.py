"""The base of the classifiers that release a rule "positive or not": it reads rows and labels, and predicts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from dpselect.errors import ArgumentError
from dpselect.learners.rows import class_numbers, doubles, labels_of, number_table, public_classes
from dpselect.numerics.search import Array
from dpselect.privacy import Adjacency, Guarantee, Release, Spender
from dpselect.randomness import RandomSource

__all__ = ["RuleClassifier"]


@dataclass(kw_only=True, eq=False, repr=False)
class RuleClassifier(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Prediction from a released rule, which is free for the training data.

    A pickled copy leaves its `random` source behind, as those of `PrivateLearner` do, and its `spender`.
    """

    classes: Sequence[Any] | NDArray[Any] | None = None
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE.value
    spender: Spender | None = None
    random: RandomSource | None = None

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {**state, "random": None, "spender": None}

    def __sklearn_clone__(self) -> Self:
        """The parameters themselves: a copied source would repeat its draws, a copied spender its budget."""
        return type(self)(**self.get_params(deep=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # one threshold, or one box, cannot tell all classes apart
        return tags

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row, shape (rows,)."""
        check_is_fitted(self)
        number_table(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        # a single class is the first one, no matter what the rule says
        return np.asarray(self.classes_[np.minimum(self._positive(doubles(X)), len(self.classes_) - 1)])

    @abstractmethod
    def guarantee(self) -> Guarantee:
        """The guarantee of one `fit`, from the parameters alone."""

    @abstractmethod
    def _positive(self, table: Array) -> NDArray[np.bool_]:
        """Whether each row belongs to the second class."""

    def _learnt(self, release: Release) -> Self:
        self.rule_, self.guarantee_, self.receipt_ = release.value, release.guarantee, release.receipt
        return self

    def _read(self, X: Any, y: Any) -> tuple[Array, NDArray[np.intp]]:
        """The rows as doubles and the numbers of their classes: 0, 1, or -1 for another label."""
        count, _ = number_table(X)
        validate_data(self, X, skip_check_array=True)
        labels = labels_of(y, count)
        classes = public_classes(self.classes, labels)
        if len(classes) > 2:
            raise ArgumentError(
                f"Only binary classification is supported: classes must be two labels, got {len(classes)}"
            )
        self.classes_ = classes
        return doubles(X), class_numbers(labels, classes)
