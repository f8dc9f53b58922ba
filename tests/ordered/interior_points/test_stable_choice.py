"""Choices that are stable: exact laws of the shipped ones, and lower thresholds that are caught."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect.ordered.interior_points.stable_choice import StableChoice, SupportChoice, laplace_tail_steps
from dpselect.privacy import approximate_dp
from tests.ordered.enumerated_draws import claims, exact_law, worst_excess


def all_weights(keys, most):
    return itertools.product(range(most + 1), repeat=keys)


def choice_law(weights, choice, **caps):
    occupied = [i for i, w in enumerate(weights) if w]
    law, lost, _ = exact_law(
        lambda draws: choice.choose(np.array([weights[i] for i in occupied], dtype=np.int64), level=1, draws=draws),
        Fraction(1, 2),
        **caps,
    )
    return {None if o is None else occupied[o]: mass for o, mass in law.items()}, lost


@pytest.mark.full
@pytest.mark.parametrize("delta", [0.2, 0.05])
def test_exact_laws_of_the_stable_choice(delta):
    epsilon = math.log(2)
    choice = StableChoice(epsilon, delta)
    laws = {w: choice_law(w, choice, laplace_cap=20) for w in all_weights(3, 4)}
    added = claims(approximate_dp(epsilon=epsilon, delta=delta * (1 + 1e-9)))
    swapped = claims(approximate_dp(epsilon=2 * epsilon, delta=2 * delta * (1 + 1e-9)))
    for w in laws:
        for i in range(3):
            larger = tuple(v + (j == i) for j, v in enumerate(w))
            if larger in laws:
                assert worst_excess((laws[larger], laws[w]), added) <= 1e-9
            for k in range(3):
                other = tuple(v + (j == i) - (j == k) for j, v in enumerate(w))
                if i != k and other in laws:
                    assert worst_excess((laws[other], laws[w]), swapped) <= 1e-9


@pytest.mark.full
def test_the_enumerated_choice_is_the_shipped_one():
    """The closed form used in these audits against noise drawn key by key, exactly up to what is cut off."""
    epsilon, threshold, weights = math.log(2), 4, np.array([3, 4, 4])

    def by_key(draws):
        noisy = [int(w) + draws.laplace(epsilon) for w in weights]
        best = int(np.argmax(noisy))
        return best if noisy[best] >= threshold else None

    drawn, lost, _ = exact_law(by_key, Fraction(1, 2), laplace_cap=9)
    closed, _, _ = exact_law(lambda d: d.heaviest(weights, epsilon, threshold), Fraction(1, 2), laplace_cap=20)
    for output, mass in drawn.items():
        assert mass <= closed[output] <= mass + lost + Fraction(1, 2**30)


def test_a_single_point_is_seen_with_probability_delta_at_most():
    choice = StableChoice(math.log(2), 1 / 12)
    law, lost = choice_law((1,), choice)
    assert law[0] <= Fraction(1, 12) == law[0] + lost


def test_a_lower_threshold_is_caught():
    class Lower(StableChoice):
        @property
        def threshold(self):
            return super().threshold - 2

    laws = [choice_law(w, Lower(math.log(2), 0.02)) for w in ((1, 0), (0, 0))]
    assert worst_excess(tuple(laws), claims(approximate_dp(epsilon=math.log(2), delta=0.02))) > 0.02


def test_exact_laws_of_the_choice_from_the_support():
    """Weights that all move by up to four at once; audited at the price of one level and distance one."""
    unit = math.log(2)
    choice = SupportChoice(epsilon_test=4 * unit, epsilon_draw=8 * unit, delta_test=0.05, ratio=0.05, size=6)
    claimed = claims(approximate_dp(epsilon=choice.epsilon, delta=choice.delta))
    laws = {w: choice_law(w, choice) for w in itertools.product((0, 1, 3, 4, 6, 9, 12), repeat=2)}
    for first, second in itertools.combinations(laws, 2):
        if max(abs(a - b) for a, b in zip(first, second, strict=True)) <= 4:
            assert worst_excess((laws[first], laws[second]), claimed) <= 1e-9


def test_the_stable_choice_is_not_for_cumulative_distances():
    """Independent noises when all weights move at once: caught."""
    choice = StableChoice(math.log(2), 0.01)
    pair = tuple(choice_law(w, choice, laplace_cap=20) for w in ((12, 8, 8), (8, 12, 12)))
    assert worst_excess(pair, claims(approximate_dp(epsilon=math.log(2), delta=0.01))) > 0.1


def test_tail_of_one_noise():
    for ratio, mass in itertools.product((0.5, 0.9), (0.2, 1e-3, 1e-9)):
        k = laplace_tail_steps(-math.log(ratio), mass)
        assert ratio**k / (1 + ratio) <= mass * (1 + 1e-12)
        assert k == 0 or ratio ** (k - 1) / (1 + ratio) > mass
    # the continuous thresholds 1 + log(1/(2 delta))/epsilon
    for epsilon, delta, continuous in ((1.0, 1e-6, 14.1223634), (0.1, 1e-6, 132.223634), (0.5, 1e-9, 41.0602373)):
        assert continuous - 1 < StableChoice(epsilon, delta).threshold <= continuous + 2
