"""Exact audits against brute force over all events, and at the edges of what a float claim says."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpselect.audit import FiniteSubject, audit, exact_audit, sampled
from dpselect.audit.result import DATA_OVER_NEIGHBOUR, NEIGHBOUR_OVER_DATA
from dpselect.errors import ArgumentError
from dpselect.privacy import approximate_dp, from_profile, gaussian, pure_dp, zcdp
from dpselect.randomness import keyed_source


def response(share):
    share = Fraction(share)
    return {"data": {"yes": share, "no": 1 - share}, "neighbour": {"yes": 1 - share, "no": share}}


def floats(laws):
    return {name: {label: float(mass) for label, mass in law.items()} for name, law in laws.items()}


def found(claim, laws, **options):
    return exact_audit(FiniteSubject(name="finite", claim=claim, **laws), **options)


weights = st.lists(st.integers(0, 6), min_size=4, max_size=4).filter(any)


def law(counts):
    total = sum(counts)
    return {label: Fraction(count, total) for label, count in zip("abcd", counts, strict=True)}


def brute_force(one, two, epsilon):
    """The largest P(E) - exp(epsilon) Q(E) over all events, both ways."""
    events = itertools.chain.from_iterable(itertools.combinations("abcd", size) for size in range(5))
    factor = math.exp(epsilon)
    return max(
        float(sum(p[o] for o in event)) - factor * float(sum(q[o] for o in event))
        for event in events
        for p, q in ((one, two), (two, one))
    )


@pytest.mark.full
@settings(max_examples=100, deadline=None)
@given(weights, weights, st.floats(0, 3), st.sampled_from([0.0, 0.01, 0.2]), st.booleans())
def test_against_all_events(ours, theirs, epsilon, delta, rational):
    laws = {"data": law(ours), "neighbour": law(theirs)}
    truth = brute_force(laws["data"], laws["neighbour"], epsilon)
    claim = approximate_dp(epsilon=epsilon, delta=delta) if delta else pure_dp(epsilon=epsilon)
    result = found(claim, laws if rational else floats(laws))
    if abs(truth - delta) > 1e-9:
        # a claim (epsilon, delta) is all of its curve, which follows from that point; so the point decides
        assert result.violated == (truth > delta)
    assert result.epsilon_lower == math.inf or (
        brute_force(laws["data"], laws["neighbour"], result.epsilon_lower * (1 + 1e-9) + 1e-9) <= delta + 1e-9
    )
    if 1e-6 < result.epsilon_lower < math.inf:
        assert brute_force(laws["data"], laws["neighbour"], result.epsilon_lower * (1 - 1e-6)) > delta


class TestEdges:
    @pytest.mark.parametrize("share", [Fraction(3, 4), Fraction(999, 1000), Fraction(1, 2), Fraction(1, 3)])
    def test_a_claim_that_holds_with_equality(self, share):
        """log of a ratio is no float: neither its rounding nor that of the masses makes a violation."""
        epsilon = abs(math.log(share / (1 - share)))
        for laws in (response(share), floats(response(share))):
            assert not found(pure_dp(epsilon=epsilon), laws).violated
            if epsilon:
                assert found(pure_dp(epsilon=epsilon * (1 - 1e-9)), laws).violated
            assert found(pure_dp(epsilon=epsilon), laws).epsilon_lower == pytest.approx(epsilon, rel=1e-9, abs=1e-9)

    def test_tiny_masses(self):
        """A mass of 2**-80 that only one side has: seen where the claim has no delta, or a smaller one."""
        tiny = Fraction(1, 2**80)
        laws = {"data": {1: 1 - tiny, 2: tiny}, "neighbour": {1: Fraction(1)}}
        result = found(pure_dp(epsilon=5), laws)
        assert result.violated
        assert result.epsilon_lower == math.inf
        assert result.direction == DATA_OVER_NEIGHBOUR
        assert result.event == "output is one of 2"
        assert result.describe()["epsilon_lower"] is None
        assert found(approximate_dp(epsilon=5, delta=float(tiny) * 0.99), laws).violated
        assert not found(approximate_dp(epsilon=5, delta=float(tiny)), laws).violated

    def test_what_rounding_could_explain_is_no_violation(self):
        laws = {"data": {1: 1 - 1e-16, 2: 1e-16}, "neighbour": {1: 1.0}}
        assert not found(pure_dp(epsilon=0), laws).violated
        assert found(pure_dp(epsilon=0), laws, tolerance=0).violated

    def test_a_violation_between_the_breakpoints(self):
        """The divergence of randomised response is a chord in exp(epsilon); a claim may sag between its ends."""
        laws = response(Fraction(7, 8))
        exact = [
            float(max(0, Fraction(7, 8) - Fraction(math.exp(e)) * Fraction(1, 8))) for e in (0.0, 1.0, math.log(7))
        ]
        assert not found(from_profile([0.0, math.log(7)], [exact[0], 0.0]), laws).violated
        result = found(from_profile([0.0, 1.0, math.log(7)], [exact[0], exact[1] * 0.99, 0.0]), laws)
        assert result.violated
        assert 0 < result.shown["violation"]["epsilon"] < math.log(7)

    def test_what_a_law_lacks_of_one_is_no_violation(self):
        """Any output may have it: here all of one law's missing part is that of one output."""
        short = {"data": {1: 0.5, 2: 0.5}, "neighbour": {1: 0.5, 2: 0.5 - 9e-10}}
        assert not found(pure_dp(epsilon=0), short).violated
        assert found(
            pure_dp(epsilon=0), {"data": {1: 0.5, 2: 0.5}, "neighbour": {1: 0.5 + 9e-10, 2: 0.5 - 9e-10}}
        ).violated

    def test_fractions_of_many_digits_are_rounded_down(self):
        """Logarithms of 28,000 have errors of 4e-12; theirs differ by 1e-9 and its multiples."""
        size = 10**12_000
        for multiple in range(1, 9):
            masses = Fraction(size + multiple * 10**11_991, 3 * size), Fraction(size, 3 * size + 1)
            one, two = ({1: mass, 2: 1 - mass} for mass in masses)
            measured = found(pure_dp(epsilon=1), {"data": one, "neighbour": two}).epsilon_lower
            assert 0.9e-9 * multiple < measured <= math.log1p(multiple * 1e-9)

    def test_both_directions(self):
        laws = {
            "data": {1: Fraction(1, 2), 2: Fraction(1, 2)},
            "neighbour": {1: Fraction(1, 2), 2: Fraction(1, 4), 3: Fraction(1, 4)},
        }
        assert found(pure_dp(epsilon=1), laws).direction == NEIGHBOUR_OVER_DATA
        swapped = {"data": laws["neighbour"], "neighbour": laws["data"]}
        assert found(pure_dp(epsilon=1), swapped).direction == DATA_OVER_NEIGHBOUR

    def test_no_claim_at_all_is_never_violated(self):
        result = found(from_profile([0.0], [1.0]), response(1))
        assert not result.violated
        assert result.claimed_epsilon == math.inf


def test_curves():
    """The binomial law and its shift by one: close to a Gaussian of the same deviation, and above it in the tails."""
    trials = 200
    masses = [Fraction(math.comb(trials, k), 2**trials) for k in range(trials + 1)]
    laws = {"data": dict(enumerate(masses)), "neighbour": {k + 1: mass for k, mass in enumerate(masses)}}
    sigma = math.sqrt(trials) / 2
    result = found(gaussian(noise_multiplier=sigma), laws, delta=1e-5)
    assert result.violated  # the outermost output has no counterpart: 2**-200 against a Gaussian tail
    assert result.epsilon_lower == pytest.approx(gaussian(noise_multiplier=sigma).epsilon(delta=1e-5), rel=0.05)
    assert not found(gaussian(noise_multiplier=sigma * 0.9), floats(laws), delta=1e-5).violated
    assert found(zcdp(rho=1 / (2 * sigma**2) / 2), floats(laws), delta=1e-5).violated


@pytest.mark.parametrize(
    "laws",
    [
        {"data": {1: 0.5}, "neighbour": {1: 1.0}},
        {"data": {1: 1.5, 2: -0.5}, "neighbour": {1: 1.0}},
        {"data": {1: math.nan}, "neighbour": {1: 1.0}},
        {"data": {}, "neighbour": {}},
        {"data": {1: Fraction(1)}, "neighbour": {1: Fraction(1), 2: Fraction(1, 10**30)}},
    ],
)
def test_no_laws(laws):
    with pytest.raises(ArgumentError, match=r"probabilities"):
        found(pure_dp(epsilon=1), laws)


class TestSampled:
    @pytest.mark.statistical
    @pytest.mark.parametrize("labels", [(0, 1, 2), ("a", "b", "c"), (None, ("x", 1), "y")])
    def test_draws_follow_the_laws(self, labels):
        """A chi-square statistic above its 1e-6 quantile is a fault; seeded."""
        masses = (Fraction(1, 2), Fraction(3, 10), Fraction(1, 5))
        laws = {
            "data": dict(zip(labels, masses, strict=True)),
            "neighbour": dict(zip(labels, masses[::-1], strict=True)),
        }
        drawn = sampled(FiniteSubject(name="finite", claim=pure_dp(epsilon=1), **laws))
        for other, expected in ((False, masses), (True, masses[::-1])):
            _, counts = np.unique(drawn.draw(other, 60_000, keyed_source("sampled")), return_counts=True)
            expected = np.sort([float(mass) * 60_000 for mass in expected])
            assert np.sum((np.sort(counts) - expected) ** 2 / expected) < 27.6

    @pytest.mark.parametrize("large", [2**53, 10**400])
    def test_whole_numbers_that_no_double_holds_are_outputs_of_their_own(self, large):
        laws = {"data": {large: 1, large + 1: 0}, "neighbour": {large: 0, large + 1: 1}}
        subject = FiniteSubject(name="told apart", claim=pure_dp(epsilon=1), **laws)
        assert exact_audit(subject).violated
        assert audit(sampled(subject), draws=2_000, random=keyed_source(6)).violated

    @pytest.mark.full
    def test_the_black_box_stays_below_the_exact_epsilon(self):
        subject = FiniteSubject(name="finite", claim=pure_dp(epsilon=2), **response(Fraction(7, 8)))
        measured = audit(sampled(subject), draws=100_000, random=keyed_source(5)).epsilon_lower
        assert 0.95 * math.log(7) < measured <= exact_audit(subject).epsilon_lower
