"""JAX-Privacy, its main branch of 2026-08-20 (8967688): the p-value of an audit in one run, and trainings.

`tests/auditing_test.py` asserts the p-value over a grid, by the program of Steinke, Nasr and Jagielski 2023.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from scipy.stats import beta

from dpselect.accounting import calibrate
from dpselect.audit.limits import upper_limit
from dpselect.audit.one_run_bound import one_run_p_value
from dpselect.privacy import dp_sgd
from tests.audit.one_run_cases import extremal
from tests.peers.comparison import table

pytestmark = pytest.mark.peers


def ours(row):
    counts = {name: int(row[name]) for name in ("correct", "guesses", "canaries")}
    return one_run_p_value(**counts, epsilon=row["epsilon"], delta=row["delta"])


def test_p_values_in_one_run(compare):
    """`test_one_run_p_value`, all 345 combinations that it allows.

    Without delta both are equal. Otherwise ours is at most theirs, but for few correct guesses: there the private
    mechanism of docs/theory/one-run-audit.md guesses more often than theirs allows.
    """
    with compare("jax-privacy") as peer:
        for row in table("jax_privacy_facts.csv"):
            found = ours(row)
            if row["delta"] == 0.0:
                peer.close(found, row["p_value"], row, relative=1e-6)
            elif found <= row["p_value"] * (1 + 1e-6):
                peer.holds(True)
            else:
                # theirs is too small: at most half of the guesses are expected to be correct
                peer.holds(row["correct"] <= 0.5 * row["guesses"] or found > 0.5, found, row)


def test_their_p_value_is_exceeded_by_a_private_mechanism(compare):
    """A (0, 1/100)-private mechanism has a correct guess of three with probability .88375. Theirs is .8825.

    The mechanism guesses all three. `masses[w]` is the probability of w correct guesses, spread evenly over them.
    """
    with compare("jax-privacy") as peer:
        masses, claimed = extremal(1, 3, 3, Fraction(1), Fraction(1, 100))
        peer.holds(claimed == Fraction(88375, 100000) == sum(masses[1:]), claimed)
        signs = list(itertools.product((-1, 1), repeat=3))

        def law(coins):
            correct = [sum(a == b for a, b in zip(coins, said, strict=True)) for said in signs]
            return [masses[w] / math.comb(3, w) for w in correct]

        for coins, place in itertools.product(signs, range(3)):
            other = tuple(-coin if number == place else coin for number, coin in enumerate(coins))
            excess = sum(max(p - q, 0) for p, q in zip(law(coins), law(other), strict=True))
            peer.holds(sum(law(coins)) == 1 and excess <= Fraction(1, 100), coins, other, excess)
        theirs = Fraction(7, 8) + 2 * 3 * Fraction(1, 100) * Fraction(1, 8)
        peer.holds(theirs == Fraction(8825, 10000) < claimed, theirs)
        row = {"correct": 1, "guesses": 3, "canaries": 3, "epsilon": 0.0, "delta": 0.01}
        peer.between(float(claimed), ours(row), float(claimed) * (1 + 1e-6))


def test_upper_limits_of_a_binomial(compare):
    """`test_clopper_pearson_upper`: the limit at which so few successes have the significance as probability."""
    with compare("jax-privacy") as peer:
        for trials in (10, 100, 1000):
            for share in (0.3, 0.4, 0.5, 0.8, 0.9):
                for significance in (0.1, 0.03, 0.01):
                    count = round(share * trials)
                    found = float(upper_limit(count, trials, significance))
                    exact = float(beta.isf(significance, count + 1, trials - count))
                    peer.close(found, exact, trials, count, significance, relative=1e-6)


def test_noise_of_dp_sgd(compare):
    """`accounting_test.py`, `test_calibration`: 128 rounds at rate .01 and (1, 1e-6), to four digits.

    Banded noise of 16 bands is 8 rounds at rate .16.
    """
    with compare("jax-privacy") as peer:
        for rate, steps in ((0.01, 128), (0.16, 8)):

            def made(noise, rate=rate, steps=steps):
                return dp_sgd(noise_multiplier=noise, sampling_rate=rate, steps=steps)

            noise = calibrate(made, epsilon=1.0, delta=1e-6)
            peer.between(1.0 - 1e-3, made(noise).epsilon(1e-6), 1.0, noise)
            peer.holds(made(1.0).epsilon(1e-6) > 0.0 and math.isfinite(made(1.0).epsilon(1e-6)))
