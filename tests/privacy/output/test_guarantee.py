"""Output guarantees against the exact oracle on finite mechanisms.

"Fact n" are worked examples for Hartmann, Bindschaedler, Bentkamp, West (2022); their numbers were computed by hand or
by integration, not with this library.
"""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpselect.accounting import best_of
from dpselect.errors import AdjacencyError, ArgumentError, BudgetError, StudyError
from dpselect.ledger.accounting import worst
from dpselect.privacy import OutputGuarantee, compose, pure_dp, worst_of
from dpselect.privacy.output.amounts import charged_amount, charged_price, noise_epsilon
from dpselect.privacy.output.calculus import coarsen, from_dp, from_subsets, mixture, parallel, pointwise_minimum
from dpselect.privacy.output.filter import OutputFilter, additive
from dpselect.privacy.output.oracle import output_delta, satisfies
from dpselect.repetitions import Logarithmic

ROUNDING = 1e-13  # a handful of operations on masses of at most 1, in double precision


def randomized_response(epsilon, delta=0.0):
    """The worst (epsilon, delta)-private pair (Kairouz, Oh, Viswanath 2015): outputs 0 to 3."""
    e = math.exp(epsilon)
    law = [delta, (1 - delta) * e / (1 + e), (1 - delta) / (1 + e), 0.0]
    return law, law[::-1]


def asymmetric(loss_a, loss_b):
    """Two outputs, A and B, with losses +loss_a and -loss_b."""
    lower = (1 - math.exp(-loss_b)) / (math.exp(loss_a) - math.exp(-loss_b))
    upper = math.exp(loss_a) * lower
    return [upper, 1 - upper], [lower, 1 - lower]


def tight_delta(upper, lower, cells, epsilons):
    return max(
        output_delta(upper, lower, cells=cells, epsilons=epsilons),
        output_delta(lower, upper, cells=cells, epsilons=epsilons),
    )


def identity_guarantee(cells, epsilons, delta):
    table = dict(enumerate(cells))
    return OutputGuarantee(cell=lambda output: table[output], epsilons=epsilons, delta=delta)


def laws(upper, lower):
    return [(dict(enumerate(upper)), dict(enumerate(lower)))]


masses = st.lists(st.integers(1, 60), min_size=4, max_size=4).map(lambda w: [x / sum(w) for x in w])


@st.composite
def mechanisms(draw):
    """A finite pair, a cell for each output, a price for each cell, and the delta that these need."""
    upper, lower = draw(masses), draw(masses)
    cells = draw(st.lists(st.sampled_from("abc"), min_size=4, max_size=4))
    epsilons = {cell: draw(st.integers(0, 20)) / 10 for cell in "abc"}
    return upper, lower, cells, epsilons, tight_delta(upper, lower, cells, epsilons)


def test_fact_1_the_oracle_on_randomized_response():
    upper, lower = randomized_response(0.7, 0.03)
    assert sum(upper) == pytest.approx(1, abs=ROUNDING)
    assert sum(lower) == pytest.approx(1, abs=ROUNDING)
    assert output_delta(upper, lower, cells="aaaa", epsilons={"a": 0.7}) == pytest.approx(0.03, abs=ROUNDING)


@given(mechanisms())
def test_the_oracle_is_the_definition_over_all_sets(mechanism):
    """Definition 2, by enumerating all 16 sets of outputs."""
    upper, lower, cells, epsilons, _ = mechanism
    worst = 0.0
    for chosen in range(16):
        inside = [y for y in range(4) if chosen >> y & 1]
        worst = max(worst, sum(upper[y] - math.exp(epsilons[cells[y]]) * lower[y] for y in inside))
    assert output_delta(upper, lower, cells=cells, epsilons=epsilons) == pytest.approx(worst, abs=ROUNDING)


@given(mechanisms())
def test_lemma_4_the_worst_case_holds(mechanism):
    upper, lower, cells, epsilons, delta = mechanism
    guarantee = identity_guarantee(cells, epsilons, min(delta, 1 - 1e-9))
    worst = dict.fromkeys("abc", guarantee.worst_epsilon)
    assert tight_delta(upper, lower, cells, worst) <= delta + ROUNDING


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


def test_fact_10_propose_test_release():
    """A test that is epsilon-private, an answer at 2 epsilon with delta."""
    guarantee = from_subsets({"answer": (2 * 0.3, 1e-3), "none": (0.3, 0.0)}, cell=str)
    assert (guarantee.worst_epsilon, guarantee.price("none"), guarantee.delta) == (0.6, 0.3, 1e-3)


def test_fact_11_a_cascade_of_two_tests_has_two_deltas():
    """Both stages answer v_x with mass 0.01 on inadmissible data: 2 delta - delta^2, not delta."""
    delta, epsilon = 0.01, 0.5
    answered = 2 * delta - delta**2
    upper, lower = [answered, 0.0, 1 - answered], [0.0, answered, 1 - answered]
    prices = {"answer": 3 * epsilon, "none": 2 * epsilon}
    found = tight_delta(upper, lower, ["answer", "answer", "none"], prices)
    assert found == pytest.approx(0.0199, abs=ROUNDING)


def test_satisfies_refuses_a_guarantee_that_is_a_hair_too_small():
    upper, lower = randomized_response(0.7, 0.03)
    for epsilon, delta, holds in ((0.7, 0.03, True), (0.693, 0.03, False), (0.7, 0.0297, False)):
        guarantee = OutputGuarantee(cell=lambda y: 0, epsilons={0: epsilon}, delta=delta)
        assert satisfies(guarantee, laws(upper, lower)) is holds


def test_prices_by_a_function_need_a_supremum():
    counted = OutputGuarantee(cell=len, epsilons=lambda count: 0.1 * count, supremum=0.5)
    assert counted.worst_epsilon == 0.5
    assert counted.observed("ab").epsilon(delta=0) == 0.2
    assert counted.table is None
    with pytest.raises(ArgumentError, match="supremum"):
        OutputGuarantee(cell=len, epsilons=lambda count: 0.1 * count)
    with pytest.raises(ArgumentError, match="supremum"):
        counted.observed("abcdef")
    with pytest.raises(ArgumentError, match="supremum"):
        OutputGuarantee(cell=len, epsilons={0: 1.0}, supremum=0.5)


@pytest.mark.parametrize(
    "use",
    [
        lambda price: compose(price, price),
        lambda price: compose(price),
        lambda price: worst_of(price, pure_dp(epsilon=1.0)),
        lambda price: best_of(price, Logarithmic.with_mean(mean=5)).epsilon(delta=0),
        lambda price: best_of(price, Logarithmic.with_mean(mean=5)).epsilon(delta=1e-6),
        worst,
    ],
)
def test_zoo_a_realised_price_enters_no_other_calculus(use):
    """Fact 9 by the front door: the prices of outputs that came out, composed as if they had been promised."""
    gate = OutputGuarantee(cell=bool, epsilons={True: 1.0, False: 0.01})
    assert gate.observed(False).epsilon(delta=0) == 0.01
    with pytest.raises(ArgumentError, match="realised"):
        use(gate.observed(False))
    use(gate.worst())


def test_the_output_is_not_quoted():
    guarantee = OutputGuarantee(cell=lambda x: x, epsilons={"a": 1.0})
    with pytest.raises(ArgumentError) as caught:
        guarantee.observed("secret")
    assert "secret" not in str(caught.value)


def test_what_a_divergence_used_does_not_tell_guarantees_apart():
    one, other = (
        OutputGuarantee(
            cell=len, epsilons={1: 0.5}, ordinary=pure_dp(epsilon=0.5), used=lambda _cell, orders: 0.0 * orders
        )
        for _ in range(2)
    )
    assert one == other


def test_output_guarantees_pickle():
    for guarantee in (
        OutputGuarantee(cell=len, epsilons={1: 0.5}, delta=1e-6),
        OutputGuarantee(cell=len, epsilons=math.sqrt, supremum=2.0),
    ):
        assert pickle.loads(pickle.dumps(guarantee)) == guarantee


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


def test_asymmetric_response_is_what_it_says():
    upper, lower = asymmetric(0.01, 1.0)
    assert upper[0] == pytest.approx(0.994243, abs=1e-6)  # Hartmann et al., the counterexample's masses
    assert lower[0] == pytest.approx(0.984350, abs=1e-6)
    assert np.log(np.array(upper) / lower) == pytest.approx([0.01, -1.0], abs=1e-12)


@given(
    parts=st.lists(st.integers(1, 10**6), min_size=1, max_size=6),
    digits=st.integers(1, 6),
)
def test_prices_add_up_as_they_are_typed(parts, digits):
    """Three tests at 0.2 fit a budget of 0.6, and the noise is for less than the double that stands for 0.6."""
    typed = [part / 10**digits for part in parts]
    whole = charged_price(sum(charged_amount("epsilon", value) for value in typed))
    assert charged_amount("epsilon", whole) == Fraction(sum(parts), 10**digits)
    assert sum(noise_epsilon(value) for value in typed) < Fraction(whole)
    third = Fraction(sum(parts), 3 * 10**digits)
    assert third <= charged_amount("epsilon", charged_price(third)) <= third * (1 + Fraction(1, 2**51))
