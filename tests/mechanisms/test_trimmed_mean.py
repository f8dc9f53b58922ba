"""The trimmed mean after a private test: the delta that it needs, and broken tests that are caught."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.audits.propose_test_laws import (
    BROKEN,
    pass_probability,
    trimmed_mean_law,
)
from tests.ledger.test_accounting import Record, advantage
from tests.mechanisms.propose_test_release_cases import (
    Laws,
    audited_delta,
    changes,
    cheaper_versions,
    multisets,
    needed_delta,
    trimmed_mean,
)

ROUNDING = 1e-12
FAR = 1000


@pytest.mark.cases(1)
@pytest.mark.parametrize(("count", "trim", "width"), [(5, 0.5, 1), (6, 0.5, 2), (7, 0.3, 1)])
def test_trimmed_means_need_their_delta_and_no_more(count, trim, width):
    """All pairs of neighbours over a universe with an outlier, by the exact laws: delta is attained within 1 %.

    Data with distance 0, whose middle jumps to the outlier, need all of it.
    """
    mechanism = trimmed_mean(width=width, trim=trim)
    found = audited_delta(trimmed_mean_law, mechanism, (0, 1, 2, 60), count, (0, 60 * count))
    assert 0.99 * mechanism.delta <= found <= mechanism.delta + ROUNDING


@pytest.mark.parametrize("variant", BROKEN, ids=lambda v: v.__name__)
def test_zoo_broken_tests_are_caught(variant):
    mechanism = trimmed_mean(width=2)
    assert audited_delta(variant, mechanism, (0, 1, 2, 60), 5, (0, 60)) > 1.2 * mechanism.delta


def stable_delta(law, mechanism, rows, reach, guarantee, stable):
    """The delta needed over pairs of neighbours that are both admissible: none, if the prices are right."""
    laws = {x: law(mechanism, np.array(x), reach) for x in rows if stable(np.array(x))}
    pairs = [(x, y) for x in laws for y in laws if x < y and changes(x, y) == 1]
    assert len(pairs) > 20
    return max(needed_delta(laws[x], laws[y], guarantee) for x, y in pairs)


def test_zoo_smaller_prices_are_caught():
    mechanism = trimmed_mean(width=2)
    rows = multisets((0, 1, 2, 3), 7)

    def needed(guarantee):
        reach = (0, 3)
        return stable_delta(trimmed_mean_law, mechanism, rows, reach, guarantee, lambda x: mechanism.distance(x) >= 1)

    assert needed(mechanism.guarantee) <= ROUNDING
    for wrong in cheaper_versions(mechanism.guarantee):
        assert needed(wrong) > 1e-3


class ChargesAnswersOnly(Record):
    """Broken: "none" gives its delta back."""

    def settled(self, mechanism, output):
        twin = super().settled(mechanism, output)
        if mechanism.cells[output] is False:
            twin.books.accounts["b"].buckets[""]["delta"] -= Fraction(str(mechanism.guarantee.delta))
        return twin


@pytest.mark.full
def test_zoo_a_delta_for_answers_only():
    """On inadmissible data a retry leaks again: three rounds of a median for the delta of one."""
    pair = ((0, 0, 0, FAR, FAR), (0, 0, FAR, FAR, FAR))
    median = Laws(trimmed_mean(epsilon_test=0.1, epsilon_answer=0.1, delta=0.05), trimmed_mean_law, pair, (0, FAR))
    assert pass_probability(trimmed_mean(delta=0.05).test, 0) == pytest.approx(0.05, rel=1e-9)
    sound = advantage(Record(0.4, 0.05, adjacency="replace_one"), [median], 0.4, 3)
    assert 0.04 < sound <= 0.05
    broken = advantage(ChargesAnswersOnly(0.4, 0.05, adjacency="replace_one"), [median], 0.4, 3)
    assert broken > 0.08
