"""Training that stops early: what runs, what it pays, what it leaves behind when it fails."""

from __future__ import annotations

import contextlib
import io
import pickle
import runpy
import sys
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone

from dpselect.accounting import iterative
from dpselect.errors import AdjacencyError, ArgumentError, BudgetError, StudyError
from dpselect.learners import DPSGDClassifier, EarlyStopping, NoGain, PrivateValidation, PublicValidation, Reached
from dpselect.ledger import InteractionOpenError, Ledger
from dpselect.privacy import compose, dp_sgd, gaussian, pure_dp
from dpselect.randomness import keyed_source
from tests.root import ROOT

DELTA = 1e-5


def steps(count):
    return gaussian(noise_multiplier=20.0 / count**0.5)


class Scripted:
    """A score that says what it is told to, and remembers which models it saw."""

    guarantee = None
    disjoint = True

    def __init__(self, *scores):
        self.left, self.seen = list(scores), []

    def __call__(self, model, random):
        self.seen.append(model)
        found = self.left.pop(0)
        if isinstance(found, BaseException):
            raise found
        return found


def early(score, stops=(2, 4, 6), **options):
    return EarlyStopping(**{"stops": stops, "delta": DELTA, "rule": Reached(0.9), **options}, score=score)


def train(stopping, **options):
    with stopping.open(stopping.guarantee(steps), **options) as run:
        for step in range(1, 100):
            if run.stop(step, f"model {step}"):
                break
    return run


@pytest.fixture
def budget(tmp_path):
    return Ledger.open(tmp_path / "budget.db").create_budget("rows", epsilon=5, delta=1e-4)


# ---- the loop -------------------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize(
    ("scores", "reached", "seen"),
    [([0.95], 2, ["model 2"]), ([0.5, 0.9], 4, ["model 2", "model 4"]), ([0.1, 0.2], 6, ["model 2", "model 4"])],
)
def test_it_stops_where_the_rule_says_and_at_the_last_stop_without_asking(budget, scores, reached, seen):
    score = Scripted(*scores)
    stopping = early(score, spender=budget)
    run = train(stopping)
    price = stopping.guarantee(steps)
    assert (run.steps, score.seen, list(run.scores)) == (reached, seen, scores)
    assert run.realised.epsilon(DELTA) == price.price(reached)
    assert float(budget.spent().epsilon) == pytest.approx(price.price(reached), rel=1e-12)
    assert float(budget.spent().delta) == DELTA
    assert run.receipt.charged["epsilon"] == price.price(reached)


@pytest.mark.full
def test_the_budget_is_locked_while_a_run_is_open(budget):
    stopping = early(Scripted(0.95), spender=budget)
    with stopping.open(stopping.guarantee(steps)) as run:
        assert float(budget.spent().epsilon) == pytest.approx(stopping.guarantee(steps).worst_epsilon, rel=1e-12)
        with pytest.raises(InteractionOpenError):
            budget.reserve(pure_dp(epsilon=0.1), label="meanwhile")
        assert not run.stop(1, "model")
        assert run.stop(2, "model")
    budget.reserve(pure_dp(epsilon=0.1), label="afterwards")


def test_a_budget_with_a_delta_is_a_spender_too(budget):
    run = train(early(Scripted(0.95), spender=budget.at(delta=1e-6)))
    assert run.steps == 2
    assert budget.spent().delta == Fraction("1e-5")  # a run has a delta of its own


@pytest.mark.full
def test_a_run_that_fails_stays_charged_and_locked(budget):
    stopping = early(Scripted(0.1, RuntimeError("lost")), spender=budget)
    worst = stopping.guarantee(steps).worst_epsilon
    with pytest.raises(RuntimeError, match="lost"):
        train(stopping)
    assert float(budget.spent().epsilon) == pytest.approx(worst, rel=1e-12)
    with pytest.raises(InteractionOpenError):
        budget.reserve(pure_dp(epsilon=0.1), label="afterwards")


@pytest.mark.full
def test_leaving_the_loop_pays_for_the_next_stop(budget):
    stopping = early(Scripted(0.1), spender=budget)
    with stopping.open(stopping.guarantee(steps)) as run:
        for step in (1, 2, 3):
            run.stop(step, "model")
    assert run.realised.epsilon(DELTA) == stopping.guarantee(steps).price(4)
    assert float(budget.spent().epsilon) == pytest.approx(stopping.guarantee(steps).price(4), rel=1e-12)


def test_steps_are_counted_one_by_one():
    stopping = early(Scripted(0.95))
    run = stopping.open(stopping.guarantee(steps))
    with pytest.raises(StudyError):
        run.stop(1, "model")
    with run:
        for wrong in (0, 2):
            with pytest.raises(StudyError):
                run.stop(wrong, "model")
        run.stop(1, "model")
        with pytest.raises(StudyError):
            run.stop(1, "model")
        assert run.stop(2, "model")
        with pytest.raises(StudyError):
            run.stop(3, "model")
    with pytest.raises(StudyError):
        run.__enter__()


def test_no_run_without_a_budget(tmp_path):
    poor = Ledger.open(tmp_path / "budget.db").create_budget("rows", epsilon="0.01", delta=1e-4)
    score = Scripted(0.95)
    with pytest.raises(BudgetError):
        train(early(score, spender=poor))
    assert score.seen == []


def test_rules():
    assert not NoGain(patience=2)([0.5, 0.4])
    assert NoGain(patience=2)([0.5, 0.4, 0.5])
    assert not NoGain(patience=2)([0.5, 0.4, 0.6])
    assert NoGain(patience=1, least=0.1)([0.5, 0.55])
    assert NoGain()([0.5, float("nan")])
    assert not Reached(0.5)([float("nan")])


# ---- prices ---------------------------------------------------------------------------------------------------------


@pytest.mark.full
def test_a_public_score_is_free_and_a_private_one_is_not():
    X, y = np.eye(2), np.array([0, 1])
    plain = iterative(steps, stops=[2, 4, 6], delta=DELTA)
    public = early(PublicValidation(X, y)).guarantee(steps)
    assert dict(public.epsilons) == dict(plain.epsilons)
    noisy = PrivateValidation(X, y, nominal_rows=2, epsilon=0.05)
    together = early(noisy).guarantee(steps)
    by_hand = iterative(steps, stops=[2, 4, 6], delta=DELTA, check=noisy.guarantee)
    assert dict(together.epsilons) == dict(by_hand.epsilons)
    assert all(together.price(k) > plain.price(k) for k in (2, 4, 6))
    # never less than the work and the looks composed, at the whole delta
    assert together.price(6) > compose(steps(6), *[noisy.guarantee] * 2).epsilon(DELTA)


@pytest.mark.full
@pytest.mark.parametrize("epsilon", [0.01, 5.0])
def test_disjoint_rows_pay_the_dearer_of_both(epsilon):
    X, y = np.eye(2), np.array([0, 1])
    plain = iterative(steps, stops=[2, 4, 6], delta=DELTA)
    score = PrivateValidation(X, y, nominal_rows=2, epsilon=epsilon, disjoint=True)
    price = early(score).guarantee(steps)
    looks = iterative([score.guarantee] * 2, stops=[1, 2], delta=DELTA)
    for stop, look in ((2, 1), (4, 2), (6, 2)):
        assert price.price(stop) == max(plain.price(stop), looks.price(look))
    assert price.delta == DELTA
    replaced = PrivateValidation(X, y, nominal_rows=2, epsilon=epsilon, disjoint=True, adjacency="replace_one")
    with pytest.raises(AdjacencyError):
        early(replaced).guarantee(steps)


def test_a_private_score_is_a_noisy_count():
    class Model:
        def predict(self, X):
            return np.zeros(len(X), dtype=int)

    y = np.array([0, 0, 0, 1])
    score = PrivateValidation(np.zeros((4, 1)), y, nominal_rows=5, noise_multiplier=2.0)
    found = np.array([score(Model(), keyed_source(k)) * 5 for k in range(400)])
    assert np.all(np.abs(found - np.round(found)) < 1e-9)
    # a z-test at 1e-6 of the mean of 400, deviation 2: detects an error of one right prediction
    assert abs(found.mean() - 3) < 4.9 * 2 / 20
    assert len(set(found.tolist())) > 3
    assert PublicValidation(np.zeros((4, 1)), y)(Model(), keyed_source(1)) == 0.75
    assert "PrivateValidation" in repr(score)
    assert "array" not in repr(score) + repr(PublicValidation(np.zeros((4, 1)), y))


def test_a_score_without_a_price_is_refused():
    with pytest.raises(TypeError, match="price"):
        early(lambda model, random: 0.5)
    with pytest.raises(TypeError, match="rule"):
        early(Scripted(), rule=0.9)
    with pytest.raises(ArgumentError, match="price"):
        early(Scripted()).open(iterative(steps, stops=[2, 4], delta=DELTA))


STEP, LOOK = 0.3, 0.2
"""Randomised response: each step tells a bit of the row, and so does each look."""


def leaves(stops_after):
    """Of each output: its chances with the row and without, and the steps that were made. Looks follow steps 1 and 2.

    `stops_after(outputs)` is the rule. Steps and looks may depend on all outputs so far: here their sign does.
    """

    def chances(epsilon, bit, outputs):
        right, wrong = np.exp(epsilon) / (1 + np.exp(epsilon)), 1 / (1 + np.exp(epsilon))
        return (right, wrong) if bit == (sum(outputs) % 2) else (wrong, right)

    def follow(outputs, with_row, without, kinds):
        if not kinds or (kinds[0] == STEP and outputs and stops_after(outputs)):
            yield with_row, without, 1 + (len(outputs) - 1) // 2
            return
        for bit in (0, 1):
            one, other = chances(kinds[0], bit, outputs)
            yield from follow((*outputs, bit), with_row * one, without * other, kinds[1:])

    return list(follow((), 1.0, 1.0, (STEP, LOOK, STEP, LOOK, STEP)))


def excess(outputs, epsilon):
    """The exact delta, in the worse direction. `epsilon` may depend on the number of steps."""
    ways = [
        [(p, q, s) for p, q, s in outputs],
        [(q, p, s) for p, q, s in outputs],
    ]
    return max(sum(max(p - np.exp(epsilon(s)) * q, 0.0) for p, q, s in way) for way in ways)


def whole(disjoint=False):
    score = Scripted()
    score.guarantee, score.disjoint = pure_dp(epsilon=LOOK), disjoint
    return early(score, stops=(1, 2, 3)).full_guarantee(compose(*[pure_dp(epsilon=STEP)] * 3))


RULES = [lambda outputs: False, lambda outputs: len(outputs) == 2, lambda outputs: outputs[-1] == 1]
RULES += [
    lambda outputs, k=k: (k >> (sum(b << i for i, b in enumerate(outputs)) % 16)) & 1 for k in range(0, 65536, 3001)
]


@pytest.mark.theorem("docs/theory/early-stopping.md, Theorem 1", exact=True, sharp=True)
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 0.9, 1.2])
def test_the_full_guarantee_covers_every_rule_and_the_rule_that_never_stops_attains_it(epsilon):
    bound = whole().delta(epsilon)
    found = [excess(leaves(rule), lambda _: epsilon) for rule in RULES]
    assert max(found) <= bound * (1 + 1e-9)
    assert found[0] == pytest.approx(bound, rel=1e-6)  # a bound 1 % lower fails


@pytest.mark.theorem("docs/theory/early-stopping.md, Theorem 1")
def test_a_claim_by_the_steps_that_were_made_is_broken():
    """Each stop at its own epsilon of one delta: the rule that goes on when little was told breaks it."""
    delta = 0.02
    made = {k: compose(*[pure_dp(epsilon=STEP)] * k, *[pure_dp(epsilon=LOOK)] * min(k, 2)) for k in (1, 2, 3)}
    prices = {k: g.epsilon(delta) for k, g in made.items()}
    assert max(excess(leaves(rule), prices.__getitem__) for rule in RULES) > 1.01 * delta
    assert max(excess(leaves(rule), lambda _: whole().epsilon(delta)) for rule in RULES) <= delta * (1 + 1e-6)


@pytest.mark.theorem("docs/theory/early-stopping.md, Theorem 2", exact=True, sharp=True)
def test_a_row_of_one_part_pays_for_that_part():
    training, looks = compose(*[pure_dp(epsilon=STEP)] * 3), compose(*[pure_dp(epsilon=LOOK)] * 2)
    for epsilon in (0.0, 0.2, 0.5):
        assert whole(disjoint=True).delta(epsilon) == max(training.delta(epsilon), looks.delta(epsilon))
    assert whole(disjoint=True).epsilon(0.01) < whole().epsilon(0.01)


def test_a_training_with_a_price_by_stop_needs_a_delta():
    with pytest.raises(ArgumentError, match="delta is missing"):
        early(Scripted(), delta=None).guarantee(steps)


# ---- DP-SGD ---------------------------------------------------------------------------------------------------------


def rows(count=200):
    random = np.random.default_rng(1)
    X = random.normal(size=(count, 3))
    return X, (X[:, 0] > 0).astype(int)


def sgd(stopping, key=1, **parameters):
    return DPSGDClassifier(
        **{
            "noise_multiplier": 2.0,
            "sampling_rate": 0.5,
            "steps": 6,
            "learning_rate": 4.0,
            "momentum": 0.5,
            **parameters,
        },
        classes=[0, 1],
        nominal_rows=200,
        early_stopping=stopping,
        random=keyed_source(key),
    )


@pytest.mark.cases(1)
@pytest.mark.parametrize(("scores", "reached"), [([0.95], 2), ([0.1, 0.95], 4), ([0.1, 0.1], 6)])
def test_a_stopped_run_has_the_weights_of_a_run_of_that_length(scores, reached):
    X, y = rows()
    stopped = sgd(early(Scripted(*scores))).fit(X, y)
    short = sgd(None, steps=reached).fit(X, y)
    np.testing.assert_array_equal(stopped.weights_[0], short.weights_[0])
    assert (stopped.n_steps_, stopped.scores_, stopped.receipt_) == (reached, tuple(scores), None)
    assert not hasattr(short, "scores_")


@pytest.mark.full
def test_what_dp_sgd_pays(budget):
    X, y = rows()
    score = Scripted(0.1, 0.95)
    model = sgd(early(score, spender=budget)).fit(X, y)
    price = model.price()
    work = [dp_sgd(noise_multiplier=2.0, sampling_rate=0.5, steps=k) for k in (2, 4, 6)]
    assert all(g.epsilon(DELTA) < price.price(k) for g, k in zip(work, (2, 4, 6), strict=True))
    assert model.guarantee().epsilon(DELTA) == price.price(6)
    assert model.realised_.epsilon(DELTA) == price.price(4)
    assert model.guarantee_.epsilon(DELTA) == price.worst_epsilon
    assert model.receipt_.charged["epsilon"] == price.price(4)
    assert float(budget.spent().epsilon) == pytest.approx(price.price(4), rel=1e-12)
    # what was scored is what would have been released
    np.testing.assert_array_equal(score.seen[1].predict(X), model.predict(X))
    assert score.seen[0].random is None


@pytest.mark.full
def test_a_fit_that_fails_leaves_the_reservation_and_no_weights(budget):
    X, y = rows()
    model = sgd(early(Scripted(RuntimeError("lost")), spender=budget))
    with pytest.raises(RuntimeError, match="lost"):
        model.fit(X, y)
    assert float(budget.spent().epsilon) == pytest.approx(model.price().worst_epsilon, rel=1e-12)
    assert not hasattr(model, "weights_")


def test_a_table_that_is_refused_costs_nothing(budget):
    with pytest.raises(ValueError, match="lengths differ"):
        sgd(early(Scripted(), spender=budget)).fit(np.zeros((3, 2)), [0, 1])
    assert budget.spent().epsilon == 0


def test_steps_and_stops_must_agree_and_a_clone_shares_the_budget(budget):
    stopping = early(Scripted(), spender=budget)
    with pytest.raises(ArgumentError, match="steps"):
        sgd(stopping, steps=7).guarantee()
    assert clone(sgd(stopping)).early_stopping is stopping


@pytest.mark.full
def test_a_copy_of_a_model_carries_neither_the_budget_nor_private_rows(budget):
    X, y = rows()
    marked = np.full((4, 3), 0.123456789)
    score = PrivateValidation(marked, [0, 1, 0, 1], nominal_rows=4, epsilon=0.01)
    model = sgd(early(score, spender=budget)).fit(X, y)
    packed = pickle.dumps(model)
    assert marked[0].tobytes() not in packed
    again = pickle.loads(packed)
    assert again.early_stopping is None
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_private_looks_must_fit_a_given_worst_case():
    looks = PrivateValidation(np.eye(2), [0, 1], nominal_rows=2, epsilon=5.0, disjoint=True)
    with pytest.raises(BudgetError, match="worst_epsilon"):
        early(looks, worst_epsilon=1.0).guarantee(steps)


# ---- the page -------------------------------------------------------------------------------------------------------


@pytest.mark.full
def test_the_page_shows_what_the_example_prints(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["early_stopping.py"])
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        runpy.run_path(str(ROOT / "examples" / "early_stopping.py"), run_name="__main__")
    page = (ROOT / "docs" / "how-to/early-stopping.md").read_text(encoding="utf-8")
    shown = page.split("$ python examples/early_stopping.py\n")[1].split("```")[0]
    assert printed.getvalue().strip() == shown.strip()


@pytest.mark.parametrize("wrong", [{"patience": 0}, {"patience": -1}, {"least": -0.1}])
def test_patience_and_gain_are_checked(wrong):
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        NoGain(**wrong)
