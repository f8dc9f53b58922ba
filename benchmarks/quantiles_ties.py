"""Mean rank error of private quantiles on columns with point masses, compared with OpenDP and diffprivlib.

    python -m benchmarks.quantiles_ties table --rows 1000 --runs 100    # "auto" and the peers on eight columns
    python -m benchmarks.quantiles_ties rule --runs 40                  # recursive over joint, on five other columns

The rank error of v at q is the distance of q n to the interval from the number of rows below v to that of rows at most
v. So it is 0 for a point mass that holds the quantile. All libraries get the same rows, bounds and epsilon. Ours gets
no granularity except for integers, and the number of rows as `expected_rows`. OpenDP gets the integers or 2001 evenly
spaced candidates.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.quantiles_error import Cell, Release, diffprivlib_quantiles, opendp_candidates, opendp_tree
from dpselect.ordered import quantile, quantiles

ADDED = "add_or_remove_one"


class Shape(NamedTuple):
    """A column and its public bounds. `step` is its granularity, if it has one."""

    values: Any
    lower: float
    upper: float
    step: float | None = None


def shapes(rows: int, seed: int) -> dict[str, Shape]:
    """The columns of the table."""
    random = np.random.default_rng(seed)
    income = np.exp(random.normal(10.3, 0.8, rows))
    heaped = np.where(random.random(rows) < 0.5, np.rint(income / 5000) * 5000, np.rint(income / 1000) * 1000)
    two = np.where(random.random(rows) < 0.35, random.normal(55, 6, rows), random.normal(80, 6, rows))
    claims = np.where(random.random(rows) < 0.6, 0.0, np.exp(random.normal(7, 1.2, rows)))
    return {
        "60 % zeros": Shape(claims, 0.0, 1e5),
        "integers": Shape(np.clip(np.rint(random.gamma(4.0, 11.0, rows)), 0, 120), 0.0, 120.0, 1.0),
        "rounded": Shape(heaped, 0.0, 4e5),
        "heavy-tailed": Shape(10.0 * random.standard_t(1.5, rows), -1e4, 1e4),
        "uniform": Shape(random.random(rows), 0.0, 1.0),
        "two peaks": Shape(two, 0.0, 200.0),
        "constant": Shape(np.full(rows, 3.0), 0.0, 100.0),
        "log-normal": Shape(income, 0.0, 4e5),
    }


def other_shapes(rows: int, seed: int) -> dict[str, Shape]:
    """The columns that the rule of "auto" comes from."""
    random = np.random.default_rng(seed + 5000)
    return {
        "30 % zeros": Shape(np.where(random.random(rows) < 0.3, 0.0, random.exponential(250, rows)), 0.0, 1e4),
        "prices": Shape(np.rint(random.gamma(2.0, 4000, rows) / 500) * 500, 0.0, 1e5),
        "beta": Shape(100 * random.beta(2, 5, rows), 0.0, 100.0),
        "cents": Shape(np.round(np.exp(random.normal(3, 1, rows)), 2), 0.0, 1e3),
        "laplace": Shape(random.laplace(0, 3, rows), -500.0, 500.0),
    }


def rank_error(values: Any, found: Any, qs: list[float]) -> float:
    """The mean over the quantiles, in ranks."""
    ordered, wanted = np.sort(values), np.array(qs) * len(values)
    below, at_most = (np.searchsorted(ordered, found, side) for side in ("left", "right"))
    return float(np.mean(np.maximum(np.maximum(below - wanted, wanted - at_most), 0)))


def ours(cell: Cell, shape: Shape, method: str = "auto") -> Release:
    """Our values by a method."""
    options: Any = {"epsilon": cell.epsilon, "lower": shape.lower, "upper": shape.upper, "granularity": shape.step}
    options["adjacency"] = cell.adjacency
    if cell.size == 1:
        return lambda values: [quantile(values, q=cell.qs[0], **options).value]
    options |= {"qs": cell.qs, "method": method, "expected_rows": cell.rows}
    return lambda values: list(quantiles(values, **options).value)


def mean_error(cell: Cell, release: Release, columns: list[Shape]) -> str:
    """The mean with its standard error. The peers raise for some columns of equal rows."""
    try:
        found = [rank_error(shape.values, np.array(release(shape.values)), cell.qs) for shape in columns]
    except RuntimeError:
        return "fails"
    return f"{np.mean(found):.3g} ({np.std(found) / math.sqrt(len(found)):.2g})"


def table(rows: int, runs: int, sizes: list[int], epsilons: list[float]) -> None:
    """Print a line for each cell."""
    drawn = [shapes(rows, seed) for seed in range(runs)]
    for size, name, epsilon in itertools.product(sizes, drawn[0], epsilons):
        cell, shape, columns = Cell(name, size, epsilon, ADDED, rows), drawn[0][name], [each[name] for each in drawn]
        ends = (cell, shape.lower, shape.upper, shape.step or (shape.upper - shape.lower) / 2000)
        peers: dict[str, Callable[..., Release | None]] = {"OpenDP": opendp_candidates, "OpenDP tree": opendp_tree}
        if rows * size <= 100_000:  # it sorts the rows, as a list, once a quantile
            peers["diffprivlib"] = diffprivlib_quantiles
        releases = {"auto": ours(cell, shape), **{who: peer(*ends) for who, peer in peers.items()}}
        line = {who: mean_error(cell, release, columns) for who, release in releases.items() if release is not None}
        print(json.dumps({"column": name, "quantiles": size, "epsilon": epsilon, "rows": rows} | line), flush=True)


def rule(runs: int) -> None:
    """Print the mean errors of the recursive and of the joint method, by rows * epsilon / quantiles**2."""
    for adjacency, size, (rows, epsilon) in itertools.product(
        (ADDED, "replace_one"), (2, 3, 5, 9, 19), ((1000, 0.1), (1000, 0.3), (1000, 1.0), (3000, 1.0))
    ):
        drawn = [other_shapes(rows, seed) for seed in range(runs)]
        for name, shape in drawn[0].items():
            cell, columns = Cell(name, size, epsilon, adjacency, rows), [each[name] for each in drawn]
            line = {method: mean_error(cell, ours(cell, shape, method), columns) for method in ("recursive", "joint")}
            work = round(rows * epsilon / size**2, 1)
            print(
                json.dumps({"column": name, "adjacency": adjacency, "quantiles": size, "work": work} | line), flush=True
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["table", "rule"])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 3, 9, 99])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1.0])
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.what == "table":
        table(given.rows, given.runs, given.sizes, given.epsilons)
    else:
        rule(given.runs)


if __name__ == "__main__":
    main()
