"""Steps that learn nothing once all is declared: categories that are listed, missing cells filled by a constant."""

import warnings

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder

from dpselect.errors import ArgumentError
from dpselect.integrations.sklearn import PublicTransformer
from dpselect.randomness import keyed_source
from tests.integrations.sklearn.declarations_cases import LEARNER, ROWS, search

NUMBERS = keyed_source("rows").uniform((ROWS, 2))
Y = (NUMBERS[:, 0] > 0.5).astype(int)
WORDS = np.array([["ab"[k % 2], "xyz"[k % 3]] for k in range(ROWS)], dtype=object)
LISTED = {"categories": [["a", "b"], ["x", "y"]]}


# steps that learn nothing once all is declared


DECLARED = {
    "one-hot": OneHotEncoder(**LISTED, handle_unknown="ignore"),
    "one-hot without the first": OneHotEncoder(**LISTED, handle_unknown="ignore", drop="first"),
    "ordinal": OrdinalEncoder(**LISTED, handle_unknown="use_encoded_value", unknown_value=-1),
    "in columns": make_column_transformer((OneHotEncoder(categories=[["a"]], handle_unknown="ignore"), [0])),
}
LEARNING = {
    "categories from the rows": OneHotEncoder(handle_unknown="ignore"),
    "an error for an unknown category": OneHotEncoder(**LISTED),
    "rare categories": OneHotEncoder(**LISTED, handle_unknown="ignore", min_frequency=3),
    "most categories": OneHotEncoder(**LISTED, handle_unknown="infrequent_if_exist", max_categories=1),
    "ordinal from the rows": OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    "the mean": SimpleImputer(),
    "empty columns dropped": SimpleImputer(strategy="constant", fill_value=0.0),
    "where there was none": SimpleImputer(strategy="constant", keep_empty_features=True, add_indicator=True),
}


@pytest.mark.parametrize("step", DECLARED)
def test_a_step_that_is_told_all_is_a_public_map(step):
    found = search(make_pipeline(DECLARED[step], LEARNER)).fit(WORDS, Y)
    assert found.guarantee_.epsilon(0) == search().guarantee(2).epsilon(0)
    assert np.isfinite(found.predict_proba(np.array([["a", "q"]], dtype=object))).all()


@pytest.mark.parametrize("step", DECLARED)
def test_what_a_declared_step_keeps_does_not_depend_on_the_rows(step):
    def kept(rows):
        fitted = DECLARED[step].fit(rows)
        encoder = fitted.transformers_[0][1] if step == "in columns" else fitted
        return [list(known) for known in encoder.categories_], fitted.get_feature_names_out().tolist()

    assert kept(WORDS) == kept(WORDS[:1]) == kept(np.array([["q", None]], dtype=object))


@pytest.mark.parametrize("step", LEARNING)
def test_a_step_that_learns_is_refused_and_told_how_it_would_not(step):
    with pytest.raises(ArgumentError, match=r"learns from the data.*(list all categories|constant)"):
        search(make_pipeline(LEARNING[step], LEARNER)).fit(WORDS, Y)


def test_missing_cells_can_be_given_a_public_number():
    table = NUMBERS.copy()
    table[3, 1] = np.nan
    fill = SimpleImputer(strategy="constant", fill_value=0.5, keep_empty_features=True)
    found = search(make_pipeline(fill, LEARNER), validation_fraction=None).fit(table, Y).best_estimator_
    assert found[0].transform([[np.nan, 1.0]]).tolist() == [[0.5, 1.0]]
    filled = (
        search(make_pipeline(fill, LEARNER), validation_fraction=None)
        .fit(np.nan_to_num(table, nan=0.5), Y)
        .best_estimator_
    )
    assert found.predict_proba(NUMBERS).tolist() == filled.predict_proba(NUMBERS).tolist()


def fills_with_the_mean(table):
    return np.where(np.isnan(table), np.nanmean(table, axis=0), table)


def test_a_step_that_fills_cells_from_other_rows_is_refused():
    with pytest.raises(ArgumentError, match="rows beside it"), warnings.catch_warnings(action="ignore"):
        search(make_pipeline(PublicTransformer(FunctionTransformer(fills_with_the_mean)), LEARNER)).fit(NUMBERS, Y)
