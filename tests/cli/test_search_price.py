"""`dpselect account` and `plan` for proposals that learn and for searches on a subset: the library's own prices."""

from __future__ import annotations

import pytest

from dpselect.accounting import adaptive_best_of, best_of, tune_on_subset
from dpselect.errors import ArgumentError
from dpselect.privacy import laplace
from dpselect.repetitions import Harmonic
from tests.cli.search_price_cases import DELTA, account, printed

LAW = Harmonic(limit=20)


@pytest.mark.full
def test_proposals_that_learn():
    found = account("--proposal-ratio", "0.8:1.25")
    assert found["epsilon"] == adaptive_best_of(laplace(scale=2), LAW, lower_ratio=0.8, upper_ratio=1.25).epsilon(DELTA)
    assert found["epsilon"] > account()["epsilon"] == best_of(laplace(scale=2), LAW).epsilon(DELTA)
    assert found["ratio"] == [0.8, 1.25]


def test_a_subset_and_a_final_run():
    run = laplace(scale=2)
    for rows in ("rest", "all"):
        found = account("--subset", rows, "--sampling-rate", "0.3", "--bound", "pure")
        expected = tune_on_subset(search=best_of(run, LAW, bound="pure"), final=run, sampling_rate=0.3, final_rows=rows)
        assert found["epsilon"] == expected.epsilon(DELTA)
        assert (found["subset"], found["sampling_rate"]) == (rows, 0.3)


@pytest.mark.full
def test_both():
    found = account("--subset", "rest", "--sampling-rate", "0.3", "--proposal-ratio", "0.9:1.1")
    run = laplace(scale=2)
    search = adaptive_best_of(run, LAW, lower_ratio=0.9, upper_ratio=1.1)
    assert found["epsilon"] == tune_on_subset(search=search, final=run, sampling_rate=0.3).epsilon(DELTA)


@pytest.mark.full
def test_the_noise_for_proposals_that_learn():
    found = printed(
        "plan", "--base", "laplace", "--repetitions", "harmonic:limit=20", "--epsilon", "2", "--proposal-ratio",
        "0.8:1.25",
    )  # fmt: skip
    total = adaptive_best_of(laplace(scale=found["scale"]), LAW, lower_ratio=0.8, upper_ratio=1.25).epsilon(DELTA)
    assert found["epsilon"] == total
    assert 1.99 < total <= 2.0


@pytest.mark.parametrize(
    "arguments",
    [
        ["account", "--base", "laplace:scale=2", "--repetitions", "grid:count=3", "--proposal-ratio", "0.8:1.25"],
        ["account", "--opacus", "state.json", "--proposal-ratio", "0.8:1.25"],
        ["account", "--base", "laplace:scale=2", "--optuna", "study.db", "--subset", "rest"],
        ["plan", "--base", "laplace", "--epsilon", "2", "--proposal-ratio", "0.8:1.25"],
        ["plan", "--base", "laplace", "--epsilon", "2", "--subset", "half"],
    ],
)
def test_what_does_not_go_together(arguments):
    with pytest.raises(ArgumentError, match=r"grid|--repetitions|give repetitions|subset"):
        printed(*arguments)
