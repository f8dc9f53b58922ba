"""A transformer that is declared public: `fit` learns nothing, clones stay fitted, the wrapped methods answer."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from dpselect.integrations.sklearn import PublicTransformer

SCALER = StandardScaler().fit([[0.0, 1.0], [2.0, 5.0]])
"""Means 1 and 3, deviations 1 and 2."""


def test_a_fit_learns_nothing():
    public = PublicTransformer(SCALER)
    assert public.fit([[100.0, 0.0], [300.0, 9.0]], [0, 1]) is public
    assert public.transformer is SCALER
    assert SCALER.mean_.tolist() == [1.0, 3.0]
    assert public.transform([[2.0, 7.0]]).tolist() == [[1.0, 2.0]]
    assert public.inverse_transform([[1.0, 2.0]]).tolist() == [[2.0, 7.0]]
    assert public.get_feature_names_out(["a", "b"]).tolist() == ["a", "b"]


def test_a_clone_is_a_fitted_copy():
    public = PublicTransformer(SCALER)
    copied = clone(public)
    assert copied.transformer is not SCALER
    assert np.array_equal(copied.transform([[2.0, 7.0]]), [[1.0, 2.0]])
    check_is_fitted(public)
    assert get_tags(public).requires_fit is False


def test_a_transformer_that_is_not_fitted_is_refused():
    with pytest.raises(NotFittedError):
        PublicTransformer(StandardScaler()).fit([[1.0]])
