"""The black-box audit: its error rate, exactly and over many runs; what it finds; what it refuses."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dpselect.audit import Subject, audit, audit_outputs, black_box
from dpselect.audit.callables import collected, function_subject
from dpselect.audit.events import Question
from dpselect.audit.limits import lower_limit, upper_limit
from dpselect.audit.outputs import as_outputs, joined
from dpselect.audit.result import DATA_OVER_NEIGHBOUR
from dpselect.audit.scores import fitted_scores
from dpselect.audit.verdict import judge
from dpselect.errors import ArgumentError
from dpselect.privacy import Release, approximate_dp, gaussian, laplace, pure_dp, zcdp
from dpselect.randomness import keyed_source


def on_grid(noise):
    """Noise as a careful mechanism adds it: multiples of 2**-20, so that its low bits tell nothing."""
    return np.round(noise * 2.0**20) / 2.0**20


def subject(claim, draw, name="mechanism"):
    return Subject(name=name, draw=draw, claim=claim)


def response(share, claim):
    return subject(claim, lambda other, count, random: random.bernoulli(1 - share if other else share, count))


# exactly at their claims, each; the last two are one law on both sides
NULLS = {
    "randomised response": response(0.75, pure_dp(epsilon=math.log(3))),
    "laplace": subject(laplace(scale=1), lambda other, count, random: on_grid(random.laplace(count)) + other),
    "gaussian": subject(gaussian(noise_multiplier=1), lambda other, n, random: on_grid(random.normal(n)) + other),
    "same labels": subject(
        pure_dp(epsilon=0), lambda other, n, random: np.array([f"user {i}" for i in range(64)])[random.words(n) % 64]
    ),
    "same numbers": subject(pure_dp(epsilon=0), lambda other, count, random: random.normal(count)),
}


class TestLimits:
    @pytest.mark.parametrize("trials", [1, 2, 7, 40])
    @pytest.mark.parametrize("error", [0.3, 0.05, 1e-4])
    def test_coverage_by_enumeration(self, trials, error):
        """The definition, at every probability of a mesh and just beside every limit, where coverage is worst."""
        counts = np.arange(trials + 1)
        low, high = lower_limit(counts, trials, error), upper_limit(counts, trials, error)
        mesh = np.concatenate([np.linspace(0.001, 0.999, 97), low[1:] - 1e-9, high[:-1] + 1e-9])
        for p in mesh[(mesh > 0) & (mesh < 1)]:
            masses = stats.binom.pmf(counts, trials, p)
            assert masses[low > p].sum() <= error * (1 + 1e-9)
            assert masses[high < p].sum() <= error * (1 + 1e-9)

    def test_closed_forms(self):
        """All or none of n: error**(1/n) and its complement (Clopper, Pearson 1934)."""
        for trials in (1, 10, 500_000):
            assert lower_limit(trials, trials, 0.01) == pytest.approx(0.01 ** (1 / trials), rel=1e-8)
            assert upper_limit(0, trials, 0.01) == pytest.approx(1 - 0.01 ** (1 / trials), rel=1e-6)
        assert lower_limit(0, 5, 0.01) == 0.0
        assert upper_limit(5, 5, 0.01) == 1.0

    def test_tails_at_the_limits_of_large_counts(self):
        for count, trials in ((17, 500_000), (250_000, 500_000), (499_999, 500_000)):
            assert stats.binom.sf(count - 1, trials, float(lower_limit(count, trials, 0.005))) <= 0.005
            assert stats.binom.cdf(count, trials, float(upper_limit(count, trials, 0.005))) <= 0.005


class TestErrorRate:
    @pytest.mark.cases(1)
    @pytest.mark.parametrize(("share", "other"), [(0.75, 0.25), (0.9, 0.9), (0.3, 0.1), (0.02, 0.0)])
    @pytest.mark.parametrize("confidence", [0.5, 0.9])
    def test_of_the_judging_step_by_enumeration(self, share, other, confidence):
        """Over all pairs of counts: a claim that is just true is rejected with probability 1 - confidence at most.

        The claims are the pair's own curve in both directions, for the event and its complement.
        """
        sizes = (14, 11)
        smallest = [max(0.0, a - b) for a, b in ((share, other), (other, share))]
        claims = [approximate_dp(epsilon=0.0, delta=max(smallest))]
        if other > 0:
            ratios = (share / other, other / share, (1 - other) / (1 - share), (1 - share) / (1 - other))
            claims.append(pure_dp(epsilon=math.log(max(ratios))))
        weights = [stats.binom.pmf(np.arange(n + 1), n, p) for n, p in zip(sizes, (share, other), strict=True)]
        for claim, reverse in itertools.product(claims, (False, True)):
            question = Question.about(claim, judging=14, delta=claim.failure, error=(1 - confidence) / 2)
            rejected, above = 0.0, 0.0
            for counts in itertools.product(range(sizes[0] + 1), range(sizes[1] + 1)):
                verdict = judge(counts, sizes, question, reverse=reverse)
                weight = weights[0][counts[0]] * weights[1][counts[1]]
                rejected += weight * (verdict.violation is not None)
                above += weight * (verdict.epsilon > claim.epsilon(claim.failure))
            assert rejected <= 1 - confidence
            assert above <= 1 - confidence

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


class TestOutputs:
    def test_reading_one_output_depends_on_no_other(self):
        """Or the choice of an event would see the judging draws."""
        parts = [
            np.array(["a", "long text"]),
            np.array([1.5, 2.0]),
            np.array([2]),
            np.array([True, None], dtype=object),
        ]
        together = joined([as_outputs(part) for part in parts])
        mixture = np.array([value for part in parts for value in part.tolist()], dtype=object)
        alone = [as_outputs(mixture[place : place + 1]).keys[0] for place in range(mixture.size)]
        assert together.keys.tolist() == as_outputs(mixture).keys.tolist() == alone

    ANYTHING = (
        *(0, 1, True, 2**53 + 1, -(2**63), 2**63, 2**64 + 1, 10**400, 0.5, -0.0, 2.0**53, math.nan, math.inf),
        *(np.float32(0.1), np.uint64(2**63), np.uint8(3), np.bool_(True), 1 + 2j, np.complex128(3 - 1j)),
        *("a", "", "raised", b"a", None, (), [], (1,), [1, 2], (1, 2.5), [2**53 + 1, 2], (0.5, "a"), [[1, 2], [3, 4]]),
        *([[1], [2, 3]], np.zeros(2), np.array(3.0), np.array([2**63], dtype=np.uint64), np.ones(2) * 1j, {2}),
    )

    def test_what_a_function_returns_is_read_by_itself(self):
        """NumPy would make floats of integers beside a fraction, and no rows of rows beside a failure.

        Then the judging counts are not binomial: a rare output of another kind once made 10 false alarms of 60 audits
        of one law on both sides, at a promised 0.1, where none or one is usual.
        """
        alone = [as_outputs(collected([value])) for value in self.ANYTHING]
        source = keyed_source("neighbours")
        for _ in range(300):
            places = (source.words(3) % len(self.ANYTHING)).astype(int)
            together = as_outputs(collected([self.ANYTHING[place] for place in places]))
            for row, place in enumerate(places):
                assert together.keys[row] == alone[place].keys[0]
                columns = alone[place].with_features(together.columns.shape[1]).columns[0]
                np.testing.assert_array_equal(together.columns[row], columns)

    @pytest.mark.parametrize("array", [np.array([2**63, 5], dtype=np.uint64), np.arange(6.0).reshape(2, 3)])
    def test_arrays_and_their_elements_are_read_alike(self, array):
        assert as_outputs(array).keys.tolist() == as_outputs(collected(list(array))).keys.tolist()

    @pytest.mark.full
    def test_scores_do_not_depend_on_the_place_of_an_output(self):
        """A product of matrices may: rows at the end of an array are summed in another order."""
        source = keyed_source("places")
        rows = np.round(source.normal((2, 800, 7)), 1)
        for score in fitted_scores(*(as_outputs(side) for side in rows), low_bits=True):
            one = as_outputs(rows[0, :1])
            for size in range(1, 20):
                assert set(score(as_outputs(np.repeat(rows[0, :1], size, axis=0)))) == set(score(one))

    def test_equal_and_unequal_outputs(self):
        def key(value):
            return as_outputs(collected([value])).keys[0]

        assert key(1) == key(1.0) == key(True) == key(np.float32(1))
        assert key(math.nan) == key(-math.nan)
        different = [
            0.0,
            -0.0,
            1,
            2**62 + 1,
            2**62,
            0.5,
            math.inf,
            -math.inf,
            math.nan,
            "1",
            "",
            None,
            (1, 2),
            (2, 1),
            b"1",
        ]
        assert len({key(value) for value in different}) == len(different)
        rows = as_outputs(np.array([["ab", "c"], ["a", "bc"], ["", "abc"]])).keys
        assert len(set(rows)) == 3

    def test_million_keys_are_distinct(self):
        assert np.all(np.diff(np.sort(as_outputs(np.arange(1_000_000)).keys)) > 0)

    def test_complex_numbers_and_moments(self):
        draw = lambda other, n, random: on_grid(random.normal(n)) + 1j * other  # noqa: E731
        assert audit(subject(pure_dp(epsilon=1), draw), draws=400, random=keyed_source(1)).violated
        moments = np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]")
        assert audit_outputs(moments[:1].repeat(200), moments[1:].repeat(200), pure_dp(epsilon=1)).violated

    def test_two_arrays_of_other_kinds_and_lengths(self):
        found = audit_outputs(np.zeros(300), np.array(["failed"] * 200), pure_dp(epsilon=1), random=keyed_source(1))
        assert found.violated
        assert found.shown["judged"] == {"data": 150, "neighbour": 100}

    def test_the_order_of_frozen_outputs_does_not_matter(self):
        noise = [np.sort(on_grid(keyed_source(key).laplace(4000))) for key in "ab"]
        assert not audit_outputs(noise[0], noise[1] + 1, laplace(scale=1), random=keyed_source(1)).violated


class TestFunctions:
    def test_exceptions_are_outputs_and_their_messages_are_not(self):
        def fails(rows):
            if len(rows) > 1:
                raise KeyError(f"secret {rows}")
            return 0.0

        found = audit(function_subject(fails, data=[1, 2], neighbour=[1], claim=pure_dp(epsilon=1)), draws=400)
        assert found.violated
        assert "raised KeyError" in found.event or found.direction != DATA_OVER_NEIGHBOUR
        assert "secret" not in repr(found)

    def test_random_and_releases(self):
        def mechanism(rows, random):
            release = Release(
                value=float(random.bernoulli(0.75 if len(rows) > 1 else 0.25, 1)[0]), guarantee=pure_dp(epsilon=1)
            )
            return release

        pair = {"data": [1, 2], "neighbour": [1]}
        found = function_subject(mechanism, claim=pure_dp(epsilon=math.log(3)), **pair)
        one, two = (audit(found, draws=2000, random=keyed_source("same")) for _ in range(2))
        assert not one.violated
        assert one == two
        assert 0.8 < one.epsilon_lower < math.log(3)

    def test_rows_text_and_anything(self):
        assert as_outputs(collected([[1, 2], (3, 4), np.array([5, 6])])).columns.tolist() == [[1, 2], [3, 4], [5, 6]]
        assert as_outputs(collected([np.zeros(2), np.ones(2)])).columns.tolist() == [[0, 0], [1, 1]]
        assert collected([0.5, 1.0]).dtype == np.float64
        assert as_outputs(collected([1, 2.5, True])).columns.tolist() == [[1], [2.5], [1]]
        for strange in ([[1], [1, 2]], [None, 1.0], [2**100, 1], [{}, []], [[], []], ["a", 1]):
            assert len(as_outputs(collected(strange))) == 2

    def test_refusals(self):
        claim = pure_dp(epsilon=1)
        with pytest.raises(ArgumentError, match="called with the data alone"):
            function_subject(lambda one, two: 0, data=1, neighbour=2, claim=claim)
        changes = function_subject(lambda rows: rows.append(1), data=[1], neighbour=[], claim=claim)
        with pytest.raises(ArgumentError, match="changes the data"):
            audit(changes, draws=100)
        for same in (math.nan, [math.nan], np.array([math.nan])):
            audit(function_subject(lambda rows: 0, data=same, neighbour=1, claim=claim), draws=8)

    def test_long_outputs_are_named_in_short(self):
        found = function_subject(lambda rows: rows * 500, data="a", neighbour="b", claim=pure_dp(epsilon=1))
        assert len(audit(found, draws=100).event) < 400


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


def test_describe_is_json():
    import json

    found = audit(NULLS["gaussian"], draws=400, random=keyed_source(3))
    described = json.loads(json.dumps(found.describe()))
    assert described["method"] == "black-box"
    assert described["note"] == "An audit finds faults; it never proves privacy."
    assert described["delta"] == 1e-5
    assert described["claimed_epsilon"] == pytest.approx(4.377178, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("features", [0, 3])
def test_a_million_draws_take_seconds(features):
    import time

    shape = (lambda n: (n, features)) if features else (lambda n: n)
    found = subject(pure_dp(epsilon=1), lambda other, n, random: on_grid(random.laplace(shape(n))))
    start = time.process_time()
    assert not audit(found, draws=1_000_000, random=keyed_source(1)).violated
    assert time.process_time() - start < (8 if features else 3)
