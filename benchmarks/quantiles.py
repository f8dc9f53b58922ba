"""Private quantiles: speed compared with numpy.sort and the peers. Errors: quantiles_error.py; a file: many_rows.py.

    python benchmarks/quantiles.py speed --rows 10000000
    python benchmarks/quantiles.py peers --rows 1000000

Times are processor time of one process.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from dpselect.ordered import quantile, quantiles


def clocked(work: Callable[[], Any], repeats: int = 5) -> float:
    """Seconds of processor time, the least of some."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def shapes(rows: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    normal = rng.normal(size=rows)
    return {
        "normal": normal,
        "constant": np.full(rows, 3.0),
        "60 % zero": np.where(rng.random(rows) < 0.6, 0.0, normal),
        "ten values": rng.integers(0, 10, rows).astype(np.float64),
        "sorted": np.sort(normal),
    }


def speed(rows: int) -> None:
    bounds: Any = {"lower": -100.0, "upper": 100.0}
    for name, values in shapes(rows).items():
        base = clocked(lambda v=values: np.sort(v))  # type: ignore[misc]
        taken = {
            epsilon: clocked(lambda v=values, e=epsilon: quantile(v, q=0.5, epsilon=e, **bounds))  # type: ignore[misc]
            for epsilon in (0.1, 1.0)
        }
        shown = ", ".join(f"median at epsilon {e} {t:.4f} s ({t / base:.2f} of it)" for e, t in taken.items())
        print(f"{name}: numpy.sort {base:.4f} s, {shown}", flush=True)
    values = shapes(rows)["normal"]
    print(f"numpy.partition: {clocked(lambda: np.partition(values, rows // 2)):.4f} s")
    ordered = np.sort(values)
    for epsilon in (0.1, 1.0):
        for label, granularity in (("2^49 values", None), ("2^16", 200 / 2**16), ("all doubles", "float64")):
            once = clocked(
                lambda e=epsilon, g=granularity: [  # type: ignore[misc]
                    quantile(ordered, q=0.5, granularity=g, assume_sorted=True, epsilon=e, **bounds) for _ in range(50)
                ]
            )
            print(f"assume_sorted, epsilon {epsilon}, domain of {label}: {once / 50 * 1000:.3f} ms")
    whole = np.sort(np.random.default_rng(1).integers(-(2**62), 2**62, rows))
    for bits in (16, 64):
        most = 2 ** (bits - 1)
        once = clocked(
            lambda m=most: [  # type: ignore[misc]
                quantile(whole, q=0.5, lower=-m, upper=m - 1, epsilon=1.0, assume_sorted=True) for _ in range(50)
            ]
        )
        print(f"assume_sorted, integers, domain 2^{bits}: {once / 50 * 1000:.3f} ms")
    import tracemalloc

    tracemalloc.start()
    quantile(values, q=0.5, epsilon=1.0, **bounds)
    print(f"peak of extra memory: {tracemalloc.get_traced_memory()[1] / values.nbytes:.2f} copies")
    tracemalloc.stop()
    for count in (9, 99):
        qs = [(k + 1) / (count + 1) for k in range(count)]
        for method in ("joint", "recursive") if count == 9 else ("recursive",):
            taken_all = clocked(lambda q=qs, m=method: quantiles(values, qs=q, epsilon=1.0, method=m, **bounds), 2)  # type: ignore[misc]
            print(f"{count} quantiles, {method}: {taken_all:.4f} s", flush=True)


def peers(rows: int) -> None:
    """One median each; OpenDP with 1001 candidates."""
    import opendp.prelude as dp
    import sklearn.tree._tree as tree

    for name in ("DOUBLE", "DTYPE"):  # diffprivlib 0.6.6 imports them, scikit-learn 1.9 has them no longer
        if not hasattr(tree, name):
            setattr(tree, name, np.float64)
    from diffprivlib.tools import quantile as diffprivlib_quantile

    values = np.random.default_rng(1).normal(size=rows)
    dp.enable_features("contrib")
    mechanism = dp.m.make_private_quantile(
        dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance(), dp.max_divergence(),
        candidates=np.linspace(-10.0, 10.0, 1001).tolist(), alpha=0.5, scale=1.0,
    )  # fmt: skip
    print(f"dpselect: {clocked(lambda: quantile(values, q=0.5, epsilon=1.0, lower=-10.0, upper=10.0)):.4f} s")
    print(f"numpy.sort: {clocked(lambda: np.sort(values)):.4f} s", flush=True)
    listed = values.tolist()
    print(f"OpenDP, the list made in advance: {clocked(lambda: mechanism(listed), 2):.4f} s", flush=True)
    taken = clocked(lambda: diffprivlib_quantile(values, 0.5, epsilon=1.0, bounds=(-10.0, 10.0)), 1)
    print(f"diffprivlib: {taken:.4f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "peers"])
    parser.add_argument("--rows", type=int)
    asked = parser.parse_args()
    if asked.what == "speed":
        speed(asked.rows or 10_000_000)
    else:
        peers(asked.rows or 1_000_000)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
