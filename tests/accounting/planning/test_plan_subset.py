"""The planner for tuning on a subset, its command, the split of the rows, and the whole procedure end to end."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from dpselect.accounting import best_of, plan_subset, tune_on_subset
from dpselect.cli.app import app
from dpselect.errors import ArgumentError, BudgetError
from dpselect.privacy import gaussian, pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Harmonic
from dpselect.repetitions.by_name import families
from dpselect.tuning import Categorical, SearchStore, split_rows, tune
from tests.budgets import budget_at
from tests.root import ROOT

LAW = Harmonic(limit=10)


def run(noise):
    return gaussian(noise_multiplier=noise)


def pure(noise):
    return pure_dp(epsilon=1.0 / noise)


class TestPlan:
    @pytest.mark.full
    @pytest.mark.parametrize("final_rows", ["rest", "all"])
    def test_least_noise_on_its_grid(self, final_rows):
        """Every option meets the total, priced again, and would not with the next smaller power of 1.02."""
        options = plan_subset(
            base=pure, epsilon=1.0, delta=1e-3, repetitions=LAW, sampling_rates=(0.2,), final_rows=final_rows
        )
        assert [option.noise for option in options] == sorted(option.noise for option in options)
        assert {option.sampling_rate for option in options} == {0.2, None}
        for option in options:

            def price(noise, option=option):
                search = best_of(pure(noise), LAW, bound="profile")
                if option.sampling_rate is None:
                    return search.epsilon(1e-3)
                return tune_on_subset(
                    search=search, final=pure(noise), sampling_rate=option.sampling_rate, final_rows=final_rows
                ).epsilon(1e-3)

            assert price(option.noise) == pytest.approx(option.epsilon, rel=1e-9)
            assert option.epsilon <= 1.0 < price(option.noise / 1.02)

    @pytest.mark.full
    def test_work(self):
        given = {"base": pure, "epsilon": 1.0, "delta": 0.0, "repetitions": LAW, "sampling_rates": (0.25,)}
        options = plan_subset(**given)
        work = {option.sampling_rate: (option.work, option.most_work) for option in options}
        assert work == {0.25: (LAW.mean * 0.25 + 0.75, 10 * 0.25 + 0.75), None: (LAW.mean, 10.0)}
        everyone = plan_subset(**given, final_rows="all")
        assert {option.work for option in everyone} == {LAW.mean * 0.25 + 1.0, LAW.mean}

    @pytest.mark.full
    def test_goal(self):
        """Pure noise, so that two families are priced quickly; every law reaches the goal and keeps the limit."""
        options = plan_subset(
            base=pure,
            epsilon=1.0,
            delta=0.0,
            expected_quantile=0.7,
            mean_runs=40,
            sampling_rates=(0.2,),
            families=[family for family in families() if family.name in ("negative binomial, eta 1", "harmonic")],
        )
        assert len({option.family for option in options}) == 2
        assert all(option.law.mean <= 40 and option.law.expected_quantile() >= 0.7 for option in options)
        assert all(option.utility == option.law.expected_quantile() for option in options)

    @pytest.mark.full
    def test_refusals(self):
        good = {"base": run, "epsilon": 1.0, "delta": 1e-6, "repetitions": LAW}
        for changes, match in (
            ({"sampling_rates": ()}, "sampling_rates"),
            ({"sampling_rates": (1.0,)}, "sampling_rates"),
            ({"final_rows": "some"}, "final_rows"),
            ({"max_runs": 5}, "not both"),
            ({"repetitions": None}, "give expected_quantile"),
            ({"epsilon": 0.0}, "epsilon"),
            ({"delta": 1.0}, "delta"),
        ):
            with pytest.raises(ArgumentError, match=match):
                plan_subset(**{**good, **changes})
        with pytest.raises(TypeError, match="function from noise"):
            plan_subset(**{**good, "base": run(1.0)})
        with pytest.raises(BudgetError, match="no noise"):
            plan_subset(**{**good, "base": lambda noise: pure_dp(epsilon=5.0), "sampling_rates": (0.2,)})


class TestCommand:
    def answer(self, *arguments):
        return CliRunner().invoke(app, ["plan", "--delta", "1e-6", *arguments])

    @pytest.mark.full
    def test_json(self):
        """The table is in docs/how-to/adaptive-search.md, whose commands are run by tests/docs/test_docs.py."""
        arguments = ["--base", "laplace", "--epsilon", "1", "--repetitions", "harmonic:limit=10"]
        arguments += ["--subset", "rest", "--sampling-rates", "0.3"]
        found = json.loads(self.answer(*arguments, "--json").output)
        assert found["final_rows"] == "rest"
        assert {option["sampling_rate"] for option in found["options"]} == {0.3, None}
        assert all(option["epsilon"] <= 1.0 < option["scale"] for option in found["options"])

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--base", "gaussian:noise_multiplier=1", "--epsilon", "1", "--subset", "rest"], "the noise is what is"),
            (["--base", "gaussian", "--subset", "rest"], "give epsilon"),
            (["--base", "gaussian", "--epsilon", "1", "--subset", "some"], "'rest' or 'all'"),
            (["--base", "gaussian", "--epsilon", "1", "--subset", "all", "--sampling-rates", "a"], "sampling_rates"),
            (["--base", "gaussian", "--epsilon", "1", "--subset", "all"], "give expected_quantile"),
        ],
    )
    def test_refusals(self, arguments, said):
        result = self.answer(*arguments)
        assert result.exit_code != 0
        assert said in str(result.exception) + result.output


class TestSplit:
    def test_every_row_is_in_one_part(self):
        tuning, rest = split_rows(1000, sampling_rate=0.3, random=keyed_source(3))
        assert sorted([*tuning, *rest]) == list(range(1000))
        assert np.all(np.diff(tuning) > 0)
        assert np.all(np.diff(rest) > 0)

    def test_rows_are_chosen_independently(self):
        """100,000 coins of chance 0.3: the count, and the count of neighbouring pairs, within 5 deviations.

        False alarms about 1e-6 in all; a fixed-size sample passes the first and a block-wise one fails the second.
        """
        count, rate = 100_000, 0.3
        chosen = np.zeros(count, dtype=bool)
        chosen[split_rows(count, sampling_rate=rate, random=keyed_source(4))[0]] = True
        assert abs(chosen.sum() - rate * count) < 5 * math.sqrt(count * rate * (1 - rate))
        pairs = np.sum(chosen[:-1:2] & chosen[1::2])
        assert abs(pairs - rate**2 * count / 2) < 5 * math.sqrt(count / 2 * rate**2 * (1 - rate**2))

    def test_sizes_vary(self):
        """A sample of a fixed size is another mechanism; 20 equal sizes of 100 coins have chance below 1e-20."""
        sizes = {len(split_rows(100, sampling_rate=0.5, random=keyed_source(i))[0]) for i in range(20)}
        assert len(sizes) > 3

    def test_ends_and_wrong_arguments(self):
        assert len(split_rows(5, sampling_rate=1.0)[0]) == 5
        assert [len(part) for part in split_rows(0, sampling_rate=0.5)] == [0, 0]
        for rate in (0.0, 1.1, math.nan):
            with pytest.raises(ArgumentError, match="sampling_rate"):
                split_rows(5, sampling_rate=rate)
        with pytest.raises(ArgumentError, match="count"):
            split_rows(-1, sampling_rate=0.5)


def test_the_whole_procedure(tmp_path):
    """As the documentation shows it: reserve the total, split, search, final run, settle."""
    rows = np.arange(200) % 2
    noise, law = 8.0, Harmonic(limit=5)
    total = tune_on_subset(
        search=best_of(run(noise), law, bound="profile"), final=run(noise), sampling_rate=0.2, final_rows="rest"
    )
    budget = budget_at(tmp_path / "budget.db", epsilon=1.0, delta=1e-6)
    receipt = budget.reserve(total, label="tuning on a subset", identifier="study-1")
    tuning, rest = split_rows(len(rows), sampling_rate=0.2)

    def objective(params, random):
        mean = float(rows[tuning].sum() + noise * random.normal(1)[0])
        return -abs(mean - params["guess"]), params["guess"]

    found = tune(
        objective,
        space={"guess": Categorical([1, 20, 100])},
        base=run(noise),
        repetitions=law,
        store=SearchStore(payload_bytes=256),
    )
    final = float(rows[rest].sum() + noise * keyed_source(5).normal(1)[0])
    budget.settle("study-1")
    assert found.value in (1, 20, 100)
    assert abs(final - 80) < 60
    assert receipt.charged["epsilon"] == pytest.approx(total.epsilon(1e-6))


@pytest.mark.slow
def test_the_page_runs(tmp_path, monkeypatch):
    """docs/how-to/adaptive-search.md: every number that a block prints is the one in its comment."""
    text = (ROOT / "docs" / "how-to/adaptive-search.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.M | re.S)
    assert len(blocks) == 5
    monkeypatch.chdir(tmp_path)
    printed = []
    exec("\n".join(blocks), {"print": lambda *values: printed.append([float(value) for value in values])})
    promised = [[float(x) for x in re.findall(r"\d\.\d+", line)] for line in re.findall(r"print.*# (.*)", text)]
    assert printed == promised
