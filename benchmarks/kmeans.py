"""What private k-means brings as a map of rows: one run behind it, beside one default run at the same total.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.kmeans [--seeds 10] [--only TABLE ...]

For each table of classes, epsilon (at delta 1e-5) and split, diffprivlib 0.6.6 finds centres with a share of epsilon;
the default learner is trained, with what is left, on how near a row is to each of them. The share and the number of
centres, of four pairs, are the ones that do best on the rows held out, which flatters k-means. Its promise is of
replacing a row, the other's of adding or removing one.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.better_models import EPSILONS, by_default, state_of_its_own, without_reports
from benchmarks.cases import DELTA, Case
from benchmarks.learners import diffprivlib_regression
from benchmarks.model_tables import tables
from dpselect.accounting import calibrate
from dpselect.learners import DPSGDClassifier
from dpselect.privacy import Adjacency, compose, pure_dp
from dpselect.randomness import keyed_source

SHARES = (0.2, 0.5)
CENTRES = (1, 4)
"""For each class."""
TABLES = ("digits", "breast cancer", "wine", "amounts", "waves", "orders", "moons", "shells")


def behind_centres(case: Case, share: float, centres: int) -> float:
    """The accuracy of one run on how near rows are to centres that a share of epsilon has bought."""
    diffprivlib_regression()  # with which diffprivlib can be imported
    from diffprivlib.models import KMeans

    table, (train, test) = case.table, case.parts
    classes = list(table.facts["classes"])
    bought = KMeans(
        n_clusters=centres * len(classes), epsilon=share * case.epsilon, bounds=(-1.0, 1.0), random_state=case.seed
    ).fit(table.encoded[train])
    distances = ((table.encoded[:, None, :] - bought.cluster_centers_[None]) ** 2).mean(axis=2)
    near = np.exp(-4.0 * distances)
    learner = DPSGDClassifier(classes=classes, nominal_rows=case.rows)

    def price(noise: float) -> Any:
        paid = pure_dp(epsilon=share * case.epsilon, adjacency=Adjacency.ADD_OR_REMOVE_ONE)  # as if it promised that
        return compose(learner.set_params(noise_multiplier=noise).guarantee(), paid)

    noise = calibrate(price, epsilon=case.epsilon, delta=DELTA)
    source = keyed_source(f"{table.name} {share} {centres} {case.epsilon} {case.seed}")
    model = learner.set_params(noise_multiplier=noise, random=source).fit(near[train], table.answers[train])
    return float(np.mean(model.predict(near[test]) == table.answers[test]))


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.kmeans", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", nargs="*", default=TABLES, help="tables, by the beginning of their names")
    asked = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    print("| table | " + " | ".join(f"epsilon {epsilon:g}: default, k-means" for epsilon in EPSILONS) + " |")
    print("|---" * (1 + len(EPSILONS)) + "|")
    with without_reports(), state_of_its_own():
        for table in tables():
            if not table.name.startswith(tuple(asked.only)):
                continue
            shown = []
            for epsilon in EPSILONS:
                cases = [Case(table, epsilon, seed, Path()) for seed in range(asked.seeds)]
                default = []
                for case in cases:
                    with tempfile.TemporaryDirectory() as folder:
                        default.append(by_default(replace(case, folder=Path(folder))))
                found = [[behind_centres(case, *pair) for case in cases] for pair in product(SHARES, CENTRES)]
                shown.append(f"{np.mean(default):.3f}, {max(np.mean(each) for each in found):.3f}")
            print(f"| {table.name} | " + " | ".join(shown) + " |", flush=True)


if __name__ == "__main__":
    main()
