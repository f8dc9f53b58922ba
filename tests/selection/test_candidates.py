"""Candidates: mixtures drawn exactly, candidates made only when drawn, and adapters with their guarantees."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dpselect.accounting import best_of, mixture
from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.learners import DPSGDClassifier, EarlyStopping, OutputPerturbationClassifier, PublicValidation, Reached
from dpselect.ledger import Ledger
from dpselect.mechanisms import ExponentialMechanism
from dpselect.privacy import compose, laplace, pure_dp, zcdp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed, Harmonic
from dpselect.selection import PrivateCandidate, private_mixture, select_best, uniform_mixture, weighted_mixture
from dpselect.selection.estimators import (
    estimator_candidate,
    mechanism_candidate,
    noisy_accuracy,
    noisy_value,
    public_score,
)

FALSE_ALARM = 1e-6


def constant(value):
    return lambda random: (0.0, value)


# ---- mixtures -------------------------------------------------------------------------------------------------------


class Scripted:
    """A source whose next uniform integer is the given one; it records the bound that was asked for."""

    def __init__(self, drawn):
        self.drawn, self.bounds = drawn, []

    def below(self, bound):
        self.bounds.append(bound)
        return self.drawn


@pytest.mark.parametrize(
    ("weights", "whole"),
    [
        ([1, 2, 3], [1, 2, 3]),
        ([0.5, 0.25, 0.0], [2, 1, 0]),
        ([Fraction(1, 3), Fraction(1, 2), Fraction(1, 6)], [2, 3, 1]),
        ([np.float64(0.5), np.int64(1), Fraction(1, 2)], [1, 2, 1]),
    ],
)
def test_weights_are_drawn_exactly(weights, whole):
    """Every one of the equally likely integers, in turn: candidate i for exactly whole[i] of them."""
    proposal = weighted_mixture([constant(0), constant(1), constant(2)], weights)
    source = Scripted(0)
    drawn = []
    for source.drawn in range(sum(whole)):
        drawn.append(proposal(source)[1])
    assert [drawn.count(i) for i in range(3)] == whole
    assert set(source.bounds) == {sum(whole)}


def test_a_double_weight_is_taken_at_its_exact_value():
    """0.1 is not a tenth: the total of 0.1 and 0.9 is an integer of units of 2**-55."""
    source = Scripted(0)
    weighted_mixture([constant(0), constant(1)], [0.1, 0.9])(source)
    assert Fraction(0.1) + Fraction(0.9) == Fraction(source.bounds[0], Fraction(0.1).denominator)


@pytest.mark.statistical
def test_the_law_of_a_weighted_mixture():
    proposal, source, draws = weighted_mixture([constant(i) for i in range(3)], [0.2, 0.3, 0.5]), keyed_source(1), 4000
    found = Counter(proposal(source)[1] for _ in range(draws))
    expected = [draws * p for p in (0.2, 0.3, 0.5)]
    assert stats.chisquare([found[i] for i in range(3)], expected).pvalue > FALSE_ALARM


@pytest.mark.full
@pytest.mark.parametrize("kind", ["function", "sequence"])
def test_of_a_hundred_thousand_candidates_only_those_drawn_are_made(kind):
    made = []

    class Lazy:
        def __len__(self):
            return 100_000

        def __getitem__(self, index):
            made.append(index)
            return constant(index)

    count = 100_000
    lazy = Lazy()
    proposal = uniform_mixture(lazy) if kind == "sequence" else uniform_mixture(lazy.__getitem__, count=count)
    assert made == []
    release = select_best(proposal, repetitions=Fixed(count=7), guarantee=pure_dp(epsilon=1), random=keyed_source(1))
    assert len(made) == 7
    assert release.value in made
    assert max(made) > 1000
    weighted = weighted_mixture(lazy.__getitem__, np.ones(count), count=count)
    select_best(weighted, repetitions=Fixed(count=3), guarantee=pure_dp(epsilon=1), random=keyed_source(1))
    assert len(made) == 10


def test_a_candidate_that_cannot_be_made_is_a_failed_run():
    def make(index):
        if index:
            raise RuntimeError("secret")
        return constant("found")

    proposal = uniform_mixture(make, count=2)
    release = select_best(proposal, repetitions=Fixed(count=40), guarantee=pure_dp(epsilon=1), random=keyed_source(1))
    assert release.value == "found"  # one run in 2**40 selections finds none


def test_wrong_mixtures():
    with pytest.raises(ArgumentError, match="candidates"):
        uniform_mixture([])
    with pytest.raises(ArgumentError, match="count"):
        uniform_mixture(constant, count=0)
    for wrong in (3, constant, iter([constant(1)]), [3]):
        with pytest.raises(TypeError, match="candidates"):
            uniform_mixture(wrong)
    with pytest.raises(TypeError, match="candidates"):
        uniform_mixture([constant(1)], count=1)
    for weights in ([1.0], [0, 0], [-1, 2], [float("nan"), 1], [float("inf"), 1]):
        with pytest.raises(ArgumentError, match="weights"):
            weighted_mixture([constant(1), constant(2)], weights)


def test_a_private_mixture_has_the_average_guarantee():
    quiet, loud = PrivateCandidate(constant("quiet"), zcdp(rho=0.05)), PrivateCandidate(constant("loud"), zcdp(rho=0.2))
    both = private_mixture([quiet, loud], [3, 1])
    expected = mixture([quiet.guarantee, loud.guarantee], [3.0, 1.0])
    assert both.guarantee.renyi(8.0) == expected.renyi(8.0) < loud.guarantee.renyi(8.0)
    assert both(Scripted(2)) == (0.0, "quiet")
    assert both(Scripted(3)) == (0.0, "loud")
    with pytest.raises(ArgumentError, match="weights"):
        private_mixture([quiet, loud], [0, 1])
    with pytest.raises(AdjacencyError):
        private_mixture([quiet, PrivateCandidate(constant(0), zcdp(rho=1, adjacency="replace_one"))])


def test_a_private_candidate_shows_nothing():
    data = [123456789.0]
    assert "123456789" not in repr(PrivateCandidate(lambda random: (data[0], data), pure_dp(epsilon=1)))
    assert "123456789" not in repr(noisy_value(data, sensitivity=1, epsilon=1))


# ---- estimators -----------------------------------------------------------------------------------------------------


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


# ---- mechanisms -----------------------------------------------------------------------------------------------------


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
