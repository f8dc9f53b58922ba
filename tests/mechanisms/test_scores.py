"""Mechanisms on scores: exact laws against brute force, exact audits of every guarantee, the samplers' laws.

Statistical tests are seeded; a correct sampler would fail one of them at rate 1e-6 were the seed free, and each says
what it would catch.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from scipy import integrate, stats

from dpselect.errors import ArgumentError
from dpselect.mechanisms import (
    ExponentialMechanism,
    PermuteAndFlip,
    ReportNoisyMax,
    ScoreChunks,
    bounded_range,
    exponential,
    exponential_mechanism,
    flipping,
    noisy_max,
    permute_and_flip,
    report_noisy_max,
    scores,
)
from dpselect.mechanisms.bounded_range_price import bounded_range_rho
from dpselect.mechanisms.scores import CHUNK, read_scores
from dpselect.privacy import compose, pure_dp
from dpselect.randomness import keyed_source
from dpselect.testing.exact import hockey_stick, renyi_divergence
from tests.audits.score_laws import exponential_law, noisy_max_law, permute_and_flip_law

FALSE_ALARM = 1e-6
ROUNDING = 1e-12
"""Relative error of laws computed in double precision from a handful of exponentials."""
Select = Callable[..., int]
SELECTORS: dict[str, Select] = {
    "exponential": exponential_mechanism,
    "permute-and-flip": permute_and_flip,
    "laplace": lambda s, **k: report_noisy_max(s, noise="laplace", **k),
    "exponential noise": lambda s, **k: report_noisy_max(s, noise="exponential", **k),
    "gumbel": lambda s, **k: report_noisy_max(s, noise="gumbel", **k),
}
LAWS = {
    "exponential": exponential_law,
    "permute-and-flip": permute_and_flip_law,
    "laplace": noisy_max_law,
    "exponential noise": permute_and_flip_law,
    "gumbel": exponential_law,
}


# ---- the laws themselves --------------------------------------------------------------------------------------------


def test_permute_and_flip_law_is_that_of_the_algorithm() -> None:
    """McKenna, Sheldon (2020), Algorithm 1 by brute force over all orders and coins."""
    for vector in ([0.0, -1.0, -2.5], [0.0, 0.0, -0.3, -4.0], [0.0, -0.1, -0.1, -0.1, -7.0]):
        heads = np.exp(np.array(vector))
        law = np.zeros(len(vector))
        orders = list(itertools.permutations(range(len(vector))))
        for order in orders:
            reached = 1.0
            for index in order:
                law[index] += reached * heads[index] / len(orders)
                reached *= 1.0 - heads[index]
        assert_allclose(permute_and_flip_law(vector, 1.0), law, rtol=ROUNDING)


def test_permute_and_flip_is_noisy_max_with_exponential_noise() -> None:
    """Ding et al. (2021): P(i wins) = integral of exp(-(x - q_i)) prod_j (1 - exp(-(x - q_j)))_+, by quadrature."""
    q = np.array([0.0, -0.4, -1.7])
    law = []
    for i in range(3):
        others = np.delete(q, i)
        value, _ = integrate.quad(
            lambda x, i=i, others=others: math.exp(-(x - q[i])) * np.prod(-np.expm1(-(x - others))), 0.0, 60.0
        )
        law.append(value)
    assert_allclose(permute_and_flip_law(q, 1.0), law, rtol=1e-7)


def test_noisy_max_law_of_two() -> None:
    """Two Laplace noises: P(the lower wins by chance) = exp(-g) (2 + g) / 4 for a gap g."""
    for gap in (0.0, 0.3, 2.0, 20.0):
        assert_allclose(noisy_max_law([0.0, gap], 1.0)[0], math.exp(-gap) * (2 + gap) / 4, rtol=1e-10)


@pytest.mark.theorem(
    "McKenna, Sheldon 2020, Theorem 2",
    exact=True,
    loose="it compares two mechanisms, and has no constant",
)
@given(
    vector=st.lists(st.floats(0.0, 10.0), min_size=2, max_size=7),
    rate=st.floats(0.01, 5.0),
)
@settings(deadline=None)
def test_permute_and_flip_is_never_worse(vector: list[float], rate: float) -> None:
    """McKenna, Sheldon (2020), Theorem 2: in expected score, and the distribution of the error is dominated too."""
    q = np.sort(np.array(vector))
    flip, power = permute_and_flip_law(q, rate), exponential_law(q, rate)
    assert flip @ q >= power @ q - 1e-12 * q.max()
    assert np.all(np.cumsum(flip) <= np.cumsum(power) + 1e-12)


# ---- exact audits of the guarantees ---------------------------------------------------------------------------------


def neighbour_moves(count: int, monotonic: bool) -> np.ndarray:
    """All moves of the scores by whole steps: by -1, 0 or 1 each, or by 0 or 1 each."""
    return np.array(list(itertools.product((0, 1) if monotonic else (-1, 0, 1), repeat=count)), dtype=float)


def losses(law: Callable[..., Any], q: np.ndarray, rate: float, monotonic: bool) -> np.ndarray:
    """log P/P' of every output (last axis) for every neighbour, both directions."""
    moved = np.stack([law(q + move, rate) for move in neighbour_moves(len(q), monotonic)])
    ratio = np.log(moved) - np.log(law(q, rate))
    return np.concatenate((ratio, -ratio))


@pytest.mark.cases(4)
@pytest.mark.theorem("McKenna, Sheldon 2020, Theorem 1", exact=True, sharp=True)
@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("name", ["exponential", "permute-and-flip", "laplace"])
def test_pure_epsilon_is_attained_and_never_exceeded(name: str, monotonic: bool) -> None:
    """Sensitivity one, epsilon one, random whole and real scores, every neighbour, exact probabilities."""
    rate = 1.0 if monotonic else 0.5
    generator = np.random.default_rng(5)
    worst = 0.0
    vectors = [generator.normal(0.0, 3.0, size=n) for n in (2, 3, 4) for _ in range(4)]
    far = [np.array([0.0, -g]) for g in (0.0, 1.0, 5.0, 30.0)] + [np.array([0.0, 0.0, -12.0])]
    for q in vectors + far:
        worst = max(worst, float(losses(LAWS[name], q, rate, monotonic).max()))
    kind = {"exponential": ExponentialMechanism, "permute-and-flip": PermuteAndFlip, "laplace": ReportNoisyMax}[name]
    promised = kind(sensitivity=1, epsilon=1, monotonic=monotonic).guarantee.pure_epsilon
    assert 0.99 * promised < worst <= promised * (1 + 1e-9)


@pytest.mark.theorem("Durfee, Rogers 2019, Lemma 4.2", exact=True)
@pytest.mark.parametrize("monotonic", [False, True])
def test_range_epsilon_is_attained_and_never_exceeded(monotonic: bool) -> None:
    rate = 1.0 if monotonic else 0.5
    generator = np.random.default_rng(6)
    spans = [
        np.ptp(losses(exponential_law, generator.normal(0.0, 2.0, size=4), rate, monotonic), axis=-1).max()
        for _ in range(20)
    ]
    assert max(spans) == pytest.approx(1.0, abs=1e-12)


def test_permute_and_flip_does_not_have_range_epsilon() -> None:
    """The pairing that a guarantee must not mix up: its loss spans more than epsilon and its variance is beyond."""
    ratio = losses(permute_and_flip_law, np.array([0.0, 0.0, -1.0]), 0.5, False)
    assert np.ptp(ratio, axis=-1).max() > 1.2
    assert PermuteAndFlip(sensitivity=1, epsilon=1).guarantee.renyi(2.0) > bounded_range(epsilon=1).renyi(2.0) * 1.5
    # two candidates have the profile of Laplace noise: a price below that is false
    lower, upper = PermuteAndFlip(sensitivity=1, epsilon=1).guarantee.epsilon_bracket(1e-3)
    assert 1 - 2.01e-3 < lower < upper <= 1


@pytest.mark.theorem("Durfee, Rogers 2019, Lemma 4.2", "Dong, Durfee, Rogers 2020, Lemma 3.2", exact=True, sharp=True)
@pytest.mark.parametrize("monotonic", [False, True])
def test_exponential_profile_is_exact(monotonic: bool) -> None:
    """Hockey-stick and Renyi divergences of two candidates over all weights: covered, and attained to 1e-4."""
    epsilon, rate = 1.3, 1.3 if monotonic else 0.65
    gaps = np.linspace(-8.0, 8.0, 4001)
    q = np.stack([gaps, np.zeros_like(gaps)], axis=-1)
    moved = q + (np.array([1.0, 0.0]) if monotonic else np.array([1.0, -1.0]))
    p, r = exponential_law(q, rate), exponential_law(moved, rate)
    g = ExponentialMechanism(sensitivity=1.0, epsilon=epsilon, monotonic=monotonic).guarantee
    for e in (0.0, 0.2, 0.7, 1.1):
        worst = max(hockey_stick(p, r, np.array([e])).max(), hockey_stick(r, p, np.array([e])).max())
        assert worst <= g.delta(e) * (1 + ROUNDING)
        assert worst >= g.delta(e) * (1 - 1e-4)
    for order in (1.1, 2.0, 8.0, 64.0):
        worst = max(renyi_divergence(p, r, np.array([order])).max(), renyi_divergence(r, p, np.array([order])).max())
        assert worst <= g.renyi(order) * (1 + 1e-11)
        assert worst >= g.renyi(order) * (1 - 1e-4)


def test_bounded_range_curves() -> None:
    """Total variation tanh(epsilon/4); zCDP constant 0.12330 at epsilon 1 (Harrison, Manurangsi 2026), below 1/8."""
    assert bounded_range(epsilon=2.0).delta(0.0) == pytest.approx(math.tanh(0.5), rel=1e-11)
    assert bounded_range_rho(1.0) == pytest.approx(0.12330, abs=5e-6)
    orders = 1.0 + np.geomspace(1e-6, 1e4, 200)
    for epsilon in (1e-8, 1e-3, 0.1, 1.0, 5.0, 100.0):
        curve = bounded_range(epsilon=epsilon).renyi_curve
        pure = pure_dp(epsilon=epsilon).renyi_curve
        assert curve is not None
        assert pure is not None
        values = curve(orders)
        assert np.all(np.diff(values) >= -1e-5 * values[:-1])  # the closed form cancels near order one
        assert np.all(values <= np.minimum(epsilon, epsilon**2 * orders / 8 * (1 + 1e-11)))
        assert np.all(values <= pure(orders) * (1 + 1e-9) + 1e-9 * epsilon)
        # the divergence over the order is largest at order one, where it is the zCDP constant
        assert np.all(values / orders <= bounded_range_rho(epsilon) * (1 + 1e-5) + 1e-9 * epsilon)
    assert bounded_range(epsilon=0.0).delta(0.0) == 0.0


def test_bounded_range_renyi_against_high_precision() -> None:
    """50 digits: the largest moment over two-point ratios by golden-section search."""
    mpmath.mp.dps = 50
    for epsilon, order in ((0.01, 3.0), (1.0, 1.01), (1.0, 30.0), (6.0, 2.0)):
        e, a = mpmath.mpf(epsilon), mpmath.mpf(order)

        def moment(t: Any, e: Any = e, a: Any = a) -> Any:
            q = mpmath.expm1(e - t) / mpmath.expm1(e)
            return mpmath.log(q * mpmath.exp(a * t) + (1 - q) * mpmath.exp(a * (t - e))) / (a - 1)

        low, high = mpmath.mpf(0), e
        for _ in range(120):
            left, right = low + (high - low) * 0.382, low + (high - low) * 0.618
            low, high = (left, high) if moment(left) < moment(right) else (low, right)
        curve = bounded_range(epsilon=epsilon).renyi_curve
        assert curve is not None
        got, exact = float(curve(np.array([order]))[0]), float(moment(low))
        assert exact <= got <= exact * (1 + 1e-4) + 1e-14


def test_composition_of_bounded_range_beats_pure_composition() -> None:
    bounded = compose(*[bounded_range(epsilon=0.1)] * 50).epsilon(delta=1e-6)
    pure = compose(*[pure_dp(epsilon=0.1)] * 50).epsilon(delta=1e-6)
    assert bounded < 0.55 * pure


def test_noisy_max_is_paired_with_its_divergence() -> None:
    made = {
        n: ReportNoisyMax(sensitivity=1, epsilon=1, noise=n).guarantee for n in ("laplace", "exponential", "gumbel")
    }
    assert made["gumbel"].renyi(2.0) < 0.6 * made["laplace"].renyi(2.0)
    assert all(g.epsilon(delta=0) == 1.0 for g in made.values())
    assert all(g.adjacency.value == "add_or_remove_one" for g in made.values())
    replaced = PermuteAndFlip(sensitivity=1, epsilon=1, adjacency="replace_one").guarantee
    assert replaced.adjacency.value == "replace_one"
    assert len({g.theorem for g in made.values()}) == 3


# ---- the samplers follow the laws -----------------------------------------------------------------------------------

VECTORS = {
    "mixed": [0.0, 3.0, 2.5, -1.0, 3.0],
    "flat": [7.0] * 4,
    "needle": [-2.0, -2.0, 4.0, -2.0],
    "huge": [1e15, 1e15 + 2.0, 1e15 + 4.0],
}


def p_value(found: Counter[Any], law: dict[Any, float], draws: int) -> float:
    """Chi-square, cells with fewer than 10 expected draws put together."""
    big = [k for k, p in law.items() if p * draws >= 10]
    observed = np.array([found[k] for k in big] + [draws - sum(found[k] for k in big)], dtype=float)
    expected = np.array([law[k] * draws for k in big] + [draws * max(1.0 - sum(law[k] for k in big), 0.0)])
    if expected[-1] < 10:
        observed, expected = observed[:-1], expected[:-1]
    return float(stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue)


@pytest.mark.full
@pytest.mark.parametrize("shape", VECTORS)
@pytest.mark.parametrize("name", SELECTORS)
def test_selected_index_follows_the_exact_law(name: str, shape: str) -> None:
    """4,000 draws; catches a total variation distance of 0.08 with probability above 0.99 (a rate off by a quarter)."""
    q, draws = VECTORS[shape], 4000
    random = keyed_source(f"{name} {shape}")
    found = Counter(SELECTORS[name](q, sensitivity=2.0, epsilon=1.5, random=random) for _ in range(draws))
    law = LAWS[name](np.array(q) - max(q), 1.5 / 4.0)
    assert p_value(found, dict(enumerate(law)), draws) > FALSE_ALARM


@pytest.mark.full
@pytest.mark.parametrize("name", SELECTORS)
def test_monotonic_doubles_the_rate(name: str) -> None:
    q, draws = [0.0, 1.0, 2.0], 3000
    random = keyed_source(name)
    found = Counter(
        SELECTORS[name](q, sensitivity=1.0, epsilon=1.0, monotonic=True, random=random) for _ in range(draws)
    )
    assert p_value(found, dict(enumerate(LAWS[name](q, 1.0))), draws) > FALSE_ALARM


@pytest.mark.full
@pytest.mark.parametrize("name", SELECTORS)
def test_groups_and_chunks_do_not_change_the_law(name: str) -> None:
    """Two and a bit chunks, three levels of scores: the law of the level and of the place within it.

    Catches a group of eight that is drawn as one, a chunk that is weighed twice, and places that are never drawn.
    """
    q = np.full(2 * CHUNK + 1000, -4.0)
    q[::1001] = 3.0
    q[CHUNK + 3] = 5.0
    rate, draws = 1.0, 800
    law = {
        "exponential": exponential_law,
        "gumbel": exponential_law,
        "permute-and-flip": None,
        "exponential noise": None,
        "laplace": None,
    }[name]
    random = keyed_source(f"chunks {name}")
    drawn = np.array([SELECTORS[name](q, sensitivity=1.0, epsilon=2.0, random=random) for _ in range(draws)])
    if law is not None:
        levels = Counter(q[drawn].tolist())
        exact = {v: float(law(q, rate)[q == v].sum()) for v in (-4.0, 3.0, 5.0)}
        assert p_value(levels, exact, draws) > FALSE_ALARM
    low = drawn[q[drawn] == -4.0]
    assert len(low) > 100
    assert stats.kstest(low / len(q), "uniform").pvalue > FALSE_ALARM
    assert stats.chisquare(np.bincount(low % 8, minlength=8)).pvalue > FALSE_ALARM


def test_proposal_weights_are_upper_bounds_and_waste_little() -> None:
    """What the exactness of the exponential mechanism rests on, checked with 60 digits."""
    generator = np.random.default_rng(1)
    q = np.concatenate([generator.uniform(-1, 0, 200) * 10.0**k for k in range(-8, 4)] + [np.zeros(1)])
    rate = Fraction(7, 3)
    ((_, weights),) = exponential._proposals(read_scores(q), rate)
    mpmath.mp.dps = 60
    for value, weight in zip(q.tolist(), weights.tolist(), strict=True):
        true = mpmath.exp(mpmath.mpf(value) * 7 / 3) * 2**37
        assert true <= weight <= true * (1 + mpmath.mpf(2) ** -28) + 1


@pytest.mark.full
def test_close_calls_are_settled_by_exact_arithmetic(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coins of 32 bits declared too close to call: the law stays the same through the exact path."""
    monkeypatch.setattr(flipping, "_MARGIN", 2.0**33)
    monkeypatch.setattr(noisy_max, "FEW_BITS", 1 << 63)
    q, draws = [0.0, 0.5, -1.0], 1500
    for name in ("permute-and-flip", "laplace"):
        random = keyed_source(f"close {name}")
        found = Counter(SELECTORS[name](q, sensitivity=1.0, epsilon=2.0, random=random) for _ in range(draws))
        assert p_value(found, dict(enumerate(LAWS[name](q, 1.0))), draws) > FALSE_ALARM


# ---- no matter what the scores are
# ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["exact", "float"])
@pytest.mark.parametrize("name", SELECTORS)
def test_no_score_raises(name: str, method: str) -> None:
    """Heavy ties and underflow (which crashed another library), infinities, NaN, extremes, subnormals, a single one."""
    random = keyed_source(1)
    ordinary = {"sensitivity": 1.0, "epsilon": 1.0, "method": method, "random": random}
    for vector in (
        np.full(50_000, -1e300),
        [0.0] * 1000 + [-1e308, 1e308],
        [math.inf, math.inf, 0.0],
        [math.nan],
        [-math.inf, math.nan],
        [5e-324, -5e-324, 0.0],
        [1.7e308, -1.7e308],
        [3.0],
        np.zeros(3, dtype=bool),
        np.array([2**63 - 1, -(2**63)]),
        np.array([2**64 - 1, 0], dtype=np.uint64),
        np.zeros(5, dtype=np.float16),
    ):
        assert 0 <= SELECTORS[name](vector, **ordinary) < len(vector)
    for epsilon, sensitivity in ((2.0**300, 2.0**-300), (2.0**-300, 2.0**300)):
        drawn = SELECTORS[name]([0.0, 1.0], epsilon=epsilon, sensitivity=sensitivity, random=random)
        assert drawn in ((1,) if epsilon > 1 else (0, 1))


@pytest.mark.parametrize("name", SELECTORS)
def test_nan_and_minus_infinity_are_never_selected(name: str) -> None:
    random = keyed_source(2)
    vector = np.array([-math.inf, math.nan, -1e9, math.nan] * 10)
    drawn = {SELECTORS[name](vector, sensitivity=1e9, epsilon=1.0, random=random) for _ in range(200)}
    assert {int(i) % 4 for i in drawn} == {2}
    assert len(drawn) == 10
    nothing = {SELECTORS[name]([-math.inf, math.nan], sensitivity=1, epsilon=1, random=random) for _ in range(100)}
    assert nothing == {0, 1}
    best = {SELECTORS[name]([math.inf, 1.0, math.inf], sensitivity=1, epsilon=1, random=random) for _ in range(100)}
    assert best == {0, 2}


@pytest.mark.parametrize("name", SELECTORS)
def test_storage_does_not_matter(name: str, tmp_path: Any) -> None:
    """The same draw from an array, a memory map, parts cut anywhere, an Arrow column and integers."""
    pyarrow = pytest.importorskip("pyarrow")
    q = np.random.default_rng(3).integers(0, 9, size=CHUNK + 500)
    path = tmp_path / "scores.npy"
    np.save(path, q.astype(float))

    def draw(vector: Any) -> int:
        return SELECTORS[name](vector, sensitivity=1.0, epsilon=0.5, random=keyed_source(4))

    expected = draw(q.astype(float))
    assert draw(q) == draw(q.astype(np.float32)) == draw(q.tolist()) == expected
    assert draw(np.load(path, mmap_mode="r")) == expected
    aligned = pyarrow.chunked_array([q[:CHUNK].astype(float), q[CHUNK:].astype(float)])
    assert draw(aligned) == draw(ScoreChunks(lambda: [q[:CHUNK], q[CHUNK:]])) == expected
    ragged = ScoreChunks(lambda: [q[:7], q[7:7], q[7:20_000], q[20_000:]])
    assert 0 <= draw(ragged) < len(q)


@pytest.mark.full
def test_ragged_parts_keep_the_law() -> None:
    q, draws = np.array([0.0, 1.0, 2.0, 1.5]), 2000
    parts = ScoreChunks(lambda: [q[:1], q[1:3], q[3:]])
    for name in ("exponential", "permute-and-flip", "laplace"):
        random = keyed_source(f"ragged {name}")
        found = Counter(SELECTORS[name](parts, sensitivity=1.0, epsilon=2.0, random=random) for _ in range(draws))
        assert p_value(found, dict(enumerate(LAWS[name](q, 1.0))), draws) > FALSE_ALARM


def test_scores_that_change_between_passes_are_noticed() -> None:
    passes = itertools.count()
    parts = ScoreChunks(lambda: [np.zeros(3 * CHUNK) - 10 * (next(passes) == 2)])
    with pytest.raises(RuntimeError, match="changed"):
        exponential_mechanism(parts, sensitivity=1.0, epsilon=1.0, random=keyed_source(1))


@pytest.mark.parametrize("name", SELECTORS)
def test_public_mistakes_raise_and_name_the_argument(name: str) -> None:
    select = SELECTORS[name]
    for wrong in ({"epsilon": 0.0}, {"sensitivity": -1.0}, {"epsilon": math.nan}, {"method": "fast"}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            select([0.0], **{"sensitivity": 1.0, "epsilon": 1.0, **wrong})
    for vector, error in (([], ArgumentError), ([[0.0]], ArgumentError), (["a"], TypeError), ([1j], TypeError)):
        with pytest.raises(error, match="scores"):
            select(vector, sensitivity=1.0, epsilon=1.0)
    with pytest.raises(TypeError, match="random"):
        select([0.0], sensitivity=1.0, epsilon=1.0, random=7)
    with pytest.raises(ArgumentError, match="noise"):
        ReportNoisyMax(sensitivity=1, epsilon=1, noise="gaussian")  # type: ignore[arg-type]


def test_mechanism_objects_hold_no_data() -> None:
    mechanism = ExponentialMechanism(sensitivity=1.0, epsilon=1.0)
    before = repr(mechanism)
    mechanism.draw([1.0, 2.0])
    assert repr(mechanism) == before
    assert "Scores(" not in repr(read_scores([123.456]))
    assert scores.CHUNK == CHUNK
