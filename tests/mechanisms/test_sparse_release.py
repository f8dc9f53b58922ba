"""What a sparse vector and the release of its findings cost: exact audits by cells, the ledger, and the figures.

"Fact n" are worked examples for Hartmann, Bindschaedler, Bentkamp, West (2022), computed by hand or integration.
Statistical tests are seeded; a correct sampler would fail one of them at rate 1e-6 were the seed free.
"""

from __future__ import annotations

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.ledger import AlreadySettledError, InsufficientBudget, InteractionOpenError, Ledger
from dpselect.mechanisms import SparseRelease, SparseVector, balanced_split
from dpselect.mechanisms.sparse_release import SparseAnswers
from dpselect.mechanisms.sparse_vector_prices import answer_counts, number_of_positives, sparse_vector_guarantee
from dpselect.privacy import OutputGuarantee, pure_dp
from dpselect.privacy.output.amounts import charged_amount
from dpselect.randomness import keyed_source
from tests.audits.broken_sparse_vectors import corrected
from tests.ledger.test_accounting import Mechanism, Record, advantage
from tests.mechanisms.propose_test_release_cases import needed_delta
from tests.mechanisms.test_sparse_vector_prices import refined
from tests.privacy.output.guarantee_cases import randomized_response

T, F = True, False
FIRST, SECOND = balanced_split(epsilon=0.5, max_positives=20)
SPENDS = ("all", "release", "each")


# ---- exact audits ----------------------------------------------------------------------------------------------------


def release_law(mechanism, values, neighbour, threshold):
    """Answers and values of `SparseRelease`; a value is below both sides' truth, between them, or above both.

    Within either outer part the ratio is the same everywhere, and it is nowhere larger.
    """
    session = corrected(mechanism.epsilon_threshold, mechanism.epsilon_queries, mechanism.max_positives)
    law = {}
    gaps = [abs(v) - threshold for v in values]
    for full in itertools.product((F, T), repeat=len(values)):
        places = [i for i, a in enumerate(full) if a]
        most = mechanism.max_positives
        pattern = full[: places[most - 1] + 1] if len(places) >= most else full
        if (pattern,) in law or any(key[0] == pattern for key in law):
            continue
        mass = session.pattern_probability(gaps[: len(pattern)], pattern)
        positives, negatives = answer_counts(pattern)
        found = [i for i, a in enumerate(pattern) if a]
        for sides in itertools.product("<=>", repeat=positives):
            p = mass
            for i, side in zip(found, sides, strict=True):
                p *= part_probability(side, values[i], neighbour[i], mechanism.scale(positives, negatives))
            law[pattern, sides] = p
    return law


def part_probability(side, centre, other, scale):
    low, high = min(centre, other), max(centre, other)
    below = 0.5 * math.exp((low - centre) / scale)
    above = 0.5 * math.exp((centre - high) / scale)
    return {"<": below, ">": above, "=": 1 - below - above}[side]


def by_counts(mechanism, prices=None):
    """The guarantee on what `release_law` lists."""
    own = mechanism.guarantee
    return OutputGuarantee(
        cell=lambda output: answer_counts(list(output[0])), epsilons=prices or own.epsilons, supremum=own.supremum
    )


def sparse_release(**changes):
    fixed = {"epsilon_threshold": 0.3, "epsilon_queries": 0.8, "epsilon_release": 0.4, "max_positives": 2}
    return SparseRelease(**{**fixed, **changes})


GAMES = [
    (values, tuple(v + m for v, m in zip(values, moves, strict=True)))
    for values in ((0.0, 9.0, 30.0), (40.0, 40.0, -40.0), (9.0, 10.0, 11.0))
    for moves in itertools.product((-1.0, 1.0), repeat=3)
]


@pytest.mark.cases(1)
@pytest.mark.parametrize("spend", SPENDS)
@pytest.mark.parametrize("cap", [1, 2])
def test_the_release_costs_what_its_cell_says(spend, cap):
    """No delta is needed at the cells' prices, in both directions and over all answers; at 0.9 of them some is."""
    mechanism = sparse_release(spend=spend, max_positives=cap)
    cheaper = by_counts(mechanism, lambda cell: 0.9 * mechanism.price(cell))
    needed, missing = 0.0, 0.0
    for values, neighbour in GAMES:
        one = release_law(mechanism, values, neighbour, 10.0)
        other = release_law(mechanism, neighbour, values, 10.0)
        assert sum(one.values()) == pytest.approx(1, abs=1e-8)
        needed = max(needed, needed_delta(one, other, by_counts(mechanism)))
        missing = max(missing, needed_delta(one, other, cheaper))
    assert needed <= 1e-9
    assert missing > 1e-4


@pytest.mark.full
def test_zoo_values_that_cost_more_than_is_charged():
    """Spending all that is left and charging epsilon_release; and giving both of two values all of epsilon_release."""
    spender, charged = sparse_release(spend="all"), sparse_release(spend="release")
    wrong = by_counts(spender, charged.price)
    unshared = sparse_release(spend="release", epsilon_release=0.8)
    games = [(v, n) for v, n in GAMES if v[0] == 40.0]
    for mechanism, guarantee in ((spender, wrong), (unshared, by_counts(unshared, charged.price))):
        laws = [[release_law(mechanism, a, b, 10.0) for a, b in ((v, n), (n, v))] for v, n in games]
        assert max(needed_delta(*pair, guarantee) for pair in laws) > 0.01


@pytest.mark.cases(5)
@pytest.mark.parametrize("counts", [number_of_positives, answer_counts])
@pytest.mark.parametrize("gaps", [((0.0, 1.0), (1.0, 0.0)), ((-3.0, 3.0), (-2.0, 2.0)), ((4.0, 4.0), (5.0, 5.0))])
def test_no_adversary_beats_the_ledger_with_sparse_vectors(counts, gaps):
    """Sessions of two queries, one positive, among randomised responses; all adaptive orders, by the exact laws."""
    law = corrected(0.4, 0.6, 1)
    patterns = [(T,), (F, T), (F, F)]
    laws = [[law.pattern_probability(side[: len(p)], p) for p in patterns] for side in gaps]
    parameters = {"epsilon_threshold": 0.4, "epsilon_queries": 0.6, "max_positives": 1}
    priced = sparse_vector_guarantee(**parameters) if counts is number_of_positives else refined(**parameters)
    table = {counts(list(p)): priced.price(counts(list(p))) for p in patterns}
    sv = OutputGuarantee(cell=counts, epsilons=table)
    response = Mechanism(*randomized_response(0.3, 0.01), "cccc", {"c": 0.3})
    response.guarantee = OutputGuarantee(cell=str, epsilons={"c": 0.3}, delta=0.01)
    for swap in (1, -1):
        session = Mechanism(*laws[::swap], [counts(list(p)) for p in patterns], {}, sv)
        for epsilon in (1.0, 1.6):
            assert advantage(Record(epsilon, 0.02), [session, response], epsilon, 3) <= 0.02 + 1e-9


# ---- the sampler -----------------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("spend", SPENDS)
def test_releases_follow_their_exact_law(spend):
    """Answers and the signs of the noise; the sizes of the noise, in units of its scale, beside that.

    2,000 runs catch a total variation distance of 0.12 with probability above 0.99.
    """
    mechanism = sparse_release(spend=spend)
    values = (1.0, -4.0, 3.0)
    law = release_law(mechanism, values, values, 2.0)
    found, sizes = {}, []
    for i in range(2000):
        output = mechanism.draw(values, threshold=2.0, random=keyed_source(f"{spend} {i}"))
        counts = answer_counts(output.answers)
        noise = [v - values[k] for k, v in sorted(output.values.items())]
        assert [k for k, _ in sorted(output.values.items())] == np.flatnonzero(output.answers).tolist()
        sizes += [z / mechanism.scale(*counts) for z in noise]
        # a value that is hit exactly, a grid step wide, counts as above
        key = tuple(output.answers.tolist()), tuple("<" if z < 0 else ">" for z in noise)
        found[key] = found.get(key, 0) + 1
    cells = [k for k, p in law.items() if p > 0]
    expected = np.array([law[k] for k in cells]) * 2000
    assert expected.min() > 5
    assert set(found) <= set(cells)
    assert stats.chisquare([found.get(k, 0) for k in cells], expected * 2000 / expected.sum()).pvalue > 1e-6
    # steps of a thousandth of the scale: as good as continuous here
    assert stats.kstest(sizes, stats.laplace.cdf).pvalue > 1e-6


def test_values_lie_on_a_grid_and_may_be_anything():
    mechanism = sparse_release(sensitivity=3.0, epsilon_release=9.0)
    output = mechanism.draw([math.nan, 1e300, -math.inf, 5.3], threshold=[0, 1, 2, 1e9], random=keyed_source(1))
    assert output.answers.tolist() == [F, T, T]
    assert set(output.values) == {1, 2}
    assert all(math.isfinite(v) and (v * 512).is_integer() for v in output.values.values())
    asked = []
    other = mechanism.draw(
        [90.0, 90.0], threshold=0.0, answer=lambda i, e, _: asked.append((i, e)), random=keyed_source(1)
    )
    assert asked == [(0, mechanism.price.epsilon_each(2, 0)), (1, mechanism.price.epsilon_each(2, 0))]
    assert dict(other.values) == {0: None, 1: None}


# ---- the paper's Figure 1 --------------------------------------------------------------------------------------------

FIGURE_1 = [
    (1, 0.0624131495, 0.937586851, 1.06656786),
    (2, 0.0854440363, 0.914555964, 2.18685360),
    (5, 0.154536697, 0.845463303, 5.91391724),
    (10, 0.269691131, 0.730308869, 13.6928366),
    (15, 0.384845566, 0.615154434, 24.3841207),
    (19, 0.476969113, 0.523030887, 36.3267265),
    (20, 0.5, 0.5, 40),
]


def figure_1(spend="all"):
    return SparseRelease(
        epsilon_threshold=FIRST, epsilon_queries=SECOND, epsilon_release=0.5, max_positives=20, spend=spend
    )


@pytest.mark.parametrize(("found", "charge", "left", "scale"), FIGURE_1)
def test_fact_25_scales_of_figure_1(found, charge, left, scale):
    """100 entries: with what is left, with a privacy filter only, and without either."""
    search = figure_1()
    assert float(search.price.session.exact(found, 100 - found)) == pytest.approx(charge, rel=2e-9)
    assert float(found * search.price.epsilon_each(found, 100 - found)) == pytest.approx(left, rel=2e-9)
    assert search.scale(found, 100 - found) == pytest.approx(scale, rel=2e-9)
    assert figure_1("release").scale(found, 100 - found) == pytest.approx(2 * found, rel=1e-12)
    assert figure_1("each").scale(found, 100 - found) == pytest.approx(40, rel=1e-12)
    assert math.sqrt(2) * figure_1("each").scale(found, 100 - found) == pytest.approx(56.5685425, rel=1e-9)


def test_fact_25_the_split_and_the_comparisons():
    assert balanced_split(epsilon=0.5, max_positives=20) == pytest.approx((0.0393822626, 0.4606177374), abs=5e-11)
    scales = [1 / FIRST, 40 / SECOND]
    assert scales == pytest.approx([25.3921419, 86.8399038], abs=5e-8)
    variance = 2 * (1 / FIRST**2 + (40 / SECOND) ** 2)
    assert variance == pytest.approx(16371.8595, abs=5e-5)
    assert variance / 500**2 == pytest.approx(0.0654874, abs=5e-8)
    assert corrected(FIRST, SECOND, 20).pattern_probability([-500.0], [T]) == pytest.approx(0.001727, abs=5e-7)
    half = balanced_split(epsilon=1, max_positives=8, monotonic=True)
    assert half == pytest.approx((0.2, 0.8), abs=1e-15)
    assert sum(charged_amount("epsilon", part) for part in half) <= 1


@pytest.mark.parametrize(
    ("large", "mean", "scale"),
    [
        (1, 1.169, 1.259),
        (2, 2.166, 2.383),
        (5, 5.155, 6.130),
        (10, 10.14, 13.95),
        (15, 15.12, 24.71),
        (18, 18.11, 33.34),
        (20, 19.97, 39.89),
    ],
)
def test_fact_25_expected_noise_of_figure_1(large, mean, scale):
    """Integration over the threshold noise; four digits are given."""
    rho = np.linspace(-45, 45, 1801)
    weight = 0.5 * np.exp(-np.abs(rho)) * (rho[1] - rho[0])

    def passing(gap):
        excess = (rho / FIRST - gap) * SECOND / 40
        tail = 0.5 * np.exp(-np.abs(excess))
        return np.where(excess >= 0, tail, 1 - tail)

    counts = np.arange(101)
    big = stats.binom.pmf(counts[: large + 1], large, passing(500.0)[:, None])
    small = stats.binom.pmf(counts[: 101 - large], 100 - large, passing(-500.0)[:, None])
    law = np.array([np.convolve(a, b) for a, b in zip(big, small, strict=True)]).T @ weight
    capped = np.append(law[:20], law[20:].sum())
    search = figure_1()
    scales = [search.scale(c, 100 - c) for c in range(1, 21)]
    assert capped @ np.arange(21) == pytest.approx(mean, rel=5e-4)
    assert capped[1:] @ scales / capped[1:].sum() == pytest.approx(scale, rel=5e-4)


# ---- through the ledger ----------------------------------------------------------------------------------------------


def test_fact_3_an_open_session_then_values_with_what_is_left(tmp_path):
    """Five hits of twenty leave 0.845463303 of 1; nothing else runs while the session is open."""
    with Ledger.open(tmp_path / "b.db") as ledger:
        budget = ledger.create_budget("b", epsilon=1)
        sv = SparseVector(
            epsilon_threshold=FIRST, epsilon_queries=SECOND, max_positives=20, random=keyed_source("fact 3")
        )
        with budget.reserve(sv.guarantee, label="large entries") as charge:
            assert float(budget.remaining().epsilon) == pytest.approx(0.5)
            answers = []
            for value in [0.0] * 10 + [5000.0] * 5 + [0.0] * 10:
                answers.append(sv.above(value, 1000.0))
                with pytest.raises(InteractionOpenError):
                    budget.reserve(pure_dp(epsilon=0), label="meanwhile")
            assert sum(answers) == 5
            charge.settle(answers)
        left = budget.remaining().epsilon
        assert float(left) == pytest.approx(0.845463303, abs=5e-10)
        assert 5 / float(left) == pytest.approx(5.91391724, abs=5e-8)
        for _ in range(5):
            budget.reserve(pure_dp(epsilon=math.nextafter(float(left) / 5, 0)), label="value")
        assert budget.remaining().epsilon < Fraction(1, 10**14)
        with pytest.raises(InsufficientBudget):
            budget.reserve(pure_dp(epsilon=1e-6), label="one more")
        assert ledger.verify()


def test_a_session_that_dies_is_paid_in_full_and_frees_the_lock(tmp_path):
    sv = SparseVector(epsilon_threshold=1, epsilon_queries=1, max_positives=2)
    with Ledger.open(tmp_path / "b.db") as ledger:
        budget = ledger.create_budget("b", epsilon=3)
        budget.reserve(sv.guarantee, label="session", identifier="s")
    with Ledger.open(tmp_path / "b.db") as ledger:
        budget = ledger.budget("b")
        with pytest.raises(InteractionOpenError):
            budget.reserve(pure_dp(epsilon=0.5), label="next")
        budget.settle("s")
        assert budget.spent().epsilon == 2
        budget.reserve(pure_dp(epsilon=0.5), label="next")


@pytest.mark.parametrize("spend", SPENDS)
def test_the_release_is_settled_at_what_outcome(tmp_path, spend):
    mechanism = sparse_release(spend=spend)
    with Ledger.open(tmp_path / "b.db") as ledger:
        budget = ledger.create_budget("b", epsilon=9)
        for values in ([-90.0] * 3, [0.0] * 40, [90.0, 0.0, 90.0, 90.0]):
            before = budget.spent().epsilon
            with budget.reserve(mechanism.guarantee, label="entries") as charge:
                assert float(budget.spent().epsilon - before) == pytest.approx(1.5)
                output = mechanism.draw(values, threshold=50.0, random=keyed_source(2))
                charge.settle(output)
            price = mechanism.price(answer_counts(output.answers))
            assert float(budget.spent().epsilon - before) == pytest.approx(price, abs=1e-15)
        assert pickle.loads(pickle.dumps(mechanism.guarantee)) == mechanism.guarantee
        assert ledger.verify()
    assert mechanism.price((0, 40)) == pytest.approx(0.3)
    assert mechanism.price((0, 0)) == 0
    expected = {"all": 1.5, "release": 0.3 + 0.4 + 0.4, "each": 0.3 + 0.4 + 0.2}
    assert mechanism.price((1, 40)) == pytest.approx(expected[spend])


@pytest.mark.parametrize("outside", [None, 3, "TF", [[T]], [0.0, 1.0], [T, T, T]])
def test_a_wrong_output_is_refused_and_the_reservation_stands(tmp_path, outside):
    """A count in place of the answers, say, would otherwise be charged as one answer."""
    guarantees = (
        sparse_vector_guarantee(epsilon_threshold=1, epsilon_queries=1, max_positives=2),
        refined(),
        sparse_release().guarantee,
    )
    with Ledger.open(tmp_path / "b.db") as ledger:
        budget = ledger.create_budget("b", epsilon=9)
        moved = ledger.create_budget("replaced", epsilon=9, adjacency="replace_one")
        for guarantee in guarantees:
            with pytest.raises(AdjacencyError):
                moved.reserve(guarantee, label="entries")
            charge = budget.reserve(guarantee, label="entries")
            before = budget.spent()
            with pytest.raises(ArgumentError):
                charge.settle(outside)
            assert budget.spent() == before
            right = SparseAnswers(np.array([T, F]), {}) if guarantee is guarantees[2] else [T, F]
            charge.settle(right)
            with pytest.raises(AlreadySettledError):
                charge.settle(right)
        assert ledger.verify()


def test_parameters_out_of_range():
    for wrong in ({"epsilon_release": 0}, {"max_positives": 0}, {"sensitivity": -1}, {"spend": "some"}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            sparse_release(**wrong)
    with pytest.raises(ArgumentError, match="supremum"):
        OutputGuarantee(cell=answer_counts, epsilons=sparse_release().price)
    with pytest.raises(ArgumentError, match="thresholds"):
        sparse_release().draw([1.0, 2.0], threshold=[1.0])
    with pytest.raises(ArgumentError, match="epsilon"):
        balanced_split(epsilon=0, max_positives=2)
