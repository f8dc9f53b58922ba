"""The score of the attacker's vote against the submissions: exact scores let it rise to 0.66, what it is worth
stays at 0.5, and ours stops after ten answers, each with an interval.
"""

import matplotlib.pyplot as plt
import numpy as np
from leaderboard import ANSWERS, ROWS, SUBMISSIONS

from dpselect.holdout import HoldoutRequest

generator = np.random.default_rng(1)
labels, votes, claimed = generator.integers(0, 2, ROWS), np.zeros(ROWS), []
for _ in range(SUBMISSIONS):
    guess = generator.integers(0, 2, ROWS)
    votes += np.sign(np.mean(guess == labels) - 0.5) * (2 * guess - 1)
    claimed.append(np.mean((votes > 0) == labels))
asked = HoldoutRequest(metric="accuracy", questions=SUBMISSIONS, answers=ANSWERS, failure_probability=0.05)
error = float(asked.plan(rows=ROWS).plan.error)
plt.plot(range(1, SUBMISSIONS + 1), claimed, label="what exact scores say of the vote")
plt.axhline(0.5, color="grey", linestyle=":", label="what it is worth")
plt.axhspan(0.5 - error, 0.5 + error, alpha=0.15, color="tab:green", label="what ours certifies")
plt.xlabel("submissions")
plt.ylabel("accuracy")
plt.legend()
