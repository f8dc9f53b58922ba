"""Curves for `python -m benchmarks`: how a time grows with rows, domain, number of runs, workers."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpselect.accounting import best_of
from dpselect.mechanisms import SparseVector, exponential_mechanism
from dpselect.ordered import quantile
from dpselect.privacy import gaussian, pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed, Harmonic, Logarithmic
from dpselect.selection.best import best_outcome
from dpselect.tuning import ProcessExecutor, Space, Uniform, tune

__all__ = ["Curve", "curves"]

DELTA = 1e-6


@dataclass(frozen=True)
class Curve:
    """What is run, along what, where on it; `make(where)` prepares one run. `wall` is that of `Question`."""

    what: str
    along: str
    at: tuple[int, ...]
    make: Callable[[int], Callable[[], Any]]
    wall: bool = False


def trivial(params: dict[str, float], random: object) -> tuple[float, float]:  # noqa: ARG001 - an objective's
    """A trial that does nothing."""
    return params["x"], params["x"]


def nothing(_random: object) -> tuple[float, None]:
    """A candidate that does nothing."""
    return 0.0, None


def search_on(workers: int, trials: int) -> None:
    """A search of trivial trials on some worker processes."""
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp()
    tune(
        trivial,
        space=Space({"x": Uniform(0.0, 1.0)}),
        base=pure_dp(epsilon=0.1),
        repetitions=Fixed(count=trials),
        executor=ProcessExecutor(workers=workers),
    )


def curves(quick: bool) -> Iterator[Curve]:
    """All of them, in small when quick."""
    random, keys = keyed_source(1), iter(range(10**9))
    largest = 20_000 if quick else 10_000_000
    sizes = tuple(largest // part for part in (1000, 100, 10, 1))

    def scores(n: int) -> Callable[[], Any]:
        drawn = np.random.default_rng(1).random(n)
        return lambda: exponential_mechanism(drawn, sensitivity=1.0, epsilon=2.0, random=random)

    def rows(n: int) -> Callable[[], Any]:
        drawn = np.random.default_rng(1).normal(size=n)
        return lambda: quantile(drawn, q=0.5, epsilon=1.0, lower=-100.0, upper=100.0, random=random)

    def queries(n: int) -> Callable[[], Any]:
        drawn = np.random.default_rng(1).random(n)
        settings = {"epsilon_threshold": 1.0, "epsilon_queries": 2.0, "max_positives": 1}
        return lambda: SparseVector(**settings, random=keyed_source(next(keys))).above_many(drawn, 60.0)

    def domain(bits: int) -> Callable[[], Any]:
        drawn = np.sort(np.random.default_rng(1).integers(0, 2**15, largest // 10))
        upper = 2**bits - 1
        return lambda: quantile(drawn, q=0.5, lower=0, upper=upper, epsilon=1.0, assume_sorted=True, random=random)

    base = gaussian(noise_multiplier=4.0)
    runs = (10, 100, 1000, 10_000)
    yield Curve("exponential mechanism", "n scores", sizes, scores)
    yield Curve("median", "n rows", sizes, rows)
    yield Curve("sparse vector", "n queries", sizes, queries)
    yield Curve(f"median of {largest // 10:,} sorted rows", "bits of the domain", (16, 32, 64, 128, 256), domain)
    yield Curve(
        "runs of a candidate that does nothing",
        "number of runs K",
        runs,
        lambda k: lambda: best_outcome(nothing, Fixed(count=k), random),
    )
    yield Curve(
        "optimal price of the best of K",
        "mean of K",
        runs,
        lambda mean: lambda: best_of(base, Logarithmic.with_mean(mean=mean)).epsilon(DELTA),
    )
    yield Curve(
        "optimal price, K limited",
        "limit of K",
        runs,
        lambda limit: lambda: best_of(base, Harmonic(limit=limit)).epsilon(DELTA),
    )
    if not quick:
        yield Curve(
            "200 trivial trials, start of the workers included",
            "worker processes",
            (1, 2, 4),
            lambda workers: lambda: search_on(workers, 200),
            wall=True,
        )
