"""A counting plan, and votes of random predictions that overfit to what a plan answers."""

from __future__ import annotations

import numpy as np

from dpselect.holdout.counting import CountingPlan
from dpselect.holdout.draws import Draws
from dpselect.holdout.scores import METRICS, Scored


def counting(**changes):
    public = {"questions": 1, "answers": 1, "rows": 50, "failure_probability": 0.05, "tolerance": 0.02}
    return CountingPlan(**{**public, **changes})


def boosted(plan, rows, questions, seed):
    """Random predictions of coin flips; those that score above half vote. The largest error of what was shown.

    The last question is the vote; the population's accuracy of everything is one half.
    """
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 2, rows).astype(float)
    votes, worst = np.zeros(rows), 0.0
    for number in range(questions):
        last = number == questions - 1
        guess = (votes > 0).astype(float) if last else generator.integers(0, 2, rows).astype(float)
        draws = Draws(seed.to_bytes(32, "big"), str(number), str(number), number)
        _, value = plan.answer(Scored(METRICS["accuracy"], labels, guess, 1.0), None, draws)
        votes += np.sign(value - 0.5) * (2 * guess - 1)
        low, high = plan.interval(value, None) or (0.0, 1.0)
        worst = max(worst, low - 0.5, 0.5 - high)
    return worst > 0.0
