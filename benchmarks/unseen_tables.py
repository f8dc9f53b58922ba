"""What a study gains that is told a space of maps and no design, on tables that no rule was fitted on.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.unseen_tables [--quick] [--seeds 10] [--only TABLE ...]

For each table, epsilon (at delta 1e-5) and split, the released model of the study beside that of one default run at the
same total: the mean of the difference in thousandths of accuracy or R2, and its standard error. The tables of `TABLES`
were made when the rules stood, and nothing was chosen by what is found on them until *spread* was among those by which
the last run of a portfolio goes on from its trial; those of `FIRST_TABLES` until what was lost on *tailed* gave the
first candidate the larger trial. Those of `NEW_TABLES` were made after both. `--quick` is the smallest table, epsilon 3
and two splits.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.better_models import EPSILONS, by_default, gained, run_design, state_of_its_own, without_reports
from benchmarks.cases import Case
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


FIRST_TABLES = (checker, tailed, bent, bought, mixed, counted, graded, edged)


def spread() -> ModelTable:
    """Four classes by straight lines in fifty columns with tails of Cauchy's law, which bounds cut off."""
    random = np.random.default_rng(911)
    X = random.standard_cauchy(size=(5000, 50))
    logits = X.clip(-3, 3) @ random.normal(0, 0.3, (50, 4))
    y = np.argmax(logits + random.gumbel(size=logits.shape), axis=1)
    return table_of("spread", X, y, classes_of(y), [(-20, 20)] * 50)


def peaked() -> ModelTable:
    """A number by the hyperbolic tangents of thirty columns of Laplace's law."""
    random = np.random.default_rng(912)
    X = random.laplace(size=(4000, 30))
    y = np.tanh(X) @ random.normal(0, 1, 30) + random.normal(0, 1, len(X))
    return table_of("peaked", X, y, numbers_of(-20, 20), [(-12, 12)] * 30)


def visits() -> ModelTable:
    """Three classes by counts that are mostly 0, and by two words."""
    random = np.random.default_rng(913)
    counts = random.poisson(np.exp(random.normal(0, 1.5, size=(6000, 12)))).astype(float)
    day, way = random.choice(["week", "end"], 6000), random.choice(["foot", "bus", "train"], 6000)
    logits = np.log1p(counts) @ random.normal(0, 0.8, (12, 3))
    logits[:, 1] += 1.5 * (day == "end")
    logits[:, 2] += (way == "train") - 0.5 * (way == "foot")
    y = np.array(["long", "short", "none"])[np.argmax(logits + random.gumbel(size=logits.shape), axis=1)]
    columns = {f"visits {place}": column for place, column in enumerate(counts.T)} | {"day": day, "way": way}
    facts: dict[str, Any] = {name: {"bounds": [0, 200]} for name in columns}
    facts |= {"day": {"categories": ["week", "end"]}, "way": {"categories": ["foot", "bus", "train"]}}
    return ModelTable("visits", columns, y, {**classes_of(y), "columns": facts}, AMOUNTS)


def nearest() -> ModelTable:
    """Six classes: which of six places is the nearest, in five columns of which three matter."""
    random = np.random.default_rng(914)
    X = random.uniform(-1, 1, size=(4000, 5))
    places = random.uniform(-1, 1, size=(6, 3))
    y = np.argmin(((X[:, None, [0, 2, 4]] - places) ** 2).sum(axis=2), axis=1)
    return table_of("nearest", X, y, classes_of(y), [(-1, 1)] * 5)


def ratios() -> ModelTable:
    """A number by the ratio of two amounts and the square root of a third."""
    random = np.random.default_rng(915)
    X = np.exp(random.normal(1.5, 0.9, size=(3500, 7)))
    y = 10 + 3 * np.log(X[:, 0] / X[:, 5]) + np.sqrt(X[:, 3]) + random.normal(0, 1.5, len(X))
    return replace(table_of("ratios", X, y, numbers_of(-10, 30), [(0, 150)] * 7), maps=AMOUNTS)


def flags() -> ModelTable:
    """Two classes by sixty columns of 0 and 1 and pairs of them."""
    random = np.random.default_rng(916)
    X = (random.random((5000, 60)) < random.uniform(0.1, 0.9, 60)).astype(float)
    logits = (X - 0.5) @ random.normal(0, 0.7, 60) + 2 * X[:, 3] * X[:, 30] - 2 * X[:, 10] * X[:, 44]
    y = np.where(of_second(logits, random), "up", "down")
    return table_of("flags", X, y, classes_of(y), [(0, 1)] * 60)


TABLES = (spread, peaked, visits, nearest, ratios, flags)


def belts() -> ModelTable:
    """Two classes by a line through twenty-five columns that move together; one answer in ten is wrong."""
    random = np.random.default_rng(921)
    X = random.normal(size=(2500, 6)) @ random.normal(size=(6, 25)) + random.normal(0, 0.7, (2500, 25))
    y = (X @ random.normal(0, 1, 25) > 0) ^ (random.random(2500) < 0.1)
    return table_of("belts", X, y.astype(int), classes_of(y.astype(int)), [(-9, 9)] * 25)


def votes() -> ModelTable:
    """Five classes by four words and eight numbers, of which some matter by their squares."""
    random = np.random.default_rng(922)
    words, X = random.integers(0, 4, (7000, 4)), random.uniform(-1, 1, (7000, 8))
    logits = np.stack([random.normal(0, 0.8, (4, 5))[column] for column in words.T]).sum(0)
    logits += X[:, :5] @ random.normal(0, 1.5, (5, 5)) + X[:, 5:] ** 2 @ random.normal(0, 2.5, (3, 5))
    y = np.argmax(logits + random.gumbel(size=logits.shape), axis=1)
    columns = {f"number {place}": column for place, column in enumerate(X.T)}
    columns |= {f"word {place}": np.array(list("abcd"))[column] for place, column in enumerate(words.T)}
    facts: dict[str, Any] = {name: {"bounds": [-1, 1]} for name in columns}
    facts |= {name: {"categories": list("abcd")} for name in columns if name.startswith("word")}
    return ModelTable("votes", columns, y, {**classes_of(y), "columns": facts})


def damped() -> ModelTable:
    """A number by waves that fade along ten columns, and by the product of two of them."""
    random = np.random.default_rng(923)
    X = random.gamma(2.0, 1.5, (4500, 10))
    y = (np.sin(2 * X) * np.exp(-X / 4)) @ random.normal(0, 3, 10) + X[:, 0] * X[:, 1] / 4 + random.normal(0, 1, len(X))
    return table_of("damped", X, y, numbers_of(-15, 25), [(0, 15)] * 10)


NEW_TABLES = (belts, votes, damped)


def lines(table: ModelTable, epsilons: tuple[float, ...], seeds: int) -> Iterator[str]:
    """One row of the page's table."""
    found = []
    for epsilon in epsilons:
        differences = []
        for seed in range(seeds):
            with TemporaryDirectory() as folder:
                case = Case(table, epsilon, seed, Path(folder))
                differences.append(1000.0 * (run_design("auto", case) - by_default(case)))
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
        for make in (*FIRST_TABLES, *TABLES, *NEW_TABLES):
            if make.__name__.startswith(only):
                print(*lines(make(), epsilons, seeds), sep="\n", flush=True)


if __name__ == "__main__":
    main()
