"""What each method draws with adds up to the epsilon that it states, exactly, and leaves nearly nothing over."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import pytest

from dpselect.ordered import Quantiles
from dpselect.ordered.order_statistics.joint import joint_rate
from dpselect.ordered.order_statistics.one import quantile_rate
from dpselect.ordered.order_statistics.recursive import cut_rate
from dpselect.privacy import Adjacency

QS = ([0.5], [0.25, 0.5, 0.75], [0.1, 0.2, 0.5, 0.7, 0.9])
EPSILONS = (0.3, 1.0, 7.0)
ONE = Fraction(1)


def independent(plan, adjacency):
    return sum(rate / quantile_rate(q, ONE, adjacency) for q, rate in zip(plan.increasing, plan.rates, strict=True))


def recursive(plan, adjacency):
    levels = defaultdict(list)
    for cut, rate in zip(plan.cuts, plan.rates, strict=True):
        levels[cut.level].append(rate / cut_rate(cut.share, ONE, adjacency))
    return sum(map(max, levels.values()))


def joint(plan, adjacency):
    return plan.rates[0] / joint_rate(plan.increasing, ONE, adjacency)


def tree(plan, adjacency):
    return plan.rates[0]


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("spent", [independent, recursive, joint, tree])
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("qs", QS, ids=len)
def test_rates_spend_the_stated_epsilon(qs, epsilon, spent, adjacency):
    plan = Quantiles(epsilon=epsilon, qs=qs, method=spent.__name__, adjacency=adjacency)
    amount = spent(plan, adjacency)
    assert Fraction(999, 1000) * Fraction(epsilon) < amount <= Fraction(epsilon)
    assert float(amount) <= plan.guarantee.epsilon(delta=0) <= epsilon
