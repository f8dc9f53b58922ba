"""Private quantiles: error beside diffprivlib and OpenDP at equal epsilon, speed beside numpy.sort, memory on a file.

    python benchmarks/quantiles.py error --runs 1000          # hours for all; --tiny is our part alone, in a second
    python benchmarks/quantiles.py speed --rows 10000000
    python benchmarks/quantiles.py file --rows 100000000 --path /tmp/rows.parquet

Every run has new rows. Errors are |released - true quantile of the rows|, averaged over the quantiles of one release,
in units of the column. All get the same epsilon, bounds and, where they take one, the same public grid of about 2000
values (whole years for ages).
diffprivlib's quantile is private for replaced rows, ours and OpenDP's for added or removed ones, the default of each.
OpenDP: make_private_quantile for up to 9 quantiles (epsilon divided by their number), counts in a b-ary tree for all.
The interval is that of the mean paired difference to the best peer of the run, at 99 per cent, by the normal law.
Times are processor time of one process.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dpselect.ordered import open_column, quantile, quantiles

Release = Callable[[Any], list[float]]


def columns(rows: int, seed: int) -> dict[str, tuple[Any, float, float, float]]:
    """name -> (values, lower, upper, granularity)."""
    rng = np.random.default_rng(seed)
    income = np.exp(rng.normal(10.3, 0.8, rows))
    return {
        "incomes (log-normal)": (income, 0.0, 400_000.0, 200.0),
        "ages": (np.clip(np.rint(rng.gamma(4.0, 11.0, rows)), 0, 120), 0.0, 120.0, 1.0),
        "claims (60 % zero)": (np.where(rng.random(rows) < 0.6, 0.0, np.exp(rng.normal(7, 1.2, rows))), 0.0, 1e5, 50.0),
        "test scores (normal)": (np.clip(rng.normal(500, 100, rows), 0, 1000), 0.0, 1000.0, 0.5),
        "waiting times (two peaks)": (
            np.where(rng.random(rows) < 0.35, rng.normal(55, 6, rows), rng.normal(80, 6, rows)),
            0.0,
            200.0,
            0.1,
        ),
    }


def ours(qs: list[float], lower: float, upper: float, step: float, epsilon: float, _: int) -> Release:
    bounds: Any = {"lower": lower, "upper": upper, "granularity": step, "epsilon": epsilon}
    if len(qs) == 1:
        return lambda values: [quantile(values, q=qs[0], **bounds).value]
    return lambda values: list(quantiles(values, qs=qs, **bounds).value)


def diffprivlib_quantiles(
    qs: list[float], lower: float, upper: float, _step: float, epsilon: float, _rows: int
) -> Release | None:
    import sklearn.tree._tree as tree

    for name in ("DOUBLE", "DTYPE"):  # diffprivlib 0.6.6 imports them, scikit-learn 1.9 has them no longer
        if not hasattr(tree, name):
            setattr(tree, name, np.float64)
    from diffprivlib.tools import quantile as peer

    return lambda values: np.atleast_1d(peer(values, qs, epsilon=epsilon, bounds=(lower, upper))).tolist()


def opendp_space() -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp, (dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance())


def opendp_candidates(
    qs: list[float], lower: float, upper: float, step: float, epsilon: float, _rows: int
) -> Release | None:
    if len(qs) > 9:
        return None
    dp, space = opendp_space()
    candidates = (np.arange(round(lower / step), round(upper / step) + 1) * step).tolist()

    def one(q: float) -> Any:
        def at(scale: float) -> Any:
            return dp.m.make_private_quantile(*space, dp.max_divergence(), candidates=candidates, alpha=q, scale=scale)

        return at(at(1.0).map(1) / (epsilon / len(qs)))

    mechanisms = [one(q) for q in qs]
    return lambda values: [mechanism(values.tolist()) for mechanism in mechanisms]


def opendp_tree(qs: list[float], lower: float, upper: float, step: float, epsilon: float, rows: int) -> Release | None:
    if len(qs) < 9:
        return None
    dp, space = opendp_space()
    edges = (np.arange(round(lower / step), round(upper / step) + 1) * step).tolist()
    leaves = len(edges) + 1
    branching = dp.t.choose_branching_factor(size_guess=rows)
    counts = (
        space
        >> dp.t.then_find_bin(edges=edges)
        >> dp.t.then_count_by_categories(categories=list(range(leaves)), null_category=False)
        >> dp.t.then_b_ary_tree(leaf_count=leaves, branching_factor=branching)
    )
    mechanism = counts >> dp.m.then_laplace((counts >> dp.m.then_laplace(1.0)).map(1) / epsilon)
    consistent = dp.t.make_consistent_b_ary_tree(branching_factor=branching)
    read = dp.t.make_quantiles_from_counts(bin_edges=[lower - step, *edges, upper + step], alphas=qs)
    return lambda values: read([float(count) for count in consistent(mechanism(values.tolist()))])


PEERS = {"diffprivlib": diffprivlib_quantiles, "OpenDP": opendp_candidates, "OpenDP tree": opendp_tree}


def error(runs: int, rows: int, epsilons: list[float], sizes: list[int], peers: bool) -> None:
    warnings.simplefilter("ignore")
    above = total = 0
    for name, (_, lower, upper, step) in columns(1, 0).items():
        for size, epsilon in itertools.product(sizes, epsilons):
            qs = [(k + 1) / (size + 1) for k in range(size)]
            made: dict[str, Release] = {"dpselect": ours(qs, lower, upper, step, epsilon, rows)}
            for peer, make in PEERS.items() if peers else ():
                release = make(qs, lower, upper, step, epsilon, rows)
                made |= {} if release is None else {peer: release}
            errors: dict[str, list[float]] = {peer: [] for peer in made}
            for run in range(runs):
                values = columns(rows, run)[name][0]
                truth = np.quantile(values, qs)
                for peer, release in made.items():
                    errors[peer].append(float(np.mean(np.abs(np.array(release(values)) - truth))))
            row: dict[str, Any] = {"column": name, "quantiles": size, "epsilon": epsilon}
            row |= {peer: round(float(np.mean(found)), 5) for peer, found in errors.items()}
            if peers:
                best = min(list(made)[1:], key=lambda peer: float(np.mean(errors[peer])))
                gap = np.array(errors["dpselect"]) - np.array(errors[best])
                half = 2.576 * float(np.std(gap, ddof=1)) / math.sqrt(runs)
                row |= {"best": best, "low": float(np.mean(gap)) - half, "high": float(np.mean(gap)) + half}
                above, total = above + (row["low"] > 0), total + 1
            print(json.dumps(row), flush=True)
    if peers:
        print(f"{above} of {total} intervals wholly above 0; {runs} runs each, {rows} rows")


def clocked(work: Callable[[], Any], repeats: int = 5) -> float:
    """Seconds of processor time, the least of some."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def speed(rows: int) -> None:
    values = np.random.default_rng(1).normal(size=rows)
    ordered = np.sort(values)
    print(f"numpy.sort: {clocked(lambda: np.sort(values)):.4f} s")
    print(f"numpy.partition: {clocked(lambda: np.partition(values, rows // 2)):.4f} s")
    for epsilon in (0.1, 1.0):
        options = {"q": 0.5, "lower": -100.0, "upper": 100.0, "epsilon": epsilon}
        print(f"median, epsilon {epsilon}: {clocked(lambda o=options: quantile(values, **o)):.4f} s")  # type: ignore[misc]
        for label, granularity in (("2^49 values", None), ("2^16", 200 / 2**16), ("all doubles", "float64")):
            once = clocked(
                lambda o=options, g=granularity: [
                    quantile(ordered, granularity=g, assume_sorted=True, **o) for _ in range(50)
                ]  # type: ignore[misc]
            )
            print(f"  sorted, domain of {label}: {once / 50 * 1000:.3f} ms")
    import tracemalloc

    tracemalloc.start()
    quantile(values, q=0.5, lower=-100.0, upper=100.0, epsilon=1.0)
    print(f"peak of extra memory: {tracemalloc.get_traced_memory()[1] / values.nbytes:.2f} copies")
    tracemalloc.stop()
    nine = [k / 10 for k in range(1, 10)]
    taken = clocked(lambda: quantiles(values, qs=nine, lower=-100.0, upper=100.0, epsilon=1.0), 2)
    print(f"nine quantiles: {taken:.4f} s")


def read_file(rows: int, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.exists():
        rng = np.random.default_rng(1)
        with pq.ParquetWriter(path, pa.schema([("income", pa.float64())])) as writer:
            for start in range(0, rows, 1 << 20):
                part = np.exp(rng.normal(10, 1, min(1 << 20, rows - start)))
                writer.write_table(pa.table({"income": part}))
        print("written; measure in a fresh process")
        return
    began = time.perf_counter(), time.process_time()
    with open_column(str(path), "income") as source:
        found = quantiles(source, qs=[0.25, 0.5, 0.75], lower=0.0, upper=1e7, epsilon=1.0)
    wall, processor = time.perf_counter() - began[0], time.process_time() - began[1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{found.value}: {wall:.1f} s, {processor:.1f} s of processor time, {peak:.2f} GiB at most")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["error", "speed", "file"])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 3, 9, 99])
    parser.add_argument("--tiny", action="store_true", help="our part alone, few runs")
    parser.add_argument("--path", type=Path, default=Path("rows.parquet"))
    asked = parser.parse_args()
    if asked.what == "speed":
        speed(asked.rows or 10_000_000)
    elif asked.what == "file":
        read_file(asked.rows or 100_000_000, asked.path)
    elif asked.tiny:
        error(3, 500, [1.0], [1, 3], peers=False)
    else:
        error(asked.runs, asked.rows or 1000, asked.epsilons, asked.sizes, peers=True)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
