"""The figures behind the constants of portfolios: the head starts, and the signals from which one pays.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.portfolio_rule [--quick] [--seeds 5] [--only TABLE ...]

A portfolio of a table's maps is run on the same splits and with the same draws under several rules, whatever study
would be made of it: what of the squares the trials share, how many times another trial's share the first one has, its
head start, and by how many rows a candidate is put back for each weight that it has more. Shown is what it gains over
one default run on the split, in thousandths of accuracy or R2: the mean and its standard error, by n mu of the first
trial. `TRIALS`, `FIRST`, `HEAD_START` and `OPTIMISM` are figures with which nothing is lost anywhere and little of what
is gained; `_TRIAL_SIGNALS` the n mu of the first trial from which something is gained with them.
`--quick` is four small tables, epsilon 1 and 3 and two splits.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from unittest.mock import patch

import numpy as np

from benchmarks.better_models import (
    EPSILONS,
    by_default,
    score,
    space_of,
    state_of_its_own,
    study,
    without_reports,
)
from benchmarks.cases import Case
from benchmarks.model_tables import ModelTable, tables
from benchmarks.planner import signals
from benchmarks.unseen_tables import tailed
from dpselect.accounting.planning import portfolio
from dpselect.study import design


@dataclass(frozen=True)
class Rule:
    """What the trials share, how many times another's share the first has, its head start, and rows for each weight."""

    trials: float = portfolio.TRIALS
    first: float = portfolio.FIRST
    start: float = portfolio.HEAD_START
    optimism: float = portfolio.OPTIMISM

    def __str__(self) -> str:
        return f"{self.trials:g}, {self.first:g}, {self.start:g}, {self.optimism:g}"

    def signals(self, table: ModelTable, epsilon: float) -> float:
        """n mu of the first trial of a portfolio of the table's maps."""
        with self.in_force():
            return signals(table, epsilon) * math.sqrt(portfolio.trial_shares(len(table.maps))[0])

    def in_force(self) -> Any:
        named = {"TRIALS": self.trials, "FIRST": self.first, "HEAD_START": self.start, "OPTIMISM": self.optimism}
        return patch.multiple(portfolio, **named)


SHIPPED: Final = Rule()
RULES: Final = (
    SHIPPED,
    Rule(trials=0.1, first=1.0, start=7.0),
    Rule(first=1.0),
    Rule(trials=0.1),
    Rule(trials=0.25),
    Rule(start=0.0),
    Rule(start=7.0),
    Rule(optimism=0.0),
    Rule(optimism=1.0),
)
"""The rule that is shipped first, then the one before it, and what differs from it in one figure."""
ENDS: Final = (50.0, 100.0, 200.0, 400.0, 800.0)
"""The ends of the groups of n mu of the first trial."""
QUICK: Final = ("wine", "breast cancer", "amounts", "orders")
USUAL: Final = ("digits", *QUICK, "diabetes", "Friedman, 1,500", "incomes", "waves", "rents", "tailed")


def gains(case: Case) -> Iterator[float]:
    """Of one split, what a portfolio gains with each of `RULES`."""
    with TemporaryDirectory() as folder:
        here = replace(case, folder=Path(folder))
        default = by_default(here)
        parts = {"space": space_of(case.table), "search": {"design": "portfolio"}}
        if case.table.image:
            parts["learner"] = dict(case.table.image)
        for place, rule in enumerate(RULES):
            with rule.in_force():
                yield score(study(here, f"portfolio-{place}", key="portfolio", **parts)) - default


def shown(values: list[float]) -> str:
    error = np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return f"{1000 * np.mean(values):+.0f} ± {1000 * error:.0f}"


def lines(found: dict[tuple[str, float], tuple[float, list[list[float]]]]) -> Iterator[str]:
    """A row for each group of n mu of a trial, and one for each table and epsilon."""
    heads = " | ".join(map(str, RULES))
    yield f"| n mu of the first trial | {heads} | releases |"
    yield "|---" * (2 + len(RULES)) + "|"
    for place in range(len(ENDS) + 1):
        low, high = (0.0, *ENDS)[place], (*ENDS, math.inf)[place]
        rows = [row for size, each in found.values() if low <= size < high for row in each]
        if rows:
            row = " | ".join(shown(list(column)) for column in zip(*rows, strict=True))
            yield f"| {low:g} to {high:g} | {row} | {len(rows)} |"
    yield ""
    yield f"| table, epsilon | n mu of the first trial | {heads} |"
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
        for table in (*tables(), tailed()):
            if table.name.startswith(names):
                for epsilon in epsilons:
                    rows = [list(gains(Case(table, epsilon, seed, Path()))) for seed in range(seeds)]
                    found[table.name, epsilon] = SHIPPED.signals(table, epsilon), rows
    print("trials' share, times another's that the first has, head start, rows a weight; the first rule is shipped")
    print(f"a portfolio from n mu of the first trial {design._TRIAL_SIGNALS:g}\n")
    print(*lines(found), sep="\n")


if __name__ == "__main__":
    main()
