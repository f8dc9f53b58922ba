"""How many of 2,000 rows agree with each feature: a bell around 1,000, and one feature far to its right at 1,818."""

import matplotlib.pyplot as plt
import numpy as np
from pick_a_feature import TELLING, synthetic_table
from printed import numbers

features, labels = synthetic_table()
agreeing = np.count_nonzero(features == labels[:, None], axis=0)
plt.hist(np.delete(agreeing, TELLING), bins=50, label="4,999 coins")
plt.axvline(agreeing[TELLING], color="tab:green", linestyle=":", label=f"feature {TELLING}")
plt.axvline(numbers("pick_a_feature", "best of")[2], color="tab:red", label="released, with noise")
plt.xlabel("rows that agree with the label")
plt.ylabel("features")
plt.legend()
