"""Error of private quantiles beside diffprivlib and OpenDP, on the same rows, at equal epsilon and equal adjacency.

    python benchmarks/quantiles_error.py run --keep errors/             # hours; stops and resumes anywhere
    python benchmarks/quantiles_error.py run --keep errors/ --who dpselect
    python benchmarks/quantiles_error.py table --keep errors/
    python benchmarks/quantiles_error.py slices                         # our methods "slice" and "joint", two minutes
    python benchmarks/quantiles_error.py ranks                          # ranks: what three methods prove, and err by

Every run has new rows: five columns of 1000. An error is |released - true quantile of the rows|, averaged over the
quantiles of one release, in units of the column. All get the same epsilon, bounds and, where they take one, the same
public grid of about 2000 values (whole years for ages). Both adjacencies are run:

- add_or_remove_one: OpenDP's symmetric distance 1. diffprivlib's sensitivity of 1 covers it (and is up to twice what
  is needed, which is its own choice).
- replace_one: OpenDP's symmetric distance 2, with the number of rows declared as public. diffprivlib as it is.

OpenDP: make_private_quantile for up to 9 quantiles (epsilon divided by their number), counts in a b-ary tree from 9 on.
Row i of every library is from the same rows, so that differences are paired. The interval in the table is that of the
mean paired difference, ours less the best peer's, at 99 % by the normal law; best is the peer with the least
mean error of the cell.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpselect.ordered import quantile, quantiles

Release = Callable[[Any], list[float]]
BLOCK = 50
ADJACENCIES = ("add_or_remove_one", "replace_one")


@dataclass(frozen=True)
class Cell:
    """What is asked of every library."""

    column: str
    size: int
    epsilon: float
    adjacency: str
    rows: int

    @property
    def qs(self) -> list[float]:
        return [(k + 1) / (self.size + 1) for k in range(self.size)]

    def file(self, folder: Path, who: str) -> Path:
        word = self.column.split(" (")[0].replace(" ", "-")
        return folder / f"{word}-{self.size}-{self.epsilon:g}-{self.adjacency}-{who.replace(' ', '-')}.npy"


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


def ours(cell: Cell, lower: float, upper: float, step: float) -> Release:
    bounds: Any = {
        "lower": lower,
        "upper": upper,
        "granularity": step,
        "epsilon": cell.epsilon,
        "adjacency": cell.adjacency,
    }
    if cell.size == 1:
        return lambda values: [quantile(values, q=cell.qs[0], **bounds).value]
    return lambda values: list(quantiles(values, qs=cell.qs, **bounds).value)


def diffprivlib_quantiles(cell: Cell, lower: float, upper: float, _step: float) -> Release:
    import sklearn.tree._tree as tree

    for name in ("DOUBLE", "DTYPE"):  # diffprivlib 0.6.6 imports them, scikit-learn 1.9 has them no longer
        if not hasattr(tree, name):
            setattr(tree, name, np.float64)
    from diffprivlib.mechanisms import Exponential
    from diffprivlib.tools import quantile as peer

    # Most of its time goes into looking at the type of every number, twice a quantile; its draws stay as they are.
    Exponential._check_utility_candidates_measure = classmethod(lambda _, *given: given)
    return lambda values: np.atleast_1d(peer(values, cell.qs, epsilon=cell.epsilon, bounds=(lower, upper))).tolist()


def opendp_space(cell: Cell) -> Any:
    """The library, its input space and the distance of neighbours."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    atoms = dp.atom_domain(T=float, nan=False)
    replaced = cell.adjacency == "replace_one"
    domain = dp.vector_domain(atoms, size=cell.rows) if replaced else dp.vector_domain(atoms)
    return dp, (domain, dp.symmetric_distance()), 2 if replaced else 1


def opendp_candidates(cell: Cell, lower: float, upper: float, step: float) -> Release | None:
    if cell.size > 9:
        return None
    dp, space, distance = opendp_space(cell)
    candidates = (np.arange(round(lower / step), round(upper / step) + 1) * step).tolist()

    def one(q: float) -> Any:
        def at(scale: float) -> Any:
            return dp.m.make_private_quantile(*space, dp.max_divergence(), candidates=candidates, alpha=q, scale=scale)

        return at(at(1.0).map(distance) / (cell.epsilon / cell.size))

    mechanisms = [one(q) for q in cell.qs]
    return lambda values: [mechanism(values.tolist()) for mechanism in mechanisms]


def opendp_tree(cell: Cell, lower: float, upper: float, step: float) -> Release | None:
    if cell.size < 9:
        return None
    dp, space, distance = opendp_space(cell)
    edges = (np.arange(round(lower / step), round(upper / step) + 1) * step).tolist()
    leaves = len(edges) + 1
    branching = dp.t.choose_branching_factor(size_guess=cell.rows)
    counts = (
        space
        >> dp.t.then_find_bin(edges=edges)
        >> dp.t.then_count_by_categories(categories=list(range(leaves)), null_category=False)
        >> dp.t.then_b_ary_tree(leaf_count=leaves, branching_factor=branching)
    )
    mechanism = counts >> dp.m.then_laplace((counts >> dp.m.then_laplace(1.0)).map(distance) / cell.epsilon)
    consistent = dp.t.make_consistent_b_ary_tree(branching_factor=branching)
    read = dp.t.make_quantiles_from_counts(bin_edges=[lower - step, *edges, upper + step], alphas=cell.qs)
    return lambda values: read([float(count) for count in consistent(mechanism(values.tolist()))])


LIBRARIES: dict[str, Callable[[Cell, float, float, float], Release | None]] = {
    "dpselect": ours,
    "OpenDP": opendp_candidates,
    "OpenDP tree": opendp_tree,
    "diffprivlib": diffprivlib_quantiles,
}


def cells(rows: int, sizes: list[int], epsilons: list[float]) -> list[Cell]:
    names = columns(1, 0)
    return [
        Cell(name, size, epsilon, adjacency, rows)
        for size, name, epsilon, adjacency in itertools.product(sizes, names, epsilons, ADJACENCIES)
    ]


def errors(cell: Cell, who: str, first: int, last: int) -> list[float] | None:
    """The errors of runs first .. last - 1; None where the library has no such release."""
    _, lower, upper, step = columns(1, 0)[cell.column]
    release = LIBRARIES[who](cell, lower, upper, step)
    if release is None:
        return None
    found = []
    for run in range(first, last):
        values = columns(cell.rows, run)[cell.column][0]
        found.append(float(np.mean(np.abs(np.array(release(values)) - np.quantile(values, cell.qs)))))
    return found


def fill(folder: Path, runs: int, asked: list[Cell], libraries: list[str]) -> None:
    """Append to the files of the folder until each has `runs` errors."""
    warnings.simplefilter("ignore")
    folder.mkdir(parents=True, exist_ok=True)
    for who, cell in itertools.product(libraries, asked):
        path = cell.file(folder, who)
        if who == "diffprivlib" and cell.adjacency == "replace_one":
            continue  # it does the same for both; see `table`
        known = np.load(path).tolist() if path.exists() else []
        while len(known) < runs:
            more = errors(cell, who, len(known), min(len(known) + BLOCK, runs))
            if more is None:
                break
            known += more
            np.save(path.with_suffix(".new.npy"), known)
            path.with_suffix(".new.npy").replace(path)


def table(folder: Path, asked: list[Cell]) -> tuple[int, int]:
    """Print a line for each cell; how many intervals lie wholly above 0, and how many there are."""
    above = total = 0
    for cell in asked:
        found = {}
        for who in LIBRARIES:
            shared = Cell(cell.column, cell.size, cell.epsilon, ADJACENCIES[0], cell.rows)
            path = (shared if who == "diffprivlib" else cell).file(folder, who)
            if path.exists():
                found[who] = np.load(path)
        if len(found) < 2 or "dpselect" not in found:
            continue
        best = min(list(found)[1:], key=lambda who: float(np.mean(found[who])))
        runs = min(len(found["dpselect"]), len(found[best]))
        gap = found["dpselect"][:runs] - found[best][:runs]
        half = 2.576 * float(np.std(gap, ddof=1)) / math.sqrt(runs)
        row: dict[str, Any] = {"column": cell.column, "quantiles": cell.size, "epsilon": cell.epsilon}
        row |= {"adjacency": cell.adjacency, "runs": runs}
        row |= {who: float(f"{np.mean(known):.4g}") for who, known in found.items()}
        row |= {"best": best, "low": float(f"{gap.mean() - half:.3g}"), "high": float(f"{gap.mean() + half:.3g}")}
        above, total = above + (row["low"] > 0), total + 1
        print(json.dumps(row), flush=True)
    print(f"{above} of {total} intervals wholly above 0")
    return above, total


def slices(runs: int, rows: int) -> None:
    """Print how much more slices err than the joint method, for the same rows and (epsilon, 1e-6) against epsilon."""
    for size in (3, 9, 30):
        qs = [(k + 1) / (size + 1) for k in range(size)]
        for name, (_, lower, upper, step) in columns(1, 0).items():
            bounds: Any = {"qs": qs, "epsilon": 1.0, "lower": lower, "upper": upper, "granularity": step}
            found: dict[str, list[float]] = {"joint": [], "slice": []}
            for run in range(runs):
                values = columns(rows, run)[name][0]
                for method, known in found.items():
                    delta = 1e-6 if method == "slice" else None
                    released = quantiles(values, method=method, delta=delta, **bounds)  # type: ignore[arg-type]
                    known.append(float(np.mean(np.abs(np.array(released.value) - np.quantile(values, qs)))))
            means = {method: float(f"{np.mean(known):.4g}") for method, known in found.items()}
            print(json.dumps({"column": name, "quantiles": size, "rows": rows, "runs": runs, **means}), flush=True)


def ranks(runs: int, rows: int) -> None:
    """Print by how many ranks four quantiles err, and what is proved, 95 % sure; bounds -100 and 100, every double."""
    random = np.random.default_rng(1)
    shapes = {
        "normal": random.normal(size=rows),
        "lognormal": random.lognormal(1.0, 1.0, rows),
        "uniform": random.uniform(-5.0, 5.0, rows),
        "60 % zeros": np.where(random.random(rows) < 0.6, 0.0, random.lognormal(0.0, 1.0, rows)),
    }
    for (name, values), method in itertools.product(shapes.items(), ("joint", "recursive", "independent")):
        found, qs = [], [0.1, 0.25, 0.5, 0.9]
        for _ in range(runs):
            released = quantiles(values, qs=qs, epsilon=1.0, lower=-100.0, upper=100.0, method=method)
            below = np.array([np.mean(values < value) for value in released.value]) - qs
            above = np.array([np.mean(values <= value) for value in released.value]) - qs
            found.append(rows * np.mean(np.maximum(np.maximum(below, -above), 0.0)))
        proved = released.rank_errors()
        shown = {"mean": float(f"{np.mean(found):.3g}"), "proved": [float(f"{error:.3g}") for error in proved]}
        print(json.dumps({"column": name, "method": method, **shown}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table", "slices", "ranks"])
    parser.add_argument("--keep", type=Path, help="a folder for the errors of all runs")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 3, 9, 99])
    parser.add_argument("--who", nargs="+", choices=list(LIBRARIES), default=list(LIBRARIES))
    given = parser.parse_args()
    asked = cells(given.rows, given.sizes, given.epsilons)
    if given.what == "slices":
        slices(20, 10 * given.rows)
        return
    if given.what == "ranks":
        ranks(30, given.rows)
        return
    if given.keep is None:
        parser.error("--keep is needed")
    if given.what == "run":
        fill(given.keep, given.runs, asked, given.who)
    else:
        table(given.keep, asked)


if __name__ == "__main__":
    main()
