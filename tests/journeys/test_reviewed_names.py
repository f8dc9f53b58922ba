"""What reviewers found: names, messages and refusals."""

from __future__ import annotations

import re
import sys
from fractions import Fraction

import numpy as np
import pytest

from dpselect import ordered
from dpselect.accounting import plan
from dpselect.holdout import Holdout, HoldoutLabels, HoldoutRequest
from dpselect.ledger import Ledger
from dpselect.ordered import interior_point
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed, Tabulated
from tests.journeys.reviewed_cases import command, named

# ---- small things ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 0.9])
def test_a_budget_is_charged_at_least_the_price(tmp_path, epsilon):
    """Half of random doubles were charged below their price, by their last digit."""
    from tests.budgets import budget_at

    price = epsilon / 7.0
    budget = budget_at(tmp_path / "budget.db")
    budget.reserve(pure_dp(epsilon=price), label="s", identifier="s")
    assert budget.spent().epsilon >= Fraction(price)


def test_a_tabulated_law_has_its_name():
    """`law_named` refused "tabulated", which `from_description` knew."""
    assert named("law_named")("tabulated", {"probabilities": (0.25, 0.75)}) == Tabulated(probabilities=(0.25, 0.75))


def test_the_noise_that_a_plan_prints_is_enough(monkeypatch, capsys):
    """The table of `dpselect plan` rounded noise to nearest: six of ten printed noises exceeded the total."""
    kinds = vars(sys.modules[plan.__module__])
    law, noises = Tabulated(probabilities=(0.0, 1.0)), (3.00001, 4.12341)
    found = kinds["LawPlan"](tuple(kinds["LawOption"]("uniform", law, one, 1.0, 0.5) for one in noises), 1e-6)
    monkeypatch.setattr("dpselect.cli.plan.weigh", lambda **_: found)
    _, printed, _ = command(
        monkeypatch, capsys, "plan", "--base", "gaussian", "--epsilon", "1", "--delta", "1e-6", "--mean-runs", "3"
    )
    shown = [float(row.split()[1]) for row in printed.splitlines() if row.startswith("uniform")]
    assert [one >= noise for one, noise in zip(shown, noises, strict=True)] == [True, True]


def test_errors_of_a_command_name_flags(monkeypatch, capsys):
    """`dpselect plan` named the arguments of a Python function."""
    status, _, said = command(
        monkeypatch, capsys, "plan", "--delta", "1e-6", "--base", "gaussian:noise_multiplier=2", "--epsilon", "1",
        "--expected-quantile", ".9",
    )  # fmt: skip
    assert status == 2
    assert "--expected-quant" in said


def test_no_two_columns_of_a_budget_have_one_name(ledger, monkeypatch, capsys):
    """`dpselect ledger show` had two columns "left"."""
    _, printed, _ = command(monkeypatch, capsys, "ledger", "show", ledger)
    heads = re.split(r"\s{2,}", printed.splitlines()[0].strip())
    assert len(set(heads)) == len(heads)


def test_a_missing_ledger_is_wrong_usage_as_a_missing_budget_is(ledger, monkeypatch, capsys):
    """A missing file ended with status 1, a missing budget with 2."""
    for arguments in ((ledger, "--budget", "c"), (f"{ledger}.not",)):
        assert command(monkeypatch, capsys, "ledger", "show", *arguments)[0] == 2


def test_every_command_calls_a_budget_by_the_same_flag(tmp_path, monkeypatch, capsys):
    """`dpselect ledger create FILE NAME` took as an argument what is `--budget` elsewhere."""
    created = command(
        monkeypatch, capsys, "ledger", "create", tmp_path / "new.db", "--budget", "b", "--epsilon", "1"
    )  # fmt: skip
    assert created[0] == 0


def test_a_holdout_is_named_as_a_ledger_is(tmp_path, monkeypatch, capsys):
    """`dpselect holdout status FILE` was refused: it wanted `--holdout FILE`."""
    terms = {"metric": "accuracy", "questions": 20, "answers": 2, "failure_probability": 0.05}
    Holdout.create(tmp_path / "l.holdout", HoldoutLabels(ids=range(500), labels=[0, 1] * 250), HoldoutRequest(**terms))
    assert command(monkeypatch, capsys, "holdout", "status", tmp_path / "l.holdout")[0] == 0


@pytest.mark.parametrize("name", ["\ud800", "a\0b", "x" * 1_000_000])
def test_a_name_can_be_printed_and_stored(ledger, name):
    """Halves of surrogate pairs, NUL and a million characters passed as names, and failed where they were stored."""
    with Ledger.open(ledger) as record, pytest.raises(ValueError, match="characters"):
        record.create_budget(name, epsilon=1)


def test_a_price_is_not_rounded_down():
    """The smallest epsilon was 0, and a third was the double below it."""
    assert pure_dp(epsilon=5e-324).epsilon(delta=0) > 0.0
    assert Fraction(pure_dp(epsilon=Fraction(1, 3)).epsilon(delta=0)) >= Fraction(1, 3)


def test_scores_are_drawn_at_what_is_charged():
    """A score mechanism ran at the double next to 0.1, which is above a tenth, and a ledger charged a tenth."""
    mechanism = named("ExponentialMechanism")(sensitivity=1.0, epsilon=0.1)
    assert 2 * mechanism.rate <= Fraction(1, 10)


def test_several_scorers_are_refused_by_name():
    """A dictionary of scorers gave an error of `float`."""
    from dpselect.integrations.sklearn import PrivateSearchCV
    from dpselect.learners import OutputPerturbationClassifier

    search = PrivateSearchCV(
        OutputPerturbationClassifier(), {}, repetitions=Fixed(count=1), classes=[0, 1], scoring={"a": "accuracy"},
        nominal_rows=20, public_validation=(np.zeros((20, 1)), [0, 1] * 10),
    )  # fmt: skip
    with pytest.raises(ValueError, match="scoring"):
        search.fit(np.zeros((20, 1)), [0, 1] * 10)


def test_a_private_median_is_a_release():
    """`ExponentialMedian` gave a bare number, without its guarantee."""
    from dpselect.adaptive import integer_grid
    from dpselect.adaptive.medians import ExponentialMedian

    found = ExponentialMedian(epsilon=20.0)([2, 3, 3, 7, 9], integer_grid(0, 10), random=keyed_source(1))
    assert found.guarantee.epsilon(delta=0) >= 20.0


@pytest.mark.full
def test_a_grid_finer_than_planned_names_the_size_that_would_do():
    """`AdaptiveAnalysis` planned for 4096 points unless told, and did not say which `grid_size` a question needs."""
    from dpselect.adaptive import AdaptiveAnalysis

    analysis = AdaptiveAnalysis(
        np.arange(3000) % 2.0, queries=2, subsample_size=1, failure_probability=0.9, order="given"
    )
    with pytest.raises(ValueError, match="grid_size=20001"):
        analysis.estimate(np.mean, lower=-1.0, upper=1.0, granularity=1e-4)
    assert analysis.remaining == 2
    assert analysis.estimate(np.mean, lower=-1.0, upper=1.0, granularity=1e-3).value in np.arange(-1000, 1001) / 1000


@pytest.mark.parametrize("learn", ["quantile", "learn_threshold", "quantile_interval", "interior_point"])
def test_a_domain_is_given_in_the_same_ways(learn):
    """Some functions took `domain_size=`, others `lower=` and `upper=`, and only some a granularity."""
    rows = np.arange(100)
    more = {"learn_threshold": [rows < 50]}.get(learn, [])
    options = {"q": 0.5} if learn.startswith("quantile") else {}
    ways = [{"domain_size": 100}, {"lower": 0, "upper": 99}, {"lower": 0.0, "upper": 99.0, "granularity": 0.5}]
    for way in ways:
        assert getattr(ordered, learn)(rows, *more, epsilon=9.0, **options, **way).value is not None
    for wrong in ({}, {"domain_size": 100, "lower": 0}, {"lower": 0}, {"domain_size": 0}):
        with pytest.raises(ValueError, match="domain_size"):
            getattr(ordered, learn)(rows, *more, epsilon=9.0, **options, **wrong)


def test_a_chance_of_failure_has_one_name():
    """It was `failure=` for an interior point, and `failure_probability=` elsewhere."""
    found = interior_point([1, 2, 3], domain_size=8, epsilon=1, failure_probability=0.01)
    assert 0 <= found.value < 8
