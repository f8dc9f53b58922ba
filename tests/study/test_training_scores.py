"""Runs that score the rows that train them: the price covers the exact law, and the study pays for both."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from dpselect.accounting.planning.search_prices import SearchPrice
from dpselect.audit import FiniteSubject, exact_audit
from dpselect.errors import ArgumentError, StudyError
from dpselect.integrations.sklearn import PrivateSearchCV, search
from dpselect.integrations.sklearn.several_scores import scorings_of
from dpselect.integrations.sklearn.split import rows_to_parts
from dpselect.learners import OutputPerturbationClassifier
from dpselect.mechanisms import NoisyCount
from dpselect.privacy import Adjacency, compose, pure_dp, worst_of
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed, Harmonic, Poisson
from dpselect.study import check_study, load_model, run_study
from dpselect.study.load import open_rows
from dpselect.study.price import price
from dpselect.study.split import split
from dpselect.study.validate import StudyPaths, validate
from dpselect.testing.exact import best_of_masses, finite_guarantee
from tests.study.training_scores_cases import priced, searched

TRAINED, SCORED = 0.8, 0.5


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch, state, no_page):
    monkeypatch.chdir(tmp_path)


# The price, on finite outputs: a run shows one of two models and the noisy number of rows that it predicts rightly


def model_law(rows):
    """Of two models the second becomes unlikelier with the row, which it alone predicts rightly."""
    masses = np.exp(-TRAINED * rows * np.array([0.0, 1.0]))
    return masses / masses.sum()


def run_law(rows):
    """The chances of all pairs of a score and a model, the worst first."""
    decay, found = math.exp(-SCORED), []
    for score, model in itertools.product(range(4), (0, 1)):
        tail = 1.0 if score in (0, 3) else 1.0 - decay  # cut off at both ends
        found.append(model_law(rows)[model] * tail * decay ** abs(score - 1 - rows * model) / (1.0 + decay))
    assert sum(found) == pytest.approx(1.0, abs=1e-12)
    return np.array(found)


def refuted(law, base):
    """Whether the exact law of all that leaves a search contradicts the price of this base."""
    laws = [dict(enumerate(best_of_masses(run_law(rows), law))) for rows in (0, 1)]
    claim = SearchPrice((base,), law).guarantee
    return exact_audit(FiniteSubject(name="training scores", data=laws[0], neighbour=laws[1], claim=claim)).violated


TRAINING = finite_guarantee(model_law(0), model_law(1))
SCORE = NoisyCount(epsilon=SCORED, adjacency=Adjacency.ADD_OR_REMOVE_ONE).guarantee


@pytest.mark.cases(1)
@pytest.mark.theorem("docs/theory/portfolio.md, Theorem 3", exact=True, sharp=True)
@pytest.mark.parametrize("law", [Fixed(count=1), Harmonic(limit=4), Poisson(mean=2.0)])
def test_the_composition_covers_a_search_of_runs_that_score_their_own_rows(law):
    assert not refuted(law, compose(TRAINING, SCORE))


def test_one_run_attains_it():
    whole = np.max(np.abs(np.log(model_law(1) / model_law(0)))) + SCORED
    assert not refuted(Fixed(count=1), pure_dp(epsilon=1.000001 * whole))
    assert refuted(Fixed(count=1), pure_dp(epsilon=0.99 * whole))


@pytest.mark.cases(1)
@pytest.mark.parametrize("law", [Fixed(count=1), Harmonic(limit=4)])
def test_a_price_without_one_of_them_or_of_the_larger_alone_is_refuted(law):
    for base in (TRAINING, SCORE, worst_of(TRAINING, SCORE)):
        assert refuted(law, base)


def test_where_a_row_is_replaced_both_are_added_too():
    """Output perturbation and a score are pure, so that their epsilons add up exactly."""
    privacy = {"epsilon": 3.0, "delta": 0.0, "adjacency": "replace_one"}
    space = {"regularization": {"law": "log_uniform", "low": 0.01, "high": 1.0}}
    found = priced(privacy=privacy, learner={"name": "output-perturbation"}, space=space)
    trained = found.settled.recipe.guarantee(found.price.noise).pure_epsilon
    assert found.price.parts[0].pure_epsilon == pytest.approx(trained + found.price.score_epsilon, rel=1e-12)
    assert 0.999 * 3.0 <= found.price.epsilon <= 3.0
    assert split(open_rows(found)).score_rows == 150.0


# All rows train, and all rows score


def objective(**tables):
    return split(open_rows(price(validate(searched(**tables), StudyPaths(Path(), Path("out"))))))


def test_all_rows_train_and_score():
    run = objective()
    assert run.training[0] is not None
    assert len(run.training[1]) == len(run.validation[1]) == 150
    np.testing.assert_array_equal(run.training[0], run.validation[0])
    assert run.score_rows == 150.0
    assert run.score_noise is not None
    aside = objective(validation={"data": "private"})
    assert len(aside.training[1]) + len(aside.validation[1]) == 150


def test_the_model_is_released_and_no_score():
    release = run_study(searched(), base_folder=Path(), random=keyed_source("one")).release
    assert release["score"] is None
    assert release["validation"] is None
    assert load_model(Path("out/model.npz")) is not None
    assert check_study(searched(output={"folder": "other"}), base_folder=Path())["score_released"] is False


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"validation": {"data": "training", "fraction": 0.3}}, "validation.fraction: goes with"),
        ({"validation": {"data": "training", "release_score": True}}, "validation.release_score: of rows that trained"),
        ({"search": {"design": "portfolio"}, "repetitions": {}}, "validation.data: a portfolio chooses by the rows"),
        ({"search": {}, "space": {}, "repetitions": {}}, "validation.data: of one run nothing is compared"),
        ({"search": {"design": "one-run"}, "space": {}, "repetitions": {}}, "validation.data: of one run nothing"),
    ],
)
def test_what_does_not_go_with_it_is_named(tables, said):
    with pytest.raises(StudyError, match=said):
        searched(**tables)


# Estimators of scikit-learn


def search_cv(**options):
    rates = {"regularization": scipy.stats.loguniform(0.01, 1.0)}
    given = {"epsilon": 3.0, "repetitions": Harmonic(limit=4), "classes": [0, 1], "nominal_rows": 60.0}
    return PrivateSearchCV(OutputPerturbationClassifier(), rates, **{"validation_fraction": None, **given, **options})


@pytest.mark.cases(1)
@pytest.mark.parametrize("score_epsilon", [None, 0.25])
@pytest.mark.parametrize("design", ["one-stage", "two-stage"])
def test_a_search_over_estimators_pays_for_both(design, score_epsilon):
    repetitions = Harmonic(limit=4)
    plan = search_cv(design=design, score_epsilon=score_epsilon, repetitions=repetitions).plan()
    trained = OutputPerturbationClassifier(epsilon=1.0 / plan.noise).guarantee().pure_epsilon
    assert len(plan.parts) == 1
    assert plan.parts[0].pure_epsilon == pytest.approx(trained + plan.score_epsilon, rel=1e-12)
    assert score_epsilon in (None, plan.score_epsilon)
    assert 0.998 * 3.0 <= plan.guarantee.epsilon(0.0) <= 3.0


def test_all_rows_of_a_search_over_estimators_train_and_score(monkeypatch):
    X, labels = np.linspace(-1.0, 1.0, 60)[:, None], np.tile([0, 1], 30)
    own = {"adjacency": Adjacency.ADD_OR_REMOVE_ONE, "salt": "", "fraction": None, "folds": None}
    ((trained, scored),) = rows_to_parts(X, labels, own_scores=True, **own)
    assert trained.tolist() == scored.tolist() == list(range(60))
    told = []
    monkeypatch.setattr(
        search, "scorings_of", lambda *given, **options: told.append(options) or scorings_of(*given, **options)
    )
    found = search_cv(random=keyed_source("one"), name="own").fit(X, (X[:, 0] > 0).astype(int))
    assert [options["rows"] for options in told] == [60.0]
    assert found.guarantee_.epsilon(0.0) <= 3.0
    assert not hasattr(found, "best_score_")
    with pytest.raises(ArgumentError, match="release_score: with validation_fraction=None"):
        search_cv(release_score=True).plan()
