"""Mechanisms for scores of other kinds: several winners, different sensitivities, few rows that count."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.mechanisms import (
    ChoosingMechanism,
    GeneralisedExponentialMechanism,
    LargeMarginMechanism,
    ReportNoisyMax,
    SmoothSensitivityMechanism,
    TopK,
    bounded_range,
    smooth_sensitivity,
)
from dpselect.mechanisms.bounded_range_price import bounded_range_rho
from dpselect.mechanisms.scores import CHUNK
from dpselect.privacy import compose
from dpselect.randomness import RandomSource, keyed_source
from dpselect.testing.exact import hockey_stick
from tests.audits.broken_sparse_vectors import corrected
from tests.audits.score_laws import exponential_law, top_k_law
from tests.mechanisms.test_scores import FALSE_ALARM, neighbour_moves, p_value


@pytest.mark.full
def test_top_k_follows_peeling() -> None:
    """Durfee, Rogers (2019), Lemma 4.2: 1,500 draws of ordered pairs."""
    q, draws = [0.0, 2.0, 3.0, -1.0], 1500
    random = keyed_source("top")
    found = Counter(tuple(TopK(count=2, sensitivity=1.0, epsilon=2.0).draw(q, random=random)) for _ in range(draws))
    assert p_value(found, top_k_law(q, 0.5, 2), draws) > FALSE_ALARM


@pytest.mark.parametrize("price", [bounded_range, bounded_range_rho])
def test_a_range_below_zero_is_refused(price) -> None:
    with pytest.raises(ArgumentError, match="epsilon"):
        price(epsilon=-0.5)


def test_top_k_edges() -> None:
    random = keyed_source(1)
    q = np.array([0.0, -math.inf, math.nan, 5.0])
    for _ in range(30):
        drawn = TopK(count=4, sensitivity=1.0, epsilon=1.0).draw(q, random=random)
        assert set(drawn[:2]) == {0, 3}
        assert set(drawn[2:]) == {1, 2}
    drawn = TopK(count=100, sensitivity=1.0, epsilon=1000.0).draw(np.arange(3 * CHUNK) * 100.0, random=random)
    assert drawn == list(range(3 * CHUNK - 1, 3 * CHUNK - 101, -1))
    with pytest.raises(ArgumentError, match="count"):
        TopK(count=2, sensitivity=1.0, epsilon=1.0).draw([0.0])


class Scripted(RandomSource):
    """The first words are given."""

    __slots__ = ("_given",)

    def __init__(self, key: str, words: list[int]) -> None:
        super().__init__(key.encode().ljust(32))
        self._given = words

    def words(self, size: int) -> np.ndarray:  # type: ignore[override]
        drawn, self._given = self._given[:size], self._given[size:]
        return np.array(drawn, dtype=np.uint64)


@pytest.mark.parametrize(
    ("words", "scores", "best"),
    [([0, 1 << 63], [-1e6, 0.0], 1), ([0, 1 << 63], [1e6, 0.0], 0), ([(1 << 64) - 1, 1 << 63], [1e6, 0.0], 0)],
)
def test_words_that_say_little_are_ranked_exactly(monkeypatch, words, scores, best) -> None:
    """In chunks of one, so that a chunk after it does not take such a word for a certain winner or loser."""
    monkeypatch.setattr("dpselect.mechanisms.scores.CHUNK", 1)
    assert TopK(count=1, sensitivity=1.0, epsilon=2.0)(scores, random=Scripted("top", words)).value == [best]


def test_a_noise_of_few_bits_does_not_cut_off_others() -> None:
    """Its size is 63 log 2 plus an exponential noise of which nothing is known yet, and the other's 63 log 2 + 0.23."""
    scores = [0.0, 63 * math.log(2) + 0.23 - math.log(2)]
    mechanism = ReportNoisyMax(sensitivity=1.0, epsilon=2.0)
    won = [mechanism(scores, random=Scripted(str(key), [0, 1 << 63])).value for key in range(200)]
    assert stats.binomtest(sum(won), 200, 1 - math.exp(-0.23)).pvalue > FALSE_ALARM


def test_top_k_guarantee_composes_ranges() -> None:
    g = TopK(count=10, sensitivity=1.0, epsilon=1.0).guarantee
    assert 1.0 <= g.epsilon(delta=0) <= 1.0 + 1e-12
    assert g.epsilon(delta=1e-6) <= compose(*[bounded_range(epsilon=0.1)] * 10).epsilon(delta=1e-6) * (1 + 1e-9)


# ---- candidates of different sensitivity ----------------------------------------------------------------------------


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_normalised_scores_have_sensitivity_one(data: st.DataObject) -> None:
    """Also for scores far larger than their sensitivities, where subtraction rounds."""
    count = data.draw(st.integers(2, 6))
    bounds = data.draw(st.lists(st.sampled_from([0.25, 1.0, 3.0, 1e3]), min_size=count, max_size=count))
    centre = data.draw(st.sampled_from([0.0, 1e9, -1e15]))
    q = centre + np.array(data.draw(st.lists(st.floats(-5e3, 5e3), min_size=count, max_size=count)))
    shares = np.array(data.draw(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=count, max_size=count)))
    moved = q + shares * bounds
    exactly = [abs(Fraction(a) - Fraction(b)) <= Fraction(d) for a, b, d in zip(moved, q, bounds, strict=True)]
    if not all(exactly):
        return
    mechanism = GeneralisedExponentialMechanism(sensitivities=bounds, epsilon=1.0)
    apart = np.abs(mechanism.normalised(moved) - mechanism.normalised(q))
    assert apart.max() <= 1.0 + 2.0**-25
    assert mechanism.normalised(q).max() == 0.0


@pytest.mark.full
def test_generalised_mechanism_against_its_definition() -> None:
    """Raskhodnikova, Smith (2016): the normalised score by its double loop, and the law of the draw."""
    q, d = np.array([90.0, 95.0, 60.0]), (1.0, 40.0, 3.0)
    mechanism = GeneralisedExponentialMechanism(sensitivities=d, epsilon=1.0, failure_probability=0.1)
    t = 2.0 * math.log(3 / 0.1)
    m = [a - t * b for a, b in zip(q, d, strict=True)]
    s = [min((m[i] - m[j]) / (d[i] + d[j]) for j in range(3)) for i in range(3)]
    assert_allclose(mechanism.normalised(q), s, rtol=1e-12, atol=1e-12)
    random = keyed_source("general")
    found = Counter(
        GeneralisedExponentialMechanism(sensitivities=d, epsilon=1.0, failure_probability=0.1).draw(q, random=random)
        for _ in range(3000)
    )
    assert p_value(found, dict(enumerate(exponential_law(s, 0.5))), 3000) > FALSE_ALARM


@pytest.mark.theorem("Raskhodnikova, Smith 2016, Theorem 3.1", exact=True, sharp=True)
def test_the_error_of_the_exponential_mechanism() -> None:
    """2 log(K/beta), in units of sensitivity over epsilon: the golden values of three cases."""
    for count, beta, error in ((10, 0.05, 10.5966347), (100, 0.05, 15.2018049), (1000, 0.01, 23.0258509)):
        mechanism = GeneralisedExponentialMechanism(sensitivities=[1.0] * count, epsilon=1, failure_probability=beta)
        assert mechanism.penalty == pytest.approx(error, rel=1e-8)
        # the exponential mechanism misses by more with probability at most beta, however the scores lie
        q = np.full(count, -error)
        q[0] = 0.0
        assert 1.0 - exponential_law(q, 0.5)[0] <= beta
    # nor would less do: scores that are off by 1 % less are drawn too often
    assert 1.0 - exponential_law(0.99 * q, 0.5)[0] > beta


# ---- the other mechanisms, by exact audit ---------------------------------------------------------------------------


def choosing_law(counts: np.ndarray, mechanism: ChoosingMechanism) -> np.ndarray:
    """None first, then the candidates."""
    half = mechanism.epsilon / 2.0
    gap = half * (mechanism.threshold - counts.max())
    passes = 0.5 * math.exp(-gap) if gap >= 0 else 1.0 - 0.5 * math.exp(gap)
    weights = np.where(counts >= 1, np.exp(half * (counts - counts.max())), 0.0)
    if not weights.sum() or counts.max() < 1:
        return np.concatenate(([1.0], np.zeros(len(counts))))
    return np.concatenate(([1.0 - passes], passes * weights / weights.sum()))


@pytest.mark.theorem(
    "Beimel, Nissim, Stemmer 2013, Lemma 3.7",
    exact=True,
    loose="both steps are charged their worst at once",
)
@pytest.mark.parametrize(("growth", "delta"), [(1, 1e-3), (3, 1e-3), (2, 0.05)])
def test_choosing_mechanism_exact_audit(growth: int, delta: float) -> None:
    """Hockey-stick divergence at epsilon, both directions, over levels and numbers of candidates that join."""
    mechanism = ChoosingMechanism(growth=growth, epsilon=0.8, delta=delta)
    worst = 0.0
    for top in range(int(mechanism.threshold) + 12):
        for others, crowd in itertools.product((0, 1, top // 2, max(top - 1, 0), top), (0, 1, 50)):
            counts = np.array([top] + [others] * crowd + [0] * growth, dtype=float)
            for raised in (slice(0, 1), slice(len(counts) - growth, None), slice(0, growth)):
                more = counts.copy()
                more[raised] += 1.0
                p, r = choosing_law(counts, mechanism), choosing_law(more, mechanism)
                for a, b in ((p, r), (r, p)):
                    worst = max(worst, float(hockey_stick(a, b, np.array([0.8])).max()))
    assert worst <= delta
    assert worst > delta / 100
    assert mechanism.guarantee.epsilon(delta=delta) == 0.8
    assert mechanism.guarantee.epsilon(delta=delta / 2) == math.inf


@pytest.mark.full
def test_choosing_mechanism_draws() -> None:
    mechanism = ChoosingMechanism(growth=2, epsilon=2.0, delta=0.05)
    counts, random = np.array([5, 7, 0, 6]), keyed_source("choosing")
    found = Counter(mechanism.draw(counts, random=random) for _ in range(3000))
    law = choosing_law(counts.astype(float), mechanism)
    assert p_value(found, {None: law[0], **dict(enumerate(law[1:]))}, 3000) > FALSE_ALARM
    for odd in ([0, 0], [math.nan, -math.inf], [-3.0], [0.99]):
        assert ChoosingMechanism(growth=1, epsilon=1.0, delta=1e-3).draw(odd) is None
    with pytest.raises(AdjacencyError):
        ChoosingMechanism(growth=1, epsilon=1.0, delta=1e-6, adjacency="replace_one")


def large_margin_law(q: np.ndarray, mechanism: LargeMarginMechanism) -> np.ndarray:
    """The sparse vector over the gaps by quadrature, then the exponential mechanism among that many."""
    order = np.argsort(-q, kind="stable")
    width = 2.0 * mechanism.sensitivity * (1 + 2.0**-20)
    search = corrected(mechanism.epsilon / 4.0 / width, mechanism.epsilon / 4.0 / width, 1)
    gaps = [q[order[0]] - q[order[r]] - mechanism.threshold(r) for r in mechanism.ranks]
    law, none = np.zeros(len(q)), 1.0
    for i, rank in [*enumerate(mechanism.ranks), (None, len(q))]:
        chosen = none if i is None else search.pattern_probability(gaps[: i + 1], [False] * i + [True])
        none -= 0.0 if i is None else chosen
        near = order[:rank]
        law[near] += chosen * exponential_law(q[near], mechanism.epsilon / 4.0 / mechanism.sensitivity)
    return law


@pytest.mark.full
@pytest.mark.parametrize("delta", [0.2, 0.02])
def test_large_margin_mechanism_exact_audit(delta: float) -> None:
    """Hockey-stick divergence at epsilon for all neighbours of vectors around the margins."""
    mechanism = LargeMarginMechanism(candidates=4, sensitivity=1.0, epsilon=2.0, delta=delta)
    moves = neighbour_moves(4, monotonic=False)
    worst = 0.0
    for share in (0.0, 0.5, 0.8, 1.0, 1.3, 2.0):
        for pattern in ((0, 1, 1, 1), (0, 0, 1, 1), (0, 0.03, 1, 1.01)):
            q = -share * mechanism.threshold(2) * np.array(pattern)
            p = large_margin_law(q, mechanism)
            assert p.sum() == pytest.approx(1.0, abs=1e-9)
            moved = np.stack([large_margin_law(q + move, mechanism) for move in moves[::3]])
            for a, b in ((moved, np.broadcast_to(p, moved.shape)), (np.broadcast_to(p, moved.shape), moved)):
                worst = max(worst, float(np.maximum(a - math.exp(2.0) * b, 0.0).sum(axis=-1).max()))
    assert worst <= delta
    assert mechanism.guarantee.epsilon(delta=delta) == 2.0


@pytest.mark.full
def test_large_margin_draws() -> None:
    mechanism = LargeMarginMechanism(candidates=5, sensitivity=1.0, epsilon=4.0, delta=0.3)
    q = np.array([0.0, -40.0, -0.5, -41.0, -39.0])
    random = keyed_source("margin")
    found = Counter(mechanism.draw(q, random=random) for _ in range(2000))
    assert p_value(found, dict(enumerate(large_margin_law(q, mechanism))), 2000) > FALSE_ALARM
    for odd in ([-math.inf] * 5, [math.nan] * 5, [math.inf] * 5, [1e308, -1e308, 0, 0, 0]):
        assert 0 <= mechanism.draw(odd, random=random) < 5
    assert LargeMarginMechanism(candidates=1, sensitivity=1.0, epsilon=1.0, delta=1e-6).draw([3.0]) == 0
    with pytest.raises(ArgumentError, match="scores"):
        mechanism.draw([0.0])


def test_smooth_sensitivity_prices() -> None:
    """The exact price of random stopping: closed forms for several base prices, stopping probabilities and deltas."""

    def made(base: float, g: float, base_delta: float) -> SmoothSensitivityMechanism:
        return SmoothSensitivityMechanism(
            candidates=1, smoothness=0.0, base_epsilon=base, base_delta=base_delta, failure_probability=4.0 * g
        )

    for base, g, epsilon in (
        (1.0, 0.1, 2.59134408),
        (1.0, 0.01, 2.95370423),
        (0.1, 0.1, 0.263591285),
        (2.0, 0.1, 4.92037363),
    ):
        guarantee = made(base, g, 1e-10).guarantee
        assert guarantee.pure_epsilon == pytest.approx(epsilon, rel=1e-8)
        assert guarantee.pure_epsilon < 3.0 * base
    some = SmoothSensitivityMechanism(
        candidates=7, smoothness=0.0, base_epsilon=1.0, base_delta=1e-6, failure_probability=0.1
    )
    assert math.exp(some.shift) == pytest.approx(4 * 7 / 0.1**2)
    assert made(1.0, 0.01, 1e-10).guarantee.failure == pytest.approx(9.99999990e-9, rel=1e-8)
    assert made(0.5, 0.005, 1e-8).guarantee.failure == pytest.approx(1.99999602e-6, rel=1e-8)


@pytest.mark.full
def test_smooth_sensitivity_base_is_private() -> None:
    """One draw at the largest smoothness: exact hockey-stick divergence of the two shifted, stretched Laplace laws."""
    for base, base_delta in ((0.5, 1e-3), (1.0, 1e-2), (2.0, 1e-6)):
        m = SmoothSensitivityMechanism(candidates=3, smoothness=0.0, base_epsilon=base, base_delta=base_delta)
        eta, c, t = m.most_smooth, m.multiplier, m.shift
        for ratio, move in itertools.product((math.exp(eta), math.exp(-eta), 1.0), (-1.0, 0.0, 1.0)):
            s, other = 1.0, ratio
            gap = move * min(s, other) - t * c * (other - s)

            def density(x: np.ndarray, centre: float, scale: float) -> np.ndarray:
                return 0.5 * np.exp(-np.abs(x - centre) / scale) / scale

            x = np.linspace(-60 * c, 60 * c, 1_200_001)
            excess = np.maximum(density(x, 0.0, c * s) - math.exp(base) * density(x, gap, c * other), 0.0)
            assert np.sum(excess) * (x[1] - x[0]) <= base_delta * (1 + 1e-3)
        with pytest.raises(ArgumentError, match="smoothness"):
            SmoothSensitivityMechanism(candidates=3, smoothness=eta * 1.01, base_epsilon=base, base_delta=base_delta)


def test_smooth_sensitivity_noise_is_as_wide_as_each_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly `multiplier` times the candidate's own bound, and its score is lowered by `shift` times that."""
    seen: list[smooth_sensitivity.Contender] = []
    monkeypatch.setattr(smooth_sensitivity, "ranking", lambda contenders, _count: seen.extend(contenders) or [0])
    scores, bounds = np.array([0.0, 5.0, -1.0]), np.array([0.25, 1.0, 3.0])
    for seed in range(40):
        smooth_sensitivity._best_draw(scores, bounds, Fraction(7, 2), Fraction(1, 3), 8, keyed_source(f"w{seed}"))
    assert {each.index for each in seen} == {0, 1, 2}
    for each in seen:
        assert each.scale == Fraction(7, 2) * Fraction(bounds[each.index])
        assert each.centre == Fraction(scores[each.index]) - each.scale / 3


@pytest.mark.full
def test_smooth_sensitivity_draws() -> None:
    """Against a plain simulation of its law, 500 of each; and regardless of the numbers."""
    m = SmoothSensitivityMechanism(
        candidates=3, smoothness=1e-3, base_epsilon=1.0, base_delta=1e-3, failure_probability=0.9
    )
    q, s, random = np.array([0.0, 30.0, 60.0]), np.array([0.1, 1.0, 3.0]), keyed_source("smooth")
    draws = 500
    found = np.bincount([m.draw(q, s, random=random) for _ in range(draws)], minlength=3)
    generator, plain = np.random.default_rng(8), np.zeros(3)
    for _ in range(draws):
        i = generator.integers(3, size=generator.geometric(m.stop_probability))
        noisy = q[i] + m.multiplier * s[i] * (generator.laplace(size=len(i)) - m.shift)
        plain[i[np.argmax(noisy)]] += 1
    assert stats.chi2_contingency(np.stack([found, plain]) + 1).pvalue > FALSE_ALARM
    for odd_q, odd_s in (
        ([0, 0, 0], [0, 0, 0]),
        ([math.nan] * 3, [1, 1, 1]),
        ([1, 2, math.inf], [math.nan, math.inf, 0]),
    ):
        assert 0 <= m.draw(odd_q, odd_s, random=random) < 3
    assert (
        SmoothSensitivityMechanism(candidates=1, smoothness=0.0, base_epsilon=1.0, base_delta=1e-9).draw([7.0], [1.0])
        == 0
    )
