"""The filter of realised prices: one mechanism at a time, exact sums, and the end for good."""

from __future__ import annotations

import pytest

from dpselect.errors import ArgumentError, BudgetError, StudyError
from dpselect.privacy import OutputGuarantee
from dpselect.privacy.output.filter import OutputFilter, additive
from tests.privacy.output.guarantee_cases import (
    randomized_response,
    tight_delta,
)

ROUNDING = 1e-13  # a handful of operations on masses of at most 1, in double precision


def test_fact_2_the_toy_mechanism():
    """Heads: a value with Laplace noise, here any pure pair; tails: nothing, for nothing."""
    upper, lower = randomized_response(0.4)
    joint = [[*(0.5 * p for p in law), 0.5] for law in (upper, lower)]
    assert tight_delta(*joint, ["value"] * 4 + ["none"], {"value": 0.4, "none": 0.0}) == pytest.approx(0, abs=ROUNDING)
    toy = OutputGuarantee(cell=lambda y: y is None, epsilons={False: 0.4, True: 0.0})
    # one value exhausts the budget no matter what came before, so the number of rounds is geometric with mean 2
    for empty in range(5):
        spent = OutputFilter(additive(epsilon=0.4))
        for _ in range(empty):
            spent.start(toy)
            spent.finish(None)
        spent.start(toy)
        spent.finish(1.5)
        with pytest.raises(BudgetError):
            spent.start(toy)


def test_the_filter_is_sequential_and_halts_for_good():
    dear = OutputGuarantee(cell=bool, epsilons={True: 1.0, False: 0.5})
    free = OutputGuarantee(cell=bool, epsilons={True: 0.0, False: 0.0})
    spent = OutputFilter(additive(epsilon=1.2))
    spent.start(dear)
    with pytest.raises(StudyError):
        spent.start(free)
    spent.finish(False)
    with pytest.raises(StudyError):
        spent.finish(False)
    with pytest.raises(BudgetError):
        spent.start(dear)
    assert spent.halted
    with pytest.raises(BudgetError):
        spent.start(free)


def test_an_output_outside_the_partition_leaves_the_supremum():
    spent = OutputFilter(additive(epsilon=1.2))
    spent.start(OutputGuarantee(cell=lambda y: y, epsilons={"a": 0.1, "b": 1.0}))
    with pytest.raises(ArgumentError):
        spent.finish("c")
    assert float(spent.costs[0][0]) == 1.0


def test_sums_are_exact():
    """Ten tenths are one, though in double precision they are not, and nothing fits besides."""
    assert sum([0.1] * 10) != 1.0
    tenth = OutputGuarantee(cell=bool, epsilons={True: 0.1})
    spent = OutputFilter(additive(epsilon=1))
    for _ in range(10):
        spent.start(tenth)
        spent.finish(True)
    with pytest.raises(BudgetError):
        spent.start(OutputGuarantee(cell=bool, epsilons={True: 5e-324}))
