"""What the whole search of examples/digits.toml reaches on rows that it never saw, beside what one would do instead.

Ten private searches; the same learners without privacy; and ten fixed runs, every run paid by composition at the same
total. Prints a table: mean and standard deviation of test accuracy over the repetitions, seconds a run and a search.

    python benchmarks/digits_search.py [--repetitions 10]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from dpselect.accounting import calibrate
from dpselect.mechanisms import NoisyCount, noisy_count
from dpselect.privacy import compose
from dpselect.randomness import system_source
from dpselect.study import load_study, run_study
from dpselect.study.data import load, plan_columns
from dpselect.study.learners.recipe import recipe_of
from dpselect.study.schema import Study, Test
from dpselect.study.split import validation_mask
from dpselect.study.validate import law_of, space_of
from dpselect.tables.table import open_table

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "digits.toml"
FIXED_RUNS = 10


def on_training_rows(folder: Path) -> Study:
    """The example's study on four fifths of the digits, and the other fifth as test rows."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[: 4 * len(X) // 5], order[4 * len(X) // 5 :]
    names = [f"pixel_{i // 8}_{i % 8}" for i in range(64)]
    for part, rows in (("train", train), ("test", test)):
        np.savez(folder / f"{part}.npz", **dict(zip(names, X[rows].T, strict=True)), target=y[rows])
    study = load_study(EXAMPLE)
    data = study.data.model_copy(update={"source": "train.npz"})
    privacy = study.privacy.model_copy(update={"nominal_rows": 1440})
    return study.model_copy(update={"data": data, "privacy": privacy, "test": Test(source="test.npz")})


def private_search(study: Study, folder: Path, name: str) -> tuple[float, float]:
    start = time.perf_counter()
    release = run_study(study, base_folder=folder, folder=folder / name).release
    seconds = time.perf_counter() - start
    return release["test"]["accuracy"], seconds


class ByComposition:
    """Ten runs with drawn parameters, each training and each score paid in full out of the same total."""

    def __init__(self, study: Study, folder: Path) -> None:
        privacy = study.privacy
        self.study = study
        table = open_table(study.data.source, folder)
        columns = plan_columns(study.data, table)
        trained = privacy.nominal_rows * (1 - study.validation.fraction)
        self.recipe = recipe_of(study, nominal_rows=trained, columns=columns)
        self.noise = calibrate(
            lambda value: compose(*[self.recipe.guarantee(value)] * FIXED_RUNS),
            epsilon=privacy.epsilon,
            delta=privacy.delta,
        )
        # a pure score at a tenth of the total each; training and scoring rows are disjoint
        self.score_epsilon = privacy.epsilon / FIXED_RUNS
        total = compose(*[NoisyCount(epsilon=self.score_epsilon).guarantee] * FIXED_RUNS)
        assert total.pure_epsilon <= privacy.epsilon * (1 + 1e-12)
        rows = load(study.data, table, columns)
        self.test = load(study.data, open_table("test.npz", folder), columns)
        mask = validation_mask(
            rows.digests, fraction=study.validation.fraction, adjacency=privacy.adjacency, salt=study.name
        )
        self.training = rows.features[~mask], rows.labels[~mask]
        self.validation = rows.features[mask], rows.labels[mask]

    def accuracy(self) -> tuple[float, list[float]]:
        source, best, seconds = system_source(), None, []
        for _ in range(FIXED_RUNS):
            start = time.perf_counter()
            drawn = space_of(self.study).sample(source)
            model = self.recipe.estimator(self.noise, drawn, source).fit(*self.training)
            correct = int(np.sum(model.predict(self.validation[0]) == self.validation[1]))
            score = noisy_count(correct, epsilon=self.score_epsilon, random=source)
            seconds.append(time.perf_counter() - start)
            if best is None or score > best[0]:
                best = score, model
        return float(np.mean(best[1].predict(self.test.features) == self.test.labels)), seconds


def row(label: str, accuracies: list[float]) -> None:
    print(f"| {label} | {np.mean(accuracies):.3f} | {np.std(accuracies, ddof=1):.3f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=10)
    repetitions = parser.parse_args().repetitions
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        study = on_training_rows(folder)
        searches = [private_search(study, folder, f"s{i}") for i in range(repetitions)]
        fixed = ByComposition(study, folder)
        composed = [fixed.accuracy() for _ in range(repetitions)]
        (inputs, labels), test = fixed.training, fixed.test
        plain = [
            max(
                LogisticRegression(max_iter=2000).fit(inputs, labels).score(test.features, test.labels),
                MLPClassifier((64,), max_iter=600, random_state=i)
                .fit(inputs, labels)
                .score(test.features, test.labels),
            )
            for i in range(repetitions)
        ]
        law = law_of(study)
        print(f"| test accuracy, {repetitions} repetitions | mean | standard deviation |\n|---|---|---|")
        row("not private (the better of logistic regression and a network)", plain)
        row(f"private search, total epsilon {study.privacy.epsilon:g}", [accuracy for accuracy, _ in searches])
        row(f"{FIXED_RUNS} fixed runs by composition, same total", [accuracy for accuracy, _ in composed])
        each = np.concatenate([seconds for _, seconds in composed])
        print(f"\nseconds a run: mean {np.mean(each):.2f}, largest {np.max(each):.2f}")
        print(f"seconds a search, start to release: mean {np.mean([s for _, s in searches]):.1f}")
        print(f"runs: mean {law.mean:.2f}, never more than {law.limit}")


if __name__ == "__main__":
    main()
