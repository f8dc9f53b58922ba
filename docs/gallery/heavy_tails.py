"""Sample means of twenty segments that have the same mean, 3: the largest is 3.95. Ours is 2.73, between the
quartiles of a fresh block.
"""

import matplotlib.pyplot as plt
import numpy as np
from heavy_tails import MEAN, ROWS, SEGMENTS, TAIL
from printed import numbers

means = np.sort((1.0 + np.random.default_rng(3).pareto(TAIL, (ROWS, SEGMENTS))).mean(axis=0))
ours, low, high = numbers("heavy_tails", "our mean")
plt.plot(means, "o", label="sample means, sorted: all estimate the same")
plt.plot(SEGMENTS, means[-1], "v", color="tab:red", label="claimed of the segment that looked best")
plt.errorbar(
    SEGMENTS + 1,
    ours,
    [[ours - low], [high - ours]],
    fmt="s",
    capsize=4,
    color="tab:green",
    label="ours, fresh quartiles",
)
plt.axhline(MEAN, color="grey", linestyle=":", label="the truth")
plt.xlabel("segment")
plt.ylabel("mean spending")
plt.legend(loc="upper left")
