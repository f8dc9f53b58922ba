"""The correlation that the same rows claim grows with the number of features looked at, to eight standard errors
from the truth, which is zero; on new rows it stays near zero, and our claim is within its certified distance.
"""

import matplotlib.pyplot as plt
import numpy as np
from freedman_paradox import FEATURES, HALF_WIDTH, ROWS
from printed import numbers

generator = np.random.default_rng(1)
means = generator.standard_normal((ROWS, FEATURES), dtype=np.float32).mean(axis=0)
fresh = generator.standard_normal((ROWS, FEATURES), dtype=np.float32).mean(axis=0)
looked = np.arange(1, FEATURES + 1)
error = 1.96 / np.sqrt(ROWS)
plt.fill_between(looked, -error, error, alpha=0.2, color="grey", label="95 % of what chance gives")
plt.plot(looked, np.cumsum(np.abs(means)) / np.sqrt(looked), label="claimed on the same rows")
plt.plot(looked, np.cumsum(np.sign(means) * fresh) / np.sqrt(looked), label="on new rows")
ours = numbers("freedman_paradox", "ours")[0]
plt.plot(FEATURES, ours, "o", color="tab:green", label=f"ours, certified within {HALF_WIDTH:.2f}")
plt.xlabel("features looked at")
plt.ylabel("correlation (the truth is 0)")
plt.legend(loc="upper left")
