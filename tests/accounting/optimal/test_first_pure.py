"""The pure cost of the first acceptable output: exact values."""

from __future__ import annotations

import math

import mpmath
import pytest

from dpselect.accounting.optimal.first_pure import pure_first
from dpselect.repetitions import (
    Fixed,
    Geometric,
    Repetitions,
    Uniform,
    capped,
)


def test_pure_values() -> None:
    """No limit at stop probability 0.5, 0.1, 0.01; attained by "none" on randomised response."""
    for stop, value in ((0.5, 1.31055009), (0.1, 1.79567204), (0.01, 1.97685212)):
        assert pure_first(Geometric(gamma=stop), 1.0) == pytest.approx(value, rel=5e-9)
    assert pure_first(Geometric(gamma=0.1), 0.1) == pytest.approx(0.181795642, rel=5e-9)
    law, worse = Geometric(gamma=0.1), 1.0 / (1.0 + math.e)
    assert math.log(law.pgf(1.0 - worse) / law.pgf(worse)) == pytest.approx(1.79567204, rel=5e-9)


@pytest.mark.full
def test_caps_beyond_two_epsilon() -> None:
    """At stop probability 0.1 exactly the caps 3 to 6 cost more than 2 epsilon."""
    over = [k for k in range(1, 40) if pure_first(capped(Geometric(gamma=0.1), k), 1.0) > 2.0]
    assert over == [3, 4, 5, 6]


def test_other_laws_of_tries() -> None:
    """k tries cost k epsilon: all of them fail. One try costs epsilon."""
    assert pure_first(Fixed(count=50), 1.0) == pytest.approx(50.0, rel=1e-9)
    assert pure_first(Fixed(count=1), 0.7) == pytest.approx(0.7, rel=1e-9)
    assert pure_first(Geometric(gamma=0.1), 0.0) == 0.0
    assert pure_first(Geometric(gamma=0.1), math.inf) == math.inf


# ---- what small means: closed forms and order in the parameters ----


def exact_pure_first(law: Repetitions, epsilon: float) -> mpmath.mpf:
    """The largest cost of an output or of "none" met at u' = exp(epsilon) u up to the kink, from the definition."""
    assert law.limit is not None
    weights = [mpmath.mpf(float(law.pmf(k))) for k in range(law.limit + 1)]
    phi = [w / mpmath.fsum(weights) for w in weights[::-1]]
    h = [mpmath.fsum(phi[:k]) for k in range(1, law.limit + 1)]
    step = mpmath.mpf(epsilon)

    def cost(t: mpmath.mpf) -> mpmath.mpf:
        near = mpmath.exp(t) / (1 + mpmath.exp(step))
        far = mpmath.exp(step) * near
        output = step + mpmath.log(mpmath.polyval(h, 1 - near) / mpmath.polyval(h, 1 - far))
        return max(output, mpmath.log(mpmath.polyval(phi, 1 - near) / mpmath.polyval(phi, 1 - far)))

    low, high, best = mpmath.mpf(-12), mpmath.mpf(0), mpmath.mpf(0)
    for _ in range(6):
        places = [low + (high - low) * k / 12 for k in range(13)]
        values = [cost(t) for t in places]
        k = max(range(13), key=values.__getitem__)
        best, low, high = max(best, values[k]), places[max(k - 1, 0)], places[min(k + 1, 12)]
    return best


@pytest.mark.cases(1)
@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 1e-3, 1.0])
def test_the_pure_price_of_the_first_acceptable_is_exact(epsilon: float) -> None:
    """Neither below, as when differences of logarithms were taken as they come, nor above by more than 2e-7."""
    coin = capped(Geometric(gamma=0.01), 12)
    for law in (Uniform(limit=6), coin, Geometric(gamma=0.01).at_most(12)):
        with mpmath.workdps(40):
            exact = exact_pure_first(law, epsilon)
        assert exact <= pure_first(law, epsilon) <= exact * (1 + 2e-7)


@pytest.mark.parametrize("epsilon", [1e-300, 1e-8, 1e-3, 1.0, 700.0, 1e5])
@pytest.mark.parametrize("stop", [1e-100, 1e-8, 0.1, 0.999])
def test_the_pure_price_of_a_coin_is_its_closed_form(epsilon: float, stop: float) -> None:
    with mpmath.workdps(400):
        growth, gamma = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(stop)
        exact = mpmath.mpf(epsilon) + mpmath.log((growth + gamma) / (1 + gamma * growth))
    assert exact <= pure_first(Geometric(gamma=stop), epsilon) <= exact * (1 + 1e-11)
