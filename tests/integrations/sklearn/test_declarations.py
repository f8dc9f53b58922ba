"""Steps that learn nothing once all is declared: categories that are listed, missing cells filled by a constant."""

import warnings

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, OneHotEncoder, OrdinalEncoder

from dpselect.errors import ArgumentError
from dpselect.integrations.sklearn import PublicTransformer
from dpselect.integrations.sklearn.declarations import rows_of_listed_categories
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
    "one-hot as it is by default": OneHotEncoder(**LISTED),
    "ordinal as it is by default": OrdinalEncoder(**LISTED),
    "ordinal": OrdinalEncoder(**LISTED, handle_unknown="use_encoded_value", unknown_value=-1),
    "in columns": make_column_transformer((OneHotEncoder(categories=[["a"]], handle_unknown="ignore"), [0])),
}
LEARNING = {
    "categories from the rows": OneHotEncoder(handle_unknown="ignore"),
    "a warning for an unknown category": OneHotEncoder(**LISTED, handle_unknown="warn"),
    "bins of the rows": KBinsDiscretizer(),
    "a function of anyone": FunctionTransformer(abs),
    "a function of two numbers": FunctionTransformer(np.maximum),
    "an argument that writes": FunctionTransformer(np.log1p, kw_args={"out": np.zeros((60, 2))}),
    "bounds for each row": FunctionTransformer(np.clip, kw_args={"a_min": np.zeros((60, 1)), "a_max": 1.0}),
    "a check on the rows": FunctionTransformer(np.log1p, inverse_func=np.expm1),
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
    assert np.isfinite(found.predict_proba(np.array([["a", "y"]], dtype=object))).all()


@pytest.mark.parametrize("step", DECLARED)
def test_what_a_declared_step_keeps_does_not_depend_on_the_rows(step):
    def kept(rows):
        fitted = DECLARED[step].fit(rows)
        encoder = fitted.transformers_[0][1] if step == "in columns" else fitted
        return [list(known) for known in encoder.categories_], fitted.get_feature_names_out().tolist()

    others = np.array([["b", "y"]] if "default" in step else [["q", None]], dtype=object)
    assert kept(WORDS[:2]) == kept(WORDS[:1]) == kept(others)


@pytest.mark.parametrize("encoder", [OneHotEncoder(**LISTED), OrdinalEncoder(**LISTED)])
@pytest.mark.parametrize("inside", [False, True])
def test_a_row_with_an_unlisted_category_is_no_row_of_the_others(encoder, inside):
    """An encoder that raises for it would make every run fail. The model is the same anything that is in that row."""
    step = make_column_transformer((encoder, [0, 1])) if inside else encoder

    def weights(word, label):
        words, labels = WORDS.copy(), Y.copy()
        words[3, 0], labels[3] = word, label
        model = search(make_pipeline(step, LEARNER), validation_fraction=None).fit(words, labels).best_estimator_
        return model[-1].weights_[0].tolist()

    assert weights("secret", 0) == weights(None, 1) == weights(7.5, 0) != weights("a", 0)


def test_rows_of_unlisted_categories_are_found_by_their_own_cells():
    words = np.array([["a", "x"], ["q", "x"], ["b", None], ["b", "y"]], dtype=object)
    parts = make_column_transformer((OneHotEncoder(categories=[["a", "b"]]), [0]), remainder="passthrough")
    assert rows_of_listed_categories(OneHotEncoder(**LISTED), words).tolist() == [True, False, False, True]
    assert rows_of_listed_categories(parts, words).tolist() == [True, False, True, True]
    for place in range(4):
        alone = rows_of_listed_categories(OrdinalEncoder(**LISTED), words[[place]])
        assert alone[0] == rows_of_listed_categories(OneHotEncoder(**LISTED), words)[place]
    lenient = OneHotEncoder(**LISTED, handle_unknown="ignore")
    assert rows_of_listed_categories(lenient, words).all()
    with_missing = OneHotEncoder(categories=[[1.0, np.nan]])
    assert rows_of_listed_categories(with_missing, np.array([[1.0], [np.nan], [2.0]])).tolist() == [True, True, False]


FUNCTIONS = {
    "logarithm": FunctionTransformer(np.log1p),
    "nothing": FunctionTransformer(),
    "edges": FunctionTransformer(np.digitize, kw_args={"bins": [0.25, 0.5]}),
    "clipped": FunctionTransformer(np.clip, kw_args={"a_min": 0.2, "a_max": 0.7}),
    "with an inverse": FunctionTransformer(np.sqrt, inverse_func=np.square, check_inverse=False),
}


@pytest.mark.parametrize("step", FUNCTIONS)
def test_a_function_of_each_cell_learns_nothing(step):
    found = search(make_pipeline(FUNCTIONS[step], LEARNER)).fit(NUMBERS, Y)
    assert found.guarantee_.epsilon(0) == search().guarantee(2).epsilon(0)
    whole = FUNCTIONS[step].fit_transform(NUMBERS)
    assert all(whole[k].tolist() == FUNCTIONS[step].fit_transform(NUMBERS[[k]])[0].tolist() for k in range(5))


@pytest.mark.parametrize("step", LEARNING)
def test_a_step_that_learns_is_refused_and_told_how_it_would_not(step):
    with pytest.raises(ArgumentError, match=r"learns from the data.*(list all categories|constant|edges|function)"):
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
