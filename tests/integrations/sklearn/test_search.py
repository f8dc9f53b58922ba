"""PrivateSearchCV as scikit-learn's users meet it: the same release as tune and the command line, and no more."""

import importlib.util
import pickle
import sys
from collections import Counter

import numpy as np
import pytest
from scipy import stats
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, ParameterGrid, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import dpselect
from dpselect.errors import ArgumentError
from dpselect.integrations.sklearn import PrivateSearchCV, PublicTransformer, RowScore
from dpselect.learners import DPSGDClassifier, OutputPerturbationClassifier, PublicRowCountWarning
from dpselect.learners.rows import DataDependentClassesWarning
from dpselect.learners.scikit_learn_checks import EXPECTED_FAILED_CHECKS
from dpselect.ledger import Ledger
from dpselect.mechanisms import noisy_count
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed, Harmonic
from dpselect.study import parse_study, run_study
from dpselect.study.row_parts import validation_mask
from dpselect.tables.row_digests import row_digest
from dpselect.tuning import LogUniform, tune
from tests.documentation import python_blocks
from tests.integrations.sklearn import attacks_cases as attacks
from tests.integrations.sklearn.search_cases import LEARNER, RATES, X, Y, fit, search
from tests.root import ROOT
from tests.study.schema_cases import STUDY


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def weights(model):
    return [w.tobytes() for w in model.weights_]


UNCOUNTED = {**STUDY, "data": {**STUDY["data"], "count_cells": False}}
"""`PrivateSearchCV` does not count cells."""
PURE_STUDY = {
    **UNCOUNTED,
    "privacy": {"epsilon": 8.0, "nominal_rows": 150},
    "learner": {"name": "output-perturbation"},
    "space": {"regularization": {"law": "log_uniform", "low": 0.001, "high": 1.0}},
}


@pytest.mark.full
@pytest.mark.parametrize(
    ("document", "learner", "delta"),
    [
        pytest.param(PURE_STUDY, OutputPerturbationClassifier(), 0.0, id="output perturbation"),
        pytest.param(
            UNCOUNTED, DPSGDClassifier(sampling_rate=0.2, steps=20), 1e-5, id="dp-sgd", marks=pytest.mark.slow
        ),
    ],
)
def test_the_study_file_this_search_and_tune_give_the_same_release_from_the_same_key(
    document, learner, delta, tmp_path
):
    """One study three ways, the third by hand from the parts that `tune` asks for."""
    study = parse_study({**document, "runs": {"executor": "inline"}})
    run = run_study(study, base_folder=tmp_path, folder=tmp_path / "out", random=keyed_source(1))
    by_file = dpselect.load_model(tmp_path / "out" / "model.npz").estimator

    features, labels = load_iris(return_X_y=True)
    rows = 2 * (features / 8.0) - 1  # as the study scales them
    (name, law), epsilon = next(iter(document["space"].items())), document["privacy"]["epsilon"]
    by_search = PrivateSearchCV(
        learner,
        {name: stats.loguniform(law["low"], law["high"])},
        epsilon=epsilon,
        delta=delta,
        repetitions=Harmonic(limit=3),
        nominal_rows=150,
        classes=[0, 1, 2],
        name="toy",
        random=keyed_source(1),
    ).fit(rows, labels)

    digests = [row_digest(row.tobytes(), np.int64(y).tobytes()) for row, y in zip(rows, labels, strict=True)]
    held_out = validation_mask(digests, fraction=0.2, adjacency=by_search.guarantee_.adjacency, salt="toy")
    noise = {"noise_multiplier": by_search.noise_} if delta else {"epsilon": 1.0 / by_search.noise_}

    def objective(params, random):
        model = clone(learner).set_params(
            **params, **noise, classes=[0, 1, 2], nominal_rows=120, random=random.spawn("train")
        )
        model.fit(rows[~held_out], labels[~held_out])
        correct = int(np.sum(model.predict(rows[held_out]) == labels[held_out]))
        return noisy_count(correct, epsilon=by_search.score_epsilon_, random=random.spawn("score")), model

    by_tune = tune(
        objective,
        space={name: LogUniform(law["low"], law["high"])},
        base=by_search.plan().parts,
        repetitions=Harmonic(limit=3),
        random=keyed_source(1),
    )
    assert run.release["parameters"] == by_search.best_params_ == by_tune.params
    assert weights(by_file) == weights(by_search.best_estimator_) == weights(by_tune.value)
    epsilons = {
        run.release["guarantee"]["epsilon"],
        *(g.epsilon(delta) for g in (by_search.guarantee_, by_tune.guarantee)),
    }
    assert len(epsilons) == 1
    assert 0.9 * epsilon < epsilons.pop() <= epsilon


@pytest.mark.full
def test_scikit_learns_estimator_checks():
    """All but those that the learners break too, each for the reason that stands with it."""
    found = check_estimator(
        PrivateSearchCV(
            OutputPerturbationClassifier(epsilon=50.0), RATES, repetitions=Harmonic(limit=2), score_epsilon=50.0
        ),
        expected_failed_checks=EXPECTED_FAILED_CHECKS,
        on_fail=None,
        on_skip=None,
    )
    assert [each["check_name"] for each in found if each["status"] == "failed"] == []
    assert Counter(each["status"] for each in found)["passed"] >= 40


@pytest.mark.full
def test_the_winner_does_not_depend_on_where_the_runs_are_made():
    one, other = search(n_jobs=1).fit(X, Y), search(n_jobs=2).fit(X, Y)
    assert one.best_params_ == other.best_params_
    assert weights(one.best_estimator_) == weights(other.best_estimator_)


def test_frames_and_arrays_give_the_same_release():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abc"))
    by_frame, by_array = search().fit(frame, pandas.Series(Y)), search().fit(X, list(Y))
    assert list(by_frame.feature_names_in_) == list("abc")
    assert weights(by_frame.best_estimator_) == weights(by_array.best_estimator_)
    assert set(by_frame.predict(frame)) <= {"no", "yes"}
    assert by_frame.predict_proba(frame).shape == (500, 2)
    assert by_frame.classes_.tolist() == ["no", "yes"]


def secrets_of(fitted):
    """Everything that a holder of the fitted object can read: attributes, text, and the bytes of a pickle."""
    public = set(fitted.get_params(deep=False)) | {"n_features_in_"}
    return {
        "attributes": {name: value for name, value in fitted.__dict__.items() if name not in public},
        "pickle": pickle.dumps(fitted),
        "text": repr(fitted),
    }


def test_a_fitted_search_tells_nothing_of_the_other_runs(capsys):
    """Two searches, of one run and of four, have the same attributes, the same printed lines, and pickles of a size."""
    law = Harmonic(limit=4)
    keys = {law.sample(keyed_source(key)): key for key in range(60)}
    search(key=0).fit(X, Y)  # prices are remembered: later fits share the law of the first one
    found = [secrets_of(search(key=keys[count], verbose=1).fit(X, Y)) for count in (1, 4)]
    printed = capsys.readouterr()
    assert printed.out == ""
    lines = printed.err.splitlines()
    first, second = lines[: len(lines) // 2], lines[len(lines) // 2 :]
    assert first == second
    assert "epsilon" in first[0]
    assert found[0]["text"] == found[1]["text"]
    allowed = {"best_estimator_", "best_params_", "guarantee_", "repetitions_", "noise_", "score_epsilon_"}
    allowed |= {"multimetric_", "_scores"}
    for each in found:
        assert set(each["attributes"]) == allowed | {"receipt_", "replayable_", "_column_names"}
        assert each["attributes"]["best_estimator_"].random is None
    # doubles of one width: the sizes differ by nothing but the shortest text of no number
    assert len(found[0]["pickle"]) == len(found[1]["pickle"])


def test_the_score_is_released_when_declared_and_costs_nothing_more():
    declared = search(release_score=True).fit(X, Y)
    assert 0.0 < declared.best_score_ < 1.5
    assert declared.guarantee_.epsilon(0) == search().guarantee().epsilon(0)


@pytest.mark.parametrize(
    ("argument", "told"),
    [
        ({"n_iter": 10}, "Fixed"),
        ({"random_state": 1}, "keyed_source"),
        ({"error_score": 0.0}, "worst"),
        ({"param_grid": {}}, "with replacement"),
        ({"return_train_score": True}, "secret"),
    ],
)
def test_arguments_of_other_searches_are_explained(argument, told):
    with pytest.raises(TypeError, match=told):
        search(**argument)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"space": ParameterGrid({"regularization": [1.0]})}, "grid runs different candidates"),
        ({"space": {"regularization": 1.0}}, "in a list"),
        ({"space": {"regularization": []}}, "at least one"),
        ({"space": "regularization"}, "must map names"),
        ({"cv": KFold(3)}, "number of folds"),
        ({"cv": 1}, "cv"),
        ({"cv": 3, "public_validation": (X, Y)}, "exclude"),
        ({"public_validation": X}, "pair"),
        ({"public_validation": (X[:, :2], Y)}, "columns"),
        ({"scoring": "f1"}, "RowScore"),
        ({"repetitions": None}, "repetitions"),
        ({"delta": 0.5}, "nominal_rows"),
        ({"estimator": OutputPerturbationClassifier}, "estimator object"),
        ({"estimator": StandardScaler()}, "classifier or a regressor"),
        ({"estimator": LogisticRegression(), "space": {}}, "no guarantee"),
        ({"estimator": OutputPerturbationClassifier(random=keyed_source(1))}, "must stay None"),
        ({"estimator": DPSGDClassifier(early_stopping=object()), "space": {}, "delta": 1e-5}, "early_stopping"),
        ({"estimator": make_pipeline(StandardScaler(), LEARNER), "space": {}}, "StandardScaler.*without privacy"),
        (
            {"estimator": make_pipeline(ColumnTransformer([("a", StandardScaler(), [0])]), LEARNER), "space": {}},
            "columntransformer__a",
        ),
        ({"estimator": Pipeline([("m", LEARNER)], memory="cache"), "space": {}}, "memory"),
        ({"estimator": make_pipeline(PublicTransformer(StandardScaler()), LEARNER), "space": {}}, "not fitted"),
        ({"estimator": search(), "space": {}}, "search itself"),
        ({"space": {"regularization": [-1.0]}}, "regularization"),
        ({"space": {"regularisation": [1.0]}}, "regularisation"),
    ],
)
def test_wrong_arguments_are_told_before_anything_is_charged(arguments, told, tmp_path):
    budget = Ledger.open(tmp_path / "budget.db").create_budget("b", epsilon=10, delta=1e-6)
    with pytest.raises((ValueError, TypeError), match=told):
        fit(**{"ledger": budget, **arguments})
    assert budget.spent().epsilon == 0


def test_a_mistake_that_only_training_shows_is_found_on_made_up_rows():
    with pytest.raises(ArgumentError, match="regularization") as caught:
        fit(space={"regularization": [1.0, -1.0]})
    assert "synthetic rows" in caught.value.__notes__[0]


def test_a_seed_in_the_place_of_a_source_is_refused():
    with pytest.raises(TypeError, match="RandomSource"):
        fit(random=1)


def test_without_public_classes_and_row_count_there_are_warnings():
    with pytest.warns(DataDependentClassesWarning), pytest.warns(PublicRowCountWarning):
        fit(classes=None, nominal_rows=None)


def test_missing_values_raise_nothing_whoever_wrote_the_learner():
    holed = X.copy()
    holed[3, 1] = np.nan
    assert fit(X=holed).best_estimator_ is not None
    assert fit(LogisticRegression(), {}, base=pure_dp(epsilon=1.0), X=holed).best_estimator_ is not None
    pandas = pytest.importorskip("pandas")
    mixed = pandas.DataFrame({"a": holed[:, 1], "b": True})
    assert fit(LogisticRegression(), {}, base=pure_dp(epsilon=1.0), X=mixed).best_estimator_ is not None


def test_weights_need_a_declared_guarantee_and_are_cut_to_the_rows():
    ones = np.ones(len(Y))
    with pytest.raises(ArgumentError, match="sample_weight"):
        search().fit(X, Y, sample_weight=ones)
    with pytest.raises(ArgumentError, match="groups"):
        search().fit(X, Y, groups=ones)
    declared = {"base": pure_dp(epsilon=1.0)}
    plain = search(LogisticRegression(), {"C": [1.0]}, **declared).fit(X, Y)
    weighted = search(LogisticRegression(), {"C": [1.0]}, **declared).fit(X, Y, sample_weight=np.where(Y == "no", 9, 1))
    even = search(LogisticRegression(), {"C": [1.0]}, **declared).fit(X, Y, sample_weight=ones)
    assert np.allclose(plain.best_estimator_.coef_, even.best_estimator_.coef_)
    assert weighted.best_estimator_.intercept_ < plain.best_estimator_.intercept_ - 0.5


def test_metadata_are_routed_when_scikit_learn_routes():
    ones = np.ones(len(Y))
    with config_context(enable_metadata_routing=True):
        asks = search(LogisticRegression().set_fit_request(sample_weight=True), {}, base=pure_dp(epsilon=1.0))
        assert asks.fit(X, Y, sample_weight=ones).best_estimator_ is not None
        unsure = search(LogisticRegression(), {}, base=pure_dp(epsilon=1.0))
        with pytest.raises(ValueError, match="not explicitly set as requested"):
            unsure.fit(X, Y, sample_weight=ones)


def test_columns_of_text_through_a_declared_encoder():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"number": X[:, 0], "text": np.where(X[:, 1] > 0.5, "b", "a")})
    encoder = PublicTransformer(OneHotEncoder(sparse_output=False).fit(pandas.DataFrame({"text": ["a", "b"]})))
    model = make_pipeline(ColumnTransformer([("text", encoder, ["text"])], remainder="passthrough"), LEARNER)
    fitted = fit(model, {"outputperturbationclassifier__regularization": [0.01]}, X=frame, epsilon=20.0)
    assert fitted.score(frame, Y) > 0.8
    assert fitted.guarantee_.epsilon(0) <= 20.0


def test_public_validation_rows_take_any_scorer_and_leave_the_score_unpaid():
    public = fit(public_validation=(X[:100], Y[:100]), scoring="balanced_accuracy")
    assert public.score_epsilon_ is None
    assert public.guarantee_.epsilon(0) == search(score_epsilon=0.1).guarantee().epsilon(0)
    assert public.score(X, Y) > 0.5


def test_a_regressor_needs_bounded_row_scores():
    from sklearn.linear_model import Ridge

    target = X @ [1.0, 2.0, 3.0]
    declared = {"base": pure_dp(epsilon=1.0), "classes": None}
    with pytest.raises(ArgumentError, match="RowScore"):
        search(Ridge(), {"alpha": [1.0]}, **declared).fit(X, target)
    error = RowScore(minus_absolute_error, lower=-6.0, upper=0.0)
    found = search(Ridge(), {"alpha": [1e-3, 1e6]}, scoring=error, repetitions=Fixed(count=12), **declared)
    # 12 draws miss alpha = 1e-3 once in 4096 keys; it is better by 1.0 a row, with noise of scale 6/100 a row
    assert found.set_params(score_epsilon=1.0).fit(X, target).best_params_ == {"alpha": 1e-3}
    assert found.score(X, target) > -0.1
    assert found.fit(X, np.where(target > 5, np.nan, target)).best_estimator_ is not None


def minus_absolute_error(y, answers):
    return -np.abs(y - answers)


def test_pipelines_of_stateless_steps_cost_what_their_learner_costs():
    pipeline = Pipeline([("norm", Normalizer()), ("model", LEARNER)])
    fitted = fit(pipeline, {"model__regularization": [0.1, 0.2], "norm__norm": ["l1", "l2"]})
    assert fitted.guarantee_.epsilon(0) == search().guarantee().epsilon(0)
    assert set(fitted.best_params_) == {"model__regularization", "norm__norm"}
    assert fitted.best_estimator_["model"].random is None


@pytest.mark.slow
def test_the_page_on_scikit_learn_runs(tmp_path, monkeypatch, capsys):
    """What is written is what the second search, the stored one, released."""
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(python_blocks("how-to/scikit-learn.md"), "scikit-learn.md", "exec"), names)
    assert 2.9 < float(capsys.readouterr().out) <= 3.0
    model, params = pickle.loads((tmp_path / "model.pickle").read_bytes())
    assert params == names["search"].best_params_
    assert np.array_equal(model.predict(names["X"]), names["search"].predict(names["X"]))


@pytest.mark.slow
def test_the_example_finds_a_model(capsys, monkeypatch):
    path = ROOT / "examples" / "private_search.py"
    spec = importlib.util.spec_from_file_location("private_search", path)
    example = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "private_search", example)
    spec.loader.exec_module(example)
    make = example.search
    monkeypatch.setattr(example, "search", lambda *given, **options: make(*given, **options).set_params(n_jobs=1))
    found = example.main(keyed_source(1), steps=60)
    assert "accuracy" in capsys.readouterr().out
    assert found.guarantee_.epsilon(example.DELTA) <= 3.0


def test_cross_validation_pays_for_every_search(tmp_path):
    budget = Ledger.open(tmp_path / "budget.db").create_budget("b", epsilon=100, delta=1e-6)
    paid = attacks.search(ledger=budget, random=None)
    cross_val_score(paid, attacks.X, attacks.Y, cv=2, error_score="raise")
    assert float(budget.spent().epsilon) == pytest.approx(2 * paid.guarantee().epsilon(0), rel=1e-9)
