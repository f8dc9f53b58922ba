"""The price of adaptive proposals against exact enumeration of adaptive searches on finite mechanisms.

A finite instance has candidates with a prior, an output law for each candidate on each of two neighbouring data sets,
and an order of all (candidate, output) pairs. A policy gives, for every history, densities in [c, C] with prior mean 1;
the law of the best of k runs then follows exactly by going through all histories.
"""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from dpselect.accounting import best_of, mixture
from dpselect.accounting.best_of_k.adaptive_proposals import Ratio, TiltedTradeOff, adaptive_best_of, adaptive_pure
from dpselect.accounting.best_of_k.bounds.pure import pure_best_of
from dpselect.accounting.best_of_k.feasible_region import GaussianTradeOff, PureTradeOff
from dpselect.accounting.best_of_k.theorems import best_records, supremum
from dpselect.errors import ArgumentError, BoundUnavailableError
from dpselect.privacy import approximate_dp, compose, gaussian, pure_dp, zcdp
from dpselect.repetitions import (
    Fixed,
    Geometric,
    Harmonic,
    Logarithmic,
    Poisson,
    TruncatedNegativeBinomial,
    Uniform,
)
from dpselect.repetitions.negative_binomial_theorems import theorem_2
from tests.accounting.best_of_k.adaptive_proposals_cases import EPSILONS, LAWS, Instance

ORDERS = np.array([1.2, 2.0, 5.0, 20.0])


def boxed(weights, prior, ratio):
    """Rows of densities in the box, each a clipped multiple of a row of weights; prior mean exactly 1."""
    low, high = np.full((len(weights), 1), 1e-9), np.full((len(weights), 1), 1e9)
    for _ in range(100):
        middle = np.sqrt(low * high)
        above = np.clip(middle * weights, ratio.lower, ratio.upper) @ prior > 1
        low, high = np.where(above[:, None], low, middle), np.where(above[:, None], middle, high)
    density = np.clip(low * weights, ratio.lower, ratio.upper)
    free = (density > ratio.lower) & (density < ratio.upper)
    missing = (1 - density @ prior) / np.maximum((free * prior).sum(axis=1), 1e-300)
    density = np.clip(density + free * missing[:, None], ratio.lower, ratio.upper)
    assert np.allclose(density @ prior, 1, atol=1e-9)
    return density


def hockey_stick(one, other):
    return np.array([np.maximum(one - math.exp(e) * other, 0).sum() for e in EPSILONS])


def renyi(one, other):
    seen = one > 0
    return np.array([math.log(np.sum(one[seen] ** a * other[seen] ** (1 - a))) / (a - 1) for a in ORDERS])


def random_policy(generator, instance, ratio, runs):
    """Densities for every history of fewer than `runs` runs, mostly at corners of the box."""
    sizes = [instance.one.size**k for k in range(runs)]
    return [boxed(np.exp(generator.normal(0, 4, (n, instance.prior.size))), instance.prior, ratio) for n in sizes]


def changed(generator, policy, instance, ratio):
    """The policy with an eighth of its rows drawn again."""
    fresh = random_policy(generator, instance, ratio, len(policy))
    return [
        np.where(generator.random((len(rows), 1)) < 0.125, other, rows)
        for rows, other in zip(policy, fresh, strict=True)
    ]


def random_cases(seed, count, **settings):
    generator = np.random.default_rng(seed)
    for _ in range(count):
        epsilon = float(generator.choice([0.1, 0.5, 1.0, 3.0]))
        instance = Instance(generator, epsilon=epsilon, **settings)
        lower = float(generator.choice([0.2, 0.6, 0.9]))
        upper = float(generator.choice([1.1, 1.5, 3.0]))
        yield generator, instance, Ratio(lower, upper)


class TestNeverBelowTheTruth:
    @pytest.mark.full
    @pytest.mark.theorem("docs/theory/adaptive-proposals.md, Lemma 2", exact=True)
    @pytest.mark.parametrize("law", LAWS, ids=lambda law: law.describe()["law"])
    def test_every_bound_on_random_searches(self, law):
        """Pure, Renyi and profile bounds, both directions, each by itself; policies mostly at corners of the box."""
        for generator, instance, ratio in random_cases(7, 4):
            box = {"lower_ratio": ratio.lower, "upper_ratio": ratio.upper}
            exact, pure = instance.guarantee, pure_dp(epsilon=instance.epsilon)
            bounds = {
                "profile": adaptive_best_of(exact, law, bound="profile", **box),
                "renyi": adaptive_best_of(pure, law, bound="renyi", **box),
                "pure": adaptive_best_of(pure, law, bound="pure", **box),
                "composition": adaptive_best_of(pure, law, bound="composition", **box),
            }
            allowed = {name: bounds[name].delta(EPSILONS) for name in ("profile", "composition")}
            curve = bounds["renyi"].renyi_curve(ORDERS)
            for _ in range(15):
                one, two = instance.searches(law, random_policy(generator, instance, ratio, law.limit))
                for a, b in ((one, two), (two, one)):
                    truth = hockey_stick(a, b)
                    for name, deltas in allowed.items():
                        assert np.all(truth <= deltas + 1e-12), name
                    assert np.all(renyi(a, b) <= curve + 1e-12)
                    seen = a > 0
                    assert np.max(np.log(a[seen] / b[seen])) <= bounds["pure"].pure_epsilon + 1e-12

    @pytest.mark.full
    def test_three_candidates_and_three_outputs(self):
        law = Uniform(limit=3)
        for generator, instance, ratio in random_cases(8, 6, candidates=3, outputs=3):
            bound = adaptive_best_of(instance.guarantee, law, lower_ratio=ratio.lower, upper_ratio=ratio.upper)
            allowed = bound.delta(EPSILONS)
            for _ in range(25):
                one, two = instance.searches(law, random_policy(generator, instance, ratio, law.limit))
                for a, b in ((one, two), (two, one)):
                    assert np.all(hockey_stick(a, b) <= allowed + 1e-12)

    @pytest.mark.full
    def test_an_adversary_breaks_the_price_of_independent_runs_and_not_this_one(self):
        """Three candidates, each a randomised response, in turn: the best of the best orders, then hill climbing.

        What breaks the price of independent runs here is what makes the other assertion worth something.
        """
        law, ratio, at = Fixed(count=3), Ratio(0.01, 2.98), 0.5
        generator = np.random.default_rng(3)
        instance = Instance(generator, epsilon=1.0, candidates=3)
        instance.prior = np.full(3, 1 / 3)
        base = pure_dp(epsilon=1.0)
        box = {"lower_ratio": ratio.lower, "upper_ratio": ratio.upper}
        priced = {name: adaptive_best_of(base, law, bound=name, **box) for name in ("profile", "renyi", "pure")}

        def value(policy):
            one, two = instance.searches(law, policy)
            return np.maximum(one - math.exp(at) * two, 0).sum()

        turns = [np.tile(row, (6**k, 1)) for k, row in enumerate(boxed(np.eye(3) + 1e-6, instance.prior, ratio))]
        orders = [generator.permutation(6).reshape(3, 2) for _ in range(100)]
        found = []
        for instance.rank in orders:
            found.append(value(turns))
        instance.rank, policy, best = orders[int(np.argmax(found))], turns, max(found)
        for _ in range(300):
            other = changed(generator, policy, instance, ratio)
            if (higher := value(other)) > best:
                policy, best = other, higher
        assert best > best_of(base, law).delta(at) + 0.02
        for name, guarantee in priced.items():
            assert best <= guarantee.delta(at) + 1e-12, name

    def test_failure_mass(self):
        """Runs that fail openly with chance f, regardless of the candidate: (epsilon, f)-private candidates."""
        failure, law, ratio = 0.05, Uniform(limit=3), Ratio(0.6, 1.5)
        generator = np.random.default_rng(5)
        instance = Instance(generator, epsilon=1.0)
        # two outputs more, each possible on one data set only
        wide = [np.hstack([(1 - failure) * data, np.zeros((2, 2))]) for data in (instance.one, instance.two)]
        wide[0][:, 2], wide[1][:, 3] = failure, failure
        instance.one, instance.two = wide
        for rank in (np.arange(8), np.array([2, 3, 4, 5, 0, 1, 6, 7]), np.array([5, 4, 7, 6, 1, 0, 3, 2])):
            instance.rank = rank.reshape(2, 4)
            policy = random_policy(generator, instance, ratio, law.limit)
            for bound in ("profile", "renyi", "pure", "composition", None):
                priced = adaptive_best_of(
                    approximate_dp(epsilon=1.0, delta=failure),
                    law,
                    lower_ratio=ratio.lower,
                    upper_ratio=ratio.upper,
                    bound=bound,
                )
                one, two = instance.searches(law, policy)
                for a, b in ((one, two), (two, one)):
                    assert np.all(hockey_stick(a, b) <= priced.delta(EPSILONS) + 1e-12), bound


def tilted_search(law, ratio, epsilon, v):
    """log P(best = y) / P'(best = y) where proposals push up what is above y on one data set and down on the other.

    Three candidates: `top` above y with the likelier answer of a randomised response under P', y itself (of vanishing
    mass), and the rest below.
    """
    prior_top = v * (1 + math.exp(epsilon))
    mass = 1e-9
    rest = 1 - prior_top - mass
    shares = []
    for tilt_top, tilt_y, above in (
        (ratio.lower, ratio.upper, v),
        (ratio.upper, ratio.lower, v * math.exp(epsilon)),
    ):
        tilt_rest = (1 - tilt_top * prior_top - tilt_y * mass) / rest
        assert ratio.lower <= tilt_rest <= ratio.upper
        y = tilt_y * mass * (1 / (1 + math.exp(-epsilon)) if tilt_y > 1 else 1 / (1 + math.exp(epsilon)))
        shares.append(math.exp(float(law.log_derivative(tilt_top * above))) * y)
    return math.log(shares[0] / shares[1])


class TestAttained:
    """Lowered by 1 % these bounds are false."""

    @pytest.mark.parametrize("eta", [0.0, 1.0, 2.0])
    def test_pure(self, eta):
        """By proposals that look at the data themselves, which the proof allows; K truncated negative binomial."""
        ratio, epsilon = Ratio(0.8, 1.25), 1.0
        law = TruncatedNegativeBinomial(eta=eta, gamma=1e-6)
        bound = adaptive_pure(law=law, epsilon=epsilon, ratio=ratio)
        attained = max(tilted_search(law, ratio, epsilon, v) for v in np.geomspace(1e-5, 0.1, 60))
        assert 0.99 * bound < attained <= bound

    def test_pure_for_a_hard_limit(self):
        """The harmonic law up to 1,000, and a base of small epsilon."""
        ratio, epsilon, law = Ratio(0.8, 1.25), 0.3, Harmonic(limit=1000)
        bound = adaptive_pure(law=law, epsilon=epsilon, ratio=ratio)
        attained = max(tilted_search(law, ratio, epsilon, v) for v in np.geomspace(1e-4, 0.1, 200))
        assert 0.99 * bound < attained <= bound

    @pytest.mark.theorem("docs/theory/adaptive-proposals.md, Lemma 2", exact=True, sharp=True)
    def test_by_the_history_alone(self):
        """Proposals that look at nothing but outputs: 400 runs from the prior, then whichever data set they point to.

        `probe` gives a randomised response below everything else; a majority of them is wrong with chance 1e-20. K is
        geometric, so what follows the first 400 runs is a geometric number again.
        """
        ratio, epsilon, first = Ratio(0.8, 1.25), 1.0, 400
        law = Geometric(gamma=1e-9)
        v, mass = 1e-6, 1e-12
        rate, likely = 1 - law.gamma, 1 / (1 + math.exp(-epsilon))
        wrong = math.exp(-2 * first * (likely - 0.5) ** 2)  # Hoeffding
        # below on the data set where y is pushed up: y in a later run, every other run below y
        start = (1 - v) ** first * rate**first
        low = (1 - wrong / start) * start * ratio.upper * likely * law.gamma / (law.gamma + rate * ratio.lower * v) ** 2
        # above on the other: a later run, one of the first runs and some later ones, K at most `first`, wrong majority
        far, unlikely = law.gamma + rate * ratio.upper * v * math.exp(epsilon), 1 - likely
        high = ratio.lower * unlikely * law.gamma / far**2 + first * unlikely * law.gamma / far
        high += first**2 * law.gamma + wrong * law.mean * ratio.upper
        attained = math.log(low / high)  # y's vanishing mass cancels
        assert mass * law.mean < 1e-2
        bound = adaptive_pure(law=law, epsilon=epsilon, ratio=ratio)
        assert 0.99 * bound < attained <= bound


class TestAgainstThePublishedStatements:
    @pytest.mark.parametrize("eta", [-0.5, 0.0, 1.0])
    def test_never_above_them(self, eta):
        """Wang et al.: (2 + eta)(epsilon + log(C/c)), and Theorem 2 plus (a/(a-1) + 1 + eta) log(C/c)."""
        law = TruncatedNegativeBinomial.with_mean(eta=eta, mean=20.0)
        orders = np.array([1.5, 2.0, 4.0, 16.0, 64.0])
        base = zcdp(rho=0.05)
        for ratio in (Ratio(0.9, 1.1), Ratio(0.5, 2.0), Ratio(0.25, 1.5)):
            spread = math.log(ratio.upper / ratio.lower)
            assert adaptive_pure(law=law, epsilon=0.7, ratio=ratio) < (2 + eta) * (0.7 + spread)
            curve = adaptive_best_of(
                base, law, lower_ratio=ratio.lower, upper_ratio=ratio.upper, bound="renyi"
            ).renyi_curve
            for order in orders:
                published = (
                    min(
                        float(theorem_2(law=law, order=order, epsilon=0.05 * order, hat_order=h, hat_epsilon=0.05 * h))
                        for h in (2.0, 8.0, 32.0)
                    )
                    + (order / (order - 1) + 1 + eta) * spread
                )
                assert float(curve(np.array([order]))[0]) <= published

    def test_the_pure_bound_is_that_of_a_worse_base(self):
        """At most the best of K runs of an (epsilon + log(C/c))-private base, without adaptivity."""
        for law in (*LAWS, Poisson(mean=7.0), Logarithmic(gamma=0.02)):
            for ratio in (Ratio(0.7, 1.4), Ratio(1.0, 1.5), Ratio(0.5, 1.0)):
                wide = pure_best_of(law=law, epsilon=0.8 + math.log(ratio.upper / ratio.lower))
                assert adaptive_pure(law=law, epsilon=0.8, ratio=ratio) <= wide * (1 + 1e-9)


class TestInterface:
    @pytest.mark.full
    def test_without_room_to_adapt_it_is_the_price_of_independent_runs(self):
        law = Harmonic(limit=20)
        for base in (gaussian(noise_multiplier=3.0), pure_dp(epsilon=0.5)):
            free = adaptive_best_of(base, law, lower_ratio=1, upper_ratio=1)
            assert free.epsilon(1e-6) == best_of(base, law).epsilon(1e-6)

    def test_a_narrow_box_costs_little_more(self):
        """Continuity: the profile and Renyi bounds at a box of width 2e-6 are those of independent runs."""
        law, base = Harmonic(limit=20), gaussian(noise_multiplier=3.0)
        for bound in ("profile", "renyi"):
            narrow = adaptive_best_of(base, law, lower_ratio=1 - 1e-6, upper_ratio=1 + 1e-6, bound=bound)
            assert narrow.epsilon(1e-6) == pytest.approx(best_of(base, law, bound=bound).epsilon(1e-6), rel=2e-3)

    def test_grows_with_the_box(self):
        law, base = Harmonic(limit=20), gaussian(noise_multiplier=3.0)
        boxes = [(1.0, 1.0), (0.9, 1.1), (0.8, 1.3), (0.5, 2.0)]
        prices = [adaptive_best_of(base, law, lower_ratio=c, upper_ratio=u).epsilon(1e-6) for c, u in boxes]
        assert prices == sorted(prices)

    def test_few_runs_of_a_small_epsilon_are_cheapest_composed(self):
        law, base = Fixed(count=3), gaussian(noise_multiplier=20.0)
        box = {"lower_ratio": 0.2, "upper_ratio": 4.0}
        composed = compose(base, base, base).epsilon(1e-6)
        assert adaptive_best_of(base, law, **box).epsilon(1e-6) == pytest.approx(composed, rel=1e-3)
        assert adaptive_best_of(base, law, bound="profile", **box).epsilon(1e-6) > 3 * composed

    def test_averages_are_used_only_under_the_prior(self):
        """A mixture's average is no bound on a proposal: no composition, and no failure mass outside the profile."""
        law = Fixed(count=2)
        box = {"lower_ratio": 0.5, "upper_ratio": 2.0}
        average = mixture([gaussian(noise_multiplier=1.0), gaussian(noise_multiplier=20.0)])
        for base in (average, compose(average, gaussian(noise_multiplier=10.0))):
            assert adaptive_best_of(base, law, **box).epsilon(1e-6) > 0
            with pytest.raises(BoundUnavailableError):
                adaptive_best_of(base, law, bound="composition", **box)
        leaky = mixture([approximate_dp(epsilon=1.0, delta=0.1), pure_dp(epsilon=1.0)])
        for bound in ("renyi", "pure"):
            with pytest.raises(BoundUnavailableError):
                adaptive_best_of(leaky, law, bound=bound, **box)
        assert adaptive_best_of(leaky, law, **box).failure == 0.0

    def test_wrong_arguments(self):
        base, law = pure_dp(epsilon=1.0), Fixed(count=2)
        for lower, upper in ((0.0, 2.0), (1.1, 2.0), (0.5, 0.9), (-1.0, 1.0), (0.5, math.inf), (math.nan, 2.0)):
            with pytest.raises(ArgumentError, match="_ratio must be"):
                adaptive_best_of(base, law, lower_ratio=lower, upper_ratio=upper)
        with pytest.raises(BoundUnavailableError, match="'profile', 'renyi', 'pure', 'composition'"):
            adaptive_best_of(base, law, lower_ratio=0.5, upper_ratio=2, bound="optimal")
        with pytest.raises(TypeError, match="distribution of the number of runs"):
            adaptive_best_of(base, 5, lower_ratio=0.5, upper_ratio=2)

    def test_pickles(self):
        priced = adaptive_best_of(gaussian(noise_multiplier=3.0), Harmonic(limit=9), lower_ratio=0.8, upper_ratio=1.25)
        before = priced.epsilon(1e-6)
        assert pickle.loads(pickle.dumps(priced)).epsilon(1e-6) == before

    @pytest.mark.parametrize(
        "law",
        [Geometric(gamma=0.05), Logarithmic(gamma=0.02), Poisson(mean=9.0), Harmonic(limit=30)],
        ids=lambda law: law.describe()["law"],
    )
    def test_supremum_over_the_tilted_region(self, law):
        """The certified supremum of the Renyi bound against a scan of 200,000 points: above, by at most 1 %."""
        ratio, excess = Ratio(0.7, 1.6), np.array([0.3, 2.0, 20.0])
        s = np.concatenate(([0.0], np.geomspace(1e-12, 1.0, 200_000)))
        for trade_off in (PureTradeOff(0.8), GaussianTradeOff(0.4)):
            tilted = TiltedTradeOff(trade_off, ratio)
            bound = supremum(best_records(law, (tilted, tilted)), excess)
            here, there = law.log_derivative(s), law.log_derivative(tilted(s))
            scanned = np.max(here[:, None] + excess * (here - there)[:, None], axis=0)
            assert np.all(bound >= scanned - 1e-9)
            assert np.all(bound <= scanned + 0.01 * np.abs(scanned) + 1e-3)

    def test_box_maps(self):
        """a and b are the extremes over all densities in the box, and `before` inverts a."""
        ratio = Ratio(0.6, 1.7)
        v = np.linspace(0, 1, 101)
        # a density of r on the event and r' off it, v r + (1 - v) r' = 1
        for share, least, most in zip(v, ratio.least(v), ratio.most(v), strict=True):
            r = np.linspace(0.6, 1.7, 2001)
            off = (1 - share * r) / (1 - share) if share < 1 else np.full(r.shape, 1.0)
            feasible = (off >= 0.6 - 1e-9) & (off <= 1.7 + 1e-9) if share < 1 else np.abs(r - 1) < 1e-3
            values = share * r[feasible]
            assert least == pytest.approx(values.min(), abs=1e-3)
            assert most == pytest.approx(values.max(), abs=1e-3)
        assert np.all(ratio.before(ratio.least(v)) >= v)
        assert np.allclose(ratio.before(ratio.least(v)), v, atol=1e-9)
        for trade_off in (PureTradeOff(1.0), GaussianTradeOff(0.5)):
            tilted = TiltedTradeOff(trade_off, ratio)(v)
            assert np.all(np.diff(tilted) >= -1e-12)
            assert np.all(np.diff(tilted, 2) <= 1e-9)
