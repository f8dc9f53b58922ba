"""The black-box audit: its error rate, exactly and over many runs; what it finds; what it refuses."""

import math

import numpy as np
import pytest
from scipy import stats

from dpselect.audit import audit, audit_outputs, black_box
from dpselect.audit.outputs import joined
from dpselect.errors import ArgumentError
from dpselect.privacy import approximate_dp, gaussian, laplace, pure_dp, zcdp
from dpselect.randomness import keyed_source
from tests.audit.black_box_cases import NULLS, on_grid, subject


class TestErrorRate:
    def false_alarms(self, name, runs, draws=500):
        found = NULLS[name]
        return sum(
            audit(found, draws=draws, confidence=0.9, random=keyed_source(f"{name} {run}")).violated
            for run in range(runs)
        )

    # an audit whose true rate is the promised 0.1 fails this test with probability 1e-6
    @pytest.mark.full
    @pytest.mark.statistical
    @pytest.mark.parametrize(("name", "runs"), [("randomised response", 200), ("laplace", 200), ("same labels", 40)])
    def test_over_many_runs(self, name, runs):
        assert self.false_alarms(name, runs) <= stats.binom.isf(1e-6, runs, 0.1)

    @pytest.mark.slow
    @pytest.mark.statistical
    @pytest.mark.parametrize("name", NULLS)
    def test_over_2000_runs(self, name):
        assert self.false_alarms(name, 2000, draws=2000) <= stats.binom.isf(1e-6, 2000, 0.1)

    @pytest.mark.full
    @pytest.mark.statistical
    @pytest.mark.parametrize("name", ["laplace", "same labels"])
    def test_an_auditor_without_a_held_out_half_fails_this_test(self, name, monkeypatch):
        """It fits, compares and judges events on the same draws; all of 100 runs were false alarms."""
        honest = black_box._split_audit

        def broken(chosen, judged, *arguments, **options):
            return honest(tuple(joined((side, side)) for side in judged), judged, *arguments, **options)

        monkeypatch.setattr(black_box, "_split_audit", broken)
        assert self.false_alarms(name, 30, draws=1000) > stats.binom.isf(1e-6, 30, 0.1)

    @pytest.mark.full
    @pytest.mark.statistical
    def test_with_common_noise_on_both_sides(self):
        """Outputs at the same place drawn with the same noise: the union of two limits does not mind."""
        alarms = 0
        for run in range(100):
            noise = on_grid(keyed_source(run).laplace(500))
            alarms += audit_outputs(
                noise, noise + 1, laplace(scale=1), confidence=0.9, random=keyed_source(run)
            ).violated
        assert alarms <= stats.binom.isf(1e-6, 100, 0.1)


class TestPower:
    """Seeded; each defect is many standard errors above what the draws can show, so that a miss is a fault."""

    @pytest.mark.cases(7)
    @pytest.mark.parametrize(
        ("claim", "draw"),
        [
            (pure_dp(epsilon=1.0), lambda other, n, random: random.bernoulli(0.25 if other else 0.75, n)),
            (laplace(scale=1), lambda other, n, random: on_grid(0.8 * random.laplace(n)) + other),
            (gaussian(noise_multiplier=1), lambda other, n, random: on_grid(0.8 * random.normal(n)) + other),
            (zcdp(rho=0.1), lambda other, n, random: on_grid(random.normal(n)) + other),
            # one data set's law is wider: neither tail alone, but both
            (pure_dp(epsilon=0.5), lambda other, n, random: on_grid((2.0 if other else 1.0) * random.normal(n))),
            # what only one side does, among numbers: NaN, -inf, a clipping bound
            *(
                (
                    pure_dp(epsilon=1.0),
                    lambda other, n, random, atom=atom: np.where(
                        random.bernoulli(0.0 if other else 0.05, n), atom, on_grid(random.normal(n))
                    ),
                )
                for atom in (math.nan, -math.inf, 0.0, -0.0)
            ),
            # a label among many
            (
                pure_dp(epsilon=1.0),
                lambda other, n, random: np.array([f"user {i}" for i in range(64)])[random.words(n) % (64 - other)],
            ),
            # coordinates that tell nothing, one by one
            (
                pure_dp(epsilon=1.0),
                lambda other, n, random: (lambda x: np.stack((x, x ^ random.bernoulli(0.9 if other else 0.1, n)), 1))(
                    random.bernoulli(0.5, n)
                ),
            ),
            # the same for numbers: the sign of the product
            (
                pure_dp(epsilon=1.0),
                lambda other, n, random: (
                    lambda x: np.stack((x[0], np.abs(x[1]) * np.sign(x[0]) * (1 - 2 * other)), 1)
                )(on_grid(random.normal((2, n)))),
            ),
            # how many numbers come out
            (pure_dp(epsilon=1.0), lambda other, n, random: np.zeros((n, 2 + other))),
            # one fraction of a delta too many
            (
                approximate_dp(epsilon=1.0, delta=1e-6),
                lambda other, n, random: np.where(random.bernoulli(0.002, n), 2.0 + other, 0.0),
            ),
        ],
    )
    def test_finds(self, claim, draw):
        found = audit(subject(claim, draw), draws=40_000, random=keyed_source("power"))
        assert found.violated
        violation = found.shown["violation"]
        assert violation["delta"] > violation["claimed_delta"] == claim.delta(violation["epsilon"])

    def test_noise_in_floating_point(self):
        """Mironov 2012: 0 + noise and 1 + noise end in other bits. The same noise on a grid is sound."""

        def careless(other, count, random):
            return random.laplace(count) + other

        def careful(other, count, random):
            return on_grid(random.laplace(count)) + other

        def asked(draw, **options):
            return audit(subject(laplace(scale=1), draw), draws=20_000, random=keyed_source("bits"), **options)

        assert asked(careless).epsilon_lower > 5
        assert "granularity" in asked(careless).event
        assert not asked(careless, low_bits=False).violated
        assert not asked(careful).violated

    def test_the_measured_epsilon_is_close_below_the_true_one(self):
        for name, true in (("randomised response", math.log(3)), ("laplace", 1.0)):
            found = audit(NULLS[name], draws=200_000, random=keyed_source("close"))
            assert 0.95 * true < found.epsilon_lower <= true

    def test_disjoint_outputs_show_the_most_that_can_be_shown(self):
        for draws in (8, 200, 10_000):
            found = audit(
                subject(pure_dp(epsilon=1), lambda other, n, _: np.full(n, other)), draws=draws, random=keyed_source(1)
            )
            assert found.epsilon_lower == found.epsilon_limit
            assert found.violated == (found.epsilon_limit > 1)
        assert "too few to contradict the claim" in "\n".join(audit(NULLS["laplace"], draws=20).lines())


class TestRefusals:
    def test_arguments(self):
        found = NULLS["laplace"]
        for wrong in (
            {"draws": 7},
            {"draws": 2.5},
            {"confidence": 1.0},
            {"confidence": 0.0},
            {"delta": 1.0},
            {"delta": -0.1},
        ):
            with pytest.raises(ArgumentError, match=next(iter(wrong))):
                audit(found, **wrong)
        with pytest.raises(TypeError, match="random"):
            audit(found, random=np.random.default_rng(1))
        with pytest.raises(ArgumentError, match="neighbour must hold at least 8"):
            audit_outputs(np.zeros(100), np.zeros(7), pure_dp(epsilon=1))

    @pytest.mark.parametrize(
        "draw",
        [
            lambda other, n, random: np.zeros(n + 1),
            lambda other, n, random: [0.0] * n,
            lambda other, n, random: 0.0,
            lambda other, n, random: np.zeros((n, 2, 2)),
            lambda other, n, random: np.zeros((n, 0)),
        ],
    )
    def test_shapes(self, draw):
        claim = pure_dp(epsilon=1)
        with pytest.raises(ArgumentError, match=r"mechanism|outputs"):
            audit(subject(claim, draw), draws=50)

    def test_a_fixed_seed(self):
        draw = lambda other, n, random: np.random.default_rng(0).normal(size=n)  # noqa: E731
        with pytest.raises(ArgumentError, match="fixed seed"):
            audit(subject(pure_dp(epsilon=1), draw), draws=400)
        constant = subject(pure_dp(epsilon=1), lambda other, n, random: np.zeros(n))
        assert not audit(constant, draws=400).violated


def test_progress_is_told_and_changes_nothing():
    told = []
    with_it = audit(NULLS["laplace"], draws=400, random=keyed_source(3), progress=told.append)
    assert with_it == audit(NULLS["laplace"], draws=400, random=keyed_source(3))
    assert told == sorted(told)
    assert told[-1] == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("features", [0, 3])
def test_a_million_draws_take_seconds(features):
    import time

    shape = (lambda n: (n, features)) if features else (lambda n: n)
    found = subject(pure_dp(epsilon=1), lambda other, n, random: on_grid(random.laplace(shape(n))))
    start = time.process_time()
    assert not audit(found, draws=1_000_000, random=keyed_source(1)).violated
    assert time.process_time() - start < (8 if features else 3)
