"""Private medians of areas over blocks: how many blocks are needed, their price, and the answers."""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.holdout.block_medians import plan_block_medians
from dpselect.holdout.draws import Draws
from dpselect.holdout.scores import METRICS, Scored
from dpselect.privacy import gaussian

TERMS = {"questions": 20, "rows": 40_000, "failure_probability": 0.05, "tolerance": 0.01, "largest_mu": 0.5}


def test_the_largest_blocks_that_are_certified_and_within_the_price():
    plan = plan_block_medians(**TERMS)
    assert plan.certified
    assert (plan.subsample_size, plan.blocks.blocks) == (22, 40_000 // 22)
    with pytest.raises(ArgumentError, match="rows are too few"):
        plan_block_medians(**{**TERMS, "subsample_size": 23})
    for largest, size in ((0.1, 14), (0.05, 7)):
        cheap = plan_block_medians(**{**TERMS, "largest_mu": largest})
        assert (cheap.subsample_size, cheap.blocks.mu <= largest) == (size, True)
        assert plan.blocks.at(40_000 // (size + 1)).mu > largest


def test_the_price_of_a_row_is_that_of_all_answers():
    plan = plan_block_medians(**TERMS)
    exact = gaussian(noise_multiplier=1.0 / plan.blocks.mu, adjacency="replace_one")
    assert plan.row_privacy.epsilon(1e-6) == pytest.approx(exact.epsilon(1e-6), rel=1e-12)
    assert plan.row_privacy.adjacency == exact.adjacency


def test_the_size_of_a_block_that_was_asked_for_is_kept():
    plan = plan_block_medians(**{**TERMS, "subsample_size": 10})
    assert (plan.subsample_size, plan.blocks.blocks) == (10, 4000)
    assert (plan.questions, plan.answers, plan.failure_probability) == (20, 20, 0.05)
    with pytest.raises(ArgumentError, match="subsample_size"):
        plan_block_medians(**{**TERMS, "subsample_size": 1})


def test_too_few_rows_are_told_how_many_blocks_are_needed():
    needed = plan_block_medians(**{**TERMS, "subsample_size": 2})
    with pytest.raises(ArgumentError, match=r"needs (\d+) blocks of at least 2 rows, and there are 40 rows") as caught:
        plan_block_medians(**{**TERMS, "rows": 40})
    blocks = int(str(caught.value).split("needs ")[1].split()[0])
    assert 40_000 // blocks >= 2
    assert needed.blocks.blocks >= blocks
    enough = plan_block_medians(**{**TERMS, "rows": 2 * blocks})
    assert (enough.blocks.blocks, enough.subsample_size) == (blocks, 2)
    with pytest.raises(ArgumentError):
        plan_block_medians(**{**TERMS, "rows": 2 * blocks - 1})


def test_an_answer_is_near_the_area_and_a_claim_within_the_tolerance_of_it():
    generator = np.random.default_rng(2)
    labels = generator.random(9000) < 0.5
    scored = Scored(METRICS["auc"], labels, labels + generator.normal(size=labels.size), 1.0)
    plan = plan_block_medians(questions=1, rows=9000, failure_probability=0.5, tolerance=0.01, largest_mu=5.0)
    draws = Draws(bytes(32), "p", "q", 0)
    agrees, value = plan.answer(scored, None, draws)
    assert agrees is None
    assert value == pytest.approx(0.76, abs=0.03)  # the chance that N(1, 1) is above N(0, 1)
    near = [plan.answer(scored, value + off, draws) for off in (-0.011, -0.009, 0.009, 0.011)]
    assert near == [(False, value), (True, value), (True, value), (False, value)]
    assert plan.interval(value, None) is None
