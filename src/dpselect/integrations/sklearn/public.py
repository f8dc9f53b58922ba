"""Preprocessing that the caller declares public."""

from __future__ import annotations

import copy
from typing import Any, Self

from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

__all__ = ["PublicTransformer"]


class PublicTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer that has learnt from public data already, or needs none: `PublicTransformer(scaler.fit(public))`.

    `fit` learns nothing, so in a pipeline of a private search it costs nothing. Copies (`clone`) stay fitted.

    You must ensure three things. The knowledge of `transformer` comes from public data or public facts alone.
    `transform` treats each row by itself, regardless of the other rows. Rows that it fails on do not reach it (an
    encoder takes unknown categories with `handle_unknown="ignore"`). At the front of a pipeline the search looks for
    such rows first.

    Args:
        transformer: a fitted transformer of scikit-learn. Public.

    Raises:
        NotFittedError: in `fit`, if `transformer` is not fitted.

    >>> from sklearn.preprocessing import StandardScaler
    >>> scaler = PublicTransformer(StandardScaler().fit([[0.0], [2.0]]))
    >>> scaler.fit([[100.0], [200.0]]).transform([[2.0]])
    array([[1.]])
    """

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Learn nothing. Raises `NotFittedError` if `transformer` is not fitted."""
        check_is_fitted(self.transformer)
        return self

    def transform(self, X: Any) -> Any:
        """The rows as `transformer` transforms them."""
        return self.transformer.transform(X)

    def inverse_transform(self, X: Any) -> Any:
        """The rows as `transformer` takes them back."""
        return self.transformer.inverse_transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """The names that `transformer` gives its columns."""
        return self.transformer.get_feature_names_out(input_features)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> PublicTransformer:
        return copy.deepcopy(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags
