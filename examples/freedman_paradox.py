"""Freedman's paradox: a false discovery made by asking good questions of the same rows, and one that is not made.

One hundred features are pure noise. An analyst looks at the correlation of each with the outcome and then asks for that
of the score that adds all features with the signs just seen. On the rows that the signs came from it is many standard
errors from zero; the truth is zero. `AdaptiveAnalysis` answers the same questions of the same rows, and its last answer
is as good as on new rows: within the quartiles of the correlation of a fresh block.

    python examples/freedman_paradox.py

After Freedman (1983), "A note on screening regression equations"; the attack is that of Dwork et al. (2015).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpselect.adaptive import AdaptiveAnalysis
from dpselect.adaptive.spread import gaussian_half_width
from dpselect.randomness import RandomSource

ROWS, FEATURES, BLOCK = 42_000, 100, 10
HALF_WIDTH = gaussian_half_width(0.25) / math.sqrt(BLOCK)
"""Half the distance between the quartiles of a correlation on a fresh block, nearly."""


@dataclass(frozen=True)
class Study:
    """The last claim of each analyst about the correlation of the combined score. The truth is 0."""

    naive: float
    standard_error: float
    ours: float
    fresh: float


def combined(rows: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """The score with these signs, scaled to deviation one; row by row, for any leading shape."""
    return rows @ (signs / math.sqrt(FEATURES)).astype(np.float32)


def attack(ask: Callable[[Callable[..., np.ndarray]], float]) -> tuple[float, np.ndarray]:
    """All single correlations, then the one along their signs. A row holds outcome times feature."""
    single = [ask(lambda rows, axis, column=column: rows[..., column].mean(axis=axis)) for column in range(FEATURES)]
    signs = np.where(np.array(single) < 0.0, -1.0, 1.0)
    return ask(lambda rows, axis: combined(rows, signs).mean(axis=axis)), signs


def main(random: RandomSource | None = None) -> Study:
    """Run the example; returns what both analysts claim."""
    generator = np.random.default_rng(1)
    rows = generator.standard_normal((ROWS, FEATURES), dtype=np.float32)  # products of noise with noise
    naive, signs = attack(lambda question: float(question(rows, axis=0)))
    fresh = float(combined(generator.standard_normal((ROWS, FEATURES), dtype=np.float32), signs).mean())

    analysis = AdaptiveAnalysis(
        rows, queries=FEATURES + 1, subsample_size=BLOCK, failure_probability=0.05, grid_size=201, random=random
    )
    ours, _ = attack(lambda question: analysis.estimate(question, lower=-1, upper=1, granularity=0.01, axis=True).value)
    found = Study(naive=naive, standard_error=1.0 / math.sqrt(ROWS), ours=ours, fresh=fresh)
    print("correlation of the combined score with the outcome (the truth is 0)")
    print(f"  same rows, naive    {naive:+.3f}   {naive / found.standard_error:.1f} standard errors from 0")
    print(f"  same rows, ours     {ours:+.3f}   within {HALF_WIDTH:.3f} of the truth, certified")
    print(f"  new rows          {fresh:+.3f}   {abs(fresh) / found.standard_error:.1f} standard errors from 0")
    print(analysis.certificate.statement)
    return found


if __name__ == "__main__":
    main()
