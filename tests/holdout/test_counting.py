"""What a holdout certifies and promises: exact laws where outcomes are finite, attacks where they are not."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.integrate import quad
from scipy.special import ndtr, ndtri, rel_entr
from scipy.stats import beta as beta_law, binom, laplace

from dpselect.errors import ArgumentError, BoundUnavailableError
from dpselect.holdout import HoldoutRequest, claim_checks
from dpselect.holdout.claim_checks import mu_of_pure, plan_checked
from dpselect.holdout.counting import CountingPlan, divergence, plan_counting
from dpselect.holdout.draws import Draws
from dpselect.holdout.gaussian import plan_gaussian
from dpselect.holdout.planning import fresh_error, most_fresh_answers, rows_needed
from dpselect.holdout.scores import METRICS, Scored, area_under_curve
from dpselect.holdout.terms import MECHANISMS, Terms
from tests.mechanisms.sparse_vector_adversaries import laplace_nodes, laplace_tail, signed_counts


def counting(**changes):
    public = {"questions": 1, "answers": 1, "rows": 50, "failure_probability": 0.05, "tolerance": 0.02}
    return CountingPlan(**{**public, **changes})


@pytest.mark.parametrize(("questions", "answers"), [(1, 1), (3, 1), (3, 2), (3, 3), (5, 2), (6, 4)])
def test_the_functions_that_can_be_asked_are_counted(questions, answers):
    """Every history of yes and of grid points, with fewer scores than the last one that is given."""
    plan = counting(questions=questions, answers=answers, tolerance=0.5)
    outcomes = ("yes", *range(plan.grid_size))
    functions = sum(
        sum(outcome != "yes" for outcome in history) < answers
        for length in range(questions)
        for history in itertools.product(outcomes, repeat=length)
    )
    bound = math.log(2.0 * functions / plan.failure_probability) / plan.rows
    assert plan.bound == pytest.approx(bound, rel=1e-8)
    assert plan.bound >= bound


@pytest.mark.parametrize("rows", [30, 100, 999])
def test_near_scores_are_shown_as_no_more_points_than_are_counted(rows):
    """Every score whose divergence is within the bound, for many expectations; a point fewer would be too few."""
    plan = counting(rows=rows, questions=5, answers=3, tolerance=1.0 / rows, near=True)
    scores, bound = np.arange(rows + 1) / rows, plan.bound
    shown = np.array([plan.rounded(score) for score in scores])
    counts = []
    for mean in np.linspace(0.0, 1.0, 101):
        near = rel_entr(scores, mean) + rel_entr(1.0 - scores, 1.0 - mean) <= bound
        counts.append(len(set(shown[near])))
    assert plan.points_near(bound) - 3 <= max(counts) <= plan.points_near(bound) < plan.grid_size


@pytest.mark.parametrize(("questions", "answers", "tolerance"), [(1, 1, 0.02), (100, 10, 0.01), (40, 40, 0.02)])
def test_the_bound_of_near_scores_is_one_for_the_points_that_it_leaves(questions, answers, tolerance):
    """log(2 M/beta)/N with as many points as are within that bound: M is counted as in the first test."""
    plan = counting(rows=5000, questions=questions, answers=answers, tolerance=tolerance, near=True)
    points = min(plan.points_near(plan.bound), plan.grid_size)
    functions = sum(math.comb(questions, b + 1) * points**b for b in range(answers))
    assert plan.bound >= math.log(2 * functions / plan.failure_probability) / plan.rows
    assert plan.bound <= counting(**{**asdict(plan), "near": False}).bound
    assert not counting(rows=5000).near, "with noise all points are counted"


@given(st.floats(0.001, 0.5), st.floats(0.0, 1.0))
def test_no_more_points_are_shown_than_are_counted(tolerance, score):
    plan = counting(tolerance=tolerance)
    shown = {plan.rounded(x) for x in np.linspace(0.0, 1.0, 2001)}
    assert len(shown) <= plan.grid_size
    assert abs(plan.rounded(score) - score) <= 0.5 * tolerance + 1e-9


@pytest.mark.theorem(
    "docs/theory/generalisation.md, Theorem 7",
    exact=True,
    loose="a tail bound, and a union over all functions that can be asked",
)
@pytest.mark.parametrize("rows", [20, 50, 200])
@pytest.mark.parametrize("chance", [0.05, 0.25])
def test_one_interval_covers_exactly(rows, chance):
    """All laws of one score, by enumeration: the expectation is in the interval of what is shown."""
    plan = counting(rows=rows, failure_probability=chance, tolerance=1 / rows**0.5)
    hits = np.arange(rows + 1)
    ends = np.array([plan.interval(plan.rounded(hit / rows), None) for hit in hits])
    for mean in np.linspace(0.0, 1.0, 101):
        missed = (mean < ends[:, 0]) | (mean > ends[:, 1])
        assert binom.pmf(hits, rows, mean)[missed].sum() <= chance


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_intervals_are_within_the_stated_error(score, shift):
    plan = counting(rows=500, questions=20, answers=4)
    value = min(max(score + (2 * shift - 1) * plan.tolerance, 0.0), 1.0)
    low, high = plan.interval(value, True)
    assert value - plan.error <= low <= high <= value + plan.error
    assert divergence(min(value + plan.tolerance, 1.0), min(high + 1e-6, 1.0)) >= plan.bound or high == 1.0


@pytest.mark.theorem("docs/theory/generalisation.md, Theorem 8", exact=True, loose="a tail bound")
@pytest.mark.parametrize(("first", "other"), [(3, 3), (4, 9), (12, 5)])
def test_the_area_under_the_curve_deviates_no_more_than_a_mean_of_the_rarer_rows(first, other):
    """Exact law for scores of 0 and 1: the area is a function of two binomial counts. Hoeffding 1963, section 5."""
    rare = min(first, other)
    a, b = np.meshgrid(np.arange(first + 1), np.arange(other + 1), indexing="ij")
    areas = (a * (other - b) + 0.5 * (a * b + (first - a) * (other - b))) / (first * other)
    for p, q in itertools.product((0.1, 0.4, 0.7, 0.95), repeat=2):
        mass = binom.pmf(a, first, p) * binom.pmf(b, other, q)
        mean = p * (1 - q) + 0.5 * (p * q + (1 - p) * (1 - q))
        assert np.sum(mass * areas) == pytest.approx(mean)
        far = np.array([divergence(float(area), mean) for area in areas.ravel()]).reshape(areas.shape)
        for exponent in (0.5, 1.0, 2.0, 4.0):
            beyond = rare * far > exponent
            assert mass[beyond & (areas > mean)].sum() <= math.exp(-exponent)
            assert mass[beyond & (areas < mean)].sum() <= math.exp(-exponent)


def test_areas_are_what_scikit_learn_says():
    from sklearn.metrics import roc_auc_score

    generator = np.random.default_rng(3)
    for _ in range(20):
        labels = generator.random(40) < 0.3
        scores = generator.integers(0, 8, 40).astype(float)
        assert area_under_curve(labels, scores) == pytest.approx(roc_auc_score(labels, scores))


def boosted(plan, rows, questions, seed):
    """Random predictions of coin flips; those that score above half vote. The largest error of what was shown.

    The last question is the vote; the population's accuracy of everything is one half.
    """
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 2, rows).astype(float)
    votes, worst = np.zeros(rows), 0.0
    for number in range(questions):
        last = number == questions - 1
        guess = (votes > 0).astype(float) if last else generator.integers(0, 2, rows).astype(float)
        draws = Draws(seed.to_bytes(32, "big"), str(number), str(number), number)
        _, value = plan.answer(Scored(METRICS["accuracy"], labels, guess, 1.0), None, draws)
        votes += np.sign(value - 0.5) * (2 * guess - 1)
        low, high = plan.interval(value, None) or (0.0, 1.0)
        worst = max(worst, low - 0.5, 0.5 - high)
    return worst > 0.0


@pytest.mark.full
@pytest.mark.parametrize("mechanism", ["counting", "gaussian"])
def test_boosting_does_not_break_the_certificate(mechanism):
    """Fails by chance with probability below 1e-3: the lower limit of what was seen is above the stated 0.25."""
    rows, questions = 3000, 60
    plan = (
        HoldoutRequest(
            metric="accuracy", questions=questions, answers=questions, failure_probability=0.25, mechanism=mechanism
        )
        .plan(rows=rows)
        .plan
    )
    runs = 40
    failures = sum(boosted(plan, rows, questions, seed) for seed in range(runs))
    assert beta_law.ppf(0.001, failures, runs - failures + 1) <= 0.25 if failures else True


@pytest.mark.full
def test_boosting_breaks_a_certificate_for_a_hundred_times_the_rows():
    """So that the test above can fail: the numbers of a larger holdout on a smaller one, exact answers."""
    wrong = plan_counting(questions=1000, answers=1000, rows=300_000, failure_probability=0.05)
    assert sum(boosted(wrong, 300, 150, seed) for seed in range(8)) >= 7


def test_a_pure_mechanism_is_dominated_by_its_gaussian():
    """Randomised response's trade-off is below the Gaussian's everywhere, and touches it at its vertex."""
    levels = np.linspace(1e-6, 1 - 1e-6, 20_001)
    for epsilon in (0.01, 0.1, 1.0, 3.0):
        response = np.minimum(math.exp(epsilon) * levels, 1 - math.exp(-epsilon) * (1 - levels))
        normal = ndtr(ndtri(levels) + mu_of_pure(epsilon))
        assert np.all(response <= normal + 1e-12)
        assert np.min(normal - response) < 1e-4


@pytest.mark.cases(2)
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0])
def test_a_run_of_checks_lies_within_its_gaussian(epsilon):
    """Runs played out, claims that move up and down in turn: their power is below the Gaussian's at every level."""
    first, second = epsilon * claim_checks._SPLIT, epsilon * (1 - claim_checks._SPLIT)
    mu, levels, caught = claim_checks.mu_of_run(epsilon), np.array([1e-3, 0.01, 0.1, 0.4, 0.8]), False
    for level in (-2.0, -1.0, 0.0, 1.0, 3.0):
        for scores in ((1, 0), (1, 1)):
            here, there = signed_counts(
                laplace_tail(second / 2),
                laplace_nodes(first),
                level=2 * level / second,
                positives=1,
                for_positive=scores[0],
                for_negative=scores[1],
            )
            order = np.argsort(-(here + 1e-300) / (there + 1e-300))
            power = np.interp(levels, np.append(0, there[order].cumsum()), np.append(0, here[order].cumsum()))
            assert np.all(power <= ndtr(ndtri(levels) + mu) + 1e-9)
            caught |= bool(np.any(power > ndtr(ndtri(levels) + 0.55 * mu)))
    assert caught  # a mu that is so much smaller
    assert mu < 0.61 * epsilon < 0.5 * mu_of_pure(epsilon)


def scales_of(plan, monkeypatch, defect=1.0):
    """What the noise of a check is really drawn with: threshold and query scale, in rows."""
    found = []

    def recorded(scale, random):
        found.append(scale / 2.0**30)
        return 0

    monkeypatch.setattr(claim_checks, "discrete_laplace", recorded)
    scored = Scored(METRICS["accuracy"], np.zeros(plan.counting.rows), np.zeros(plan.counting.rows), 1.0)
    plan.confirms(scored, 0.9, Draws(bytes(32), "p", "q", 0))
    query, threshold = found
    return threshold * defect, query


def largest_loss(threshold_scale, query_scale, confirmed=12):
    """The largest log-ratio of the probability of yes, ..., yes, no between neighbours, summed over a fine grid.

    Many claims at distance 80 are confirmed, so the threshold's noise is large, and one at -80 is refused anyway:
    then its loss is nearly that of the threshold's shift and of twice the claim's.
    """
    noise = np.linspace(-40, 60, 400_001) * threshold_scale
    weights = laplace.pdf(noise, scale=threshold_scale)

    def chance(near, far):
        yes = laplace.cdf(noise - near, scale=query_scale) ** confirmed
        return np.sum(weights * yes * laplace.sf(noise - far, scale=query_scale))

    here = chance(80.0, -80.0)
    return max(abs(math.log(here / chance(80.0 + x, -80.0 + y))) for x, y in itertools.product((-1, 1), repeat=2))


def checked_plan():
    return plan_checked(
        questions=100, answers=4, rows=20_000, failure_probability=0.05, tolerance=0.005, largest_mu=0.6
    )


@pytest.mark.full
def test_a_run_of_checks_costs_what_is_stated(monkeypatch):
    plan = checked_plan()
    scales = scales_of(plan, monkeypatch)
    assert 1 / scales[0] + 2 / scales[1] <= plan.epsilon * (1 + 1e-9)
    assert 0.8 * plan.epsilon < largest_loss(*scales) <= plan.epsilon * (1 + 1e-6)


@pytest.mark.full
def test_zoo_a_threshold_noise_of_a_third_of_the_scale_is_caught(monkeypatch):
    plan = checked_plan()
    assert largest_loss(*scales_of(plan, monkeypatch, defect=1 / 3)) > plan.epsilon


def test_the_tail_of_a_check_is_that_of_two_laplace_noises():
    a, b = 1 / (0.3 * claim_checks._SPLIT), 2 / (0.3 * (1 - claim_checks._SPLIT))
    for rows in (1.0, 5.0, 40.0):
        exact = quad(lambda x, r=rows: laplace.pdf(x, scale=a) * laplace.sf(r - x, scale=b), -900, 900, limit=500)[0]
        assert claim_checks._tail(rows, 0.3) == pytest.approx(exact, rel=2e-6)


def test_lucky_runs_confirm_no_far_claim_more_often_than_is_counted():
    """An analyst that keeps a run only once it has confirmed claims at the tolerance, and then claims too much.

    20,000 runs at a tail of 1 %: 200 expected at the most, 250 or more has a chance below 5e-4.
    """
    epsilon, runs, generator = 1.0, 20_000, np.random.default_rng(9)
    a, b = 1 / (epsilon * claim_checks._SPLIT), 2 / (epsilon * (1 - claim_checks._SPLIT))
    gap = claim_checks._gap(0.01, epsilon)
    threshold = generator.laplace(0, a, runs)
    lucky = np.all(generator.laplace(0, b, (3, runs)) < threshold, axis=0)
    far = gap + generator.laplace(0, b, runs) < threshold
    assert np.count_nonzero(lucky & far) < 250
    assert np.count_nonzero(far & lucky) / np.count_nonzero(lucky) > 0.012  # lucky runs are worse, given that they are


def test_answers_have_the_noise_that_is_charged():
    """Empirical deviation of 2,000 noisy scores: within 7 % of the plan's but for a chance of 1e-5."""
    plan = plan_gaussian(questions=100, rows=1000, failure_probability=0.05, tolerance=0.01)
    scored = Scored(METRICS["accuracy"], np.zeros(1000), np.repeat([0.0, 1.0], 500), 1.0)
    values = [plan.answer(scored, None, Draws(bytes(32), str(i), "q", 0))[1] for i in range(2000)]
    assert np.std(values) == pytest.approx(plan.means.deviation, rel=0.07)
    mu = 10 / (1000 * plan.means.deviation)
    assert plan.row_privacy.gaussian_mu == pytest.approx(mu, rel=1e-6)
    assert plan.row_privacy.gaussian_mu >= mu


@pytest.mark.full
@settings(deadline=None, max_examples=15)
@given(
    metric=st.sampled_from(list(METRICS)),
    rows=st.integers(200, 100_000),
    questions=st.integers(1, 300),
    share=st.floats(0.01, 1.0),
    epsilon=st.sampled_from([None, 0.5, 2.0]),
)
def test_what_is_chosen_is_certified_and_survives_its_file(metric, rows, questions, share, epsilon):
    answers = max(1, int(share * questions))
    try:
        choice = HoldoutRequest(
            metric=metric, questions=questions, answers=answers, failure_probability=0.05, epsilon=epsilon
        ).plan(rows=rows)
    except ArgumentError:
        return
    plan = choice.plan
    assert plan.certified
    assert (plan.questions, plan.answers >= answers) == (questions, True)
    known = [error for error in choice.errors.values() if error is not None]
    assert plan.error is None or plan.error == min(known)
    if epsilon is not None:
        assert plan.row_privacy.delta(epsilon) <= 1e-6 * (1 + 1e-6)
    terms = Terms(metric=METRICS[metric], bound=1.0, rows=rows, id_column="id", plan=plan, reason=choice.reason)
    assert Terms.parse(json.loads(json.dumps(terms.fields()))) == terms


def test_terms_that_do_not_hold_are_refused():
    plan = plan_gaussian(questions=100, rows=1000, failure_probability=0.05, tolerance=0.01)
    fields = Terms(metric=METRICS["accuracy"], bound=1.0, rows=1000, id_column="id", plan=plan, reason="").fields()
    fields["plan"]["means"]["error"] *= 0.99
    with pytest.raises(ArgumentError, match="not certified"):
        Terms.parse(fields)


def test_mechanisms_by_name():
    public = {"metric": "accuracy", "questions": 20, "answers": 5, "failure_probability": 0.05}
    assert {
        HoldoutRequest(**public, mechanism=name).plan(rows=20_000).plan.mechanism for name in ("counting", "gaussian")
    } == {
        "counting",
        "gaussian",
    }
    with pytest.raises(BoundUnavailableError, match="available: gaussian, checked"):
        HoldoutRequest(**public, epsilon=1.0, mechanism="counting").plan(rows=20_000)
    with pytest.raises(ArgumentError, match="mechanism must be best"):
        HoldoutRequest(**public, mechanism="exact")
    assert set(MECHANISMS) == {"counting", "gaussian", "checked", "blocks", "ratio"}


def test_planning_inverts():
    terms = {
        "metric": "accuracy",
        "questions": 100,
        "answers": 10,
        "failure_probability": 0.05,
        "mechanism": "counting",
    }
    request = HoldoutRequest(**terms)
    rows = rows_needed(request, 0.05)
    assert request.plan(rows=rows).plan.error <= 0.05 < request.plan(rows=rows - rows // 400).plan.error
    even = most_fresh_answers(rows, 0.05, 0.05)
    assert fresh_error(rows, even, 0.05) <= 0.05 < fresh_error(rows, even + 1, 0.05)
    with pytest.raises(ArgumentError, match="blocks have no error"):
        rows_needed(HoldoutRequest(**{**terms, "metric": "auc", "mechanism": "blocks"}, epsilon=1.0), 0.05)
