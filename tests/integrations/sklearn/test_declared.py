"""What a private search is told in advance: categories that are listed, labels and missing cells, scales."""

import warnings

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, OrdinalEncoder

from dpselect.errors import ArgumentError
from dpselect.integrations.sklearn import PrivateSearchCV, PublicTransformer
from dpselect.learners import (
    DPSGDClassifier,
    OutputPerturbationClassifier,
    PrivateRectangleClassifier,
    PrivateRidgeClassifier,
)
from dpselect.ledger import Ledger
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed

ROWS = 60
NUMBERS = keyed_source("rows").uniform((ROWS, 2))
Y = (NUMBERS[:, 0] > 0.5).astype(int)
WORDS = np.array([["ab"[k % 2], "xyz"[k % 3]] for k in range(ROWS)], dtype=object)
LEARNER = OutputPerturbationClassifier(epsilon=2.0)
LISTED = {"categories": [["a", "b"], ["x", "y"]]}


def search(estimator=LEARNER, **options):
    defaults = {"repetitions": Fixed(count=1), "score_epsilon": 0.1, "nominal_rows": ROWS, "classes": [0, 1]}
    return PrivateSearchCV(estimator, {}, random=keyed_source(1), **{**defaults, **options})


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


# labels of no class, and missing cells: one rule


LEARNERS = (
    OutputPerturbationClassifier(epsilon=1.0, nominal_rows=ROWS),
    DPSGDClassifier(steps=2, noise_multiplier=1.0, nominal_rows=ROWS),
    PrivateRidgeClassifier(noise_multiplier=1.0),
    PrivateRectangleClassifier(epsilon=1.0, lower=0, upper=1, granularity=0.1),
)
OTHER_TYPES = [
    (Y, ["0", "1"]),
    (Y.astype(bool), [2, 3]),
    (Y.astype(np.uint8), [-1, 300]),
    (Y, [0.5, 1.5]),
    (Y.astype(str), [0, 1]),
    (Y.astype(float), ["0", "1"]),
]


@pytest.mark.parametrize(("labels", "classes"), OTHER_TYPES)
def test_labels_whose_type_is_that_of_no_class_are_refused(labels, classes, tmp_path):
    budget = Ledger.open(tmp_path / "ledger.db").create_budget("b", epsilon=100, delta=1e-5)
    for learner in LEARNERS:
        with pytest.raises(ArgumentError, match="nothing in common"):
            learner.set_params(classes=classes).fit(NUMBERS, labels)
    with pytest.raises(ArgumentError, match="nothing in common"):
        search(classes=classes, ledger=budget).fit(NUMBERS, labels)
    assert budget.spent().epsilon == 0


@pytest.mark.parametrize(
    ("labels", "classes"), [(Y, [0, 1, 2]), (Y.astype(bool), [0, 1]), (Y.astype(float), [0, 1]), (Y, [0.0, 7.5])]
)
def test_labels_of_another_type_that_can_be_equal_are_taken(labels, classes):
    assert search(classes=classes).fit(NUMBERS, labels).best_estimator_ is not None


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_cells_that_are_no_number_and_labels_of_no_class_follow_the_rule_that_is_printed(value, capsys):
    table, labels = NUMBERS.copy(), np.array(Y.tolist(), dtype=object)
    table[3, 1], labels[5] = value, "yes"
    zeros = table.copy()
    zeros[3, 1] = 0.0
    options = {"validation_fraction": None, "verbose": 1}
    found = [search(**options).fit(each, labels).predict_proba(NUMBERS).tolist() for each in (table, zeros)]
    assert found[0] == found[1]
    told = capsys.readouterr().err
    assert "count as zero" in told
    assert "labels other than [0, 1] train nothing" in told


# numbers that nothing scales


def told(estimator, X=NUMBERS, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search(estimator, **options).fit(X, Y)
    return [str(warning.message) for warning in caught if "scales the columns" in str(warning.message)]


def test_a_search_on_numbers_that_nothing_scales_warns_before_anything_is_spent(tmp_path):
    (said,) = told(LEARNER)
    assert "row_norm=1.414" in said
    assert told(LEARNER, NUMBERS * 1000.0) == [said]  # by no value
    assert not told(OutputPerturbationClassifier(epsilon=2.0, row_norm=1.5))
    assert not told(make_pipeline(Normalizer(), LEARNER))
    assert told(make_pipeline("passthrough", LEARNER))
    budget = Ledger.open(tmp_path / "ledger.db").create_budget("b", epsilon=100, delta=1e-5)
    with warnings.catch_warnings(action="error"), pytest.raises(UserWarning, match="scales the columns"):
        search(ledger=budget).fit(NUMBERS, Y)
    assert budget.spent().epsilon == 0
