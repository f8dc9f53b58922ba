"""How many rows each interior-point method needs, and how often it succeeds with so many.

    python benchmarks/interior_point.py [--trials 40] [--epsilon 1 0.1] [--bits 10 16 32 64 256] [--time] [--scaling]

For every method, domain and epsilon: the rows that `InteriorPoint.rows` claims for success with probability 0.99 at
delta = 1e-6 (add or remove one row; "cumulative" replaces one), the successes over eight shapes of data at exactly that
many rows, the worst shape, and the worst shape at half as many rows. `--time` adds processor time on 10**6 rows,
`--scaling` time and memory over sizes and domains. TreeLog as printed is in those only: it needs 1.1e5 rows at
epsilon 1.

The shapes: uniform, one value, a run of consecutive values, both ends of the domain, powers of two, two neighbours
across the middle, points that leave one path at uniform and at geometric depths.
"""

from __future__ import annotations

import argparse
import random
import time
import tracemalloc
from typing import Any

import numpy as np

from dpselect.ordered import InteriorPoint, interior_point
from dpselect.ordered.interior_points.rows import METHODS, Method
from dpselect.randomness import keyed_source

DELTA = 1e-6


def shapes(count: int, bits: int, rng: random.Random) -> dict[str, list[int]]:
    top, leaf = 1 << bits, rng.getrandbits(bits)
    start = rng.randrange(max(top - count, 1))
    half = count // 2
    return {
        "uniform": [rng.getrandbits(bits) for _ in range(count)],
        "constant": [leaf] * count,
        "run": [min(start + i, top - 1) for i in range(count)],
        "ends": [0] * half + [top - 1] * (count - half),
        "powers": [(1 << rng.randrange(bits)) - rng.randrange(2) for _ in range(count)],
        "straddle": [top // 2 - 1] * half + [top // 2] * (count - half),
        "path": [leaf ^ (1 << rng.randrange(bits)) for _ in range(count)],
        "steep": [leaf ^ (1 << max(0, bits - 1 - int(rng.expovariate(0.7)))) for _ in range(count)],
    }


def success(method: Method, bits: int, rows: int, epsilon: float, adjacency: str, trials: int) -> tuple[int, int, str]:
    """(successes in all, trials in all, the shape with the fewest)."""
    hits: dict[str, int] = {}
    for trial in range(trials):
        for name, points in shapes(rows, bits, random.Random(trial)).items():
            release = interior_point(
                points,
                domain_size=1 << bits,
                epsilon=epsilon,
                delta=DELTA,
                method=method,
                adjacency=adjacency,
                random=keyed_source(f"{method} {bits} {rows} {trial} {name}"),
            )
            good = release.value is not None and min(points) <= release.value <= max(points)
            hits[name] = hits.get(name, 0) + good
    worst = min(hits, key=lambda shape: hits[shape])
    return sum(hits.values()), trials * len(hits), f"{worst} {hits[worst] / trials:.2f}"


def table(epsilons: list[float], sizes: list[int], trials: int) -> None:
    print("| epsilon | domain | method | rows claimed for 0.99 | successes | worst shape | at half the rows |")
    print("|---|---|---|---|---|---|---|")
    for epsilon in epsilons:
        for bits in sizes:
            for method in METHODS[:5]:
                adjacency = "replace_one" if method == "cumulative" else "add_or_remove_one"
                asked = {"domain_size": 1 << bits, "epsilon": epsilon, "delta": DELTA, "adjacency": adjacency}
                rows = InteriorPoint(method=method, **asked).rows
                assert rows is not None
                hits, runs, worst = success(method, bits, rows, epsilon, adjacency, trials)
                _, _, half = success(method, bits, rows // 2, epsilon, adjacency, max(trials // 4, 1))
                print(
                    f"| {epsilon:g} | 2^{bits} | {method} | {rows} | {hits} of {runs} | {worst} | {half} |", flush=True
                )


def timing() -> None:
    print("\n| method | domain | seconds of processor time, 10^6 sorted or unsorted rows |\n|---|---|---|")
    values = np.random.default_rng(1).integers(0, 2**63, size=10**6, dtype=np.uint64)
    for bits in (16, 64):
        rows = values >> np.uint64(64 - bits)
        for method in METHODS:
            start = time.process_time()
            adjacency = "replace_one" if method == "cumulative" else "add_or_remove_one"
            interior_point(rows, domain_size=1 << bits, epsilon=1, delta=DELTA, method=method, adjacency=adjacency)
            print(f"| {method} | 2^{bits} | {time.process_time() - start:.2f} |", flush=True)
    start = time.process_time()
    np.sort(values)
    print(f"| numpy.sort | | {time.process_time() - start:.2f} |")


def once(rows: Any, bits: int, method: Method) -> tuple[float, float]:
    """(the least processor time of three runs in seconds, peak of memory beyond the rows in bytes)."""
    adjacency = "replace_one" if method == "cumulative" else "add_or_remove_one"
    asked = {"domain_size": 1 << bits, "epsilon": 1, "delta": DELTA, "method": method, "adjacency": adjacency}
    times = []
    for _ in range(3):
        start = time.process_time()
        interior_point(rows, **asked)
        times.append(time.process_time() - start)
    tracemalloc.start()
    interior_point(rows, **asked)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return min(times), peak


def scaling() -> None:
    rng, source = np.random.default_rng(1), random.Random(1)
    print("\n| rows | domain | numpy.sort or sorted | " + " | ".join(METHODS) + " |")
    print("|---|---|---|" + "---|" * len(METHODS))
    print("| | | seconds | " + " | ".join(["seconds; bytes a row"] * len(METHODS)) + " |")
    cases = [(10**k, bits) for k in (4, 5, 6, 7) for bits in (16, 64)]
    for count, bits in [*cases, (10**4, 256), (10**5, 256), (10**4, 4096)]:
        if bits <= 64:
            rows: Any = rng.integers(0, 2**63, size=count, dtype=np.uint64) >> np.uint64(64 - bits)
        else:
            rows = [source.getrandbits(bits) for _ in range(count)]
        start = time.process_time()
        np.sort(rows) if bits <= 64 else sorted(rows)
        cells = [f"{time.process_time() - start:.4f}"]
        for method in METHODS:
            seconds, peak = once(rows, bits, method)
            cells.append(f"{seconds:.4f}; {peak / count:.0f}")
        print(f"| 10^{round(np.log10(count))} | 2^{bits} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0, 0.1])
    parser.add_argument("--bits", type=int, nargs="*", default=[10, 16, 32, 64, 256])
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--scaling", action="store_true")
    arguments = parser.parse_args()
    if arguments.epsilon:
        table(arguments.epsilon, arguments.bits, arguments.trials)
    if arguments.time:
        timing()
    if arguments.scaling:
        scaling()


if __name__ == "__main__":
    main()
