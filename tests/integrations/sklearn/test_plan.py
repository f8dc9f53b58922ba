"""What PrivateSearchCV charges and why a row pays for no more: prices, splits, draws, and what leaves a run."""

import pickle
import random as standard_random
import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer

from dpselect.accounting import best_of, mixture
from dpselect.errors import AdjacencyError, ArgumentError, BudgetError
from dpselect.integrations.sklearn import PrivateSearchCV, RowScore
from dpselect.integrations.sklearn.distributions import describe_value, search_space
from dpselect.integrations.sklearn.folds import FoldClassifier
from dpselect.integrations.sklearn.guarantee import private_steps
from dpselect.integrations.sklearn.rows import nominal_rows
from dpselect.integrations.sklearn.scoring import scoring_of
from dpselect.integrations.sklearn.split import rows_to_parts
from dpselect.integrations.sklearn.trial import pack, unpack
from dpselect.learners import DPSGDClassifier, OutputPerturbationClassifier, PrivateRectangleClassifier
from dpselect.mechanisms import NoisyCount
from dpselect.privacy import Adjacency, approximate_dp, compose, dp_sgd, gaussian, pure_dp, worst_of
from dpselect.randomness import RandomSource, keyed_source
from dpselect.repetitions import Fixed, Harmonic
from dpselect.study.metrics import ScoreNoise
from dpselect.tuning import IntegerUniform, LogUniform, Uniform

LAW = Harmonic(limit=3)
ADD, REPLACE = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE


def plan(estimator, space, *, columns=None, **options):
    return PrivateSearchCV(estimator, space, **{"repetitions": LAW, "score_epsilon": 0.1, **options}).plan(columns)


def declared(guarantee, **options):
    return plan(LogisticRegression(), {}, base=guarantee, **options)


# prices


def test_one_split_costs_the_larger_of_training_and_scoring():
    for training, score in ((1.0, 0.1), (0.1, 1.0)):
        total = declared(pure_dp(epsilon=training), score_epsilon=score).guarantee
        assert total.epsilon(0) == best_of(pure_dp(epsilon=1.0), LAW).epsilon(0)


@pytest.mark.full
@pytest.mark.parametrize("folds", [2, 3, 5])
def test_with_folds_a_row_pays_for_the_other_folds_models_and_for_the_score(folds):
    found = declared(gaussian(noise_multiplier=3.0), cv=folds, delta=1e-5)
    once = compose(*[gaussian(noise_multiplier=3.0)] * (folds - 1), NoisyCount(epsilon=0.1).guarantee)
    assert found.parts[0].epsilon(1e-5) == once.epsilon(1e-5)
    assert found.guarantee.epsilon(1e-5) == best_of(once, LAW).epsilon(1e-5)


@pytest.mark.full
@pytest.mark.parametrize(
    ("base", "delta"),
    [(pure_dp(epsilon=1.0), 0.0), pytest.param(gaussian(noise_multiplier=3.0), 1e-5, marks=pytest.mark.slow)],
)
def test_a_refit_is_composed(base, delta):
    """The rows that score are public, so that there is one part; both sides are computed by the same calculus."""
    found = declared(base, refit=True, delta=delta, public_validation=([[0.0]], [0]))
    assert found.final.terms == base.terms
    assert found.guarantee.epsilon(delta) == compose(best_of(base, LAW), base).epsilon(delta)


@pytest.mark.slow
def test_noise_chosen_by_the_quick_price_is_close_to_the_least():
    """With a further run the noise is calibrated by bounds that compose quickly; the promise is the sharp price."""
    learner = DPSGDClassifier(sampling_rate=0.1, steps=20)
    found = plan(learner, {}, epsilon=2.0, delta=1e-5, refit=True, score_epsilon=None)
    assert 0.95 * 2.0 < found.guarantee.epsilon(1e-5) <= 2.0


def test_a_refit_after_a_searched_epsilon_pays_for_the_largest():
    learner = OutputPerturbationClassifier()
    found = plan(learner, {"epsilon": [0.5, 1.0]}, refit=True)
    assert found.final.pure_epsilon == 1.0


def test_a_searched_epsilon_is_priced_as_a_mixture():
    found = plan(OutputPerturbationClassifier(), {"epsilon": [0.5, 1.0, 1.0], "regularization": stats.uniform(0.1, 1)})
    mixed = mixture([pure_dp(epsilon=0.5), pure_dp(epsilon=1.0)], [1.0, 2.0])
    assert found.parts[0].epsilon(0.1) == mixed.epsilon(0.1)
    assert found.guarantee.epsilon(0) <= best_of(pure_dp(epsilon=1.0), LAW).epsilon(0)


def test_spaces_in_a_list_are_mixed_too():
    found = plan(OutputPerturbationClassifier(), [{"epsilon": [0.5]}, {"epsilon": [1.0, 2.0]}])
    mixed = mixture([pure_dp(epsilon=e) for e in (0.5, 1.0, 2.0)], [0.5, 0.25, 0.25])
    assert found.parts[0].epsilon(0.1) == mixed.epsilon(0.1)


def test_parameters_that_the_guarantee_does_not_read_leave_it_alone():
    learner = DPSGDClassifier(noise_multiplier=4.0, sampling_rate=0.1, steps=10)
    space = {"learning_rate": stats.loguniform(0.1, 1), "activation": ["tanh", "relu"], "hidden_units": [0, 8]}
    parts = plan(learner, space, delta=1e-5).parts
    assert parts[0].terms == dp_sgd(noise_multiplier=4.0, sampling_rate=0.1, steps=10).terms


@pytest.mark.parametrize("name", ["noise_multiplier", "sampling_rate", "steps"])
def test_parameters_that_the_guarantee_reads_are_found(name):
    learner = DPSGDClassifier(noise_multiplier=4.0, sampling_rate=0.1, steps=10)
    with pytest.raises(ArgumentError, match=f"{name}.*enters the guarantee"):
        plan(learner, {name: stats.loguniform(0.05, 0.9)}, delta=1e-5)
    first = getattr(learner, name)
    prices = [
        dp_sgd(**{"noise_multiplier": 4.0, "sampling_rate": 0.1, "steps": 10, name: v}) for v in (first, 2 * first)
    ]
    found = plan(learner, {name: [first, 2 * first]}, delta=1e-5).parts[0]
    assert found.epsilon(1e-5) == mixture(prices).epsilon(1e-5)


class Owned(ClassifierMixin, BaseEstimator):
    """A learner of someone's, whose guarantee looks at its parameters in ways that are hard to follow."""

    def __init__(self, size=None, flag=False, random=None):
        self.size = size
        self.flag = flag
        self.random = random

    def fit(self, X, y):
        return self

    def guarantee(self):
        if self.size is None or self.flag:
            return pure_dp(epsilon=3.0)
        return pure_dp(epsilon=1.0) if self.size > 2 else pure_dp(epsilon=2.0)


def test_a_guarantee_that_asks_for_none_or_a_flag_is_asked_for_each():
    assert plan(Owned(), {"size": [None, 3]}).parts[0].pure_epsilon == 3.0
    assert plan(Owned(size=3), {"flag": [False, True]}).parts[0].pure_epsilon == 3.0
    assert plan(Owned(), {"size": [1, 3]}).parts[0].pure_epsilon == 2.0
    assert plan(Owned(), {"size": [3, 4]}).parts[0].pure_epsilon == 1.0
    with pytest.raises(ArgumentError, match="enters the guarantee"):
        plan(Owned(), {"size": stats.uniform(0, 9)})


def test_a_declared_function_is_asked_in_the_same_way():
    base = lambda model: pure_dp(epsilon=model.C)  # noqa: E731
    assert plan(LogisticRegression(), {"C": [0.5, 1.0]}, base=base).parts[0].pure_epsilon == 1.0
    with pytest.raises(ArgumentError, match="enters the guarantee"):
        plan(LogisticRegression(), {"C": stats.uniform(0.1, 1)}, base=base)
    with pytest.raises(TypeError, match="what base returns must be a Guarantee"):
        plan(LogisticRegression(), {}, base=lambda model: 1.0)


def test_too_many_settings_are_refused():
    with pytest.raises(ArgumentError, match="1024 settings"):
        plan(Owned(), {"size": list(range(2000))})


def test_private_steps_of_a_pipeline_are_composed():
    class Scaler(TransformerMixin, BaseEstimator):
        def __init__(self, random=None):
            self.random = random

        def fit(self, X, y=None):
            return self

        def guarantee(self):
            return pure_dp(epsilon=0.25)

    steps = Pipeline([("union", FeatureUnion([("a", Scaler()), ("b", Normalizer())])), ("model", Owned(size=3))])
    assert plan(steps, {}).parts[0].epsilon(0) == pytest.approx(1.25, rel=1e-9)


@pytest.mark.full
def test_epsilon_with_a_law_chooses_the_noise_and_alone_the_law():
    learner = DPSGDClassifier(noise_multiplier=8.0, sampling_rate=0.1, steps=10)
    chosen = plan(learner, {}, epsilon=1.0, delta=1e-5, score_epsilon=None)
    assert 0.99 < chosen.guarantee.epsilon(1e-5) <= 1.0
    assert chosen.noise is not None
    law = plan(OutputPerturbationClassifier(epsilon=0.5), {}, epsilon=0.8, repetitions=None, score_epsilon=None)
    assert law.noise is None
    assert law.guarantee.epsilon(0) <= 0.8
    limit = law.repetitions.limit
    assert 1 < limit < 100
    assert best_of(pure_dp(epsilon=0.5), Harmonic(limit=limit + 1)).epsilon(0) > 0.8


@pytest.mark.parametrize("shape", [{"cv": 3}, pytest.param({"refit": True}, marks=pytest.mark.slow), {}])
def test_the_total_is_kept(shape):
    found = plan(OutputPerturbationClassifier(), {}, epsilon=2.0, score_epsilon=None, **shape)
    assert 1.9 < found.guarantee.epsilon(0) <= 2.0


def test_a_total_that_cannot_be_met_is_refused():
    with pytest.raises(BudgetError):
        plan(OutputPerturbationClassifier(), {}, epsilon=0.1, score_epsilon=1.0)
    with pytest.raises(BudgetError):
        plan(OutputPerturbationClassifier(epsilon=2.0), {}, epsilon=1.0, repetitions=None)
    with pytest.raises(ArgumentError, match="delta"):
        plan(DPSGDClassifier(steps=100), {}, score_epsilon=None)
    with pytest.raises(ArgumentError, match="neither noise_multiplier nor epsilon"):
        declared(pure_dp(epsilon=1.0), epsilon=2.0)
    with pytest.raises(ArgumentError, match="is the noise"):
        plan(OutputPerturbationClassifier(), {"epsilon": [1.0]}, epsilon=2.0)


@pytest.mark.full
@pytest.mark.parametrize("options", [{}, {"epsilon": 4.0}, {"epsilon": 4.0, "repetitions": None}, {"refit": True}])
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_price_that_follows_from_the_number_of_rows_needs_a_public_one(options, wrapped):
    """The steps do, and what trains is told the number of rows where no other is given: more steps than were paid."""

    def estimator(**own):
        learner = DPSGDClassifier(classes=[0, 1], **own)
        return make_pipeline(Normalizer(), learner) if wrapped else learner

    for space in ({}, {f"{'dpsgdclassifier__' if wrapped else ''}steps": [40, None]}):
        with pytest.raises(ArgumentError, match="nominal_rows must be given"):
            plan(estimator(), space, delta=1e-6, **options)
    assert plan(estimator(steps=40), {}, delta=1e-6, **options).guarantee.epsilon(1e-6) < np.inf
    assert plan(estimator(nominal_rows=9000), {}, delta=1e-6, **options).guarantee.epsilon(1e-6) < np.inf


@pytest.mark.full
def test_the_model_that_is_released_promises_what_was_planned():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(3000, 2)), random.integers(0, 2, 3000)
    for own, options in (({}, {"nominal_rows": 100_000}), ({"steps": 40}, {})):
        found = PrivateSearchCV(
            DPSGDClassifier(classes=[0, 1], **own),
            {},
            repetitions=Fixed(count=1),
            score_epsilon=0.1,
            delta=1e-6,
            random=keyed_source(1),
            **options,
        )
        with warnings.catch_warnings(action="ignore"):
            fitted = found.fit(X, y)
        assert fitted.best_estimator_.guarantee_.epsilon(1e-6) == found.plan().parts[0].epsilon(1e-6)


def test_adjacency_is_set_where_it_can_be_and_else_never_converted():
    assert plan(OutputPerturbationClassifier(), {}, adjacency="replace_one").guarantee.adjacency is REPLACE
    with pytest.raises(AdjacencyError):
        declared(pure_dp(epsilon=1.0), adjacency="replace_one")
    with pytest.raises(AdjacencyError):
        plan(DPSGDClassifier(), {}, adjacency="replace_one", delta=1e-5)


def test_a_guarantee_that_depends_on_the_columns_gets_those_of_a_bare_estimator_only():
    learner = PrivateRectangleClassifier(epsilon=1.0)
    assert plan(learner, {}, columns=3).parts[0].terms == learner.guarantee(columns=3).terms
    with pytest.raises(ArgumentError, match="columns"):
        plan(make_pipeline(Normalizer(), learner), {}, columns=3)


@pytest.mark.full
def test_the_parts_are_what_tune_would_charge():
    found = declared(approximate_dp(epsilon=1.0, delta=1e-7), delta=1e-5)
    assert found.guarantee.epsilon(1e-5) == worst_of(*[best_of(p, LAW) for p in found.parts]).epsilon(1e-5)


# splits


def parts_of(X, labels, adjacency, **options):
    return rows_to_parts(
        X, np.asarray(labels), adjacency=adjacency, salt="s", **{"fraction": None, "folds": None, **options}
    )


@pytest.mark.parametrize("options", [{"fraction": 0.3}, {"folds": 4}])
def test_removing_a_row_moves_no_other(options):
    """Under add/remove each remaining row keeps its part; with folds every row is held out once."""
    X, y = keyed_source(1).uniform((60, 2)), np.arange(60) % 3
    whole = parts_of(X, y, ADD, **options)
    for training, held_out in whole:
        assert sorted([*training, *held_out]) == list(range(60))
    assert 0 < sum(len(held_out) for _, held_out in whole) <= 60
    if "folds" in options:
        assert sum(len(held_out) for _, held_out in whole) == 60
    for gone in range(0, 60, 7):
        kept = np.delete(np.arange(60), gone)
        for before, after in zip(whole, parts_of(X[kept], y[kept], ADD, **options), strict=True):
            assert [set(kept[rows].tolist()) for rows in after] == [set(rows.tolist()) - {gone} for rows in before]


@pytest.mark.parametrize("options", [{"fraction": 0.3}, {"folds": 4}])
def test_replacing_a_row_moves_none(options):
    X, y = keyed_source(1).uniform((60, 2)), np.arange(60) % 3
    other = X.copy()
    other[5] = 9.0
    for before, after in zip(parts_of(X, y, REPLACE, **options), parts_of(other, y, REPLACE, **options), strict=True):
        assert all(np.array_equal(one, two) for one, two in zip(before, after, strict=True))


def test_a_split_by_permutation_would_be_caught():
    """The defect that the test above is there for: shuffling positions moves other rows when one is removed."""
    moved = 0
    for gone in range(0, 60, 7):
        whole, less = keyed_source(1).permutation(60)[:12], keyed_source(1).permutation(59)[:12]
        kept = np.delete(np.arange(60), gone)
        moved += set(kept[less].tolist()) != set(whole.tolist()) - {gone}
    assert moved > 0


cells = st.one_of(st.integers(-5, 5), st.booleans(), st.floats(allow_nan=False, width=32), st.text(max_size=3))


@pytest.mark.full
@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(cells, cells), min_size=2, max_size=8), gone=st.integers(0, 7))
def test_the_part_of_a_row_depends_on_its_own_cells_only(rows, gone):
    """Mixed cells, whose common type changes with the rows that are there."""
    gone %= len(rows)
    table = np.empty((len(rows), 2), dtype=object)
    table[:] = rows
    labels = np.zeros(len(rows), dtype=np.int64)
    ((_, held_out),) = parts_of(table, labels, ADD, fraction=0.5)
    kept = np.delete(np.arange(len(rows)), gone)
    try:
        left = table[kept].astype(np.float64)  # as NumPy would have read it
    except ValueError:
        left = table[kept]
    ((_, after),) = parts_of(left, labels[kept], ADD, fraction=0.5)
    assert set(kept[after].tolist()) == set(held_out.tolist()) - {gone}


# scores


@settings(max_examples=50, deadline=None)
@given(values=st.lists(st.floats(), min_size=1, max_size=20), gone=st.integers(0, 19))
def test_one_row_moves_a_row_score_by_at_most_its_steps(values, gone):
    gone %= len(values)
    answers = np.array(values)
    score = RowScore(lambda y, _: y, lower=-2.0, upper=3.0)
    scoring = scoring_of(None, score, noise=None, rows=1.0)
    model = Owned()
    model.predict = lambda X: X
    whole = scoring.total(model, answers, answers)
    less = np.delete(answers, gone)
    moved = whole - scoring.total(model, less, less)
    assert np.min(moved) >= 0
    assert np.sum(moved) == 2**20


def test_the_noise_of_a_row_score_covers_all_steps():
    """Scale 2**20/epsilon for each of the two cells, of which the score is half the difference.

    The mean of |X - Y|/2 for two Laplace variables of scale 2 is 1.5; of 400 draws it is within 20 % of that but
    for 1 key in 10,000.
    """
    noise = ScoreNoise(0.5, Adjacency.ADD_OR_REMOVE_ONE)
    scoring = scoring_of(None, RowScore(abs, lower=0.0, upper=1.0), noise=noise, rows=1.0)
    source = keyed_source(3)
    noisy = [scoring.score(scoring.noisy(np.zeros(2, dtype=np.int64), source)) for _ in range(400)]
    found = np.mean([abs(score - 0.5) for score in noisy])
    assert found == pytest.approx(1.5, rel=0.2)


def test_predictions_of_another_shape_count_nothing():
    """A column of answers equals every label of its class: one row would be counted many times."""
    model = Owned()
    model.predict = lambda X: np.ones((len(X), 1))
    model.classes_ = np.array([0, 1])
    scoring = scoring_of(model, "accuracy", noise=None, rows=1.0, classes=model.classes_)
    with pytest.raises(ArgumentError, match="one label for each row"):
        scoring.strict_total(model, np.zeros((5, 2)), np.ones(5))
    assert scoring.total(model, np.zeros((5, 2)), np.ones(5)).tolist() == [0, 5]


# draws


def test_scipy_distributions_become_our_laws_or_are_inverted():
    laws = search_space(
        {
            "u": stats.uniform(1, 3),
            "l": stats.loguniform(1e-3, 1),
            "i": stats.randint(1, 5),
            "n": stats.norm(2.0, 3.0),
            "p": stats.poisson(3.0),
        }
    ).parameters
    assert laws["u"] == Uniform(1.0, 4.0)
    assert laws["l"] == LogUniform(1e-3, 1.0)
    assert laws["i"] == IntegerUniform(1, 4)
    source = keyed_source(1)
    normal = [laws["n"].sample(source) for _ in range(500)]
    # a Kolmogorov-Smirnov test at level 1e-3, for this key
    assert stats.kstest(normal, stats.norm(2.0, 3.0).cdf).pvalue > 1e-3
    assert all(isinstance(laws["p"].sample(source), int) for _ in range(5))


class OnlyRvs:
    def rvs(self, random_state=None):
        return random_state.standard_normal()


def test_an_object_with_rvs_is_drawn_from_our_source():
    law = search_space({"x": OnlyRvs()}).parameters["x"]
    one, again, other = (law.sample(keyed_source(key)) for key in (1, 1, 2))
    assert one == again != other
    assert describe_value(law.law) == describe_value(OnlyRvs())


def test_choices_may_be_anything_and_a_list_of_spaces_is_drawn_from_evenly():
    space = search_space([{"a": [(1, 2), None]}, {"b": np.array([1.0, 2.0])}])
    drawn = [space.sample(keyed_source(key)) for key in range(400)]
    share = sum("a" in each for each in drawn) / 400
    assert abs(share - 0.5) < 0.1  # 4 deviations
    assert {each["a"] for each in drawn if "a" in each} == {(1, 2), None}
    assert {type(each["b"]) for each in drawn if "b" in each} == {float}


# what leaves a run


def test_no_source_of_randomness_leaves_with_a_model():
    """A holder of a generator in the state before training could draw the noise again and take it off."""
    model = LogisticRegression(random_state=np.random.RandomState(np.random.Philox(1)))
    model.deep = {"own": [keyed_source(1), np.random.default_rng(1), standard_random.Random(1), np.random.Philox(1)]}
    left = unpack(pack(model))
    assert left.random_state is None
    assert left.deep == {"own": [None, None, None, None]}
    with pytest.raises(TypeError, match="not copied or pickled"):
        pickle.dumps(RandomSource(None))


class KeepsWhatItPredicts(OutputPerturbationClassifier):
    """A careless estimator: its predict leaves rows, without noise, on the model."""

    def predict(self, X):
        self.seen = np.array(X)
        return super().predict(X)


@pytest.mark.parametrize("folds", [None, 2])
def test_rows_that_score_a_model_do_not_leave_with_it(folds):
    estimator = KeepsWhatItPredicts(classes=[0, 1], nominal_rows=100)
    X = np.linspace(-0.9, 0.9, 100)[:, None]
    found = PrivateSearchCV(
        estimator, {}, repetitions=Fixed(count=1), cv=folds, score_epsilon=1.0, random=keyed_source(1), rehearse=False
    ).fit(X, (X[:, 0] > 0).astype(int))
    models = [found.best_estimator_] if folds is None else found.best_estimator_.models
    assert models
    assert not any(hasattr(model, "seen") for model in models)


def test_a_score_that_is_not_released_is_not_scaled_by_the_private_number_of_rows():
    """Divided by it, different scores could round to equal ones, and which ones would depend on it."""
    steps = private_steps(LogisticRegression(), pure_dp(epsilon=1.0))
    scales = {nominal_rows(None, count, Adjacency.ADD_OR_REMOVE_ONE, steps, used=False) for count in (3, 1000)}
    assert len(scales) == 1


def test_models_of_folds_average_by_class():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    models = [LogisticRegression().fit(X, y) for y in (["a", "a", "b", "b"], ["b", "b", "c", "c"])]
    both = FoldClassifier(models)
    probabilities = both.predict_proba(X)
    assert both.classes_.tolist() == ["a", "b", "c"]
    assert np.allclose(probabilities.sum(axis=1), 1.0)
    assert np.allclose(probabilities[:, 0], models[0].predict_proba(X)[:, 0] / 2)
    assert both.predict(X).shape == (4,)


@pytest.mark.parametrize(
    ("searched", "said"),
    [
        ({"learning_rate": [0.1, 1.0], "momentum": [0.0, 0.9]}, True),
        ({"learning_rate": [0.1, 1.0], "hidden_units": [0, 8]}, False),
        ({"row_norm": [1.0, 2.0]}, False),
    ],
)
def test_a_search_of_what_a_rule_chooses_says_what_one_run_would_have(searched, said):
    search = PrivateSearchCV(
        DPSGDClassifier(classes=[0, 1], steps=50),
        searched,
        epsilon=2.0,
        delta=1e-5,
        repetitions=Fixed(count=1),
        nominal_rows=500,
    )
    note = search.plan().note
    assert (note is not None) == said
    if said:
        assert "would have all of 2" in note
