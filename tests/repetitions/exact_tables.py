"""A distribution of K against the table of its exact probabilities, which a test derives apart from the library."""

from __future__ import annotations

from fractions import Fraction
from itertools import islice

import numpy as np
import pytest

from dpselect.randomness import keyed_source
from dpselect.repetitions import Repetitions


def agrees_with_table(law: Repetitions, exact: list[Fraction], *, tail: float = 0.0) -> None:
    """All that a finite distribution states, to 12 digits; `tail` is the probability beyond the table, if any."""

    def close(values: list[Fraction]) -> object:
        return pytest.approx([float(value) for value in values], rel=2e-12, abs=1e-14 + 100.0 * tail)

    count = len(exact)
    k = np.arange(count)
    beyond = [sum(exact[i + 1 :], Fraction(0)) for i in range(count)]
    mean = sum(i * p for i, p in enumerate(exact))
    biased = [sum(i * p for i, p in enumerate(exact) if i > at) / mean for at in range(count)]
    assert law.pmf(k) == close(exact)
    assert law.survival(k) == close(beyond)
    assert law.size_biased_survival(k) == close(biased)
    assert [law.mean, law.zero_probability] == close([mean, exact[0]])
    assert law.expected_quantile() == pytest.approx(float(sum(p * i / (i + 1) for i, p in enumerate(exact))), rel=2e-12)
    assert law.minimum == next(i for i, p in enumerate(exact) if p)
    assert law.limit == (count - 1 if tail == 0.0 else None)
    places = [Fraction(1, 8), Fraction(1, 2), Fraction(7, 8)]
    assert [law.pgf(float(s)) for s in places] == close([_power_sum(exact, s) for s in places])
    increments = [_power_sum(exact, s) - _power_sum(exact, s - Fraction(1, 16)) for s in places]
    found = law.increment(complement_after=np.array([1.0 - float(s) for s in places]), mass=np.full(3, 1 / 16))
    assert found == close(increments)
    derivatives = exact
    for order, method in enumerate((law.log_derivative, law.second_derivative, law.third_derivative)):
        derivatives = [i * p for i, p in enumerate(derivatives)][1:]
        want = [float(_power_sum(derivatives, s)) for s in places]
        got = [method(1.0 - float(s)) for s in places]
        assert (np.exp(got) if order == 0 else got) == pytest.approx(want, rel=2e-12, abs=1e-12 + 1e4 * tail)
    bits, weights = law._exact_pmf()
    drawn = [Fraction(weight, 1 << bits) for weight in islice(weights, count)]
    assert all(abs(got - want) <= Fraction(1, 1 << 250) for got, want in zip(drawn, exact, strict=True))
    source = keyed_source("draws")
    assert all(exact[law.sample(source)] > 0 for _ in range(20))


def _power_sum(coefficients: list[Fraction], s: Fraction) -> Fraction:
    return sum((c * s**i for i, c in enumerate(coefficients)), Fraction(0))
