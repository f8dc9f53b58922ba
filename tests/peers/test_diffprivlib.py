"""diffprivlib 0.6.6 (5d9c9d8): what its tests of budgets, quantiles and selection assert."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpselect.errors import ArgumentError, BudgetError
from dpselect.ledger import Ledger
from dpselect.mechanisms import exponential_mechanism, permute_and_flip, report_noisy_max
from dpselect.ordered import median, quantile, quantiles
from dpselect.privacy import approximate_dp, compose, pure_dp
from dpselect.randomness import keyed_source

pytestmark = pytest.mark.peers

UNIFORM = np.random.default_rng(0).random(1000)
KINDS = {"exponential": exponential_mechanism, "flip": permute_and_flip, "noisy max": report_noisy_max}


def near(rows, rank, epsilon, *, low=0.0, high=1.0, key=1):
    found = quantile(rows, q=rank, epsilon=epsilon, lower=low, upper=high, granularity=1e-3, random=keyed_source(key))
    return float(found.value)


def test_totals_of_a_budget(compare):
    """`test_BudgetAccountant.py`: sums, and totals with slack, which are the optimal composition."""
    with compare("diffprivlib") as peer:
        for parts, epsilon, delta in (
            ([(1, 0)], 1.0, 0.0),
            ([(1, 0), (1, 0.5)], 2.0, 0.5),
            ([(1, 0), (1, 0.5), (5, 0)], 7.0, 0.5),
            ([(0.5, 0), (0.5, 0)], 1.0, 0.0),
            ([(0.5, 0), (0.5, 0), (0.5, 0)], 1.5, 0.0),
        ):
            total = compose(*[approximate_dp(epsilon=e, delta=d) if d else pure_dp(epsilon=e) for e, d in parts])
            peer.between(0.0, total.epsilon(delta), epsilon * (1 + 1e-9), parts)
            if delta == 0.0:
                peer.close(total.epsilon(0.0), epsilon, parts, relative=1e-9)
        for count in (2, 10, 100):
            # `remaining`: what each of so many may cost, at least 1/count, more with slack
            peer.close(compose(*[pure_dp(epsilon=1 / count)] * count).epsilon(0.0), 1.0, count, relative=1e-9)
            for slack in (1e-15, 1e-5, 1e-3):
                total = compose(*[pure_dp(epsilon=1 / count)] * count)
                peer.between(0.0, total.epsilon(slack), 1.0 + 1e-9, count, slack)


def test_a_budget_in_a_ledger(compare, tmp_path):
    """`test_init_*`, `test_spend*`, `test_remaining_*`: limits, what is refused, and what remains."""
    with compare("diffprivlib") as peer, Ledger.open(tmp_path / "ledger.db") as ledger:
        one = ledger.create_budget("one", epsilon=1, delta=0)
        peer.holds((one.epsilon, one.delta) == (1, 0))
        peer.holds((one.remaining().epsilon, one.remaining().delta) == (1, 0))
        for number in range(2):
            one.reserve(pure_dp(epsilon=0.5), label="s", identifier=str(number)).settle(None)
        peer.close(float(one.spent().epsilon), 1.0)
        peer.close(float(one.remaining().epsilon), 0.0)
        peer.refuses(BudgetError, lambda: one.reserve(pure_dp(epsilon=0.1), label="s", identifier="3"))
        five = ledger.create_budget("five", epsilon=5, delta=0)
        five.reserve(pure_dp(epsilon=3), label="s", identifier="1").settle(None)
        peer.refuses(BudgetError, lambda: five.reserve(pure_dp(epsilon=3), label="s", identifier="2"))
        small = approximate_dp(epsilon=0, delta=1e-5)
        peer.refuses(BudgetError, lambda: five.at(delta="1e-5").reserve(small, label="s", identifier="3"))
        peer.close(float(five.spent().epsilon), 3.0)
        peer.holds(float(five.remaining().epsilon) == 2.0)
        for epsilon, delta in ((-1, 0), (1, -0.5), (1, 1.5), (math.nan, 0)):
            peer.refuses(
                ArgumentError,
                lambda e=epsilon, d=delta: ledger.create_budget(f"{e} {d}", epsilon=e, delta=d),
                epsilon,
                delta,
            )
        peer.refuses(AttributeError, lambda: setattr(one, "epsilon", 2))
        peer.refuses(AttributeError, lambda: setattr(one, "delta", 0.1))


def test_quantiles(compare):
    """`tools/test_quantile.py` and `test_median.py`: near the truth, clipped, floats, and repeatable."""
    with compare("diffprivlib") as peer:
        peer.close(near(UNIFORM, 0.5, 5.0), float(np.quantile(UNIFORM, 0.5)), absolute=0.01)
        for key, rank in itertools.product(range(5), (0.1, 0.25, 0.5, 0.75, 0.9)):
            peer.close(near(UNIFORM, rank, 5.0, key=key), rank, rank, key, absolute=0.05)
        normal = np.random.default_rng(0).normal(size=2000)
        for key in range(5):
            peer.close(near(normal, 0.5, 3.0, low=-3.0, high=3.0, key=key), 0.0, key, absolute=0.1)
        for key in range(100):
            peer.between(0.0, near(UNIFORM[:10], 0.5, 1e-5, key=key), 1.0, key)
            # of (0, 1, 2, 3): theirs is between the rows next to the quantile
            peer.between(0.0, near([0, 1, 2, 3], 0.25, 1000.0, high=3.0, key=key), 1.0, key)
            middle = median([0, 1, 2, 3], epsilon=1000.0, lower=0, upper=3, random=keyed_source(key))
            peer.between(1, middle.value, 2, key)
        ranks = [0.1, 0.25, 0.5, 0.75, 0.9]
        several = quantiles(
            UNIFORM, qs=ranks, epsilon=5.0, lower=0.0, upper=1.0, granularity=1e-3, random=keyed_source(1)
        )
        for value, rank in zip(several.value, ranks, strict=True):
            peer.close(float(value), rank, rank, absolute=0.05)
        peer.holds(near([0, 1, 2, 3, 4], 0.33, 1.0, high=4.0) == near([0, 1, 2, 3, 4], 0.33, 1.0, high=4.0))
        peer.holds(len({near([0, 1, 2, 3, 4], 0.33, 1.0, high=4.0, key=key) for key in range(9)}) > 1)
        for rank in (-0.5, 1.5):
            peer.refuses(ArgumentError, lambda r=rank: near([1], r, 1.0), rank)
        peer.refuses(ArgumentError, lambda: near([1, 2, 3], 0.5, 1.0, low=0.0, high=-1.0))
        # without bounds theirs warns of a leak and takes them from the rows; ours refuses
        peer.refuses(ArgumentError, lambda: quantile([1, 2, 3], q=0.5, epsilon=1.0))


@pytest.mark.parametrize("kind", KINDS)
def test_selection(compare, kind):
    """`mechanisms/test_Exponential.py` and `test_PermuteAndFlip.py`: the best at an infinite epsilon, and ratios."""
    choose = KINDS[kind]
    with compare("diffprivlib") as peer:
        source = keyed_source(kind)
        scores = [1, 0, 0, 0, 0]
        chosen = {choose(scores, sensitivity=1, epsilon=1e6, random=source) for _ in range(1000)}
        peer.holds(chosen == {0}, chosen)
        chosen = {choose(scores, sensitivity=1, epsilon=1.0, random=source) for _ in range(1000)}
        peer.holds(chosen == set(range(5)), chosen)
        for monotonic in (False, True):
            counts = np.zeros((2, 3))
            for row, scores in enumerate(([2, 1, 0], [2, 1, 1])):
                for _ in range(2000):
                    found = choose(scores, sensitivity=1, epsilon=math.log(2), monotonic=monotonic, random=source)
                    counts[row, found] += 1
            for column in counts.T:
                # theirs allows .1 for 2,000 draws: a right mechanism exceeds it with a probability below 1e-3
                peer.holds(column.max() / column.min() <= 2.0 + 0.35, counts)
        for scores in ([], [[1, 2]]):
            peer.refuses(ArgumentError, lambda s=scores: choose(s, sensitivity=1, epsilon=1.0), scores)
        for sensitivity, epsilon in ((-1, 1), (1, -1), (1, 0), (math.nan, 1), (1, math.nan)):
            peer.refuses(
                ArgumentError, lambda s=sensitivity, e=epsilon: choose([1], sensitivity=s, epsilon=e), sensitivity
            )
        for sensitivity, epsilon in (("1", 1), (1, "1"), (1j, 1), (1, 1j)):
            peer.refuses(
                TypeError, lambda s=sensitivity, e=epsilon: choose([1], sensitivity=s, epsilon=e), sensitivity, epsilon
            )
        for scores in (["1"], [1j]):
            peer.refuses(TypeError, lambda s=scores: choose(s, sensitivity=1, epsilon=1.0), scores)
