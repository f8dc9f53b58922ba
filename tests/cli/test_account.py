"""The command `account`."""

import json

import pytest

from dpselect.errors import ArgumentError, BoundUnavailableError
from tests.cli.app_cases import dpselect
from tests.cli.search_price_cases import account


@pytest.mark.full
def test_account_prints_one_json_object():
    done = dpselect(
        "account", "--base", "gaussian:noise_multiplier=4", "--repetitions", "negative-binomial:eta=0,mean=10",
        "--delta", "1e-6", "--json",
    )  # fmt: skip
    assert done.returncode == 0
    result = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1
    assert result["single_run_epsilon"] == pytest.approx(1.0607, abs=1e-4)
    # Papernot, Steinke 2022 give 1.902; nothing valid is below 1.474
    assert 1.4735 < result["epsilon"] <= 1.9021
    assert result["epsilon_lower"] <= result["epsilon"]


@pytest.mark.full
def test_a_grid_is_priced_by_composition():
    done = dpselect("account", "--base", "pure:epsilon=1", "--repetitions", "grid:count=3", "--delta", "0", "--json")
    assert json.loads(done.stdout)["epsilon"] == pytest.approx(3.0, rel=1e-9)
    refused = dpselect(
        "account", "--base", "pure:epsilon=1", "--repetitions", "grid:count=3", "--delta", "0", "--bound", "renyi"
    )
    assert refused.returncode == 2
    assert "composition" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--proposal-ratio", "0.8"], "proposal_ratio"),
        (["--proposal-ratio", "1.1:1.2"], "lower_ratio"),
        (["--proposal-ratio", "0.8:nan"], "upper_ratio"),
        (["--proposal-ratio", "0.8:1.25", "--bound", "optimal"], "bound"),
        (["--subset", "rest"], "sampling_rate"),
        (["--sampling-rate", "0.3"], "subset"),
        (["--subset", "half", "--sampling-rate", "0.3"], "subset"),
        (["--subset", "rest", "--sampling-rate", "0"], "sampling_rate"),
        (["--subset", "all", "--sampling-rate", "0.3", "--adjacency", "replace_one"], "add_or_remove_one"),
    ],
)
def test_bad_options_of_account(arguments, message):
    with pytest.raises((ArgumentError, BoundUnavailableError), match=message):
        account(*arguments)
