"""What holds for every law of K, checked on random laws and against 60-digit arithmetic."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import islice

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpselect.errors import ArgumentError
from dpselect.repetitions import (
    BetaBinomial,
    Binomial,
    Fixed,
    Geometric,
    Harmonic,
    Logarithmic,
    Poisson,
    Repetitions,
    Tabulated,
    TruncatedNegativeBinomial,
    Uniform,
    ZeroTruncatedPoisson,
    capped,
    repetition_law,
)
from dpselect.repetitions.by_name import from_description
from dpselect.repetitions.distribution import LAWS, FloatArray
from tests.registered import only_in_this_file
from tests.repetitions.distribution_cases import ONE_OF_EACH, label

every_law = pytest.mark.parametrize("law", ONE_OF_EACH, ids=label)
unit = st.floats(0.0, 1.0)
laws = st.one_of(
    st.builds(
        TruncatedNegativeBinomial,
        eta=st.floats(-0.95, 8.0),
        gamma=st.floats(1e-12, 0.999),
    ),
    st.builds(Poisson, mean=st.floats(1e-3, 300.0)),
    st.builds(ZeroTruncatedPoisson, mean=st.floats(1.001, 300.0)),
    st.builds(Binomial, trials=st.integers(1, 400), probability=st.floats(1e-6, 0.999)),
    st.builds(BetaBinomial, trials=st.integers(1, 80), shape=st.floats(0.01, 30.0)),
    st.builds(Harmonic, limit=st.integers(1, 80)),
    st.builds(Uniform, limit=st.integers(1, 80)),
    st.builds(Fixed, count=st.integers(1, 60)),
)


def exact_probabilities(law: Repetitions, count: int) -> list[mpmath.mpf]:
    """P(K = 0), ..., P(K = count) to about 90 digits, from the integers that drive the sampler."""
    bits, weights = law._exact_pmf()
    return [mpmath.ldexp(mpmath.mpf(weight), -bits) for weight in islice(weights, count + 1)]


def exact_pgf(law: Repetitions, complement: mpmath.mpf) -> mpmath.mpf:
    """phi(1 - complement) by the printed closed form, or as the sum over a finite law."""
    if isinstance(law, TruncatedNegativeBinomial | Geometric | Logarithmic):
        gamma, eta = mpmath.mpf(law.gamma), mpmath.mpf(law.eta)
        log_z, log_gamma = mpmath.log(gamma + (1 - gamma) * complement), mpmath.log(gamma)
        return log_z / log_gamma if eta == 0 else mpmath.expm1(-eta * log_z) / mpmath.expm1(-eta * log_gamma)
    if isinstance(law, Poisson):
        return mpmath.exp(-mpmath.mpf(law.mean) * complement)
    if isinstance(law, ZeroTruncatedPoisson):
        rate = mpmath.mpf(law._rate)
        return mpmath.expm1(rate * (1 - complement)) / mpmath.expm1(rate)
    assert law.limit is not None
    descending = exact_probabilities(law, law.limit)[::-1]
    return reduce(lambda value, coefficient: value * (1 - complement) + coefficient, descending, mpmath.mpf(0))


@every_law
def test_probabilities_agree(law):
    """pmf, survival, mean, expected quantile and size bias against the exact weights (1e-12: about 400 roundings)."""
    count = law.limit if law.limit is not None else 40
    with mpmath.workdps(110):
        exact = exact_probabilities(law, count)
        k = np.arange(count + 1)
        assert law.pmf(k) == pytest.approx([float(p) for p in exact], rel=1e-12)
        if law.limit is None:
            tail = 1 - mpmath.fsum(exact)
            assert law.survival(count) == pytest.approx(float(tail), rel=1e-11, abs=1e-80)
            return
        assert mpmath.fsum(exact) == pytest.approx(1, abs=1e-70)
        tails = [float(mpmath.fsum(exact[j + 1 :])) for j in range(count + 1)]
        assert law.survival(k) == pytest.approx(tails, rel=1e-11)
        mean = mpmath.fsum(j * p for j, p in enumerate(exact))
        assert law.mean == pytest.approx(float(mean), rel=1e-12)
        quantile = mpmath.fsum(p * j / (j + mpmath.mpf(1)) for j, p in enumerate(exact))
        assert law.expected_quantile() == pytest.approx(float(quantile), rel=1e-12)
        for at in (0, 1, 2, 5):
            biased = mpmath.fsum(j * p for j, p in enumerate(exact) if j > at) / mean
            assert law.size_biased_survival(at) == pytest.approx(float(biased), rel=1e-11, abs=1e-80)
        assert law.zero_probability == pytest.approx(float(exact[0]), rel=1e-12)


@every_law
def test_a_complement_outside_by_rounding_is_moved_to_the_end(law):
    for outside, end in ((-1e-6, 0.0), (1.0 + 1e-6, 1.0)):
        assert law.increment(complement_after=outside, mass=0.5) == law.increment(complement_after=end, mass=0.5)


@every_law
def test_support(law):
    assert law.survival(law.minimum - 1) == 1.0
    assert law.pmf(law.minimum) > 0.0
    assert law.pmf(np.array([-1, law.minimum - 1])).tolist() == [0.0, 0.0]
    assert (law.zero_probability > 0.0) == (law.minimum == 0)
    if law.limit is not None:
        assert law.pmf(law.limit) > 0.0
        assert law.pmf(law.limit + 1) == law.survival(law.limit) == 0.0
        assert law.quantile(1.0) == law.limit


@pytest.mark.full
@settings(max_examples=150, deadline=None)
@given(law=laws, complement=unit, share=st.floats(1e-30, 1.0), shrink=st.floats(-25.0, 0.0))
def test_increment_has_full_relative_accuracy(law, complement, share, shrink):
    """Against 120 digits, on the very doubles passed: 1e-13 relative down to 1e-250.

    With 1 - complement below 1e-3 the mass seen from below is lost before the call, so such complements are moved up.
    """
    complement = min(complement, 0.999)
    mass = min((1.0 - complement) * share * 10.0**shrink, 1.0 - complement)
    got = law.increment(complement_after=complement, mass=mass)
    with mpmath.workdps(120):
        after, step = mpmath.mpf(complement), mpmath.mpf(mass)
        want = exact_pgf(law, after) - exact_pgf(law, after + step)
        if want > mpmath.mpf("1e-250"):
            # the limit-th power of a number that is rounded once or twice
            allowed = 1e-13 + 3e-16 * (law.limit or 0)
            assert abs(got / want - 1) < allowed


@settings(max_examples=60, deadline=None)
@given(law=laws, v=st.floats(0.0, 0.999), order=st.sampled_from([1, 2, 3]))
def test_derivatives(law, v, order):
    """Central differences of the exact generating function, 300 digits and steps of 1e-60: error below 1e-60."""
    functions = {
        1: lambda: np.exp(law.log_derivative(v)),
        2: lambda: law.second_derivative(v),
        3: lambda: law.third_derivative(v),
    }
    got = float(functions[order]())
    with mpmath.workdps(300):
        at, step = mpmath.mpf(v), mpmath.mpf(10) ** -60

        def f(j: float) -> mpmath.mpf:
            return exact_pgf(law, at - j * step)

        differences = {
            1: lambda: (f(1) - f(-1)) / (2 * step),
            2: lambda: (f(1) - 2 * f(0) + f(-1)) / step**2,
            3: lambda: (f(2) - 2 * f(1) + 2 * f(-1) - f(-2)) / (2 * step**3),
        }
        want = differences[order]()
        if law.limit is not None and law.limit < order:
            assert got == 0.0
        elif want > mpmath.mpf("1e-200"):
            assert abs(got / want - 1) < 1e-12 + 3e-16 * (law.limit or 0)


@settings(max_examples=60, deadline=None)
@given(law=laws, s=st.floats(0.0, 1.0))
def test_pgf_is_the_series(law, s):
    with mpmath.workdps(60):
        want = exact_pgf(law, 1 - mpmath.mpf(s))
        if want > mpmath.mpf("1e-250"):
            assert law.pgf(s) == pytest.approx(float(want), rel=1e-12)
    assert law.pgf(1.0) == pytest.approx(1.0, abs=1e-13)
    assert law.success_probability(0.0) == 0.0


@every_law
def test_pgf_beyond_one(law):
    """The moment generating function at log s; infinite where the series diverges, and only there."""
    s = 1.02
    with mpmath.workdps(60):
        if hasattr(law, "gamma") and (1 - law.gamma) * s >= 1.0:
            assert law.pgf(s) == np.inf
        else:
            assert law.pgf(s) == pytest.approx(float(exact_pgf(law, 1 - mpmath.mpf(s))), rel=1e-12)


@every_law
def test_pieces_add_up(law):
    """Increments over a partition of [0, 1] sum to 1 - P(K = 0), also across the seams of a fitted table."""
    edges = np.concatenate([[0.0], np.geomspace(1e-12, 1.0, 2001)])
    pieces = law.increment(complement_after=edges[:-1], mass=np.diff(edges))
    assert np.all(pieces >= 0.0)
    assert pieces.sum() == pytest.approx(1.0 - law.zero_probability, rel=1e-12)


@settings(max_examples=80, deadline=None)
@given(law=laws, probability=st.floats(0.0, 1.0 - 1e-12))
def test_quantile_is_the_first_k_that_reaches(law, probability):
    k = law.quantile(probability)
    assert law.survival(float(k)) <= (1.0 - probability) * (1.0 + 2e-12)
    assert k == law.minimum or law.survival(float(k - 1)) > (1.0 - probability)


@settings(max_examples=60, deadline=None)
@given(law=laws, s=st.floats(0.3, 1.0), x=unit)
def test_tilting(law, s, x):
    """The tilted law has generating function phi(s x) / phi(s) (Papernot and Steinke 2022, Lemma 20)."""
    tilted = law.tilted(s)
    assert tilted.minimum == law.minimum
    bottom = law.pgf(s)
    if bottom > 1e-200 and law.pgf(s * x) > 1e-250:
        assert tilted.pgf(x) == pytest.approx(law.pgf(s * x) / bottom, rel=1e-11)


@every_law
def test_values(law):
    """Equal by value, hashable, picklable without its tables, rebuilt from JSON."""
    law.log_derivative(0.5)
    law.sample()
    again = pickle.loads(pickle.dumps(law))
    assert again == law
    assert hash(again) == hash(law)
    assert set(vars(pickle.loads(pickle.dumps(law)))) == set(law.__getstate__())
    assert from_description(json.loads(json.dumps(law.describe()))) == law
    assert eval(repr(law), {type(x).__name__: type(x) for x in (*ONE_OF_EACH, Geometric(gamma=0.5))}) == law


@every_law
def test_scalars_and_arrays(law):
    array = np.array([[0.1, 0.5], [0.9, 1.0]])
    for method in (law.pgf, law.log_derivative, law.second_derivative, law.success_probability):
        assert isinstance(method(0.5), float)
        assert method(array).shape == (2, 2)
        assert method(array)[0, 1] == pytest.approx(method(0.5), rel=1e-14)
    assert law.increment(complement_after=array * 0.5, mass=np.full((2, 2), 0.1)).shape == (2, 2)
    assert law.increment(complement_after=np.empty(0), mass=np.empty(0)).shape == (0,)


@repetition_law("test-pair")
@dataclass(frozen=True, kw_only=True)
class Pair(Repetitions):
    """Always two runs: a law written outside the library, by the hooks alone."""

    mean = 2.0
    minimum = 2
    limit = 2

    def _log_pmf(self, k: FloatArray) -> FloatArray:
        return np.where(k == 2, 0.0, -np.inf)

    def _survival(self, k: FloatArray) -> FloatArray:
        return np.where(k < 2, 1.0, 0.0)

    def _size_biased_survival(self, m: FloatArray) -> FloatArray:
        return np.where(m < 2, 1.0, 0.0)

    def _pgf(self, s: FloatArray) -> FloatArray:
        return s * s

    def _increment(self, complement: FloatArray, mass: FloatArray) -> FloatArray:
        return mass * (2.0 - 2.0 * complement - mass)

    def _log_derivative(self, v: FloatArray) -> FloatArray:
        return np.log(2.0 - 2.0 * v)

    def _second_derivative(self, v: FloatArray) -> FloatArray:
        return np.full_like(v, 2.0)

    def _third_derivative(self, v: FloatArray) -> FloatArray:
        return np.zeros_like(v)

    def expected_quantile(self) -> float:
        return 2.0 / 3.0

    def _tilted(self, s: float) -> Repetitions:
        return self

    def _exact_pmf(self) -> tuple[int, Iterator[int]]:
        return 320, iter([0, 0, 1 << 320])


registered = only_in_this_file((LAWS, "test-pair"))


def test_a_new_law_needs_no_edit():
    law, same = Pair(), Fixed(count=2)
    assert from_description({"law": "test-pair"}) == law
    assert law.sample() == 2
    assert law.quantile(0.5) == 2
    assert law.success_probability(0.25) == pytest.approx(same.success_probability(0.25), rel=1e-15)
    assert capped(law, 1).sample() == 1


@pytest.mark.parametrize(
    ("build", "named"),
    [
        (lambda: TruncatedNegativeBinomial(eta=-1.0, gamma=0.5), "eta"),
        (lambda: TruncatedNegativeBinomial(eta=0.0, gamma=1.0), "gamma"),
        (lambda: TruncatedNegativeBinomial(eta=0.0, gamma=0.0), "gamma"),
        (lambda: Geometric(gamma=float("nan")), "gamma"),
        (lambda: Geometric.with_mean(mean=1.0), "mean"),
        (lambda: TruncatedNegativeBinomial.with_mean(eta=-0.99, mean=1e6), "mean"),
        (lambda: Poisson(mean=0.0), "mean"),
        (lambda: ZeroTruncatedPoisson(mean=1.0), "mean"),
        (lambda: Binomial(trials=0, probability=0.5), "trials"),
        (lambda: Binomial(trials=3, probability=1.5), "probability"),
        (lambda: BetaBinomial(trials=3, shape=0.0), "shape"),
        (lambda: Harmonic(limit=0), "limit"),
        (lambda: Uniform(limit=2.5), "limit"),
        (lambda: Fixed(count=0), "count"),
        (lambda: Tabulated(probabilities=[0.5, 0.5 - 1e-8]), "probabilities"),
        (lambda: Tabulated(probabilities=[0.5, -0.1, 0.6]), "probabilities"),
        (lambda: Tabulated(probabilities=[1.0]), "probabilities"),
        (lambda: Tabulated(probabilities=[]), "probabilities"),
        (lambda: Fixed(count=4).at_most(3), "limit"),
        (lambda: Tabulated(probabilities=[0.5, 0.0, 0.5]).at_most(1), "limit"),
        (lambda: Poisson(mean=3).at_most(0), "limit"),
        (lambda: capped(Poisson(mean=3), 0), "limit"),
        (lambda: Poisson(mean=3).tilted(0.0), "s must"),
        (lambda: Poisson(mean=3).pgf(-0.1), "s must"),
        (lambda: Poisson(mean=3).log_derivative(1.5), "v must"),
        (lambda: Poisson(mean=3).log_derivative(-0.5), "v must"),
        (lambda: Poisson(mean=3).success_probability(float("nan")), "p must"),
        (lambda: Poisson(mean=3).pmf(0.5), "k must"),
        (lambda: Poisson(mean=3).quantile(1.0), "probability"),
        (lambda: from_description({"law": "nonesuch"}), "unknown distribution"),
        (lambda: from_description({"law": "poisson", "rate": 3}), "mean"),
    ],
)
def test_refusals_name_the_argument(build, named):
    with pytest.raises(ArgumentError, match=named):
        build()


@pytest.mark.parametrize(
    ("law", "shape"),
    [
        (Geometric(gamma=0.2), 1.0),
        (Logarithmic(gamma=0.2), 0.0),
        (TruncatedNegativeBinomial(eta=-0.5, gamma=0.2), -0.5),
        (Poisson(mean=3), math.inf),
        (Fixed(count=3), None),
        (Geometric(gamma=0.2).at_most(4), None),
        (ZeroTruncatedPoisson(mean=3), None),
    ],
)
def test_the_shape_of_the_laws_that_have_one(law, shape):
    assert law.negative_binomial_shape() == shape
