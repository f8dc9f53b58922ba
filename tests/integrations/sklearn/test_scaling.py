"""The scale that declared bounds make, and the warning where nothing scales the columns."""

import warnings

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import Normalizer, OneHotEncoder, OrdinalEncoder, PolynomialFeatures

from dpselect.errors import ArgumentError
from dpselect.integrations.sklearn import PrivateSearchCV
from dpselect.integrations.sklearn.scaling import with_declared_scale
from dpselect.learners import DPSGDClassifier, OutputPerturbationClassifier
from dpselect.ledger import Ledger
from dpselect.preprocessing import CenteredScale
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed
from tests.integrations.sklearn.declarations_cases import LEARNER, ROWS, search

pd = pytest.importorskip("pandas")

NUMBERS = keyed_source("rows").uniform((ROWS, 2))
Y = (NUMBERS[:, 0] > 0.5).astype(int)
FRAME = pd.DataFrame({"age": 100.0 * NUMBERS[:, 0], "word": np.where(NUMBERS[:, 1] > 0.5, "a", "b")})
ENCODED = make_column_transformer((OneHotEncoder(categories=[["a", "b"]]), ["word"]), remainder="passthrough")


# the scale


@pytest.mark.parametrize(
    "bounds",
    [
        (0.0, 100.0),
        [(0, 100), (0, 100)],
        {0: (0, 100), 1: (0, 100)},
        np.array([[0, 100]] * 2),
        np.array([0, 100]),
    ],
)
def test_declared_bounds_are_a_centred_scale_in_front_of_the_learner(bounds):
    own = search(make_pipeline(CenteredScale(bounds=(0, 100)), LEARNER), cv=2).fit(100.0 * NUMBERS, Y)
    with warnings.catch_warnings(action="error"):
        found = search(scale="declared", bounds=bounds, cv=2).fit(100.0 * NUMBERS, Y)
    assert found.guarantee_ == own.guarantee_ == search(cv=2).guarantee()
    scaled = with_declared_scale(LEARNER, NUMBERS, bounds, set()).estimator
    expected = CenteredScale(bounds=(0, 100)).fit_transform(100.0 * NUMBERS)
    assert scaled[:-1].fit_transform(100.0 * NUMBERS).tolist() == expected.tolist()
    assert found.n_features_in_ == 2
    assert found.predict(100.0 * NUMBERS).shape == (ROWS,)


def test_the_same_model_as_of_the_pipeline_that_has_the_scale():
    named = Pipeline([("scale", CenteredScale(bounds=[(0, 100), (0, 1)])), ("estimator", LEARNER)])
    table = NUMBERS * [100.0, 1.0]
    own = search(named).fit(table, Y).best_estimator_
    found = search(scale="declared", bounds=[(0, 100), (0, 1)]).fit(table, Y).best_estimator_
    assert found[-1].weights_[0].tolist() == own[-1].weights_[0].tolist()


def test_parameters_keep_the_names_of_the_estimator(tmp_path):
    kept = []
    space = {"regularization": [0.1, 0.2]}
    options = {"repetitions": Fixed(count=1), "score_epsilon": 0.1, "nominal_rows": ROWS, "classes": [0, 1]}
    made = PrivateSearchCV(LEARNER, space, scale="declared", bounds=(0, 1), release=kept.append, **options)
    found = made.fit(NUMBERS, Y)
    assert set(found.best_params_) == set(kept[0].params) == {"regularization"}
    assert found.best_estimator_[-1].regularization == found.best_params_["regularization"]
    listed = PrivateSearchCV(LEARNER, [space, space], scale="declared", bounds=(0, 1), **options).fit(NUMBERS, Y)
    assert set(listed.best_params_) == {"regularization"}


def test_encoders_with_listed_categories_may_stand_in_front():
    learner = DPSGDClassifier(noise_multiplier=1.0, steps=5)
    codes = OrdinalEncoder(categories=[["low", "mid", "high"]])
    dropped = OneHotEncoder(categories=[["u", "v"], ["p", "q", "r"]], drop="if_binary")
    front = make_column_transformer(
        (dropped, ["two", "three"]),
        (codes, ["level"]),
        (SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True), ["income"]),
        ("drop", ["nothing"]),
        remainder="passthrough",
    )
    frame = pd.DataFrame(
        {"age": [10.0, 90.0], "two": ["u", "v"], "three": ["r", "p"], "level": ["mid", "low"], "income": [5.0, np.nan]}
        | {"nothing": [0.0, 0.0]}
    )
    bounds = {"age": (0, 100), "income": (-10, 10)}
    scaled = with_declared_scale(Pipeline([("front", front), ("model", learner)]), frame, bounds, set())
    assert scaled.prefix == ""
    assert scaled.estimator[1].bounds == [(0.0, 2.0), (-10.0, 10.0), (0.0, 100.0)]
    assert scaled.estimator[1].indicators == [[0], [1, 2, 3]]
    # five columns: of numbers by their place between their bounds, then indicators
    expected = np.array([[0.0, 0.5, -0.8, 0.0, 0.0, 0.0, 1.0], [-1.0, 0.0, 0.8, 1.0, 1.0, 0.0, 0.0]]) / 5**0.5
    assert np.allclose(scaled.estimator[:-1].fit_transform(frame), expected, atol=1e-4)


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ({"age": (0, 1), "other": (0, 1)}, "no column of X"),
        ({}, "none for column 'age'"),
        ([None, None], "none for column 'age'"),
        ({"age": 3}, "must be a pair"),
        ((1.0, 0.0), "above"),
        ((0.0, float("nan")), "finite"),
        ([(0, 1)], "a list or array of 2 pairs"),
        ("01", "a pair"),
    ],
)
def test_bounds_that_are_none_are_refused_before_anything_is_charged(bounds, said, tmp_path):
    budget = Ledger.open(tmp_path / "ledger.db").create_budget("b", epsilon=100, delta=1e-5)
    with pytest.raises(ArgumentError, match=said):
        search(make_pipeline(ENCODED, LEARNER), ledger=budget, scale="declared", bounds=bounds).fit(FRAME, Y)
    assert budget.spent().epsilon == 0


@pytest.mark.parametrize(
    ("estimator", "options", "said"),
    [
        (LEARNER, {"scale": "declared"}, "go together"),
        (LEARNER, {"bounds": (0, 1)}, "go together"),
        (LEARNER, {"scale": "standard", "bounds": (0, 1)}, "scale must be"),
        (OutputPerturbationClassifier(epsilon=2.0, row_norm=2.0), {"scale": "declared", "bounds": (0, 1)}, "row_norm"),
        (make_pipeline(Normalizer(), LEARNER), {"scale": "declared", "bounds": (0, 1)}, "Normalizer makes"),
        (
            make_pipeline(make_column_transformer((PolynomialFeatures(), [0])), LEARNER),
            {"scale": "declared", "bounds": (0, 1)},
            "PolynomialFeatures makes",
        ),
    ],
)
def test_a_scale_that_means_nothing_is_refused(estimator, options, said):
    with pytest.raises(ArgumentError, match=said):
        search(estimator, **options).fit(NUMBERS, Y)


def test_a_scale_does_not_go_with_a_searched_length_or_front():
    with pytest.raises(ArgumentError, match="row_norm"):
        with_declared_scale(LEARNER, NUMBERS, (0, 1), {"row_norm"})
    front = Pipeline([("fill", SimpleImputer(strategy="constant", keep_empty_features=True)), ("model", LEARNER)])
    for name in ("fill", "fill__fill_value"):
        with pytest.raises(ArgumentError, match="must not be searched"):
            with_declared_scale(front, NUMBERS, (0, 1), {name})


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


def test_a_column_that_other_steps_hand_on_is_not_scaled_either():
    assert told(make_pipeline(ENCODED, LEARNER), FRAME)
    assert not told(make_pipeline(ENCODED, LEARNER), FRAME, scale="declared", bounds={"age": (0, 100)})
    encoded = make_column_transformer((OneHotEncoder(categories=[["a", "b"]]), ["word"]), remainder="drop")
    assert not told(make_pipeline(encoded, LEARNER), FRAME)
    fill = SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True)
    assert told(make_pipeline(fill, make_union("passthrough", PolynomialFeatures()), LEARNER))
    assert not told(make_pipeline(fill, make_union(Normalizer()), LEARNER))
