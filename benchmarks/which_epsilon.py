"""What a larger epsilon buys: scores of two learners on made and bundled tables, by epsilon.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.which_epsilon [--splits 5] [--only TABLE ...]

For each table and epsilon (at delta 1e-5) the mean accuracy, or R2, on the held-out fifth of the rows: of a study that
names no learner, and of one with `name = "boosted-trees"` under `[learner]`. Both have the same splits. Needs no
download. Prints the rows of the table in docs/how-to/which-epsilon.md.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from sklearn.datasets import load_breast_cancer

from benchmarks.better_models import score, state_of_its_own, study, without_reports
from benchmarks.cases import Case
from benchmarks.model_tables import BREAST_CANCER, ModelTable, bundled, friedman, impedance, orders

EPSILONS: Final = (0.1, 0.3, 1.0, 3.0, 8.0)
LEARNERS: Final[dict[str, dict[str, Any]]] = {"default": {}, "boosted-trees": {"learner": {"name": "boosted-trees"}}}


def cancer() -> ModelTable:
    """The bundled table of scikit-learn."""
    return bundled("breast cancer", load_breast_cancer, BREAST_CANCER)


def numbers() -> ModelTable:
    """A number by a product, a square and a line of five columns of ten."""
    return friedman(20_000)


TABLES: Final[tuple[Callable[[], ModelTable], ...]] = (cancer, orders, impedance, numbers)


def mean_score(table: ModelTable, learner: str, epsilon: float, splits: int) -> float:
    """Return the mean held-out score of this many splits of the table."""
    found = []
    for seed in range(splits):
        with TemporaryDirectory() as folder:
            case = Case(table, epsilon, seed, Path(folder))
            found.append(score(study(case, learner, **LEARNERS[learner])))
    return float(np.mean(found))


def rows(splits: int, only: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the lines of a Markdown table, one for each table and learner."""
    yield "| table | rows, columns | score | learner | " + " | ".join(f"{each:g}" for each in EPSILONS) + " |"
    yield "|---" * (4 + len(EPSILONS)) + "|"
    for make in TABLES:
        table = make()
        name = table.name.partition(",")[0]
        if only and name not in only:
            continue
        size = f"{len(table.answers):,}, {len(table.columns)}"
        for learner in LEARNERS:
            scores = [f"{mean_score(table, learner, epsilon, splits):.2f}" for epsilon in EPSILONS]
            kind = "R2" if table.regression else "accuracy"
            yield f"| {name} | {size} | {kind} | {learner} | " + " | ".join(scores) + " |"


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.which_epsilon",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=[], help="names of tables")
    asked = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    with without_reports(), state_of_its_own():
        for line in rows(asked.splits, tuple(asked.only)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
