"""A boosting attack on a leaderboard, on one that shows exact scores and on ours.

The labels are coin flips, so no submission is better than one half. The attacker submits random predictions, learns a
little about the held-out labels from every score, and lets those that did well vote (those that did badly vote against
themselves). On a leaderboard that shows exact scores the vote is far above one half after some hundred submissions, and
means nothing. Ours answers a planned number of scores, each with an interval that holds what the predictions are worth
on new rows, and stops when one more would not be certified.

    python examples/leaderboard.py
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import BudgetError
from dpselect.holdout import Holdout, HoldoutLabels, HoldoutRequest

ROWS = 3000
SUBMISSIONS = 800
ANSWERS = 10

Labels = NDArray[np.int64]


def attack(ask: Callable[[Labels], float | None], submissions: int, generator: np.random.Generator) -> Labels:
    """What random submissions vote for, each weighed by whether its score was above one half; None says nothing."""
    votes = np.zeros(ROWS)
    for _ in range(submissions):
        guess = generator.integers(0, 2, ROWS)
        score = ask(guess)
        if score is not None:
            votes += np.sign(score - 0.5) * (2 * guess - 1)
    return (votes > 0).astype(np.int64)


def attack_ours(holdout: Holdout, claim: float | None, generator: np.random.Generator) -> tuple[str, float]:
    """The attack until all answers but one are used up, which is kept for the vote. A claim of one half is cheap."""
    left = ANSWERS

    def ask(guess: Labels) -> float | None:
        nonlocal left
        if left <= 1:
            return None
        found = holdout.score(ids=range(ROWS), predictions=guess, claim=claim)
        left = found.answers_left
        return None if found.agrees else found.value

    vote = attack(ask, SUBMISSIONS // 8, generator)
    found = holdout.score(ids=range(ROWS), predictions=vote)
    low, high = found.interval or (0.0, 1.0)
    asked = holdout.status()["asked"]
    try:
        while True:
            holdout.score(ids=range(ROWS), predictions=generator.integers(0, 2, ROWS))
    except BudgetError as error:
        print(f"  in the end: {error}")
    return f"{found.value:.3f} after {asked} questions, on new rows between {low:.3f} and {high:.3f}", found.value


def main(seed: int = 1) -> dict[str, float]:
    """Run the attacks; the scores of their votes, and the certified error."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 2, ROWS)
    found = {}

    def exact(guess: Labels) -> float:
        return float(np.mean(guess == labels))

    found["ordinary"] = exact(attack(exact, SUBMISSIONS, generator))
    print(f"exact scores:  the vote scores {found['ordinary']:.3f} after {SUBMISSIONS} questions; it is worth 0.5")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder  # keys and counters of this demonstration only
        for name, claim in (("scores", None), ("claims", 0.5)):
            holdout = Holdout.create(
                Path(folder, f"{name}.holdout"),
                HoldoutLabels(ids=range(ROWS), labels=labels),
                HoldoutRequest(metric="accuracy", questions=SUBMISSIONS, answers=ANSWERS, failure_probability=0.05),
            )
            if not found.get("certified"):
                found["certified"] = float(holdout.terms.plan.error or 1.0)
                print(f"ours certifies: {holdout.terms.statement}")
            text, found[name] = attack_ours(holdout, claim, generator)
            print(f"ours, {name}:  the vote scores {text}")
    return found


if __name__ == "__main__":
    main()
