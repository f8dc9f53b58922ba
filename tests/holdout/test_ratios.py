"""Log losses, F1 scores, and several metrics of one holdout: their laws by enumeration, and attacks."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import beta as beta_law, multinomial

from dpselect.errors import ArgumentError, ContentError
from dpselect.holdout import Holdout, HoldoutLabels, HoldoutRequest
from dpselect.holdout.counting import divergence, plan_counting
from dpselect.holdout.draws import Draws
from dpselect.holdout.ratios import RatioPlan, plan_ratios
from dpselect.holdout.scores import METRICS, Scored, f1_score
from tests.holdout.ratios_cases import LABELS, ROWS, made

PUBLIC = {"questions": 20, "answers": 5, "failure_probability": 0.05}
DRAWS = Draws(bytes(32), "p", "q", 0)


def counts_of(rows, law):
    """All counts of hits, missed positives, false alarms and the rest in so many rows, with their probabilities."""
    found = [
        (hits, missed, false)
        for hits in range(rows + 1)
        for missed in range(rows + 1 - hits)
        for false in range(rows + 1 - hits - missed)
    ]
    whole = np.array([(*one, rows - sum(one)) for one in found])
    return whole[:, :3], multinomial.pmf(whole, rows, [*law, 1.0 - sum(law)])


def exceeded(rows, law, rows_of):
    """The largest ratio of P(P = p, S beyond J, rows_of kl(S, J) > x) to exp(-x), over p, x and sides."""
    counts, mass = counts_of(rows, law)
    hits, missed, false = counts.T
    share = law[0] / sum(law)
    some = (hits + missed) > 0
    shares = hits[some] / (hits + missed + false)[some]
    far = np.array([divergence(float(one), share) for one in shares]) * rows_of(*counts[some].T)
    positive, mass, worst = (hits + missed)[some], mass[some], 0.0
    for p, side in itertools.product(range(1, rows + 1), (shares > share, shares < share)):
        here = (positive == p) & side
        order = np.argsort(-far[here])
        tail = np.cumsum(mass[here][order])  # of all that are at least as far
        worst = max(worst, float((tail * np.exp(np.minimum(far[here][order], 700.0))).max(initial=0.0)))
    return worst


LAWS = [(0.2, 0.1, 0.1), (0.05, 0.02, 0.3), (0.4, 0.3, 0.2), (0.02, 0.3, 0.05), (0.1, 0.0, 0.6), (0.3, 0.0, 0.0)]


@pytest.mark.theorem(
    "docs/theory/generalisation.md, Theorem 9", exact=True, loose="a tail bound, for the rows of one class"
)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("rows", [8, 20])
def test_the_share_of_hits_deviates_as_is_stated(rows, law):
    """By enumeration, for every number of positive rows and both sides."""
    assert exceeded(rows, law, lambda hits, missed, false: hits + missed) <= 1.0 + 1e-9


def test_the_positive_rows_are_what_counts_and_not_all_of_them():
    """A mutation: the bound with all rows, as if F1 were a mean, is broken by far."""
    assert max(exceeded(20, law, lambda hits, missed, false: 20) for law in LAWS) > 10.0


@pytest.mark.parametrize("law", LAWS[:3])
def test_unlike_rows_deviate_no_more(law):
    """Rows that are all of one kind or another, in numbers: half with the law, half with twice or none of its hits."""
    rows, first = 6, (law[0] * 2 if sum(law) + law[0] <= 1 else law[0], law[1], law[2])
    halves = [counts_of(rows, one) for one in (first, law)]
    share = (first[0] + law[0]) / (sum(first) + sum(law))
    tails: dict[int, list[tuple[float, float]]] = {}
    for (one, here), (other, there) in itertools.product(zip(*halves[0], strict=True), zip(*halves[1], strict=True)):
        hits, missed, false = one + other
        if hits + missed and hits / (hits + missed + false) > share:
            far = (hits + missed) * divergence(hits / (hits + missed + false), share)
            tails.setdefault(hits + missed, []).append((far, here * there))
    for found in tails.values():
        found.sort(reverse=True)
        mass = np.cumsum([weight for _, weight in found])
        assert np.all(mass <= np.exp(-np.array([far for far, _ in found])) * (1.0 + 1e-9))


def test_a_number_of_positive_rows_that_is_told_is_counted():
    counted = plan_counting(**PUBLIC, rows=3000)
    plan = plan_ratios(counted, rows=10_000)
    assert plan.counting.bound == pytest.approx(counted.bound + math.log(10_000) / 3000, rel=1e-6)


@pytest.mark.cases(3)
@pytest.mark.parametrize("value", [0.0, 0.3, 0.95, 0.05, 0.7, 1.0])
def test_intervals_of_f1_hold_all_that_is_not_excluded_and_are_within_the_error(value):
    plan = plan_ratios(plan_counting(**PUBLIC, rows=2000), rows=8000)
    low, high = plan.interval(value, True)
    assert value - plan.error <= low <= value <= high <= value + plan.error
    for score in np.clip(value + plan.tolerance * np.linspace(-1, 1, 9), 0.0, 1.0):
        for fresh in np.linspace(1e-6, 1 - 1e-6, 150):
            kept = divergence(score / (2 - score), fresh / (2 - fresh)) <= plan.counting.bound
            assert not kept or low <= fresh <= high


def voted(plan, rows, questions, chance, seed):
    """Random guesses; those whose F1 is above that of coin flips vote. Whether some interval misses the truth."""
    generator = np.random.default_rng(seed)
    labels, votes = generator.random(rows) < chance, np.zeros(rows)
    missed = False
    for number in range(questions):
        guess = votes > 0 if number == questions - 1 else generator.random(rows) < 0.5
        share = guess.mean()
        worth = 2 * chance * share / (chance + share) if share else 0.0
        _, value = plan.answer(Scored(METRICS["f1"], labels, guess, 1.0), None, DRAWS)
        votes += np.sign(value - worth) * (2 * guess - 1)
        low, high = plan.interval(value, None)
        missed |= not low <= worth <= high
    return missed


@pytest.mark.full
def test_votes_do_not_break_the_certificate_of_f1_and_break_that_of_more_rows():
    """Labels of coin flips, three tenths positive: what is right on new rows is known for all guesses."""
    public = {"questions": 40, "answers": 40, "failure_probability": 0.25, "tolerance": 0.005}
    right, wrong = (RatioPlan(counting=plan_counting(**public, rows=rows)) for rows in (2800, 300_000))
    failures = sum(voted(right, 10_000, 40, 0.3, seed) for seed in range(12))
    assert not failures or beta_law.ppf(0.001, failures, 13 - failures) <= 0.25
    assert sum(voted(wrong, 1000, 100, 0.3, seed) for seed in range(5)) >= 4


RIGHT = np.where(np.arange(ROWS) % 10 == 0, np.where(LABELS == "cat", "dog", "cat"), LABELS)


def test_several_metrics_are_asked_of_one_holdout(tmp_path, state):
    metrics = ("accuracy", "f1", "auc", "log-loss")
    made(tmp_path, metrics, bound=5.0)
    holdout = Holdout.open(tmp_path / "x.holdout")
    truth = LABELS == "cat"
    chances = np.where(truth, 0.8, 0.3)
    exact = {
        "accuracy": (RIGHT, (RIGHT == LABELS).mean()),
        "f1": (RIGHT, f1_score(truth, RIGHT == "cat")),
        "auc": (chances, 1.0),
        "log-loss": (chances, -np.log(np.where(truth, chances, 1 - chances)).mean()),
    }
    for number, (name, (predictions, score)) in enumerate(exact.items()):
        found = holdout.score(ids=range(ROWS), predictions=predictions, metric=name)
        _, plan = holdout.terms.of(name)
        scale = 5.0 if name == "log-loss" else 1.0
        assert found.value == pytest.approx(score, abs=plan.tolerance * scale)
        assert found.interval[0] <= score <= found.interval[1]
        assert (found.repeated, found.questions_left) == (False, 49 - number)
    assert holdout.score(ids=range(ROWS), predictions=RIGHT).repeated, "without a name it is the first"
    assert holdout.score(ids=range(ROWS), predictions=RIGHT, metric="f1", claim=0.85).questions_left == 45
    status = holdout.status()
    assert list(status["further_errors"]) == ["auc", "f1", "log-loss"]
    assert "of its f1" in status["validity"]
    with pytest.raises(ArgumentError, match="metric must be one of accuracy, auc, f1, log-loss"):
        holdout.score(ids=range(ROWS), predictions=RIGHT, metric="squared-error")
    for wrong in (1.5, -0.1, float("nan")):
        with pytest.raises(ContentError):
            holdout.score(ids=range(ROWS), predictions=[wrong, *chances[1:]], metric="log-loss")
    assert holdout.status()["asked"] == 5


def test_labels_of_one_class_have_no_f1(tmp_path, state):
    for metric, positive in (("f1", "bird"), (("accuracy", "auc"), "bird"), ("log-loss", "bird")):
        request = HoldoutRequest(metric=metric, **PUBLIC, bound=2.0 if metric == "log-loss" else None)
        rows = HoldoutLabels(ids=range(ROWS), labels=LABELS, positive=positive)
        with pytest.raises(ContentError, match="two classes"):
            Holdout.create(tmp_path / "x.holdout", rows, request)


@pytest.mark.full
def test_log_losses_may_be_private(tmp_path, state):
    holdout = made(tmp_path, "log-loss", bound=4.0, epsilon=1.0)
    found = holdout.score(ids=range(ROWS), predictions=np.where(LABELS == "cat", 0.7, 0.2))
    low, high = found.interval
    assert low <= 0.3 * -math.log(0.7) + 0.7 * -math.log(0.8) <= high
    assert holdout.status()["row_privacy"]["epsilon"] <= 1.0
