"""What a price buys stands beside it."""

import json
import math

import pytest
from typer.testing import CliRunner

from dpselect.cli.app import app
from dpselect.repetitions import Fixed, Geometric, Logarithmic, TruncatedNegativeBinomial
from dpselect.repetitions.quality import quality_of

SEARCH = ["account", "--base", "gaussian:noise_multiplier=4", "--delta", "1e-6", "--repetitions"]


def run(*words):
    result = CliRunner().invoke(app, [*words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_logarithmic_law_of_mean_ten_is_as_good_as_three_fixed_runs():
    gamma = Logarithmic.with_mean(mean=10).gamma
    found = quality_of(Logarithmic(gamma=gamma))
    # P(K = k) = (1 - gamma)^k / (k log(1 / gamma)), summed
    terms = [(1 - gamma) ** k / (k * math.log(1 / gamma)) for k in range(1, 20_000)]
    assert found.one_run == pytest.approx(terms[0], rel=1e-12)
    assert found.expected_quantile == pytest.approx(sum(p * k / (k + 1) for k, p in enumerate(terms, 1)), abs=1e-9)
    assert round(found.fixed_runs, 2) == 3.02


@pytest.mark.parametrize("count", [1, 3, 10])
def test_a_fixed_number_is_as_good_as_itself(count):
    found = quality_of(Fixed(count=count))
    assert found.fixed_runs == pytest.approx(count, rel=1e-12)
    assert found.one_run == (1.0 if count == 1 else 0.0)


def test_a_quantile_that_rounds_to_one_is_like_any_number_of_runs():
    found = quality_of(TruncatedNegativeBinomial(eta=5.0, gamma=1e-17))
    assert (found.expected_quantile, found.fixed_runs) == (1.0, math.inf)


def test_the_headline_compares_equal_quality():
    ten = quality_of(Geometric.with_mean(mean=28))
    assert ten.fixed_runs == pytest.approx(10, abs=0.01)
    asked = json.loads(run(*SEARCH, "geometric:mean=28", "--json"))
    assert round(asked["epsilon"], 2) == 1.77
    assert asked["fixed_runs"] == ten.fixed_runs
    assert "like 10 fixed runs; a single run with probability 0.0357" in run(*SEARCH, "geometric:mean=28")


def test_plan_says_what_each_option_buys_and_by_what_it_sorts():
    asked = ["plan", "--base", "pure:epsilon=1", "--delta", "0", "--expected-quantile", "0.8"]
    assert run(*asked).splitlines()[-1] == "sorted by epsilon, the least first"
    assert all(option["fixed_runs"] > 3.99 for option in json.loads(run(*asked, "--json"))["options"])


def test_export_says_that_its_file_needs_this_package():
    assert "To load it, install dpselect" in " ".join(run("export", "--help").split())
