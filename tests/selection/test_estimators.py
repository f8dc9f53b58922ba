"""Estimators and mechanisms as candidates: what they cost, what a key replays, and what is refused."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dpselect.accounting import best_of
from dpselect.errors import ArgumentError
from dpselect.learners import DPSGDClassifier, EarlyStopping, OutputPerturbationClassifier, PublicValidation, Reached
from dpselect.ledger import Ledger
from dpselect.mechanisms import ExponentialMechanism
from dpselect.privacy import compose, laplace, pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed, Harmonic
from dpselect.selection import select_best, uniform_mixture
from dpselect.selection.estimators import (
    estimator_candidate,
    mechanism_candidate,
    noisy_accuracy,
    noisy_value,
    public_score,
)


def table(rows=200):
    generator = np.random.default_rng(1)
    X = generator.normal(size=(rows, 2)) / 4
    return X, (X[:, 0] > 0).astype(int)


def learner(epsilon=2.0):
    return OutputPerturbationClassifier(epsilon=epsilon, regularization=0.1, classes=[0, 1], nominal_rows=200)


def test_an_estimator_and_a_private_score_are_both_charged():
    X, y = table()
    scorer = noisy_accuracy(X, y, epsilon=0.5, rows=200)
    shared = estimator_candidate(learner(), X, y, scorer=scorer)
    apart = estimator_candidate(learner(), X, y, scorer=scorer, disjoint_rows=True)
    free = estimator_candidate(learner(), X, y, scorer=public_score(lambda model: 1.0))
    assert shared.guarantee.epsilon(0) == pytest.approx(2.5, rel=1e-9)
    assert shared.guarantee.epsilon(0) == compose(pure_dp(epsilon=2), pure_dp(epsilon=0.5)).epsilon(0)
    assert apart.guarantee.epsilon(0) == free.guarantee.epsilon(0) == 2.0
    law = Harmonic(limit=3)
    release = select_best(shared, repetitions=law, guarantee=shared.guarantee, random=keyed_source(1))
    assert release.value.predict(X).shape == (200,)
    assert release.guarantee.epsilon(0) == best_of(shared.guarantee, law).epsilon(0)


def test_every_fit_draws_afresh_and_a_key_replays():
    X, y = table()
    candidate = estimator_candidate(learner(), X, y, scorer=public_score(lambda model: 0.0))
    source = keyed_source(1)
    first, second = candidate(source)[1], candidate(source)[1]
    again = candidate(keyed_source(1))[1]
    assert not np.array_equal(first.weights_[0], second.weights_[0])
    np.testing.assert_array_equal(first.weights_[0], again.weights_[0])
    assert first.random is None


def test_the_score_is_noisy_and_counts_correct_rows():
    X, y = table()
    model = learner(epsilon=1e5).set_params(random=keyed_source(1)).fit(X, y)
    right = int(np.sum(model.predict(X) == y))
    source = keyed_source(2)
    scores = np.array([noisy_accuracy(X, y, epsilon=1.0, rows=200).score(model, source) * 200 for _ in range(400)])
    assert np.all(np.abs(scores - np.rint(scores)) < 1e-9)
    # the mean of 400 discrete Laplace draws of deviation 1.36: eight standard errors
    assert abs(scores.mean() - right) < 0.55
    assert len(set(np.rint(scores))) > 3


class Seeded(ClassifierMixin, BaseEstimator):
    """Draws through `random_state`, as scikit-learn's own estimators do, and states its guarantee when fitted."""

    guarantee_ = pure_dp(epsilon=3.0)

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y=None):
        self.drawn_ = self.random_state.randint(2**31, size=4).tolist()
        self.classes_ = np.array([0, 1])
        return self


def test_random_state_is_seeded_from_the_source_even_inside_a_pipeline():
    pipeline = make_pipeline(FunctionTransformer(), Seeded())
    candidate = estimator_candidate(pipeline, *table(), scorer=public_score(lambda m: 0.0), guarantee=Seeded.guarantee_)
    source = keyed_source(1)
    first, second, again = candidate(source)[1], candidate(source)[1], candidate(keyed_source(1))[1]
    assert first[-1].drawn_ == again[-1].drawn_ != second[-1].drawn_
    assert first[-1].random_state is None
    assert pipeline[-1].random_state is None
    stated = estimator_candidate(Seeded(), *table(), scorer=public_score(lambda m: 0.0))
    assert stated.guarantee.epsilon(0) == 3.0


def test_a_fit_that_raises_is_a_run_that_ranks_last():
    class Broken(Seeded):
        def fit(self, X, y=None):
            raise ValueError(f"row {X[0]} is bad")

    both = uniform_mixture(
        [estimator_candidate(e, *table(), scorer=public_score(lambda m: -5.0)) for e in (Broken(), Seeded())]
    )
    release = select_best(both, repetitions=Fixed(count=40), guarantee=pure_dp(epsilon=3), random=keyed_source(1))
    assert type(release.value) is Seeded


def test_a_score_that_is_nan_loses_to_any_number():
    scores = iter([float("nan"), -1e300, float("nan")])
    candidate = estimator_candidate(Seeded(), *table(), scorer=public_score(lambda m: next(scores)))
    noted = []

    def run(random):
        score, model = candidate(random)
        noted.append(model.drawn_)
        return score, model

    release = select_best(run, repetitions=Fixed(count=3), guarantee=candidate.guarantee, random=keyed_source(1))
    assert release.value.drawn_ == noted[1]


def test_an_estimator_without_a_guarantee_is_refused():
    class Silent(BaseEstimator):
        def fit(self, X, y=None):
            return self

    with pytest.raises(TypeError, match="guarantee"):
        estimator_candidate(Silent(), *table(), scorer=public_score(lambda m: 0.0))
    with pytest.raises(TypeError, match="fit"):
        estimator_candidate(object(), *table(), scorer=public_score(lambda m: 0.0))


def test_an_estimator_that_pays_by_itself_is_refused(tmp_path):
    """Its reservations would tell how many runs there were; the search is reserved as a whole."""
    budget = Ledger.open(tmp_path / "budget.db").create_budget("rows", epsilon=5, delta=1e-4)
    stopping = {"stops": [2, 4], "delta": 1e-5, "score": PublicValidation(*table()), "rule": Reached(0.9)}
    free, paying = (
        make_pipeline(
            FunctionTransformer(), DPSGDClassifier(steps=4, early_stopping=EarlyStopping(**stopping, spender=spender))
        )
        for spender in (None, budget)
    )
    base = {"scorer": public_score(lambda m: 0.0), "guarantee": pure_dp(epsilon=1.0)}
    estimator_candidate(free, *table(), **base)
    with pytest.raises(ArgumentError, match="spender"):
        estimator_candidate(paying, *table(), **base)


def test_a_mechanism_and_its_noisy_value():
    values = [0.0, 500.0, 3.0]
    candidate = mechanism_candidate(
        ExponentialMechanism(sensitivity=1.0, epsilon=1.0), values, scorer=noisy_value(values, sensitivity=1, epsilon=2)
    )
    score, index = candidate(keyed_source(1))
    assert index == 1
    assert abs(score - 500.0) < 20
    assert candidate.guarantee.epsilon(0) == pytest.approx(3.0, rel=1e-9)


@pytest.mark.cases(1)
@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1.0, 1.0), (0.3, 0.1), (1e-9, 20.0), (1e12, 1e-3)])
def test_noise_on_a_value_covers_its_rounding(sensitivity, epsilon, monkeypatch):
    """Steps apart on two neighbours times epsilon/scale stays below epsilon, regardless of the two values round to."""
    scales = []
    monkeypatch.setattr(
        "dpselect.selection.estimators.discrete_laplace", lambda scale, random: scales.append(scale) or 0
    )
    generator = np.random.default_rng(1)
    for low in np.concatenate([[0.0], generator.uniform(-50, 50, 200) * sensitivity]):
        high = low + sensitivity
        if Fraction(high) - Fraction(low) > Fraction(sensitivity):
            high = np.nextafter(high, low)
        scorer = noisy_value([low, high], sensitivity=sensitivity, epsilon=epsilon)
        ours, theirs = scorer.score(0, None), scorer.score(1, None)
        step = 2.0 ** np.floor(np.log2(sensitivity * 2.0**-20))
        assert abs(Fraction(ours) - Fraction(theirs)) / Fraction(step) <= scales[-1] * Fraction(epsilon)
        assert scorer.guarantee.epsilon(0) == epsilon


def test_values_that_are_not_finite_count_as_zero():
    scorer = noisy_value([np.nan, np.inf, -np.inf], sensitivity=1.0, epsilon=2.0**30)
    assert all(abs(scorer.score(i, keyed_source(i))) < 1e-5 for i in range(3))


def test_laplace_and_exact_guarantees_are_the_ones_stated():
    assert noisy_value([0.0], sensitivity=3.0, epsilon=0.5).guarantee.epsilon(0) == laplace(scale=2.0).epsilon(0) == 0.5
