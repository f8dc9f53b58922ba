"""Estimators whose variance is infinite: no bound, no variance, and answers that keep their promise anyway.

Twenty segments of customers spend by the same Pareto law with tail index 1.5: the mean is 3, the variance infinite. The
analyst asks which segment spends most and by how much, and looks at its tail afterwards. The sample mean of the segment
that looked best is far too high, and its normal confidence interval is a fiction. `AdaptiveAnalysis` charges one
question for the choice and answers with what a fresh block would say, be it of the mean, the median or the tail index.

    python examples/heavy_tails.py
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpselect.adaptive import AdaptiveAnalysis, logarithmic_grid
from dpselect.randomness import RandomSource

TAIL, SEGMENTS, BLOCK, ROWS = 1.5, 20, 100, 75_000
MEAN, MEDIAN = TAIL / (TAIL - 1.0), 2.0 ** (1.0 / TAIL)
SPENDING = logarithmic_grid(1.0, 1e6, ratio=1.01)
"""Where answers about money come from: public, and cheap however wide it is."""


@dataclass(frozen=True)
class Study:
    """What is said of the segment that was chosen; the quartiles are those of the statistic on a fresh block."""

    naive_mean: float
    naive_error: float
    mean: float
    mean_quartiles: tuple[float, float]
    median: float
    tail_index: float


def hill(values: np.ndarray, axis: int) -> np.ndarray:
    """Hill's estimate of the tail index from all values above one."""
    return 1.0 / np.log(np.maximum(values, 1.0 + 1e-12)).mean(axis=axis)


def main(random: RandomSource | None = None) -> Study:
    """Run the example; returns what is said."""
    generator = np.random.default_rng(3)
    rows = 1.0 + generator.pareto(TAIL, (ROWS, SEGMENTS))
    means = rows.mean(axis=0)
    best = int(np.argmax(means))
    error = float(rows[:, best].std() / math.sqrt(ROWS))

    analysis = AdaptiveAnalysis(
        rows, queries=4, subsample_size=BLOCK, failure_probability=0.05, grid_size=2000, random=random
    )
    segments = [lambda part, axis, column=column: part[..., column].mean(axis=axis) for column in range(SEGMENTS)]
    chosen = analysis.choose(segments, axis=True).value
    mean = analysis.estimate(segments[chosen], grid=SPENDING, axis=True).value
    median = analysis.estimate(
        lambda part, axis: np.median(part[..., chosen], axis=axis), grid=SPENDING, axis=True
    ).value
    tail = analysis.estimate(
        lambda part, axis: hill(part[..., chosen], axis), lower=0, upper=10, granularity=0.01, axis=True
    ).value
    fresh = (1.0 + generator.pareto(TAIL, (20_000, BLOCK))).mean(axis=1)
    quartiles = tuple(np.quantile(fresh, [0.25, 0.75]).tolist())
    found = Study(float(means[best]), error, mean, quartiles, median, tail)
    print("the segment chosen as the best       says   truth (the same for all)")
    print(f"  naive mean, normal interval    {means[best]:6.2f} +- {1.96 * error:.2f}   {MEAN:.2f}")
    print(f"  our mean                       {mean:6.2f}   {quartiles[0]:.2f} to {quartiles[1]:.2f} on a fresh block")
    print(f"  our median                     {median:6.2f}   {MEDIAN:.2f}")
    print(f"  our tail index                 {tail:6.2f}   {TAIL:.2f}")
    print(analysis.certificate.statement)
    return found


if __name__ == "__main__":
    main()
