"""Questions for `python -m benchmarks`: single choices, integers and answers, as a person calls them from Python.

Each call takes its randomness from the system, as the peers do, and is given its parameters anew.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.questions import Question, Run, diffprivlib, opendp
from benchmarks.scaling import Curve
from dpselect.holdout import Gate, Holdout, HoldoutLabels, HoldoutRequest
from dpselect.mechanisms import SparseVector, TopK, exponential_mechanism, noisy_count, permute_and_flip
from dpselect.ordered import quantiles

__all__ = ["scalar_calls", "scalar_curves"]


def choices(count: int) -> Question:
    """One of some scores, by every mechanism that chooses one."""
    scores = np.random.default_rng(1).random(count)
    listed, parameters = scores.tolist(), {"sensitivity": 1.0, "epsilon": 2.0}

    def noisy_max(measure: str) -> Callable[[], Run]:
        def make() -> Run:
            dp = opendp()
            space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
            select = dp.m.make_noisy_max(*space, getattr(dp, measure)(), scale=1.0)
            return lambda: select(scores)

        return make

    def theirs(name: str) -> Callable[[], Run]:
        def make() -> Run:
            kind = getattr(diffprivlib().mechanisms, name)
            return lambda: kind(utility=listed, **parameters).randomise()

        return make

    return Question(
        "scalar calls",
        f"one of {count:,} scores",
        {
            "dpselect, exponential mechanism": lambda: lambda: exponential_mechanism(scores, **parameters),
            "dpselect, permute-and-flip": lambda: lambda: permute_and_flip(scores, **parameters),
            "OpenDP noisy max, exponential noise": noisy_max("max_divergence"),
            "OpenDP noisy max, Gumbel noise": noisy_max("zero_concentrated_divergence"),
            "diffprivlib, exponential mechanism": theirs("Exponential"),
            "diffprivlib, permute-and-flip": theirs("PermuteAndFlip"),
        },
        rounds=3,
    )


def integers() -> Iterator[Question]:
    """A count with noise."""

    def measured(make: str, metric: str, kind: type) -> Callable[[], Run]:
        def run() -> Run:
            dp = opendp()
            space = dp.atom_domain(T=int), getattr(dp, metric)(T=kind)
            noise = getattr(dp.m, make)(*space, scale=2.0)
            return lambda: noise(10)

        return run

    def theirs(name: str, **parameters: float) -> Callable[[], Run]:
        def make() -> Run:
            kind = getattr(diffprivlib().mechanisms, name)
            return lambda: kind(**parameters).randomise(10)

        return make

    yield Question(
        "scalar calls",
        "a count with discrete Laplace noise of scale 2",
        {
            "dpselect": lambda: lambda: noisy_count(10, epsilon=0.5),
            "OpenDP": measured("make_laplace", "absolute_distance", int),
            "diffprivlib (floating point)": theirs("Geometric", epsilon=0.5),
        },
    )
    yield Question(
        "scalar calls",
        "a count with discrete Gaussian noise",
        {
            "dpselect": lambda: lambda: noisy_count(10, noise_multiplier=2.0),
            "OpenDP": measured("make_gaussian", "absolute_distance", float),
            "diffprivlib (with its search for the noise)": theirs("GaussianDiscrete", epsilon=0.5, delta=1e-6),
        },
    )


def scalar_calls(quick: bool) -> Iterator[Question]:
    """All of them, in small when quick."""
    for count in (1, 10) if quick else (1, 10, 1000, 100_000):
        yield choices(count)
    yield from integers()
    session = SparseVector(epsilon_threshold=1.0, epsilon_queries=2.0, max_positives=1)
    generator = np.random.default_rng(2)
    yield Question(
        "scalar calls",
        "one query of a sparse vector, far below the threshold",
        {
            "dpselect": lambda: lambda: session.above(-300.0, 0.0),
            "NumPy Laplace noise (floating point)": lambda: lambda: -300.0 + generator.laplace(scale=2.0) > 0.0,
        },
    )
    size = 1000 if quick else 100_000
    scores, count = np.random.default_rng(1).random(size), size // 100

    def top() -> Run:
        dp = opendp()
        space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
        select = dp.m.make_noisy_top_k(*space, dp.zero_concentrated_divergence(), k=count, scale=1.0)
        return lambda: select(scores)

    yield Question(
        "scalar calls",
        f"the {count:,} best of {size:,} scores",
        {
            "dpselect": lambda: lambda: TopK(count=count, sensitivity=1.0, epsilon=2.0).draw(scores),
            "NumPy argpartition with Gumbel noise (floating point)": lambda: (
                lambda: np.argpartition(scores + generator.gumbel(size=size), -count)[-count:]
            ),
            "OpenDP noisy top k": top,
        },
        rounds=3,
    )


def scalar_curves(quick: bool) -> Iterator[Curve]:
    """How these grow: scores, tasks of a gate, rows of a holdout, rows of many quantiles."""

    def choose(n: int) -> Callable[[], Any]:
        drawn = np.random.default_rng(1).random(n)
        return lambda: TopK(count=max(n // 100, 1), sensitivity=1.0, epsilon=2.0).draw(drawn)

    def ranks(n: int) -> Callable[[], Any]:
        drawn, qs = np.random.default_rng(1).normal(size=n), [(k + 1) / 100 for k in range(99)]
        return lambda: quantiles(drawn, qs=qs, epsilon=1.0, lower=-100.0, upper=100.0)

    def ask(n: int) -> Callable[[], Any]:
        given = {str(k): float(k % 2) for k in range(n)}
        gate = Gate.create(fresh("gate"), given, consultations=10)
        return lambda: gate.ask(given)

    def score(n: int) -> Callable[[], Any]:
        ids, labels = list(map(str, range(n))), [str(k % 3) for k in range(n)]
        request = HoldoutRequest(metric="accuracy", questions=1000, answers=20, failure_probability=0.05)
        holdout, turns = (
            Holdout.create(fresh("holdout"), HoldoutLabels(ids=ids, labels=labels), request),
            iter(range(99)),
        )

        def run() -> None:
            moved = next(turns)
            holdout.score(ids=ids, predictions=labels[moved:] + labels[:moved], claim=0.5)

        return run

    def fresh(name: str) -> Path:
        folder = tempfile.mkdtemp()
        os.environ["XDG_STATE_HOME"] = folder
        return Path(folder, name)

    largest = 10_000 if quick else 1_000_000
    sizes = tuple(largest // part for part in (100, 10, 1))
    yield Curve("the best hundredth", "n scores", sizes, choose)
    yield Curve("99 quantiles", "n rows", sizes if quick else (*sizes, 10 * largest), ranks)
    yield Curve("an answer of a gate", "n tasks", (1000, 10_000) if quick else (1000, 10_000, 100_000), ask)
    yield Curve("a score of a holdout", "n rows", (1000, 10_000) if quick else (1000, 10_000, 100_000), score)
