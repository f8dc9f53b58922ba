"""The one-run audit: its bound against every mechanism, its error rates, its power."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom
from typer.testing import CliRunner

from dpselect.audit import OneRunAudit, audit_guesses, label_scores
from dpselect.audit.canaries import guess, include, right_guesses
from dpselect.audit.one_run_bound import claim_test, one_run_epsilon, one_run_p_value
from dpselect.cli.app import app
from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.learners import DPSGDClassifier, OutputPerturbationClassifier
from dpselect.privacy import approximate_dp, dp_sgd, gaussian, pure_dp
from dpselect.randomness import keyed_source
from tests.documentation import python_blocks


def bound(v, r, m, epsilon, delta):
    return one_run_p_value(correct=v, guesses=r, canaries=m, epsilon=epsilon, delta=delta)


def published(v, r, m, epsilon, delta):
    """What public copies of the program in Appendix D of Steinke, Nasr, Jagielski 2023 compute."""
    q = 1 / (1 + math.exp(-epsilon))
    below = np.cumsum(binom.pmf(np.arange(v - 1, -1, -1), r, q))
    return min(1.0, binom.sf(v - 1, r, q) + 2 * m * delta * float(np.max(below / np.arange(1, v + 1))))


def largest_over_mechanisms(v, r, m, epsilon, delta):
    """The largest P(v or more right) over all private maps from coins to r guesses, by linear programming."""
    coins = list(itertools.product((-1, 1), repeat=m))
    says = [t for t in itertools.product((-1, 0, 1), repeat=m) if sum(map(abs, t)) == r]
    pairs = [
        (a, b)
        for a, b in itertools.permutations(range(len(coins)), 2)
        if np.sum(np.abs(np.subtract(coins[a], coins[b]))) == 2
    ]
    cells, excess = len(coins) * len(says), len(pairs) * len(says)
    right = np.array([[sum(x == y for x, y in zip(s, t, strict=True)) for t in says] for s in coins])
    gain = np.concatenate(((right >= v).ravel() / len(coins), np.zeros(excess)))
    rows, limits = [], []
    for k, (a, b) in enumerate(pairs):
        for j in range(len(says)):
            row = np.zeros(cells + excess)
            row[a * len(says) + j], row[b * len(says) + j] = 1.0, -math.exp(epsilon)
            row[cells + k * len(says) + j] = -1.0
            rows.append(row)
            limits.append(0.0)
        row = np.zeros(cells + excess)
        row[cells + k * len(says) : cells + (k + 1) * len(says)] = 1.0
        rows.append(row)
        limits.append(delta)
    whole = np.zeros((len(coins), cells + excess))
    for a in range(len(coins)):
        whole[a, a * len(says) : (a + 1) * len(says)] = 1.0
    found = linprog(-gain, A_ub=np.array(rows), b_ub=limits, A_eq=whole, b_eq=np.ones(len(coins)), method="highs")
    return -found.fun


@pytest.mark.parametrize(("m", "r", "v"), [(1, 1, 1), (2, 2, 2), (2, 1, 1), (3, 2, 2), (3, 3, 2), (3, 3, 3), (3, 2, 1)])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.1), (0.5, 0.0), (1.5, 0.01), (0.5, 0.4)])
def test_no_mechanism_exceeds_the_bound_and_some_mechanism_reaches_it(m, r, v, epsilon, delta):
    """Tolerance: that of the solver, 1e-7."""
    largest = largest_over_mechanisms(v, r, m, epsilon, delta)
    assert largest == pytest.approx(bound(v, r, m, epsilon, delta), abs=2e-7)


def extremal(v, r, m, factor, delta):
    """The masses of W of the mechanism that attains the bound, for e^epsilon = factor; rational."""
    q = factor / (1 + factor)
    b = [math.comb(r, w) * q**w * (1 - q) ** (r - w) for w in range(r + 1)]
    beta, slack = sum(b[v:]), m * delta / (v * b[v])
    rest = 1 - slack * beta
    assert rest >= 0
    return [rest * x if w < v else (rest + slack) * x for w, x in enumerate(b)], beta + slack * beta * (1 - beta)


@pytest.mark.theorem("docs/theory/one-run-audit.md, Theorem 1", exact=True, sharp=True)
@pytest.mark.parametrize(("m", "r", "v"), [(4, 4, 3), (5, 3, 3), (4, 2, 1), (6, 2, 2), (3, 2, 1)])
@pytest.mark.parametrize("factor", [Fraction(1), Fraction(3, 2), Fraction(4), Fraction(math.exp(1.5))])
def test_the_worst_mechanism_is_private_and_attains_the_bound_exactly(m, r, v, factor):
    """Rational arithmetic: a bound with any smaller constant is exceeded by this mechanism."""
    delta = Fraction(1, 100) if m == 3 else Fraction(1, 1000)
    masses, claimed = extremal(v, r, m, factor, delta)
    assert sum(masses) == 1
    ways = [
        math.factorial(m) // (math.factorial(w) * math.factorial(r - w) * math.factorial(m - r)) for w in range(r + 1)
    ]
    says = [t for t in itertools.product((-1, 0, 1), repeat=m) if sum(map(abs, t)) == r]

    def law(s):
        right = [sum(x == y for x, y in zip(s, t, strict=True)) for t in says]
        return [masses[w] / ways[w] for w in right]

    ones = (1,) * m
    here, there = law(ones), law((-1, *ones[1:]))  # symmetric: one neighbour stands for all
    assert sum(here) == 1
    for p, q in ((here, there), (there, here)):
        assert sum(max(x - factor * y, 0) for x, y in zip(p, q, strict=True)) == delta
    assert sum(masses[v:]) == claimed
    assert bound(v, r, m, math.log(factor), float(delta)) == pytest.approx(float(claimed), rel=2e-7)
    assert bound(v, r, m, math.log(factor), float(delta)) >= float(claimed)


def test_the_published_examples_and_that_ours_shows_more():
    """Steinke, Nasr, Jagielski 2023, Appendix D (0.673) and Section 7 (2.675, cut off after three digits)."""
    for (m, r, v, delta), theirs, digits in (
        ((1000, 100, 75, 1e-4), 0.673, 5e-4),
        ((100_000, 1510, 1439, 1e-5), 2.6755, 5e-4),
    ):
        low, high = 0.0, 6.0
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if published(v, r, m, middle, delta) < 0.05 else (low, middle)
        assert low == pytest.approx(theirs, abs=digits)
        assert one_run_epsilon(correct=v, guesses=r, canaries=m, delta=delta, confidence=0.95) > low + 0.02


def test_the_published_expression_is_larger_where_it_is_used_and_too_small_elsewhere():
    random = np.random.default_rng(1)
    for _ in range(400):
        r = int(random.integers(1, 200))
        v, m = int(random.integers(1, r + 1)), r + int(random.integers(0, 600))
        epsilon, delta = random.uniform(0, 5), 10 ** random.uniform(-9, -1)
        ours = bound(v, r, m, epsilon, delta)
        assert ours > 0.5 or ours <= published(v, r, m, epsilon, delta) * (1 + 1e-6)
    # that this mechanism is private: the rational test above has it, (3, 2, 1)
    masses, _ = extremal(1, 2, 3, Fraction(math.exp(1.5)), Fraction(1, 100))
    assert float(sum(masses[1:])) > published(1, 2, 3, 1.5, 0.01) + 0.001


def test_the_p_value_is_that_of_rational_arithmetic_and_rounded_up():
    for r, v, m, factor, delta in [
        (50, 40, 80, Fraction(2), Fraction(1, 10**5)),
        (200, 101, 200, Fraction(1), Fraction(1, 10**7)),
    ]:
        exact = float(extremal(v, r, m, factor, delta)[1])
        assert exact <= bound(v, r, m, math.log(factor), float(delta)) <= exact * (1 + 2e-7)


def test_far_tails_and_extreme_numbers_stay_numbers():
    assert 0.0 < bound(1439, 1510, 100_000, 0.0, 1e-5) < 1e-3
    assert bound(10**6, 10**6, 10**6, 0.0, 0.0) == 0.0
    assert bound(5, 10, 10, math.inf, 0.0) == 1.0
    assert bound(0, 10, 10, 0.0, 0.0) == 1.0
    assert bound(10, 10, 10, 0.0, 1.0) == 1.0
    steps = [bound(80, 100, 300, e, 1e-6) for e in np.linspace(0, 6, 61)]
    assert all(a <= b for a, b in itertools.pairwise(steps))
    assert one_run_epsilon(correct=100, guesses=100, canaries=100) == pytest.approx(
        -math.log(0.01 ** (-1 / 100) - 1), abs=1e-6
    )
    assert one_run_epsilon(correct=50, guesses=100, canaries=100) == 0.0


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"correct": 6, "guesses": 5, "canaries": 9}, "correct"),
        ({"correct": 1, "guesses": 10, "canaries": 9}, "guesses"),
        ({"correct": 1, "guesses": 0, "canaries": 9}, "guesses"),
        ({"correct": 1, "guesses": 1, "canaries": 1, "delta": -0.1}, "delta"),
        ({"correct": 1, "guesses": 1, "canaries": 1, "confidence": 1.0}, "confidence"),
    ],
)
def test_wrong_arguments_are_named(arguments, named):
    with pytest.raises(ArgumentError, match=named):
        one_run_epsilon(**arguments)


# ---- guesses -------------------------------------------------------------------------------------------------------


def test_coins_are_fair_and_guesses_have_their_numbers():
    """20,000 coins: their share is within 0.02 of a half, but for a probability of 2e-8."""
    coins = include(20_000, keyed_source(1))
    assert abs(np.mean(coins) - 0.5) < 0.02
    scores = np.zeros(10)  # all equal: still exactly so many guesses
    assert np.bincount(guess(scores, inside=4, outside=6) + 1).tolist() == [6, 0, 4]
    assert right_guesses([1, -1, 0], [True, True, True]) == 1
    for wrong in ({"inside": 0, "outside": 0}, {"inside": 6, "outside": 5}):
        with pytest.raises(ArgumentError, match="inside"):
            guess(scores, **wrong)
    with pytest.raises(ArgumentError, match="NaN"):
        guess([0.0, math.nan], inside=1, outside=0)


def verdicts(claim, count, canaries, confidence):
    """The verdict for every number of right guesses."""
    said = np.ones(canaries, dtype=int)
    said[count:] = 0
    return [audit_guesses(said, np.arange(canaries) < v, claim, confidence=confidence) for v in range(count + 1)]


@pytest.mark.full
def test_false_alarms_of_both_statements_at_the_worst_case_by_enumeration():
    """Randomised response at its claim, and the mechanism that attains the bound: no draws, the exact error rate."""
    count, epsilon = 60, 1.0
    found = verdicts(pure_dp(epsilon=epsilon), count, count, 0.95)
    masses = binom.pmf(np.arange(count + 1), count, 1 / (1 + math.exp(-epsilon)))
    wrong = np.array([a.violated or a.epsilon_lower > epsilon for a in found])
    assert 0.02 < float(np.sum(masses[wrong])) <= 0.05
    # the first rejected number of right guesses is where the worst mechanism puts its mass
    v = int(
        np.flatnonzero([a.violated for a in verdicts(approximate_dp(epsilon=epsilon, delta=0.01), count, 90, 0.95)])[0]
    )
    worst, _ = extremal(v, count, 90, Fraction(math.exp(epsilon)), Fraction(1, 100))
    assert 0.02 < float(sum(worst[v:])) <= 0.05
    careless = int(np.flatnonzero([a.violated for a in found])[0])  # as if delta were 0
    assert careless < v
    assert float(sum(worst[careless:])) > 0.05


def test_the_lower_limit_is_the_inverse_of_the_test():
    for audit in verdicts(pure_dp(epsilon=0.7), 40, 40, 0.99):
        assert audit.violated == (audit.epsilon_lower >= 0.7)
        assert audit.epsilon_lower <= audit.epsilon_limit
        assert audit.method == "one-run"


def test_a_profile_is_tested_at_its_best_point():
    claim = gaussian(noise_multiplier=2.0)
    test = claim_test(correct=95, guesses=100, canaries=100, claim=claim)
    assert test.p_value == pytest.approx(bound(95, 100, 100, test.epsilon, claim.delta(test.epsilon)), rel=1e-9)
    assert test.p_value < 0.01
    one_point = bound(95, 100, 100, claim.epsilon(1e-6), 1e-6)
    assert one_point > 10 * test.p_value


# ---- trainers ------------------------------------------------------------------------------------------------------

CANARIES = 600


def dp_sgd_audit(noise, claimed, source):
    """Four full-batch steps; every canary has a column of its own."""

    def train(rows, labels):
        model = DPSGDClassifier(
            noise_multiplier=noise,
            sampling_rate=1.0,
            steps=4,
            learning_rate=0.01,
            averaged_share=0.0,
            nominal_rows=CANARIES / 2,
            classes=[0, 1],
            random=source.spawn("trainer"),
        )
        return model.fit(rows, labels)

    return OneRunAudit(
        name="DP-SGD",
        train=train,
        score=label_scores,
        canary_rows=np.eye(CANARIES),
        canary_labels=np.ones(CANARIES),
        claim=dp_sgd(noise_multiplier=claimed, sampling_rate=1.0, steps=4),
        inside=100,
        outside=100,
    ).run(random=source.spawn("coins"))


@pytest.mark.full
@pytest.mark.statistical
def test_dp_sgd_is_passed_and_too_little_noise_is_caught():
    """Confidence 0.99, seeded: 20 honest runs, no alarm expected (each has probability at most 0.01); 10 runs with a
    quarter of the noise, of which pilot runs missed none of 40."""
    honest = [dp_sgd_audit(4.0, 4.0, keyed_source(seed)) for seed in range(20)]
    assert sum(a.violated for a in honest) <= 2  # 3 or more: probability below 1.1e-3
    assert all(a.epsilon_lower < a.claimed_epsilon for a in honest)
    assert sum(a.epsilon_lower > 0.1 for a in honest) >= 10  # and it does measure something
    caught = [dp_sgd_audit(1.0, 4.0, keyed_source(seed)) for seed in range(10)]
    assert sum(a.violated for a in caught) >= 9
    assert all(a.violated for a in (dp_sgd_audit(0.01, 4.0, keyed_source(seed)) for seed in range(5)))


@pytest.mark.slow
@pytest.mark.statistical
def test_false_alarms_over_2000_runs_of_dp_sgd():
    """At most 1 in 100: more than 37 of 2,000 has probability below 1e-3 at that rate."""
    alarms = sum(dp_sgd_audit(4.0, 4.0, keyed_source(f"null {seed}")).violated for seed in range(2000))
    assert alarms <= 37


def output_perturbation_audit(epsilon, claimed, source):
    def train(rows, labels):
        model = OutputPerturbationClassifier(
            epsilon=epsilon, regularization=0.1, nominal_rows=50, classes=[0, 1], random=source.spawn("trainer")
        )
        return model.fit(rows, labels)

    return OneRunAudit(
        name="output perturbation",
        train=train,
        score=label_scores,
        canary_rows=np.eye(100),
        canary_labels=np.ones(100),
        claim=pure_dp(epsilon=claimed),
        inside=50,
        outside=50,
    ).run(random=source.spawn("coins"))


def test_output_perturbation_is_passed_and_missing_noise_is_caught():
    assert not any(output_perturbation_audit(1.0, 1.0, keyed_source(seed)).violated for seed in range(5))
    assert all(output_perturbation_audit(1e4, 1.0, keyed_source(seed)).violated for seed in range(5))


def generic(train, claim, canaries=200):
    """A trainer that is no classifier: sums of columns. The score is the canary's own column."""
    return OneRunAudit(
        name="noisy sums",
        train=train,
        score=lambda model, rows, labels: rows @ model,
        rows=np.ones((5, canaries)),
        labels=np.zeros(5),
        canary_rows=np.eye(canaries),
        canary_labels=np.zeros(canaries),
        claim=claim,
        inside=100,
        outside=100,
    )


@pytest.mark.full
@pytest.mark.statistical
def test_any_trainer_is_audited_and_200_runs_keep_the_error_rate():
    """Laplace noise on columns, each canary in one: epsilon 1 each and together, as one row moves one column.

    At confidence 0.9 at most 20 false alarms are expected in 200 runs; more than 36 has probability below 2e-4.
    """
    source = keyed_source("generic")
    honest = generic(lambda rows, labels: rows.sum(axis=0) + source.laplace(rows.shape[1]), pure_dp(epsilon=1.0))
    audits = [honest.run(confidence=0.9, random=source) for _ in range(200)]
    assert sum(a.violated for a in audits) <= 36
    assert sum(a.epsilon_lower > 1.0 for a in audits) <= 36
    assert np.mean([a.epsilon_lower for a in audits]) > 0.2
    broken = generic(lambda rows, labels: rows.sum(axis=0) + 0.2 * source.laplace(rows.shape[1]), pure_dp(epsilon=1.0))
    assert all(broken.run(random=source).violated for _ in range(20))


def test_a_cheat_who_looks_at_the_coins_is_why_they_are_secret():
    """A test of the test: guesses that know the coins are all right, so a leak of the coins is a false alarm."""
    coins = include(50, keyed_source(3))
    assert audit_guesses(np.where(coins, 1, -1), coins, pure_dp(epsilon=1.0)).violated


def test_other_adjacencies_and_shapes_are_refused():
    with pytest.raises(AdjacencyError, match="claim"):
        generic(lambda rows, labels: 0, pure_dp(epsilon=1.0, adjacency="replace_one"))
    with pytest.raises(ArgumentError, match="inside"):
        generic(lambda rows, labels: 0, pure_dp(epsilon=1.0), canaries=150)
    with pytest.raises(ArgumentError, match="guesses"):
        audit_guesses([1, 2], [True, False], pure_dp(epsilon=1.0))
    with pytest.raises(ArgumentError, match="score must give"):
        replace(generic(lambda rows, labels: 0, pure_dp(epsilon=1.0)), score=lambda *seen: 0.0).run()
    audit = generic(lambda rows, labels: pytest.fail("trained before it looked"), pure_dp(epsilon=1.0))
    with pytest.raises(ArgumentError, match="confidence"):
        audit.run(confidence=1.0)
    assert "1." not in repr(audit)  # no rows
    with pytest.raises(ArgumentError, match="included"):  # -1 would count as true
        audit_guesses([1, -1], [1, -1], pure_dp(epsilon=1.0))
    with pytest.raises(ArgumentError, match="canary_rows"):
        OneRunAudit(
            name="x",
            train=lambda rows, labels: 0,
            score=label_scores,
            canary_rows=np.ones(3),
            canary_labels=np.ones(3),
            claim=pure_dp(epsilon=1.0),
            inside=1,
            outside=1,
        )


@pytest.mark.statistical
def test_the_page_on_canaries_runs():
    """Unseeded. 180 right guesses of 200 suffice; with an eighth of the noise all 100 pilot runs had 195 or more."""
    shown = []
    exec(
        compile(python_blocks("how-to/audit-canaries.md"), "audit-canaries.md", "exec"),
        {"print": lambda *row: shown.append(row)},
    )
    assert shown[0] == (True,)
    assert shown[1][0] >= 180


FAULT = """
import numpy as np

from dpselect.audit import OneRunAudit
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source


def fault():
    source = keyed_source(1)
    return OneRunAudit(
        name="a tenth of the noise",
        train=lambda rows, labels: rows.sum(axis=0) + 0.1 * source.laplace(rows.shape[1]),
        score=lambda model, rows, labels: rows @ model,
        canary_rows=np.eye(100),
        canary_labels=np.zeros(100),
        claim=pure_dp(epsilon=1.0),
        inside=50,
        outside=50,
    )
"""


def test_the_command_runs_a_one_run_audit(tmp_path, monkeypatch):
    (tmp_path / "with_canaries.py").write_text(FAULT)
    monkeypatch.chdir(tmp_path)
    run = CliRunner()
    found = run.invoke(app, ["audit", "with_canaries:fault", "--json", "--key", "1"])
    assert found.exit_code == 1, found.output
    facts = json.loads(found.stdout)
    assert facts["method"] == "one-run"
    assert facts["shown"]["guesses"] == 100
    assert "p-value" in run.invoke(app, ["audit", "with_canaries:fault"]).stdout
    true = run.invoke(app, ["audit", "with_canaries:fault", "--claim-epsilon", "10"])  # Laplace of scale 0.1
    assert true.exit_code == 4  # 100 guesses show no epsilon above 10
    assert "CANNOT TELL" in true.stdout
    refused = run.invoke(app, ["audit", "with_canaries:fault", "--draws", "100"])
    assert refused.exit_code == 2 or isinstance(refused.exception, ArgumentError)
