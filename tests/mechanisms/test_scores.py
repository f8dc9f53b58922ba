"""Mechanisms on scores: exact laws against brute force, exact audits of every guarantee, the samplers' laws.

Statistical tests are seeded; a correct sampler would fail one of them at rate 1e-6 were the seed free, and each says
what it would catch.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from dpselect.errors import ArgumentError
from dpselect.mechanisms import (
    ExponentialMechanism,
    PermuteAndFlip,
    ReportNoisyMax,
    ScoreChunks,
    exponential_mechanism,
    flipping,
    noisy_max,
    permute_and_flip,
    report_noisy_max,
    scores,
)
from dpselect.mechanisms.scores import CHUNK, FEW, read_scores
from dpselect.randomness import keyed_source
from tests.audits.score_laws import exponential_law, noisy_max_law, permute_and_flip_law
from tests.mechanisms.scores_cases import losses

FALSE_ALARM = 1e-6
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


def test_noisy_max_law_of_two() -> None:
    """Two Laplace noises: P(the lower wins by chance) = exp(-g) (2 + g) / 4 for a gap g."""
    for gap in (0.0, 0.3, 2.0, 20.0):
        assert_allclose(noisy_max_law([0.0, gap], 1.0)[0], math.exp(-gap) * (2 + gap) / 4, rtol=1e-10)


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


def test_a_column_of_polars_is_read_as_the_array_of_arrow() -> None:
    """Large integers are clipped alike whether or not a score is missing, so one row does not move the others."""
    polars = pytest.importorskip("polars")
    whole = read_scores(polars.Series([1 << 60, 3] + [0] * FEW)).vector()
    missing = read_scores(polars.Series([1 << 60, None] + [0] * FEW)).vector()
    assert whole[0] == missing[0] == 2.0**53
    assert missing[1] == -np.inf
