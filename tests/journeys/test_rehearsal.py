"""What would make every run fail silently is found before anything is charged, and an empty release says so."""

from __future__ import annotations

import functools
import operator
import threading
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from dpselect.accounting.candidates.sampled_percentile import SmoothedCount
from dpselect.errors import ArgumentError, NothingFoundWarning
from dpselect.integrations.sklearn import PrivateSearchCV
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed, Geometric, Poisson
from dpselect.selection import (
    SelectAcceptable,
    SelectHyperparameters,
    SelectIncreasing,
    SelectWithDummies,
    SelectWithoutThreshold,
    ThresholdSearch,
    amplified,
    select_above,
    select_best,
)
from dpselect.tuning import Categorical, LogUniform, Uniform, tune
from tests.budgets import budget_at, charges

BASE = pure_dp(epsilon=0.5)
SPACE = {"rate": LogUniform(0.1, 1.0), "kind": Categorical(["a", "b"])}
COUNTS = SmoothedCount(samples=20, smoothing=60.0, sensitivity=0.5)


def fine(random):
    return 1.0, "found"


def misspelt(random):
    return scoer(random), None  # noqa: F821


def failing(random):
    raise ValueError


SEARCH = ThresholdSearch(thresholds=[0.5], target=0.9, base=BASE, statistic=COUNTS, epsilon=4.0)
SELECTORS = {
    "best": functools.partial(select_best, repetitions=Fixed(count=2), guarantee=BASE),
    "above": functools.partial(select_above, threshold=0.5, stop_probability=0.5, guarantee=BASE),
    "acceptable": SelectAcceptable(acceptable=lambda score, output: True, floor=0.5, base=BASE),
    "dummies": SelectWithDummies(threshold=0.5, runs=50, gamma=0.2, base=BASE),
    "amplified": amplified(mean=0.5, margin=0.2, failure_probability=0.1, base=BASE),
    "increasing": lambda candidate, **options: SelectIncreasing(levels=[BASE], repetitions=Fixed(count=2))(
        [candidate], threshold=0.5, **options
    ),
    "threshold search": SEARCH,
    "without threshold": SelectWithoutThreshold(search=SEARCH, stop_probability=0.5),
}


class Watched:
    """A source of randomness that must not be asked."""

    def __getattr__(self, name):
        raise AssertionError("drawn")


@pytest.mark.cases(6)
@pytest.mark.parametrize("selector", SELECTORS)
def test_selectors_find_what_would_fail_before_they_draw(selector):
    select = SELECTORS[selector]
    with pytest.raises(ArgumentError, match=r"'scoer'.*drawn or charged"):
        select(misspelt, random=Watched())
    with pytest.raises(ArgumentError, match="cannot be called as candidate"):
        select(lambda: (1.0, None), random=Watched())
    with pytest.raises(TypeError, match="callable"):
        select(3.0, random=Watched())
    ran = []

    def recorded(random):
        ran.append(random.bits(8))
        raise KeyError("rate")

    with pytest.raises(KeyError) as caught:
        select(fine, rehearse=recorded, random=Watched())
    assert "nothing was drawn or charged" in caught.value.__notes__[0]
    assert len(ran) == 1
    with pytest.raises(ArgumentError, match="pair"):
        select(fine, rehearse=lambda random: 1.0, random=Watched())
    with pytest.raises(TypeError, match="rehearse"):
        select(fine, rehearse="yes", random=Watched())


@pytest.mark.cases(6)
@pytest.mark.parametrize("selector", [name for name in SELECTORS if name != "threshold search"])
def test_selectors_say_when_nothing_was_found_and_run_what_rehearse_false_lets_by(selector):
    with pytest.warns(NothingFoundWarning) as caught:
        assert SELECTORS[selector](misspelt, rehearse=False, random=keyed_source(1)).value is None
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with pytest.warns(NothingFoundWarning) as again:
        SELECTORS[selector](failing, random=keyed_source(2))
    assert str(again[0].message) == str(caught[0].message)  # nothing but the release is told


def test_a_search_for_a_threshold_says_when_there_is_none():
    with pytest.warns(NothingFoundWarning):
        assert SELECTORS["threshold search"](failing, random=keyed_source(1)).value is None


def test_hyperparameters_are_looked_at_too():
    select = SelectHyperparameters(candidates=3, repetitions=Fixed(count=2), training=BASE, validation_epsilon=1.0)
    with pytest.raises(ArgumentError, match="train asks for the name 'modle'"):
        select(lambda i, random: modle(i), correct=len, random=Watched())  # noqa: F821
    with pytest.raises(ArgumentError, match="correct cannot be called"):
        select(lambda i, random: i, correct=lambda: 1, random=Watched())
    with pytest.warns(NothingFoundWarning):
        select(lambda i, random: 1 / 0, correct=int, random=keyed_source(1))


def test_the_warning_names_the_probability_that_the_law_gives_to_no_run():
    with pytest.warns(NothingFoundWarning, match=r"probability 0\.999"):
        select_best(fine, repetitions=Poisson(mean=1e-3), guarantee=BASE, random=keyed_source(1))


# tune


def search(objective, tmp_path, **options):
    budget = budget_at(tmp_path / "b.db")
    options = {"space": SPACE, "base": BASE, "repetitions": Geometric(gamma=0.5), **options}
    return tune(objective, ledger=budget, store=tmp_path / "s.db", random=keyed_source(1), **options)


def good(params, random):
    return random.laplace(1)[0] - params["rate"], params["kind"]


UNFIT = {
    "a name": (lambda params, random: modle(params), "'modle'"),  # noqa: F821
    "a parameter": (lambda params, random: (params["rat"], None), "'rat'.*'rate', 'kind'"),
    "its arguments": (lambda params: (1.0, None), "cannot be called as objective"),
}
UNFIT_REHEARSALS = {
    "no pair": (lambda params, random: 3.0, "pair"),
    "a score that is text": (lambda params, random: ("0.5", None), "number"),
    "a value that does not pickle": (lambda params, random: (1.0, threading.Lock()), "pickling"),
    "a value without room": (lambda params, random: (1.0, bytes(10**6)), "payload_bytes"),
    "a name in the rehearsal": (lambda params, random: modle(params), "rehearse asks for the name 'modle'"),  # noqa: F821
}


@pytest.mark.parametrize("what", UNFIT)
def test_tune_finds_what_is_wrong_before_anything_is_charged(what, tmp_path):
    objective, message = UNFIT[what]
    with pytest.raises(ArgumentError, match=message):
        search(objective, tmp_path)
    assert charges(tmp_path / "b.db") == []
    assert not (tmp_path / "s.db").exists()
    with pytest.warns(NothingFoundWarning):
        assert search(objective, tmp_path, rehearse=False).params is None


@pytest.mark.parametrize("what", UNFIT_REHEARSALS)
def test_tune_rehearses_before_anything_is_charged(what, tmp_path):
    rehearse, message = UNFIT_REHEARSALS[what]
    with pytest.raises(ArgumentError, match=message):
        search(good, tmp_path, rehearse=rehearse)
    assert charges(tmp_path / "b.db") == []
    assert not (tmp_path / "s.db").exists()


def test_a_rehearsal_sees_both_ends_of_the_space_and_never_the_objective(tmp_path):
    seen, objected = [], []

    def rehearse(params, random):
        seen.append(params)
        return good(params, random)

    def objective(params, random):
        objected.append(threading.current_thread())
        return good(params, random)

    class Offering:
        def __call__(self, params, random):
            return objective(params, random)

        def rehearsal(self):
            assert not objected
            return rehearse

    for given, options in ((objective, {"rehearse": rehearse}), (Offering(), {})):
        seen.clear()
        objected.clear()
        tune(
            given, space=SPACE, base=BASE, repetitions=Fixed(count=1), random=keyed_source(1), **options
        )  # fmt: skip
        assert [each["kind"] for each in seen] == ["a", "b"]
        assert [each["rate"] for each in seen] == [0.1, 1.0]
        assert len(objected) == 1


def test_a_rehearsal_changes_no_release(tmp_path):
    options = {"space": SPACE, "base": BASE, "repetitions": Fixed(count=3)}
    one = tune(good, random=keyed_source(1), rehearse=False, **options)
    other = tune(good, random=keyed_source(1), rehearse=good, **options)
    assert (one.params, one.value) == (other.params, other.value)


def test_what_a_rehearsal_raises_says_that_nothing_was_charged(tmp_path):
    with pytest.raises(ZeroDivisionError) as caught:
        search(good, tmp_path, rehearse=lambda params, random: 1 / 0)
    assert "'rate': 0.1" in caught.value.__notes__[0]
    assert "nothing was drawn or charged" in caught.value.__notes__[0]


def test_tune_says_that_nothing_was_found_and_how_likely_no_run_was(tmp_path):
    with pytest.warns(NothingFoundWarning, match=r"probability 0\.368") as caught:
        result = search(lambda params, random: 1 / 0, tmp_path, repetitions=Poisson(mean=1.0))
    assert result.params is None
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tune(good, space=SPACE, base=BASE, repetitions=Fixed(count=1), random=keyed_source(1))


def test_a_decorated_objective_is_taken_by_its_own_arguments():
    @functools.wraps(fine)
    def wrapper(*arguments):
        return fine(arguments[-1])

    assert tune(wrapper, space={"x": Uniform(0.0, 1.0)}, base=BASE, repetitions=Fixed(count=1)).value == "found"


# PrivateSearchCV


class WholeNumberSeeds(ClassifierMixin, BaseEstimator):
    """As interpret's DP-EBM: `random_state` goes to compiled code as an integer."""

    def __init__(self, noise_multiplier=1.0, random_state=None):
        self.noise_multiplier = noise_multiplier
        self.random_state = random_state

    def fit(self, X, y):
        state = np.random.default_rng(operator.index(self.random_state))
        self.classes_, self.edge_ = np.array([0, 1]), state.laplace(scale=self.noise_multiplier)
        return self

    def predict(self, X):
        return (np.asarray(X)[:, 0] > self.edge_).astype(int)


@pytest.mark.parametrize("rehearse", [True, False])
def test_an_estimator_that_takes_whole_number_seeds_only_is_refused_before_anything_is_charged(rehearse, tmp_path):
    budget = budget_at(tmp_path / "budget.db")
    tried = PrivateSearchCV(
        WholeNumberSeeds(), {}, base=pure_dp(epsilon=1.0), repetitions=Fixed(count=2), nominal_rows=60,
        classes=[0, 1], rehearse=rehearse, ledger=budget,
    )  # fmt: skip
    with pytest.raises(ArgumentError, match="random_state takes integers only"):
        tried.fit(np.linspace(0, 1, 60)[:, None], np.arange(60) % 2)
    assert charges(tmp_path / "budget.db") == []


class OwnEntropy(ClassifierMixin, BaseEstimator):
    """As interpret's DP-EBM: None is the system's entropy, anything else must be an integer."""

    def __init__(self, noise_multiplier=1.0, random_state=None):
        self.noise_multiplier = noise_multiplier
        self.random_state = random_state

    def fit(self, X, y):
        state = np.random.default_rng(None if self.random_state is None else operator.index(self.random_state))
        self.classes_, self.edge_ = np.array([0, 1]), state.laplace(scale=self.noise_multiplier)
        return self

    def predict(self, X):
        return (np.asarray(X)[:, 0] > self.edge_).astype(int)


@pytest.mark.cases(1)
@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("refit", [False, True])
def test_where_random_state_takes_whole_numbers_only_it_stays_none_and_runs_draw_by_themselves(n_jobs, refit):
    """A seed of 31 bits, though from the run's key, would be found by trying all of them: the noise must have none."""
    X, y = np.linspace(0, 1, 60)[:, None], np.arange(60) % 2

    def fitted():
        tried = PrivateSearchCV(
            OwnEntropy(), {}, base=pure_dp(epsilon=1.0), repetitions=Fixed(count=2), nominal_rows=60,
            classes=[0, 1], random=keyed_source(1), n_jobs=n_jobs, refit=refit,
        )  # fmt: skip
        return tried.fit(X, y).best_estimator_

    first, second = fitted(), fitted()
    assert first.random_state is None
    assert first.edge_ != second.edge_  # although the search's own source is the same


def test_whole_number_seeds_take_a_declared_base():
    class Promising(OwnEntropy):
        def guarantee(self):
            return pure_dp(epsilon=1.0)

    tried = PrivateSearchCV(Promising(), {}, repetitions=Fixed(count=2), nominal_rows=60, classes=[0, 1])
    with pytest.raises(ArgumentError, match="declare by base="):
        tried.fit(np.linspace(0, 1, 60)[:, None], np.arange(60) % 2)
