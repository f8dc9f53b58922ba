"""The sparse vector: exact losses of right and wrong variants, the sampler's law, and how a session ends.

Statistical tests are seeded; a correct sampler would fail one of them at rate 1e-6 were the seed free, and each says
what it would catch.
"""

from __future__ import annotations

import copy
import itertools
import math
import multiprocessing
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from dpselect.errors import ArgumentError, BudgetError, ForkedSourceError
from dpselect.mechanisms import SparseVector, sparse_vector, threshold_test
from dpselect.mechanisms.sparse_vector_prices import number_of_positives, sparse_vector_guarantee
from dpselect.privacy.output.amounts import charged_amount, noise_epsilon
from tests.audits.broken_sparse_vectors import BROKEN, SparseVectorLaw, corrected
from tests.mechanisms.sparse_vector_cases import session

FALSE_ALARM = 1e-6
QUADRATURE = 1e-9
"""Gauss-Legendre error of the laws, relative; `test_the_laws_have_known_values` checks it."""
T, F = True, False


def prices(epsilon_threshold: float, epsilon_queries: float, max_positives: int) -> dict[int, float]:
    g: Any = sparse_vector_guarantee(
        epsilon_threshold=epsilon_threshold, epsilon_queries=epsilon_queries, max_positives=max_positives
    )
    return dict(g.epsilons)


# ---- exact laws -----------------------------------------------------------------------------------------------------


def test_the_laws_have_known_values() -> None:
    """Liu, Talwar (2019), Theorem 4.1: closed forms of a threshold noise of scale s and query noises of scale 2 s."""
    law = corrected(1.0, 1.0, 1)
    halts = [law.pattern_probability([0.0] * r, [F] * (r - 1) + [T]) for r in (1, 2, 3)]
    np.testing.assert_allclose(halts, [1 / 2, 5 / 24, 5 / 48], rtol=QUADRATURE)
    for beta in (0.1, 0.5, 0.01):
        missed = law.pattern_probability([3.0 * math.log(1 / beta)], [F])
        np.testing.assert_allclose(missed, 2 / 3 * beta**1.5 - beta**3 / 6, rtol=QUADRATURE)
    gap = 3.0 * math.log(10)
    several = [law.pattern_probability([gap] * k, [F] * k) for k in (1, 2, 3, 4)]
    np.testing.assert_allclose(several, [0.020915184, 0.0011551361, 2.8433772e-4, 1.4997917e-4], rtol=1e-7)


@pytest.mark.theorem("Lyu, Su, Li 2017, Theorem 4", "Hartmann et al. 2022, Lemma 8", exact=True, sharp=True)
@pytest.mark.parametrize(
    ("pattern", "loss"),
    [
        ([F], 0.25),
        ([T], 0.25),
        ([T, T], 0.5),
        ([F, T], 0.5),
        ([F] * 10, 1.0),
        ([F] * 10 + [T], 1.5),
        ([F] * 10 + [T, T], 2.0),
    ],
)
def test_largest_losses_are_attained_and_never_exceeded(pattern: list[bool], loss: float) -> None:
    """epsilon_threshold = epsilon_queries = 1, two positives: worst over levels of positive and negative queries."""
    law = corrected(1.0, 1.0, 2)
    levels = (-40.0, -20.0, 0.0, 20.0, 40.0)
    worst = 0.0
    for low, high in itertools.product(levels, levels):
        ours = [high if a else low for a in pattern]
        theirs = [g + (-1.0 if a else 1.0) for g, a in zip(ours, pattern, strict=True)]
        worst = max(worst, law.log_ratio(ours, theirs, pattern))
    assert worst == pytest.approx(loss, abs=2e-9)
    assert worst <= prices(1, 1, 2)[number_of_positives(pattern)] * (1 + QUADRATURE)


@pytest.mark.full
@pytest.mark.parametrize(("length", "least", "most"), [(1, 0.2499, 0.25), (5, 0.9992, 1.0), (20, 0.99995, 1.0)])
def test_a_wrong_constant_shows_from_five_queries_on(length: int, least: float, most: float) -> None:
    """The worst loss of "halt at the last" for a total of one: a quarter for one query, nearly all of it for five.

    `least` is what a coarser scan of the levels found by another quadrature (Liu, Talwar 2019, Theorem 4.1).
    """
    law, levels = corrected(0.5, 0.5, 1), np.arange(-30.0, 31.0, 3.0)
    pattern = [F] * (length - 1) + [T]
    move = np.where(pattern, -1.0, 1.0)
    worst = max(
        law.log_ratio(gaps, gaps + move, pattern)
        for gaps in (np.where(pattern, high, low) for low in levels for high in levels)
    )
    assert least <= worst <= most * (1.0 + QUADRATURE)


@pytest.mark.full
@pytest.mark.theorem("Hartmann et al. 2022, Lemma 8", exact=True)
@given(
    gaps=st.lists(st.floats(-30, 30), min_size=1, max_size=6),
    moves=st.lists(st.floats(-1, 1), min_size=6, max_size=6),
    pattern=st.lists(st.booleans(), min_size=6, max_size=6),
    cap=st.integers(1, 3),
)
@settings(max_examples=150, deadline=None)
def test_every_pattern_costs_at_most_its_cell(
    gaps: list[float], moves: list[float], pattern: list[bool], cap: int
) -> None:
    answers = pattern[: len(gaps)]
    while number_of_positives(answers[:-1]) >= cap:
        answers = answers[:-1]
    ours = gaps[: len(answers)]
    theirs = [g + m for g, m in zip(ours, moves, strict=False)]
    loss = corrected(0.7, 1.1, cap).log_ratio(ours, theirs, answers)
    assert loss <= prices(0.7, 1.1, cap)[number_of_positives(answers)] + 1e-7


def worst_loss(law: SparseVectorLaw, c: int) -> float:
    """The largest loss over games of some negatives, then positives, every query moving against its answer."""
    worst = -math.inf
    for negatives, low, positives, high in itertools.product(
        (0, 1, 8), (-6.0, 0.0, 6.0), (0, 1, c, 2 * c), (-6.0, 0.0, 1.0, 6.0)
    ):
        if law.max_positives is not None and positives > law.max_positives:
            continue
        pattern = [F] * negatives + [T] * positives
        ours = [low] * negatives + [high] * positives
        theirs = [g + (-1.0 if a else 1.0) for g, a in zip(ours, pattern, strict=True)]
        values = [high] * positives if law.releases_value else []
        if pattern:
            worst = max(worst, law.log_ratio(ours, theirs, pattern, values))
    return worst


@pytest.mark.cases(2)
@pytest.mark.parametrize("variant", BROKEN, ids=lambda v: v.__name__)
def test_broken_variants_exceed_what_they_claim(variant: Callable[..., SparseVectorLaw]) -> None:
    """By exact probabilities: every one attains a loss above epsilon_threshold + epsilon_queries by 10 %."""
    assert worst_loss(variant(0.5, 0.5, 2), 2) > 1.1


def test_ours_keeps_its_claim_in_the_same_games() -> None:
    assert worst_loss(corrected(0.5, 0.5, 2), 2) <= 1.0 + 1e-9


def test_known_leaks_of_published_variants() -> None:
    """Lyu, Su, Li (2017), Figure 2: (1 + 6c)/4 epsilon bounds their Algorithm 4; Algorithms 5 and 6 have no bound."""
    by_name = {v.__name__: v for v in BROKEN}
    c, epsilon = 3, 1.0
    without_c = by_name["query_noise_without_c"](epsilon / 4, 3 * epsilon / 4, c)
    assert epsilon < worst_loss(without_c, c) <= (1 + 6 * c) / 4 * epsilon + 1e-9
    assert worst_loss(by_name["no_query_noise"](0.5, 0.5, 1), 1) == math.inf
    long = [
        by_name["no_cap"](0.5, 0.5, 1).log_ratio([0.0] * k + [1.0] * k, [1.0] * k + [0.0] * k, [F] * k + [T] * k)
        for k in (2, 4, 8)
    ]
    assert long[0] < long[1] < long[2] > 3.0


def chi_square(found: dict[tuple[bool, ...], int], law: dict[tuple[bool, ...], float], draws: int) -> float:
    """p-value; cells with fewer than 10 expected draws are put together."""
    cells = [k for k, p in law.items() if p * draws >= 10]
    observed = [found.get(k, 0) for k in cells]
    expected = [law[k] * draws for k in cells]
    rest = 1.0 - sum(law[k] for k in cells)
    if rest * draws >= 10:
        observed.append(draws - sum(observed))
        expected.append(rest * draws)
    scale = sum(observed) / sum(expected)
    return float(stats.chisquare(observed, np.array(expected) * scale).pvalue)


GAPS = [-2.0, 0.5, -1.0, 1.5]


def patterns(cap: int) -> list[tuple[bool, ...]]:
    """All answers to four queries: the session ends at its last positive."""
    full = set(itertools.product((F, T), repeat=4))
    cut = set()
    for p in full:
        where = [i for i, a in enumerate(p) if a]
        cut.add(p[: where[cap - 1] + 1] if len(where) >= cap else p)
    return sorted(cut)


@pytest.mark.full
@pytest.mark.parametrize("mode", ["one by one", "dense", "skipping"])
@pytest.mark.parametrize("cap", [1, 2])
def test_answers_follow_the_exact_law(mode: str, cap: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions against the exact law of all answer patterns.

    4,000 of them catch, with probability above 0.99, a total variation distance of 0.078: so far away are a threshold
    noise that is refreshed and a query noise of half the scale. When all queries are made to go through the slower
    skips, 1,500 catch a distance of 0.13.
    """
    law = corrected(1.0, 2.0, cap)
    exact = {p: law.pattern_probability(GAPS[: len(p)], p) for p in patterns(cap)}
    assert sum(exact.values()) == pytest.approx(1.0, abs=1e-9)
    if mode == "skipping":
        monkeypatch.setattr(threshold_test, "_DENSE", -1)
    draws = 1500 if mode == "skipping" else 4000
    found: dict[tuple[bool, ...], int] = {}
    for i in range(draws):
        sv = session((mode, cap, i), max_positives=cap)
        if mode == "one by one":
            answers = []
            for gap in GAPS:
                answers.append(sv.above(gap + 3.0, 3.0))
                if sv.halted:
                    break
        else:
            answers = sv.above_many(np.array(GAPS) + 3.0, 3.0).tolist()
        found[tuple(answers)] = found.get(tuple(answers), 0) + 1
    assert set(found) <= set(exact)
    assert chi_square(found, exact, draws) > FALSE_ALARM


@pytest.mark.full
def test_long_batches_skip_with_the_exact_law() -> None:
    """The place of the first positive among 3,000 queries that are nearly all far below, against quadrature.

    The blocks are skipped: a wrong skip length or thinning would move the law by a factor.
    """
    gaps = np.full(3000, -9.0)
    gaps[[700, 1900, 2500]] = [-3.0, -2.0, -1.0]
    draws, cells = 1500, np.zeros(5)
    for i in range(draws):
        answers = session(("skip", i)).above_many(gaps, np.zeros(3000))
        cells[{701: 0, 1901: 1, 2501: 2}.get(len(answers), 3) if answers[-1] else 4] += 1
    rho = (np.arange(200_000) + 0.5) / 2000.0 - 50.0
    mass = 0.5 * np.exp(-np.abs(rho)) / 2000.0

    def above(gap: float) -> np.ndarray:
        y = rho - gap
        return np.where(y >= 0, 0.5 * np.exp(-np.abs(y)), 1 - 0.5 * np.exp(-np.abs(y)))

    log_none = np.log1p(-np.minimum(above(-9.0), 1 - 1e-16))
    first = np.exp(700 * log_none) * above(-3.0)
    second = np.exp(1899 * log_none) * (1 - above(-3.0)) * above(-2.0)
    third = np.exp(2498 * log_none) * (1 - above(-3.0)) * (1 - above(-2.0)) * above(-1.0)
    never = np.exp(2997 * log_none) * (1 - above(-3.0)) * (1 - above(-2.0)) * (1 - above(-1.0))
    law = [float(np.sum(mass * p)) for p in (first, second, third)]
    last = float(np.sum(mass * never))
    expected = np.array([*law, 1.0 - sum(law) - last, last]) * draws
    assert expected.min() > 10
    assert stats.chisquare(cells, expected).pvalue > FALSE_ALARM


def test_monotonic_queries_get_half_the_noise() -> None:
    plain, half = session(1), session(1, monotonic=True)
    assert half._test._slope == 2.0 * plain._test._slope


# ---- how a session behaves ------------------------------------------------------------------------------------------


def test_the_session_halts_at_its_last_positive() -> None:
    sv = session("halts", max_positives=2)
    answers = sv.above_many([90.0, -90.0, 90.0, 90.0, -90.0], 0.0)
    assert answers.tolist() == [True, False, True]
    assert sv.halted
    assert sv.positives == 2
    for ask in (lambda: sv.above(0.0, 0.0), lambda: sv.above_many([0.0], 0.0)):
        with pytest.raises(BudgetError):
            ask()


def test_batches_cross_chunks_and_halt_inside_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_vector, "_BATCH", 700)
    values = np.full(2000, -1e4)
    values[[5, 699, 700, 1500, 1999]] = 1e4
    answers = session("chunks", max_positives=4).above_many(values, np.zeros(2000))
    assert np.flatnonzero(answers).tolist() == [5, 699, 700, 1500]
    assert len(answers) == 1501
    answers = session("all", max_positives=9).above_many(values, np.zeros(2000))
    assert np.flatnonzero(answers).tolist() == [5, 699, 700, 1500, 1999]
    assert len(answers) == 2000


def test_odd_values_are_answers_not_errors() -> None:
    sv = session("odd", max_positives=5)
    assert not sv.above(math.nan, 0.0)
    assert not sv.above(-math.inf, 0.0)
    assert not sv.above(math.inf, math.inf)
    assert sv.above(math.inf, 0.0)
    assert sv.above(0.0, -math.inf)
    assert sv.above(1.7e308, -1.7e308)
    values = np.array([math.nan, -math.inf, math.inf, 1e308, -1e308] + [math.nan] * 600)
    assert session("odd", max_positives=5).above_many(values, 0.0).nonzero()[0].tolist() == [2, 3]
    assert session("odd", max_positives=5).above_many(values, np.zeros(605)).nonzero()[0].tolist() == [2, 3]
    assert session("whole").above_many(np.arange(-900, -300), 0).sum() == 0
    assert session("empty").above_many(np.zeros(0), 0.0).tolist() == []


def test_guarantee_prices_by_the_number_of_positives() -> None:
    g = session(1, max_positives=4).guarantee
    assert prices(1.0, 2.0, 4) == {0: 1.0, 1: 1.5, 2: 2.0, 3: 2.5, 4: 3.0}
    assert g.worst().epsilon(delta=0) == 3.0
    assert g.observed([False, True, False]).epsilon(delta=0) == 1.5
    assert pickle.loads(pickle.dumps(g)).worst().epsilon(delta=0) == 3.0
    for c, price in prices(0.1, 0.2, 3).items():
        # a ledger charges no less than the decimals, and the noise is for less than the double
        assert charged_amount("price", price) >= Fraction("0.1") + Fraction("0.2") * c / 3
        assert Fraction(price) >= noise_epsilon(0.1) + noise_epsilon(0.2) * c / 3


def test_the_noise_cannot_leave() -> None:
    sv = session("secret")
    assert "0x" not in repr(sv)
    assert str(sv._test._offset)[:6] not in repr(sv)
    for leak in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            leak(sv)


def ask_in_child(sv: SparseVector, answers: object) -> None:
    try:
        answers.put(sv.above(0.0, 0.0))  # type: ignore[attr-defined]
    except ForkedSourceError:
        answers.put("refused")  # type: ignore[attr-defined]


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_a_forked_child_is_refused() -> None:
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(
        target=ask_in_child, args=(SparseVector(epsilon_threshold=1, epsilon_queries=1, max_positives=1), answers)
    )
    child.start()
    assert answers.get(timeout=20) == "refused"
    child.join()


@pytest.mark.parametrize(
    "wrong",
    [{"epsilon_threshold": 0.0}, {"epsilon_queries": math.nan}, {"max_positives": 0}, {"sensitivity": -1.0}],
)
def test_parameters_out_of_range(wrong: dict[str, float]) -> None:
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        session(1, **wrong)


def test_thresholds_out_of_range() -> None:
    with pytest.raises(ArgumentError, match="threshold"):
        session(1).above(0.0, math.nan)
    for thresholds in ([0.0, 0.0], [math.nan, 0.0, 0.0]):
        with pytest.raises(ArgumentError, match="thresholds"):
            session(1).above_many([0.0, 1.0, 2.0], thresholds)
    with pytest.raises(ArgumentError, match="values"):
        session(1).above_many(np.zeros((2, 2)), 0.0)
