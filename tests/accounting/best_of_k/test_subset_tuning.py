"""Tuning on a random subset: prices against exact enumeration of every subset on finite mechanisms."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest

from dpselect.accounting import best_of, calibrate, mixture
from dpselect.accounting.best_of_k.subset_tuning import SubsetRenyi, tune_on_subset
from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.privacy import approximate_dp, compose, dp_sgd, from_profile, gaussian, pure_dp, renyi_dp, zcdp
from dpselect.privacy.mechanisms.pure import RandomizedResponseRenyi
from dpselect.privacy.profile import both_directions, epsilon_at
from dpselect.privacy.renyi import LinearRenyi
from dpselect.repetitions import Harmonic

EPSILONS = np.array([-1.0, -0.2, 0.0, 0.1, 0.4, 0.9, 1.5, 2.5])
ORDERS = np.array([1.3, 2.0, 3.5, 12.0, 200.0])
OTHERS = 2


def hockey_stick(one, other, epsilons=EPSILONS):
    return np.array([np.maximum(one - math.exp(e) * other, 0).sum() for e in epsilons])


def renyi(one, other, orders=ORDERS):
    return np.array([math.log(np.sum(one * (one / other) ** (a - 1))) / (a - 1) for a in orders])


class Mechanisms:
    """A search and a final run on the subsets of two other rows, with and without one more row.

    `search[x, s]` is the search's law on the other rows in the bit set s, with the row if x; `final[x, t, s]` likewise
    given the search's output t. With the row every log ratio is at most the epsilons.
    """

    def __init__(self, generator, search_epsilon, final_epsilon, outputs=3):
        sets = 2**OTHERS
        self.search = self._pair(generator, (sets, outputs), search_epsilon)
        self.final = self._pair(generator, (outputs, sets, outputs), final_epsilon)

    @staticmethod
    def _pair(generator, shape, epsilon):
        """Laws with every log ratio epsilon or -epsilon where that is possible, smaller ones else."""
        laws = []
        for _ in range(math.prod(shape[:-1])):
            up = generator.permutation(shape[-1]) < generator.integers(1, shape[-1])
            likely, rest = generator.dirichlet(np.ones(shape[-1])), generator.dirichlet(np.ones(shape[-1]))
            likely, rest = likely * up / (likely * up).sum(), rest * ~up / (rest * ~up).sum()
            p = 1 / (1 + math.exp(-epsilon * generator.choice([1.0, 1.0, 0.5])))
            laws.append((p * likely + (1 - p) * rest, (1 - p) * likely + p * rest))
        return np.array(laws).transpose(1, 0, 2).reshape(2, *shape)

    def joint(self, q, final_rows, *, with_row):
        """The law of (search's output, final run's output), by going through all subsets of all rows."""
        everyone = 2**OTHERS - 1
        total = 0.0
        for bits in itertools.product((0, 1), repeat=OTHERS + 1):
            *others, row = bits
            if row and not with_row:
                continue
            chance = math.prod(q if bit else 1 - q for bit in (others if not with_row else bits))
            s = sum(bit << i for i, bit in enumerate(others))
            if final_rows == "rest":
                last, row_last = everyone ^ s, int(with_row and not row)
            else:
                last, row_last = everyone, int(with_row)
            total = total + chance * self.search[row, s][:, None] * self.final[row_last, :, last]
        assert np.sum(total) == pytest.approx(1.0)
        return np.ravel(total)


def exact_profile(pairs, top):
    """The profile of laws (with, without), as a guarantee: chords on a grid over the largest of all divergences."""
    grid = np.linspace(0.0, top, 60)
    both = [hockey_stick(a, b, grid) for one, two in pairs for a, b in ((one, two), (two, one))]
    deltas = np.max(both, axis=0)
    deltas[-1] = 0.0
    return from_profile(list(grid), list(deltas))


@pytest.mark.parametrize("final_rows", ["rest", "all"])
class TestAgainstEnumeration:
    @pytest.mark.full
    @pytest.mark.theorem("docs/theory/subset-tuning.md, Theorem 1", exact=True)
    def test_never_below_the_truth(self, final_rows):
        """Profile, Renyi curve and pure epsilon, both directions, on random mechanisms."""
        generator = np.random.default_rng(11)
        for _ in range(25):
            one, two = generator.choice([0.2, 1.0, 2.0], size=2)
            q = float(generator.choice([0.05, 0.3, 0.5, 0.9]))
            mechanisms = Mechanisms(generator, one, two)
            sharp = tune_on_subset(
                search=exact_profile(zip(*mechanisms.search, strict=True), one),
                final=exact_profile(zip(*mechanisms.final.reshape(2, -1, 3), strict=True), two),
                sampling_rate=q,
                final_rows=final_rows,
                atoms=100,
            )
            pure = tune_on_subset(
                search=pure_dp(epsilon=one), final=pure_dp(epsilon=two), sampling_rate=q, final_rows=final_rows
            )
            larger = mechanisms.joint(q, final_rows, with_row=True)
            smaller = mechanisms.joint(q, final_rows, with_row=False)
            for guarantee in (sharp, pure):
                assert np.all(hockey_stick(larger, smaller) <= guarantee.profile.remove(EPSILONS) + 1e-12)
                assert np.all(hockey_stick(smaller, larger) <= guarantee.profile.add(EPSILONS) + 1e-12)
            for a, b in ((larger, smaller), (smaller, larger)):
                assert np.all(renyi(a, b) <= pure.renyi_curve(ORDERS) + 1e-12)
                assert np.max(np.log(a / b)) <= pure.pure_epsilon + 1e-12

    @pytest.mark.theorem("docs/theory/subset-tuning.md, Theorem 1", exact=True, sharp=True)
    @pytest.mark.parametrize("q", [0.1, 0.5, 0.8])
    def test_attained(self, final_rows, q):
        """Two randomised responses to the row attain profile and pure epsilon: lowered by 1 % both are false."""
        one, two = 1.2, 0.7
        mechanisms = object.__new__(Mechanisms)
        laws = [np.array([1 / (1 + math.exp(-e)), 1 / (1 + math.exp(e))]) for e in (one, two)]
        mechanisms.search = np.stack([np.tile(laws[0], (4, 1)), np.tile(laws[0][::-1], (4, 1))])[::-1]
        mechanisms.final = np.stack([np.tile(laws[1], (2, 4, 1)), np.tile(laws[1][::-1], (2, 4, 1))])[::-1]
        larger = mechanisms.joint(q, final_rows, with_row=True)
        smaller = mechanisms.joint(q, final_rows, with_row=False)
        priced = tune_on_subset(
            search=pure_dp(epsilon=one), final=pure_dp(epsilon=two), sampling_rate=q, final_rows=final_rows
        )
        for truth, bound in (
            (hockey_stick(larger, smaller), priced.profile.remove(EPSILONS)),
            (hockey_stick(smaller, larger), priced.profile.add(EPSILONS)),
        ):
            assert np.all(truth <= bound + 1e-12)
            assert np.all(truth >= 0.99 * bound)
            assert np.any(truth > 0)
        truth = np.max(np.log(larger / smaller))
        assert 0.99 * priced.pure_epsilon < truth <= priced.pure_epsilon

    def test_failure_mass_is_attained(self, final_rows):
        """Two (epsilon, f)-private randomised responses: the fourth and third outcome give the row away."""
        e, f, q = 0.8, 0.02, 0.3
        likely = (1 - f) / (1 + math.exp(-e))
        row = np.array([likely, 1 - f - likely, f, 0.0])
        without = np.array([1 - f - likely, likely, 0.0, f])
        mechanisms = object.__new__(Mechanisms)
        mechanisms.search = np.stack([np.tile(without, (4, 1)), np.tile(row, (4, 1))])
        mechanisms.final = np.stack([np.tile(without, (4, 4, 1)), np.tile(row, (4, 4, 1))])
        larger = mechanisms.joint(q, final_rows, with_row=True)
        smaller = mechanisms.joint(q, final_rows, with_row=False)
        base = approximate_dp(epsilon=e, delta=f)
        priced = tune_on_subset(search=base, final=base, sampling_rate=q, final_rows=final_rows)
        for truth, bound in (
            (hockey_stick(larger, smaller), priced.profile.remove(EPSILONS)),
            (hockey_stick(smaller, larger), priced.profile.add(EPSILONS)),
        ):
            assert np.all(truth <= bound + 1e-12)
            assert np.all(truth >= 0.99 * bound)
        at = priced.pure_epsilon
        assert np.all(hockey_stick(larger, smaller, [at]) <= priced.failure + 1e-12)
        assert np.all(hockey_stick(smaller, larger, [at]) <= priced.failure + 1e-12)

    def test_renyi_curve_at_whole_orders_is_that_of_independent_gaussians(self, final_rows):
        """Row removed: E[L^n] of two Gaussian runs by quadrature. Row added: never below it."""
        one, two, q = 1.0, 0.7, 0.3
        nodes, weights = np.polynomial.hermite_e.hermegauss(120)
        a = np.exp(one * nodes - one**2 / 2)[:, None]
        b = np.exp(two * nodes - two**2 / 2)[None, :]
        ratio = q * a + (1 - q) * b if final_rows == "rest" else (q * a + 1 - q) * b
        mass = np.outer(weights, weights) / weights.sum() ** 2
        curve = SubsetRenyi(LinearRenyi(one**2 / 2), LinearRenyi(two**2 / 2), q, final_rows)
        for order in (2.0, 3.0, 5.0, 2.5):
            removed = math.log(np.sum(mass * ratio**order)) / (order - 1)
            added = math.log(np.sum(mass * ratio ** (1 - order))) / (order - 1)
            bound = float(curve(np.array([order]))[0])
            assert max(removed, added) <= bound * (1 + 1e-9)
            if order == math.floor(order) and order > 2:
                found = curve._removed(*(np.array([x]) for x in self._logs(order, one, two, final_rows)))
                exact = found[0] + (order * (order - 1) * two**2 / 2 if final_rows == "all" else 0.0)
                assert exact / (order - 1) == pytest.approx(removed, rel=1e-6)

    @staticmethod
    def _logs(order, one, two, final_rows):
        rest = order * (order - 1) * two**2 / 2 if final_rows == "rest" else 0.0
        return order, order * (order - 1) * one**2 / 2, rest


class TestPrices:
    def test_search_that_learns_nothing(self):
        """With a search that ignores its rows, "all" costs the final run and "rest" a run on a sample of rate 1 - q."""
        run, nothing, q = gaussian(noise_multiplier=1.5), pure_dp(epsilon=0.0), 0.4
        everyone = tune_on_subset(search=nothing, final=run, sampling_rate=q, final_rows="all")
        assert everyone.epsilon(1e-6) == pytest.approx(run.epsilon(1e-6), rel=1e-3)
        sampled = dp_sgd(noise_multiplier=1.5, sampling_rate=1 - q, steps=1)
        rest = tune_on_subset(search=nothing, final=run, sampling_rate=q, final_rows="rest")
        assert rest.epsilon(1e-6) == pytest.approx(sampled.epsilon(1e-6), rel=1e-3)

    def test_final_run_that_learns_nothing(self):
        """Then it is amplification by sampling: DP-SGD of one step, from the literature's closed form."""
        run, nothing, q = gaussian(noise_multiplier=1.5), pure_dp(epsilon=0.0), 0.1
        sampled = dp_sgd(noise_multiplier=1.5, sampling_rate=q, steps=1)
        for final_rows in ("rest", "all"):
            found = tune_on_subset(search=run, final=nothing, sampling_rate=q, final_rows=final_rows)
            assert found.epsilon(1e-6) == pytest.approx(sampled.epsilon(1e-6), rel=1e-3)
            # amplification of pure privacy (Balle, Barthe, Gaboardi 2018, Theorem 8)
            pure = tune_on_subset(search=pure_dp(epsilon=1.0), final=nothing, sampling_rate=q, final_rows=final_rows)
            assert pure.epsilon(0.0) == pytest.approx(math.log1p(q * math.expm1(1.0)), rel=1e-6)

    @pytest.mark.full
    def test_ends_of_the_sampling_rate(self):
        run = gaussian(noise_multiplier=2.0)
        search = best_of(run, Harmonic(limit=20), bound="profile")
        rest = tune_on_subset(search=search, final=run, sampling_rate=1.0)
        assert rest.epsilon(1e-6) == search.epsilon(1e-6)
        everyone = tune_on_subset(search=search, final=run, sampling_rate=1.0, final_rows="all")
        assert everyone.epsilon(1e-6) == compose(search, run).epsilon(1e-6)
        nearly = tune_on_subset(search=search, final=run, sampling_rate=1 - 1e-9, final_rows="all")
        assert nearly.epsilon(1e-6) == pytest.approx(everyone.epsilon(1e-6), rel=1e-3)
        barely = tune_on_subset(search=search, final=run, sampling_rate=1e-9)
        assert barely.epsilon(1e-6) == pytest.approx(run.epsilon(1e-6), rel=1e-3)

    @pytest.mark.full
    def test_at_most_what_a_published_split_costs(self):
        """Hiding the split can only help: never above the average of both profiles, nor composition for "all"."""
        run = dp_sgd(noise_multiplier=1.0, sampling_rate=0.02, steps=200)
        search = best_of(run, Harmonic(limit=30), bound="profile")
        grid, q = np.linspace(0.0, 4.0, 9), 0.2
        published = mixture([search, run], [q, 1 - q])
        hidden = tune_on_subset(search=search, final=run, sampling_rate=q)
        average = both_directions(published.profile, grid)
        assert np.all(both_directions(hidden.profile, grid) <= average * (1 + 1e-3) + 1e-9)
        everyone = tune_on_subset(search=search, final=run, sampling_rate=q, final_rows="all")
        assert everyone.epsilon(1e-6) < compose(search, run).epsilon(1e-6)

    def test_finer_atoms_cost_less_and_little(self):
        run = gaussian(noise_multiplier=2.0)
        search = best_of(run, Harmonic(limit=20), bound="profile")
        prices = [
            epsilon_at(tune_on_subset(search=search, final=run, sampling_rate=0.2, atoms=n).profile, 1e-6)
            for n in (200, 400, 800)
        ]
        assert prices == sorted(prices, reverse=True)
        assert prices[0] == pytest.approx(prices[2], rel=2e-3)

    @pytest.mark.full
    def test_renyi_alone(self):
        """Guarantees that are nothing but Renyi curves; the curve is never below the profile's own conversion."""
        run = renyi_dp(orders=[2.0, 4.0, 8.0, 32.0], epsilons=[0.1, 0.2, 0.4, 1.6])
        priced = tune_on_subset(search=zcdp(rho=0.2), final=run, sampling_rate=0.2)
        assert 0 < priced.epsilon(1e-5) < compose(zcdp(rho=0.2), run).epsilon(1e-5)
        orders = np.array([1.5, 2.0, 7.3, 30.0])
        curve = priced.renyi_curve(orders)
        assert np.all(np.isfinite(curve))
        assert np.all(np.diff(curve) >= 0)
        assert np.isinf(priced.renyi_curve(np.array([64.0]))[0])  # the final run promises nothing past order 32

    def test_curve_is_continuous_where_the_sum_ends(self):
        curve = SubsetRenyi(RandomizedResponseRenyi(1.0), RandomizedResponseRenyi(0.5), 0.2, "rest")
        values = curve(np.array([127.5, 128.0, 128.5, 129.0]))
        assert np.all(np.diff(values) >= -1e-9)
        assert values[-1] <= np.log(0.2 * math.e + 0.8 * math.exp(0.5)) * (1 + 1e-6)

    @pytest.mark.full
    def test_calibrates(self):
        def whole(noise):
            run = gaussian(noise_multiplier=noise)
            return tune_on_subset(
                search=best_of(run, Harmonic(limit=10), bound="profile"), final=run, sampling_rate=0.2, atoms=200
            )

        noise = calibrate(whole, epsilon=1.0, delta=1e-6, relative=1e-2)
        assert whole(noise).epsilon(1e-6) <= 1.0 < whole(noise / 1.05).epsilon(1e-6)


class TestRefusals:
    def test_replace_one(self):
        run = gaussian(noise_multiplier=2.0, adjacency="replace_one")
        with pytest.raises(AdjacencyError, match="add_or_remove_one"):
            tune_on_subset(search=run, final=run, sampling_rate=0.2, final_rows="all")
        rest = tune_on_subset(search=run, final=run, sampling_rate=0.2)
        assert rest.epsilon(1e-6) == pytest.approx(run.epsilon(1e-6), rel=1e-6)
        with pytest.raises(AdjacencyError):
            tune_on_subset(search=run, final=gaussian(noise_multiplier=2.0), sampling_rate=0.2)

    def test_wrong_arguments(self):
        run = gaussian(noise_multiplier=2.0)
        for rate in (0.0, 1.5, -0.1, math.nan):
            with pytest.raises(ArgumentError, match="sampling_rate"):
                tune_on_subset(search=run, final=run, sampling_rate=rate)
        with pytest.raises(ArgumentError, match="final_rows must be 'rest' or 'all'"):
            tune_on_subset(search=run, final=run, sampling_rate=0.2, final_rows="tuning")
        with pytest.raises(ArgumentError, match="atoms"):
            tune_on_subset(search=run, final=run, sampling_rate=0.2, atoms=10)

    def test_pickles(self):
        run = gaussian(noise_multiplier=2.0)
        priced = tune_on_subset(search=run, final=run, sampling_rate=0.2, atoms=100)
        before = priced.epsilon(1e-6)
        assert len(pickle.dumps(priced)) < 20_000
        assert pickle.loads(pickle.dumps(priced)).epsilon(1e-6) == before


def test_the_smallest_deltas_are_sums_of_tails():
    run = gaussian(noise_multiplier=4.0)
    search = best_of(run, Harmonic(limit=50), bound="profile")
    both = tune_on_subset(search=search, final=run, sampling_rate=0.1).profile
    assert both is not None
    for epsilon in (1.0, 1.5, 2.0, 2.3):
        # the final run's output alone: a Gaussian on a Poisson sample of rate .9 (Zhu, Dong, Wang 2022, Theorem 11)
        alone = 0.9 * run.delta(math.log1p(math.expm1(epsilon) / 0.9))
        assert 0.99 * alone <= float(both.remove(np.array([epsilon]))[0])
