"""The one-run audit: its bound against every mechanism, its error rates, its power."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom
from typer.testing import CliRunner

from dpselect.audit import OneRunAudit, audit_guesses, label_scores
from dpselect.audit.canaries import include
from dpselect.cli.app import app
from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.learners import DPSGDClassifier, OutputPerturbationClassifier
from dpselect.privacy import approximate_dp, dp_sgd, pure_dp
from dpselect.randomness import keyed_source
from tests.audit.one_run_cases import extremal
from tests.documentation import python_blocks


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
