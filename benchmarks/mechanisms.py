"""Processor time of the mechanisms on scores, the sparse vector and bulk noise, beside NumPy, OpenDP and diffprivlib.

    OPENBLAS_NUM_THREADS=1 python benchmarks/mechanisms.py [--count 10000000] [--repeats 3]

Every figure is the smallest of `--repeats` runs of one process, and a ratio to the plain NumPy pass named in the
heading, from the same run. OpenDP and diffprivlib are shown where they are installed; diffprivlib, which takes
seconds, is measured on a twentieth of the scores and scaled up. The shapes of the scores: uniform in [0, 1], one needle
of 1 among scores of -1000, uniform and sorted, all equal. Epsilon 2, sensitivity 1.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

from dpselect.mechanisms import SparseVector, TopK, exponential_mechanism, permute_and_flip, report_noisy_max
from dpselect.mechanisms.grid import gaussian_steps
from dpselect.randomness import discrete_gaussian_array, keyed_source
from dpselect.randomness.integers import discrete_laplace_array

Run = Callable[[], Any]
EPSILON = 2.0


def seconds(run: Run, repeats: int) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


def shapes(count: int) -> dict[str, np.ndarray]:
    uniform = np.random.default_rng(1).random(count)
    needle = np.full(count, -1000.0)
    needle[count // 3] = 1.0
    return {"uniform": uniform, "needle": needle, "sorted": np.sort(uniform), "flat": np.ones(count)}


def opendp_selectors() -> dict[str, Callable[[np.ndarray], Any]]:
    try:
        import opendp.prelude as dp
    except ImportError:
        return {}
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    return {
        "OpenDP noisy max, exponential noise": dp.m.make_noisy_max(*space, dp.max_divergence(), scale=2.0 / EPSILON),
        "OpenDP noisy max, Gumbel noise": dp.m.make_noisy_max(
            *space, dp.zero_concentrated_divergence(), scale=2.0 / EPSILON
        ),
    }


def diffprivlib_selector(scores: np.ndarray) -> Run | None:
    try:
        from diffprivlib.mechanisms import Exponential
    except ImportError:
        return None
    few = scores[: len(scores) // 20].tolist()
    return lambda: Exponential(epsilon=EPSILON, sensitivity=1.0, utility=few).randomise()


def gumbel_argmax(scores: np.ndarray) -> Run:
    generator = np.random.default_rng(2)
    return lambda: np.argmax(scores * (EPSILON / 2.0) + generator.gumbel(size=len(scores)))


def selection(count: int, repeats: int) -> None:
    random = keyed_source(1)
    parameters: dict[str, Any] = {"sensitivity": 1.0, "epsilon": EPSILON, "random": random}
    for name, scores in shapes(count).items():
        unit = seconds(scores.max, repeats)
        print(f"\nbest of {count:,} scores, {name}: numpy.max {unit * 1e3:.2f} ms; ratios to it")
        ours: dict[str, Run] = {
            "exponential mechanism": lambda s=scores: exponential_mechanism(s, **parameters),
            'exponential mechanism, method="float"': lambda s=scores: exponential_mechanism(
                s, method="float", **parameters
            ),
            "permute-and-flip": lambda s=scores: permute_and_flip(s, **parameters),
            "report noisy max, Laplace": lambda s=scores: report_noisy_max(s, **parameters),
            "top 10": lambda s=scores: TopK(count=10, sensitivity=1.0, epsilon=EPSILON).draw(s, random=random),
            "NumPy Gumbel argmax (floating point)": gumbel_argmax(scores),
        }
        for label, run in ours.items():
            print(f"  {label:<40} {seconds(run, repeats) / unit:>9.1f}")
        for label, select in opendp_selectors().items():
            print(f"  {label:<40} {seconds(lambda f=select, s=scores: f(s), 1) / unit:>9.1f}", flush=True)
        peer = diffprivlib_selector(scores)
        if peer:
            print(f"  {'diffprivlib exponential':<40} {20 * seconds(peer, 1) / unit:>9.1f}")
    scores = np.random.default_rng(1).random(count)
    tracemalloc.start()
    exponential_mechanism(scores, **parameters)
    permute_and_flip(scores, **parameters)
    report_noisy_max(scores, **parameters)
    print(f"\nlargest extra memory of these three: {tracemalloc.get_traced_memory()[1] / 1e6:.1f} MB")
    tracemalloc.stop()


def small(repeats: int) -> None:
    random = keyed_source(1)
    parameters: dict[str, Any] = {"sensitivity": 1.0, "epsilon": EPSILON, "random": random}
    scores = np.arange(10.0)
    print("\nten scores, microseconds a call")
    ours: dict[str, Callable[..., Any]] = {
        "exponential mechanism": exponential_mechanism,
        "permute-and-flip": permute_and_flip,
        "report noisy max, Laplace": report_noisy_max,
    }
    for label, select in ours.items():
        spent = seconds(lambda f=select: [f(scores, **parameters) for _ in range(500)], repeats)
        print(f"  {label:<40} {spent / 500 * 1e6:>9.1f}")
    for label, peer in opendp_selectors().items():
        spent = seconds(lambda f=peer: [f(scores) for _ in range(500)], repeats)
        print(f"  {label:<40} {spent / 500 * 1e6:>9.1f}")


def session(key: int) -> SparseVector:
    return SparseVector(epsilon_threshold=1.0, epsilon_queries=2.0, max_positives=1, random=keyed_source(key))


def sparse_vector(count: int, repeats: int) -> None:
    values = np.random.default_rng(1).random(count)
    for name, threshold in (("one threshold", 60.0), ("one threshold each", np.full(count, 60.0))):
        unit = seconds(lambda t=threshold: values > t, repeats)
        keys = iter(range(1000))

        def run(t: Any = threshold, keys: Any = keys) -> Any:
            sv = SparseVector(
                epsilon_threshold=1.0, epsilon_queries=2.0, max_positives=1, random=keyed_source(next(keys))
            )
            return sv.above_many(values, t)

        spent = seconds(run, repeats)
        print(
            f"\nsparse vector, {count:,} queries, {name}: compare pass {unit * 1e3:.2f} ms; "
            f"above_many {spent / unit:.1f} of them"
        )
    sv = session(1)
    spent = seconds(lambda: [sv.above(-300.0, 0.0) for _ in range(10_000)], repeats)
    print(f"sparse vector, one query at a time: {spent / 1e4 * 1e6:.1f} microseconds")


def noise(repeats: int) -> None:
    count, random, generator = 1 << 21, keyed_source(1), np.random.default_rng(1)
    numpy_laplace = seconds(lambda: generator.laplace(size=count), repeats)
    numpy_normal = seconds(lambda: generator.standard_normal(count), repeats)
    print("\nbulk noise, nanoseconds a draw and ratio to NumPy's continuous one of that name")
    ours: dict[str, tuple[Run, float]] = {
        "NumPy Laplace": (lambda: generator.laplace(size=count), numpy_laplace),
        "Laplace": (lambda: random.laplace(count), numpy_laplace),
        "discrete Laplace, scale 2": (lambda: discrete_laplace_array(2.0, count, random), numpy_laplace),
        "discrete Laplace, scale 1000": (lambda: discrete_laplace_array(1000.0, count, random), numpy_laplace),
        "NumPy normal": (lambda: generator.standard_normal(count), numpy_normal),
        "normal": (lambda: random.normal(count), numpy_normal),
        "discrete Gaussian, deviation 2": (lambda: discrete_gaussian_array(4.0, count, random), numpy_normal),
        "discrete Gaussian, deviation 1000": (lambda: discrete_gaussian_array(1e6, count, random), numpy_normal),
        "Gaussian of 2**30 grid steps": (lambda: gaussian_steps(2.0**30, count, random), numpy_normal),
    }
    for label, (run, unit) in ours.items():
        spent = seconds(run, repeats)
        print(f"  {label:<40} {spent / count * 1e9:>9.1f} {spent / unit:>6.2f}")
    try:
        import opendp.prelude as dp
    except ImportError:
        return
    dp.enable_features("contrib")
    few = 20_000
    whole = dp.vector_domain(dp.atom_domain(T=int))
    peers = {
        "OpenDP discrete Laplace, scale 2": dp.m.make_laplace(whole, dp.l1_distance(T=int), scale=2.0),
        "OpenDP discrete Gaussian, deviation 2": dp.m.make_gaussian(whole, dp.l2_distance(T=float), scale=2.0),
    }
    zeros = np.zeros(few, dtype=np.int32)
    for label, draw in peers.items():
        print(f"  {label:<40} {seconds(lambda d=draw: d(zeros), 1) / few * 1e9:>9.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    noise(arguments.repeats)
    sparse_vector(arguments.count, arguments.repeats)
    small(arguments.repeats)
    selection(arguments.count, arguments.repeats)


if __name__ == "__main__":
    main()
