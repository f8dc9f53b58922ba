"""The figures behind the constants of portfolios: the head starts, and the signals from which one pays.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.portfolio_rule [--quick] [--seeds 5] [--only TABLE ...]

A portfolio of a table's maps is run on the same splits and with the same draws under several head starts of the
default, and with several numbers of rows by which a candidate is put back for each weight that it has more, whatever
the rule would have; shown is what it gains over one default run on the split, in thousandths of accuracy or R2: the
mean and its standard error, by n mu of one trial. `HEAD_START` and `OPTIMISM` are figures with which nothing is lost
anywhere and little of what is gained; `_TRIAL_SIGNALS` the n mu of one trial from which something is gained with them.
`--quick` is four small tables, epsilon 1 and 3 and two splits.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from unittest.mock import patch

import numpy as np

from benchmarks.better_models import (
    EPSILONS,
    Case,
    by_default,
    score,
    space_of,
    state_of_its_own,
    study,
    without_reports,
)
from benchmarks.model_tables import ModelTable, tables
from benchmarks.planner import signals
from dpselect.accounting.planning import portfolio
from dpselect.study import designed

RULES: Final = (*((start, 0.5) for start in (0.0, 2.0, 4.0, 7.0, 10.0)), *((7.0, each) for each in (0.0, 0.25, 1.0)))
"""Head starts of the default, and rows for each weight that a candidate has more."""
ENDS: Final = (25.0, 50.0, 100.0, 200.0, 400.0)
"""The ends of the groups of n mu of one trial."""
QUICK: Final = ("wine", "breast cancer", "amounts", "orders")
USUAL: Final = ("digits", *QUICK, "diabetes", "Friedman, 1,500", "incomes", "waves", "rents")


def of_a_trial(table: ModelTable, epsilon: float) -> float:
    """n mu of one trial of a portfolio of the table's maps."""
    return signals(table, epsilon) * math.sqrt(portfolio.TRIALS / len(table.maps))


def gains(case: Case) -> Iterator[float]:
    """Of one split, what a portfolio gains with each of `RULES`."""
    with TemporaryDirectory() as folder:
        here = replace(case, folder=Path(folder))
        default = by_default(here)
        parts = {"space": space_of(case.table), "search": {"design": "portfolio"}}
        if case.table.image:
            parts["learner"] = dict(case.table.image)
        for start, optimism in RULES:
            with patch.multiple(portfolio, HEAD_START=start, OPTIMISM=optimism):
                yield score(study(here, f"portfolio-{start:g}-{optimism:g}", key="portfolio", **parts)) - default


def shown(values: list[float]) -> str:
    error = np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return f"{1000 * np.mean(values):+.0f} ± {1000 * error:.0f}"


def lines(found: dict[tuple[str, float], tuple[float, list[list[float]]]]) -> Iterator[str]:
    """A row for each group of n mu of a trial, and one for each table and epsilon."""
    heads = " | ".join(f"head start {start:g}, {optimism:g} a weight" for start, optimism in RULES)
    yield f"| n mu of a trial | {heads} | releases |"
    yield "|---" * (2 + len(RULES)) + "|"
    for place in range(len(ENDS) + 1):
        low, high = (0.0, *ENDS)[place], (*ENDS, math.inf)[place]
        rows = [row for size, each in found.values() if low <= size < high for row in each]
        if rows:
            row = " | ".join(shown(list(column)) for column in zip(*rows, strict=True))
            yield f"| {low:g} to {high:g} | {row} | {len(rows)} |"
    yield ""
    yield f"| table, epsilon | n mu of a trial | {heads} |"
    yield "|---" * (2 + len(RULES)) + "|"
    for (name, epsilon), (size, rows) in sorted(found.items(), key=lambda each: each[1][0]):
        row = " | ".join(shown(list(column)) for column in zip(*rows, strict=True))
        yield f"| {name}, {epsilon:g} | {size:.0f} | {row} |"


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.portfolio_rule",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=[], help="tables, by the beginning of their names")
    asked = parser.parse_args(arguments)
    seeds, epsilons = (2, EPSILONS[:2]) if asked.quick else (asked.seeds, EPSILONS)
    names = tuple(asked.only) or (QUICK if asked.quick else USUAL)
    warnings.simplefilter("ignore")
    found: dict[tuple[str, float], tuple[float, list[list[float]]]] = {}
    with without_reports(), state_of_its_own():
        for table in tables():
            if table.name.startswith(names):
                for epsilon in epsilons:
                    rows = [list(gains(Case(table, epsilon, seed, Path()))) for seed in range(seeds)]
                    found[table.name, epsilon] = of_a_trial(table, epsilon), rows
    shipped = f"head start {portfolio.HEAD_START:g}, {portfolio.OPTIMISM:g} a weight"
    print(f"as shipped: {shipped}, n mu of a trial from {designed._TRIAL_SIGNALS:g}\n")
    print(*lines(found), sep="\n")


if __name__ == "__main__":
    main()
