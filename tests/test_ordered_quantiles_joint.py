"""The joint exponential mechanism: its exact law, its price, and sums along the chain that may not be too small."""

from __future__ import annotations

import importlib.util
import itertools
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect.ordered import quantiles, quantiles_plan
from dpselect.ordered.domains import WholeNumbers
from dpselect.ordered.intervals import SortedColumn
from dpselect.ordered.joint_quantiles import _reach, joint_codes, joint_rate
from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source

ADD, REPLACE = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE


def scores(rows, qs, size):
    """{sequence: score} by the definition."""
    edges = [Fraction(0), *qs, Fraction(1)]
    wanted = [(b - a) * len(rows) for a, b in itertools.pairwise(edges)]
    found = {}
    for sequence in itertools.combinations_with_replacement(range(size), len(qs)):
        ranks = [0, *(sum(x <= z for x in rows) for z in sequence), len(rows)]
        groups = [b - a for a, b in itertools.pairwise(ranks)]
        found[sequence] = -sum((abs(g - w) for g, w in zip(groups, wanted, strict=True)), Fraction(0))
    return found


@pytest.mark.parametrize("qs", [(Fraction(1, 4), Fraction(1, 2)), (Fraction(1, 10), Fraction(1, 3), Fraction(2, 3))])
@pytest.mark.parametrize("adjacency", [ADD, REPLACE])
def test_every_ratio_is_within_epsilon_in_rational_arithmetic(qs, adjacency):
    size, base = 3, 2
    rate = joint_rate(qs, Fraction(1), adjacency)
    units = rate.denominator * math.lcm(*(q.denominator for q in qs))

    def law(rows):
        weights = {z: Fraction(base) ** int(units * rate * s) for z, s in scores(rows, qs, size).items()}
        total = sum(weights.values())
        return {z: w / total for z, w in weights.items()}

    laws = {r: law(r) for n in range(5) for r in itertools.combinations_with_replacement(range(size), n)}
    worst = Fraction(0)
    for rows in laws:
        others = {tuple(sorted((*rows, x))) for x in range(size)}
        if adjacency is REPLACE:
            others = {tuple(sorted((*rows[:i], x, *rows[i + 1 :]))) for i in range(len(rows)) for x in range(size)}
        for other in others & set(laws):
            ratios = [laws[rows][z] / laws[other][z] for z in laws[rows]]
            worst = max(worst, max(ratios) / min(ratios))
    assert 1 < worst <= base**units  # exp(epsilon) bounds even the range


@settings(max_examples=60, deadline=None)
@given(
    placed=st.lists(st.floats(0, 1), min_size=1, max_size=40),
    wanted=st.floats(0, 45),
    slope=st.floats(1e-3, 3),
)
def test_sums_along_the_chain(placed, wanted, slope):
    terms = [
        sum(p * math.exp(-slope * abs(i - j - wanted)) for j, p in enumerate(placed[:i])) for i in range(len(placed))
    ]
    # relative: the correction allows 2**-18; below 1e-280 a floor is added afterwards
    assert np.allclose(_reach(np.array(placed), wanted, slope), terms, rtol=1e-10, atol=1e-290)


CASES = [
    ([0, 2, 2, 3], (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)), 4, Fraction(1, 3)),
    ([], (Fraction(1, 4), Fraction(1, 2)), 3, Fraction(1)),
    ([1, 1, 1, 1], (Fraction(1, 3), Fraction(9, 10)), 3, Fraction(1, 2)),
    ([0, 1, 2, 3, 4, 5], (Fraction(1, 2), Fraction(2, 3)), 6, Fraction(1)),
]


@pytest.mark.statistical
@pytest.mark.parametrize(("rows", "qs", "size", "rate"), CASES)
def test_draws_follow_the_law(rows, qs, size, rate):
    weights = {z: math.exp(rate * s) for z, s in scores(rows, qs, size).items()}
    random, draws, seen = keyed_source(2), 1500, dict.fromkeys(weights, 0)
    column = SortedColumn(np.array(rows, dtype=np.int64), WholeNumbers(0, size - 1))
    for _ in range(draws):
        seen[tuple(joint_codes(column, qs, size=size, rate=rate, random=random))] += 1
    expected = {z: draws * w / sum(weights.values()) for z, w in weights.items()}
    large = [z for z, e in expected.items() if e > 5]
    statistic = sum((seen[z] - expected[z]) ** 2 / expected[z] for z in large)
    # a right sampler is above this with probability below 1e-5
    assert statistic < len(large) + 4.3 * math.sqrt(2 * len(large)) + 13


def test_heavy_atoms_empty_columns_and_stated_errors():
    rows = np.concatenate([np.zeros(500), np.linspace(10.0, 20.0, 500)])
    options = {"lower": 0.0, "upper": 100.0, "epsilon": 5.0, "method": "joint", "granularity": 0.01}
    released = quantiles(rows, qs=[0.2, 0.4, 0.7], random=keyed_source(1), **options)
    assert released.value[:2] == [0.0, 0.0]
    assert abs(released.value[2] - 14.0) < 0.6
    errors = released.rank_errors(0.05)
    assert errors == pytest.approx([errors[0]] * 3)
    for q, value in zip([0.2, 0.4, 0.7], released.value, strict=True):
        assert np.sum(rows <= value) >= q * 1000 - errors[0]
        assert np.sum(rows < value) <= q * 1000 + errors[0]
    assert len(quantiles([], qs=[k / 10 for k in range(10)], **options).value) == 10
    plan = quantiles_plan(epsilon=0.7, qs=[0.2, 0.4], method="joint", adjacency=REPLACE)
    assert plan.guarantee.epsilon(delta=0) == 0.7
    assert plan.rates == (Fraction(0.7) / 4,)


def test_the_benchmark_runs(capsys):
    path = Path(__file__).parent.parent / "benchmarks" / "quantiles.py"
    spec = importlib.util.spec_from_file_location("benchmark_of_quantiles", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.error(2, 300, [1.0], [1, 3], peers=False)
    assert len(capsys.readouterr().out.splitlines()) == 10
