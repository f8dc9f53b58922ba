"""The table of certificates: what its ways say of labels that are known, and that its attacks get somewhere."""

import math

import numpy as np
import pytest
from benchmarks.certificates import ATTACKS, Certified, Fixed, Ladder, Setting, Thresholdout, fixed, ladder_bound, main

from dpselect.holdout.counting import plan_counting

SETTING = Setting(rows=400, questions=60, answers=4)


def used(make, act, seed=0):
    way = make(SETTING, np.random.default_rng(seed))
    act(way)
    return way


def test_votes_break_what_holds_for_fixed_models():
    assert not used(Fixed, fixed).missed
    assert all(used(Fixed, ATTACKS["votes"], seed).missed for seed in range(3))


@pytest.mark.parametrize("make", [Ladder, Certified])
@pytest.mark.parametrize("attack", list(ATTACKS))
def test_certified_ways_hold(make, attack):
    way = used(make, ATTACKS[attack])
    assert not way.missed
    assert way.worst <= way.certified


def test_the_ladder_is_bounded_by_its_histories():
    """Two levels up at most, of three: counted by hand for three questions, with and without an improvement before."""
    levels = math.ceil(1 / 0.5) + 1
    histories = sum(math.comb(3, b + 1) * math.comb(levels, b) for b in range(3))
    bound = math.sqrt((math.log(histories) + math.log(2 / 0.05)) / (2 * 400)) + 0.5
    assert ladder_bound(Setting(400, 3, 3), 0.5) == pytest.approx(bound)


def test_thresholdout_gives_no_more_scores_than_it_may():
    way = used(Thresholdout, ATTACKS["votes"])
    assert way.left >= 0
    assert way.certified is None


def test_the_table_is_written(tmp_path, capsys):
    main(["--rows", "400", "--questions", "20", "--answers", "3", "--runs", "1", "--page", str(tmp_path / "page.md")])
    said = capsys.readouterr().out
    page = (tmp_path / "page.md").read_text()
    assert page.strip() in said
    plan = plan_counting(rows=400, questions=20, answers=3, failure_probability=0.05, near=True)
    assert f"| holdout, counting | {plan.error:.3f} |" in page
    assert len(page.splitlines()) == 8
