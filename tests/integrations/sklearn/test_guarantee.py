"""The guarantee of one fit: which parameters it reads, mixtures over a space, composed steps, refused steps."""

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder

from dpselect.accounting import best_of, mixture
from dpselect.errors import ArgumentError
from dpselect.integrations.sklearn import PublicTransformer
from dpselect.integrations.sklearn.guarantee import dense
from dpselect.learners import (
    DPSGDClassifier,
    OutputPerturbationClassifier,
    PrivateRectangleClassifier,
    PrivateThresholdClassifier,
)
from dpselect.privacy import dp_sgd, pure_dp
from tests.integrations.sklearn.attacks_cases import LEARNER, X, Y, search
from tests.integrations.sklearn.plan_cases import LAW, Owned, plan


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


def test_a_guarantee_that_depends_on_the_columns_gets_those_of_a_bare_estimator_only():
    learner = PrivateRectangleClassifier(epsilon=1.0)
    assert plan(learner, {}, columns=3).parts[0].terms == learner.guarantee(columns=3).terms
    with pytest.raises(ArgumentError, match="columns"):
        plan(make_pipeline(Normalizer(), learner), {}, columns=3)


# what steps may see and keep


def wide_columns(table):
    return np.flatnonzero(np.std(table, axis=0) > 0.1)


def test_columns_chosen_by_a_function_of_the_rows_are_refused_and_by_type_are_not():
    with pytest.raises(ArgumentError, match="sees the rows"):
        search(make_pipeline(ColumnTransformer([("a", Normalizer(), wide_columns)]), LEARNER)).plan()
    by_type = make_column_selector(dtype_include="number")
    assert search(make_pipeline(ColumnTransformer([("a", Normalizer(), by_type)]), LEARNER)).plan().noise is None


class PeekingPipeline(Pipeline):
    """What a subclass does with the rows between its steps, no one has looked at."""


def test_a_pipeline_of_another_kind_is_refused():
    with pytest.raises(ArgumentError, match="PeekingPipeline has no guarantee"):
        search(PeekingPipeline([("model", LEARNER)])).plan()


def test_whether_the_output_is_sparse_is_not_decided_by_the_rows():
    """Three quarters zeros: by itself a ColumnTransformer gives, and remembers, sparse or dense by that share."""
    encoder = PublicTransformer(OneHotEncoder(handle_unknown="ignore").fit([[0], [1], [2]]))
    table = np.array([[0], [1], [2], [3]] * 30)
    model = make_pipeline(ColumnTransformer([("a", encoder, [0])]), LEARNER)
    by_itself = ColumnTransformer([("a", encoder, [0])])
    assert by_itself.fit(table).sparse_output_
    assert not by_itself.fit(table[:3]).sparse_output_
    found = search(model).fit(table, Y).best_estimator_
    assert not found[0].sparse_output_
    assert dense(model) is model


class CountingSpender:
    def __init__(self):
        self.calls = 0

    def reserve(self, *_, **__):
        self.calls += 1

    settle = reserve


def test_a_learner_that_would_charge_a_ledger_itself_in_every_run_is_refused():
    spender = CountingSpender()
    with pytest.raises(ArgumentError, match="spender"):
        search(PrivateThresholdClassifier(spender=spender)).fit(X, Y)
    assert spender.calls == 0


def test_what_inherits_from_a_public_transformer_is_not_public():
    class Learning(PublicTransformer):
        def fit(self, X, y=None):
            self.mean_ = np.mean(X)
            return self

    with pytest.raises(ArgumentError, match="learns from the data"):
        search(make_pipeline(Learning(Normalizer()), LEARNER)).plan()
