"""Selection from scores as private candidates (Liu, Talwar 2019, Theorem 5.2) and the lemma of its appendix E."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect.accounting import best_of
from dpselect.errors import ArgumentError
from dpselect.privacy import pure_dp
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.randomness import keyed_source
from dpselect.repetitions import Geometric
from dpselect.selection import select_best
from dpselect.selection.score_instances import noisy_score_candidate, score_error, truncated_laplace_delta


@pytest.mark.parametrize(
    ("count", "failure", "here", "exponential"),
    [(10, 0.05, 29.0410320, 10.5966347), (100, 0.05, 35.9487873, 15.2018049), (1000, 0.01, 52.5131702, 23.0258509)],
)
def test_the_error_of_the_exponential_mechanism_as_an_instance(count, failure, here, exponential):
    # Liu, Talwar 2019, Theorem 5.2 with constants, beside McSherry, Talwar 2007
    assert score_error(count=count, sensitivity=1, epsilon=1, failure=failure) == pytest.approx(here, rel=1e-8)
    assert 2.0 * math.log(count / failure) == pytest.approx(exponential, rel=1e-8)


@pytest.mark.parametrize(
    ("epsilon", "delta", "truth"), [(1.0, 1e-6, 8.59141773e-7), (0.9, 0.25, 0.243267185), (1.0, 0.25, 0.286380305)]
)
def test_the_delta_of_truncated_laplace_noise(epsilon, delta, truth):
    ours = truncated_laplace_delta(epsilon=epsilon, truncation=math.log(1.0 / delta))
    assert ours == pytest.approx(truth, rel=1e-8)
    assert (ours <= delta) == (math.exp(epsilon) <= 3.0 - 2.0 * delta)  # the printed condition is too wide


def test_the_printed_truncation_holds_at_epsilon_one_up_to_a_limit():
    limit = (3.0 - math.e) / 2.0
    assert limit == pytest.approx(0.140859086, rel=1e-8)
    for delta, holds in ((limit * 0.999, True), (limit * 1.001, False)):
        assert (truncated_laplace_delta(epsilon=1.0, truncation=math.log(1.0 / delta)) <= delta) == holds


@pytest.mark.cases(1)
@pytest.mark.theorem("Liu, Talwar 2019, Theorem 5.2", exact=True, sharp=True)
@pytest.mark.parametrize(("epsilon", "truncation"), [(2.0, 3.0), (1.0, 4.0), (0.3, 2.0)])
def test_the_stated_delta_is_that_of_the_whole_number_noise(epsilon, truncation):
    """The exact law on whole steps, cut as the candidate cuts it, one sensitivity (and one step) apart."""
    steps = 2**20  # of the grid in one sensitivity, which is 1
    scale = (steps + 1) / epsilon
    reach = math.floor(truncation * scale)
    # masses exp(-|k|/scale) / total; the top steps + 1 of them have no counterpart, the others differ by exp(epsilon)
    k = np.arange(-reach, reach + 1, dtype=np.float64)
    masses = np.exp(-np.abs(k) / scale)
    truth = float(np.sum(masses[-(steps + 1) :]) / np.sum(masses))
    beyond = masses[: -(steps + 1)] - math.exp(epsilon) * masses[steps + 1 :]
    assert np.max(beyond) <= 1e-9  # no counterpart is short
    candidate = noisy_score_candidate([0.0], sensitivities=1.0, epsilon=epsilon, truncation=truncation)
    stated = candidate.guarantee.delta(epsilon=epsilon)
    assert truth <= stated * (1 + 1e-9)
    assert stated <= truth * 1.0001


@pytest.mark.full
def test_best_of_noisy_scores_is_near_the_best_as_often_as_stated():
    """60 searches at failure 0.05: more than 12 failures have probability below 1e-4 at that rate. What it detects is a
    dropped penalty (the next test: candidate 3, noisy and bad, then wins three times in four)."""
    scores, widths, epsilon, failure = [50.0, 49.0, 0.0, 20.0], [1.0, 1.0, 1.0, 40.0], 3.0, 0.05
    penalty = math.log(4 * len(scores) / failure**2)
    one = noisy_score_candidate(scores, sensitivities=widths, epsilon=epsilon / 3, penalty=penalty)
    law = Geometric(gamma=failure / (4 * len(scores)))
    error = score_error(count=len(scores), sensitivity=1.0, epsilon=epsilon, failure=failure)
    source = keyed_source(5)
    total = best_of(one.guarantee, law)
    assert total.epsilon(delta=0) <= 3.0000001
    chosen = [select_best(one, repetitions=law, guarantee=one.guarantee, random=source).value for _ in range(60)]
    failures = sum(scores[index] < 50.0 - error for index in chosen)
    assert failures <= 12  # P(Binomial(60, 0.05) > 12) < 1e-4


def test_without_its_penalty_the_wide_candidate_wins():
    scores, widths = [50.0, 49.0, 0.0, 20.0], [1.0, 1.0, 1.0, 40.0]
    one = noisy_score_candidate(scores, sensitivities=widths, epsilon=1.0)
    source = keyed_source(6)
    law = Geometric(gamma=0.05 / 16)
    chosen = [select_best(one, repetitions=law, guarantee=one.guarantee, random=source).value for _ in range(20)]
    assert chosen.count(3) >= 15


def test_noise_is_cut_where_stated():
    one = noisy_score_candidate([0.0], sensitivities=1.0, epsilon=0.5, truncation=1.0)
    source = keyed_source(7)
    drawn = np.array([one(source)[0] for _ in range(2000)])
    assert np.max(np.abs(drawn)) <= 2.0 * (1 + 2.0**-19)
    assert np.max(np.abs(drawn)) > 1.9  # fails by chance with probability below 1e-20


def test_the_guarantee_is_pure_without_truncation():
    one = noisy_score_candidate([1.0, math.nan], sensitivities=[1.0, 2.0], epsilon=0.25)
    assert one.guarantee.pure_epsilon == pure_dp(epsilon=0.25).pure_epsilon
    assert one(keyed_source(1))[1] in (0, 1)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"scores": []}, "scores"),
        ({"sensitivities": [1.0]}, "sensitivities"),
        ({"sensitivities": 0.0}, "sensitivities"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"penalty": -1.0}, "penalty"),
        ({"truncation": 0.0}, "truncation"),
        ({"truncation": 1.0, "epsilon": 2.0}, "truncation"),
    ],
)
def test_bad_arguments_are_named(change, named):
    arguments = {"scores": [1.0, 2.0], "sensitivities": 1.0, "epsilon": 1.0} | change
    with pytest.raises(ArgumentError, match=named):
        noisy_score_candidate(arguments.pop("scores"), **arguments)


def test_lemma_e2_and_the_counterexample_to_its_second_half():
    """Liu, Talwar 2019, Lemma E.2: the mass of large ratios is bounded; what is left is not pointwise close."""
    delta, loss = 0.01, math.sqrt(2 * 0.01)
    assert delta / -math.expm1(-loss) == pytest.approx(0.0758284900, rel=1e-8)
    assert delta / -math.expm1(-loss) <= math.sqrt(delta)
    p = np.array([0.00582849, 0.07, 1 - 0.07582849])
    q = np.array([p[0] * math.exp(-loss * (1 - 1e-9)), p[1] * math.exp(-loss), 0.0])
    q[2] = 1.0 - q[0] - q[1]
    assert np.sum(np.maximum(p - q, 0)) == pytest.approx(delta, rel=1e-5)  # (0, delta)-close
    kept_p, kept_q = p[[0, 2]] / (1 - p[1]), q[[0, 2]] / (1 - q[1])  # given that point 2 did not occur
    assert math.log(kept_p[0] / kept_q[0]) == pytest.approx(0.151298607, rel=1e-5)
    assert math.log(kept_p[0] / kept_q[0]) > loss
    edge = 0.272599  # up to where exp(-sqrt(2 d)) <= 1 - sqrt(d)
    assert math.exp(-math.sqrt(2 * edge)) <= 1 - math.sqrt(edge)
    assert math.exp(-math.sqrt(2 * (edge + 1e-5))) > 1 - math.sqrt(edge + 1e-5)


def test_scores_of_any_size_warn_of_nothing(recwarn):
    """What a warning says would depend on the data."""
    one = noisy_score_candidate([1e308, -1e308, math.nan, math.inf, 5e-324], sensitivities=2.0**-299, epsilon=1.0)
    assert all(math.isfinite(one(keyed_source(i))[0]) for i in range(30))
    assert not recwarn.list


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1.0, 1.0), (0.3, 0.1), (1e-9, 20.0)])
def test_the_noise_covers_the_rounding_of_the_scores(sensitivity, epsilon, monkeypatch):
    """Whole steps between the scores of two neighbours, in noise scales, are never more than epsilon."""
    scales = []
    monkeypatch.setattr(
        "dpselect.selection.score_instances.discrete_laplace", lambda scale, random: scales.append(scale) or 0
    )
    step = Fraction(2.0 ** math.floor(math.log2(sensitivity * 2.0**-20)))
    furthest = Fraction(0)
    for low in np.random.default_rng(1).uniform(-1, 1, 200) * sensitivity:
        high = low + sensitivity
        if Fraction(high) - Fraction(low) > Fraction(sensitivity):
            high = np.nextafter(high, low)
        ours, theirs = (
            noisy_score_candidate([v], sensitivities=sensitivity, epsilon=epsilon)(keyed_source(1))[0]
            for v in (low, high)
        )
        furthest = max(furthest, (Fraction(theirs) - Fraction(ours)) / step)
        assert furthest <= scales[-1] * epsilon_used(epsilon)
    assert furthest >= Fraction(sensitivity) / step
    assert scales[-1] * epsilon_used(epsilon) == Fraction(sensitivity) / step + 1
