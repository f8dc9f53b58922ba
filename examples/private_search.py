"""Tune a private classifier on handwritten digits with scikit-learn's interface, for a total epsilon of 3.

    python examples/private_search.py

One person is one row, added or removed. The pipeline turns pixels (0 to 16, which is public) into numbers from 0 to 1,
row by row, and trains DP-SGD; the search draws learning rate and network size, makes 5 runs on average (never more than
20), and releases one model. Nothing of the other runs can be read from what it leaves.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import loguniform
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from dpselect.integrations.sklearn import PrivateSearchCV, PublicTransformer
from dpselect.learners import DPSGDClassifier
from dpselect.randomness import RandomSource
from dpselect.repetitions import Harmonic

DELTA = 1e-5


def to_unit(pixels: np.ndarray) -> np.ndarray:
    """Pixels from 0 to 16 as numbers from 0 to 1, each by itself."""
    return np.clip(pixels, 0.0, 16.0) / 16.0


def search(random: RandomSource | None = None, *, steps: int = 250, epsilon: float = 3.0) -> PrivateSearchCV:
    """The search, before it has seen data; `random` is for tests only."""
    pipeline = Pipeline(
        [
            ("unit", PublicTransformer(FunctionTransformer(to_unit))),
            ("model", DPSGDClassifier(sampling_rate=0.2, steps=steps, row_norm=8.0)),
        ]
    )
    return PrivateSearchCV(
        pipeline,
        {"model__learning_rate": loguniform(0.5, 10.0), "model__hidden_units": [0, 32, 64]},
        epsilon=epsilon,
        delta=DELTA,
        repetitions=Harmonic(limit=20),
        nominal_rows=1300,
        classes=list(range(10)),
        n_jobs=2,
        name="digits",
        random=random,
    )


def main(random: RandomSource | None = None, **options: float) -> PrivateSearchCV:
    """Run the example; returns the fitted search."""
    X, y = load_digits(return_X_y=True)
    # the test rows stand for rows that anyone may see: scoring on them is not part of the guarantee
    X, X_public, y, y_public = train_test_split(X, y, test_size=0.25, random_state=0)
    found = search(random, **options)  # type: ignore[arg-type]
    plan = found.plan()
    print(f"before any data: epsilon {plan.guarantee.epsilon(DELTA):.3f} at delta {DELTA:g} for the whole search")
    print(f"one run alone:   epsilon {plan.parts[0].epsilon(DELTA):.3f}, noise multiplier {plan.noise:.2f}")
    found.fit(X, y)
    print(f"chosen:          {found.best_params_}")
    print(f"accuracy on rows that no one trained on: {found.score(X_public, y_public):.3f}")
    return found


if __name__ == "__main__":
    main()
