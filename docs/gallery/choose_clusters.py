"""Four thousand points in five groups on a circle, and the five released centres, one in each group."""

import matplotlib.pyplot as plt
import numpy as np
from choose_clusters import synthetic_rows
from printed import numbers

rows = synthetic_rows()
centres = np.reshape(numbers("choose_clusters", "centre"), (-1, 2))
plt.scatter(*rows.T, s=2, alpha=0.4, label="rows")
plt.scatter(*centres.T, marker="X", s=120, color="tab:red", label="released centres")
plt.gca().set_aspect("equal")
plt.xlim(-1.0, 2.2)
plt.legend(loc="center right")
