"""Guarantees by output: merging classes, mixtures, parallel composition and pointwise minima, by the oracle."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.privacy import OutputGuarantee
from dpselect.privacy.output.calculus import coarsen, from_dp, from_subsets, mixture, parallel, pointwise_minimum
from dpselect.privacy.output.oracle import output_delta, satisfies
from tests.privacy.output.guarantee_cases import (
    identity_guarantee,
    laws,
    mechanisms,
    tight_delta,
)

ROUNDING = 1e-13  # a handful of operations on masses of at most 1, in double precision


@given(mechanisms(), st.permutations("abc"))
def test_fact_26_lemma_3_any_partition_and_back(mechanism, names):
    upper, lower, cells, _, _ = mechanism
    epsilon = 0.3
    delta = min(tight_delta(upper, lower, ["x"] * 4, {"x": epsilon}), 1 - 1e-9)
    guarantee = from_dp(epsilon=epsilon, delta=delta, cell=lambda y: names["abc".index(cells[y])], cells="abc")
    assert satisfies(guarantee, laws(upper, lower))
    assert (guarantee.worst_epsilon, guarantee.delta) == (epsilon, delta)


@given(mechanisms())
def test_lemma_6_deltas_of_subsets_add_up(mechanism):
    upper, lower, cells, epsilons, _ = mechanism
    subsets = {}
    for cell in "abc":
        kept = [[p if c == cell else 0.0 for p, c in zip(law, cells, strict=True)] for law in (upper, lower)]
        subsets[cell] = (epsilons[cell], tight_delta(*kept, cells, epsilons))
    if sum(delta for _, delta in subsets.values()) < 1:
        assert satisfies(from_subsets(subsets, cell=lambda y: cells[y]), laws(upper, lower))


@given(mechanisms(), st.lists(st.sampled_from("xy"), min_size=3, max_size=3))
def test_coarsening_keeps_the_guarantee(mechanism, merged):
    upper, lower, cells, epsilons, delta = mechanism
    if delta < 1:
        fine = identity_guarantee(cells, epsilons, delta)
        assert satisfies(coarsen(fine, merge=lambda cell: merged["abc".index(cell)]), laws(upper, lower))


@given(mechanisms(), mechanisms(), st.integers(1, 9))
def test_mixtures_have_the_mean_delta_and_no_less(first, second, tenths):
    weight = tenths / 10
    if max(first[4], second[4]) >= 1:
        return
    branches = {
        name: (w, identity_guarantee(m[2], m[3], m[4]))
        for name, w, m in (("heads", weight, first), ("tails", 1 - weight, second))
    }
    joint = [
        {
            (n, y): w * p
            for n, w, m in (("heads", weight, first), ("tails", 1 - weight, second))
            for y, p in enumerate(m[i])
        }
        for i in (0, 1)
    ]
    mixed = mixture(branches)
    assert satisfies(mixed, [tuple(joint)])
    assert mixed.delta <= (weight * first[4] + (1 - weight) * second[4]) * (1 + 1e-8) + 1e-300


@given(mechanisms(), mechanisms())
def test_parallel_composition_on_disjoint_parts(first, second):
    """A neighbour differs in one part: the other mechanism's law is then the same on both sides."""
    if max(first[4], second[4]) >= 1:
        return
    both = parallel(*(identity_guarantee(m[2], m[3], m[4]) for m in (first, second)))

    def joint(left, right):
        return {(a, b): p * q for a, p in enumerate(left) for b, q in enumerate(right)}

    for fixed in (0, 1):
        assert satisfies(both, [(joint(first[0], second[fixed]), joint(first[1], second[fixed]))])
        assert satisfies(both, [(joint(first[fixed], second[0]), joint(first[fixed], second[1]))])


def test_parallel_composition_needs_a_row_that_stays():
    g = OutputGuarantee(cell=bool, epsilons={True: 1.0}, adjacency="replace_one")
    with pytest.raises(AdjacencyError):
        parallel(g, g)


@given(mechanisms(), st.lists(st.sampled_from("xyz"), min_size=4, max_size=4))
def test_the_pointwise_minimum_of_pure_guarantees(mechanism, others):
    upper, lower, cells, _, _ = mechanism
    losses = [abs(math.log(p / q)) for p, q in zip(upper, lower, strict=True)]

    def pure(labels):
        tight = {
            c: max([x for x, own in zip(losses, labels, strict=True) if own == c], default=0.0) for c in set(labels)
        }
        return identity_guarantee(labels, tight, 0.0)

    smallest = pointwise_minimum([pure(cells), pure(others)])
    assert satisfies(smallest, laws(upper, lower))
    assert smallest.worst_epsilon <= pure(cells).worst_epsilon


def test_zoo_the_pointwise_minimum_with_a_delta_is_false():
    """Outputs 0 and 1 are each 0.1 more likely; either guarantee excuses one of them, their minimum both."""
    upper, lower = [0.3, 0.3, 0.4], [0.2, 0.2, 0.6]
    first, second = {0: 0.0, 1: 1.0, 2: 1.0}, {0: 1.0, 1: 0.0, 2: 1.0}
    delta = max(tight_delta(upper, lower, [0, 1, 2], prices) for prices in (first, second))
    both = {0: 0.0, 1: 0.0, 2: 1.0}
    assert delta == pytest.approx(0.1, abs=ROUNDING)
    assert tight_delta(upper, lower, [0, 1, 2], both) == pytest.approx(0.2, abs=ROUNDING)
    with pytest.raises(ArgumentError):
        pointwise_minimum([identity_guarantee([0, 1, 2], prices, delta) for prices in (first, second)])


def test_fact_10_propose_test_release():
    """A test that is epsilon-private, an answer at 2 epsilon with delta."""
    guarantee = from_subsets({"answer": (2 * 0.3, 1e-3), "none": (0.3, 0.0)}, cell=str)
    assert (guarantee.worst_epsilon, guarantee.price("none"), guarantee.delta) == (0.6, 0.3, 1e-3)


def test_bad_partitions():
    with pytest.raises(ArgumentError):
        OutputGuarantee(cell=bool, epsilons={})
    with pytest.raises(ArgumentError):
        OutputGuarantee(cell=bool, epsilons={True: math.inf})
    with pytest.raises(ArgumentError):
        output_delta([1.0], [1.0], cells=["a"], epsilons={"b": 1.0})
    with pytest.raises(ArgumentError):
        satisfies(OutputGuarantee(cell=str, epsilons={"0": 1.0}), [({0: 0.5}, {0: 1.0})])
    with pytest.raises(ArgumentError):
        mixture({"a": (0.5, OutputGuarantee(cell=bool, epsilons={True: 1.0}))})
    with pytest.raises(ArgumentError):
        from_subsets({"a": (1.0, 0.6), "b": (1.0, 0.6)}, cell=str)
