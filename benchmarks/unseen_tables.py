"""What a study gains that is told a space of maps and no design, on tables that no rule was fitted on.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.unseen_tables [--quick] [--seeds 10] [--only TABLE ...]

For each table, epsilon (at delta 1e-5) and split, the released model of the study beside that of one default run at the
same total: the mean of the difference in thousandths of accuracy or R2, and its standard error. The tables were made
when the rules stood, and nothing was chosen by what is found on them. `--quick` is the smallest table, epsilon 3 and
two splits.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.better_models import EPSILONS, Case, by_default, by_design, gained, state_of_its_own, without_reports
from benchmarks.model_tables import AMOUNTS, ModelTable, classes_of, numbers_of, of_second, table_of

QUICK = "bent"


def checker() -> ModelTable:
    """Two classes by the squares of a chequered board, in two columns of fourteen; a tenth of the labels are wrong."""
    random = np.random.default_rng(901)
    X = random.uniform(0, 8, size=(2500, 14))
    black = (np.floor(X[:, 3]) + np.floor(X[:, 9])) % 2 > 0
    y = np.where(black != (random.random(len(X)) < 0.1), "in", "out")
    return table_of("checker", X, y, classes_of(y), [(0, 8)] * 14)


def tailed() -> ModelTable:
    """Three classes by straight lines in forty columns with heavy tails; the default is good, and has many weights."""
    random = np.random.default_rng(902)
    X = random.standard_t(2.5, size=(6000, 40))
    logits = X.clip(-4, 4) @ random.normal(0, 0.25, (40, 3))
    y = np.array(["c", "a", "b"])[np.argmax(logits + random.gumbel(size=logits.shape), axis=1)]
    return table_of("tailed", X, y, classes_of(y), [(-12, 12)] * 40)


def bent() -> ModelTable:
    """A number by a wave, a product and a square."""
    random = np.random.default_rng(903)
    X = random.uniform(-2, 2, size=(3000, 15))
    y = np.sin(2 * X[:, 7]) * 3 + X[:, 2] * X[:, 11] + X[:, 5] ** 2 + random.normal(0, 0.8, len(X))
    return table_of("bent", X, y, numbers_of(-10, 14), [(-2, 2)] * 15)


def bought() -> ModelTable:
    """Two classes by logarithms of amounts."""
    random = np.random.default_rng(904)
    X = np.exp(random.normal(2, 1.2, size=(4000, 12)))
    logits = 2 * (np.log(X[:, 1]) - 2) + np.sin(3 * np.log(X[:, 4])) + (X[:, 8] > 10) - 0.5
    y = of_second(2 * logits, random).astype(int)
    return replace(table_of("bought", X, y, classes_of(y), [(0, 2000)] * 12), maps=AMOUNTS)


def mixed() -> ModelTable:
    """Five classes around places of their own, in columns that move together."""
    random = np.random.default_rng(905)
    y = random.integers(0, 5, 5000)
    X = (random.normal(0, 1.2, (5, 18))[y] + random.normal(size=(5000, 18))) @ random.normal(0, 0.4, (18, 18))
    return table_of("mixed", X, y, classes_of(y), [(-8, 8)] * 18)


def counted() -> ModelTable:
    """A number that grows with the logarithm of a count and straight with another."""
    random = np.random.default_rng(906)
    X = random.poisson(np.exp(random.normal(1, 1, size=(5000, 9)))).astype(float)
    y = 4 * np.log1p(X[:, 6]) + 0.5 * np.minimum(X[:, 2], 10) + random.normal(0, 1.5, len(X))
    return replace(table_of("counted", X, y, numbers_of(-5, 30), [(0, 60)] * 9), maps=AMOUNTS)


def graded() -> ModelTable:
    """Two classes by how many of ten answers, each from 1 to 7, are high; a quarter of the rows is of the second."""
    random = np.random.default_rng(907)
    X = np.clip(np.round(4 + random.normal(size=(7000, 1)) + 1.3 * random.normal(size=(7000, 10))), 1, 7)
    y = np.where(of_second((X > 4.5).sum(axis=1) * 0.9 - 5.5, random), "seen", "not seen")
    return table_of("graded", X, y, classes_of(y), [(1, 7)] * 10)


def edged() -> ModelTable:
    """Four classes by two edges, in two columns of eight."""
    random = np.random.default_rng(908)
    X = random.uniform(0, 100, size=(6000, 8))
    y = 2 * (X[:, 5] > 63) + (X[:, 1] > 28)
    return table_of("edged", X, y, classes_of(y), [(0, 100)] * 8)


TABLES = (checker, tailed, bent, bought, mixed, counted, graded, edged)


def lines(table: ModelTable, epsilons: tuple[float, ...], seeds: int) -> Iterator[str]:
    """One row of the page's table."""
    found = []
    for epsilon in epsilons:
        differences = []
        for seed in range(seeds):
            with TemporaryDirectory() as folder:
                case = Case(table, epsilon, seed, Path(folder))
                differences.append(1000.0 * (by_design("auto", case) - by_default(case)))
        found.append(gained(differences))
    yield f"| {table.name}, {len(table.answers):,} rows | {' | '.join(found)} | {seeds} |"


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.unseen_tables",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", nargs="*", default=[], help="tables, by the beginning of their names")
    asked = parser.parse_args(arguments)
    epsilons, seeds = ((3.0,), 2) if asked.quick else (EPSILONS, asked.seeds)
    only = tuple(asked.only) or ((QUICK,) if asked.quick else ("",))
    warnings.simplefilter("ignore")
    print(f"| table | {' | '.join(f'epsilon {each:g}' for each in epsilons)} | splits |")
    print("|---" * (len(epsilons) + 2) + "|")
    with without_reports(), state_of_its_own():
        for make in TABLES:
            if make.__name__.startswith(only):
                print(*lines(make(), epsilons, seeds), sep="\n", flush=True)


if __name__ == "__main__":
    main()
