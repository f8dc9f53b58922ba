"""The reusable-holdout experiment with 500 features and no signal: what a holdout says about the model it selected.

Labels are coin flips and 500 binary features are independent of them. The analyst keeps the features whose agreement
with the label has the same direction on the training set and on the holdout, lets them vote, and asks the holdout for
the accuracy of the vote. An ordinary holdout confirms what it helped to choose. `AdaptiveAnalysis` answers the same 501
questions of the same holdout.

    python examples/reusable_holdout.py

After Dwork, Feldman, Hardt, Pitassi, Reingold, Roth (2015), "The reusable holdout", with certified answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpselect.adaptive import AdaptiveAnalysis
from dpselect.randomness import RandomSource

FEATURES, TRAINING_ROWS, BLOCK, BLOCKS = 500, 2000, 11, 7400
HOLDOUT_ROWS = BLOCK * BLOCKS


@dataclass(frozen=True)
class Study:
    """The accuracy that each holdout reports for its own model, and that of the same models on new rows."""

    naive: float
    naive_fresh: float
    ours: float
    ours_fresh: float
    standard_error: float


def agreements(generator: np.random.Generator, rows: int) -> np.ndarray:
    """Whether each feature agrees with the label: fair coins, since nothing does."""
    return generator.integers(0, 2, (rows, FEATURES), dtype=np.int8)


def right(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Whether the weighted vote of the features is right, one half at a tie; row by row for any leading shape."""
    return (np.sign((2 * rows - 1).astype(np.float32) @ weights) + 1.0) / 2.0


def select(trained: np.ndarray, ask: Callable[[Callable[..., np.ndarray]], float]) -> tuple[np.ndarray, float]:
    """The votes of the features that holdout and training agree on, and what the holdout says about them."""
    held_out = [ask(lambda rows, axis, column=column: rows[..., column].mean(axis=axis)) for column in range(FEATURES)]
    weights = np.where((np.array(held_out) - 0.5) * trained > 0.0, np.sign(trained), 0.0).astype(np.float32)
    return weights, ask(lambda rows, axis: right(rows, weights).mean(axis=axis))


def main(random: RandomSource | None = None) -> Study:
    """Run the example; returns what both holdouts say."""
    generator = np.random.default_rng(1)
    trained = agreements(generator, TRAINING_ROWS).mean(axis=0) - 0.5
    holdout, fresh = agreements(generator, HOLDOUT_ROWS), agreements(generator, HOLDOUT_ROWS)
    naive_weights, naive = select(trained, lambda question: float(question(holdout, axis=0)))

    analysis = AdaptiveAnalysis(
        holdout,
        queries=FEATURES + 1,
        subsample_size=BLOCK,
        failure_probability=0.05,
        grid_size=BLOCK + 1,
        random=random,
    )
    our_weights, ours = select(
        trained,
        lambda question: analysis.estimate(question, lower=0, upper=1, granularity=1 / BLOCK, axis=True).value,
    )
    found = Study(
        naive=naive,
        naive_fresh=float(right(fresh, naive_weights).mean()),
        ours=ours,
        ours_fresh=float(right(fresh, our_weights).mean()),
        standard_error=0.5 / math.sqrt(HOLDOUT_ROWS),
    )
    print("accuracy of the selected vote    holdout says   new rows say")
    print(f"  ordinary holdout               {naive:12.3f}   {found.naive_fresh:14.3f}")
    print(f"  ours                           {ours:12.3f}   {found.ours_fresh:14.3f}")
    excess = (naive - 0.5) / found.standard_error
    print(f"the ordinary holdout is {excess:.0f} standard errors above a coin; ours answers in steps of 1/{BLOCK}")
    print(analysis.certificate.statement)
    return found


if __name__ == "__main__":
    main()
