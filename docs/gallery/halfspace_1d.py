"""Rows that a limit is wrong about, against the limit: none at the true one, and the released limit is next to
it.
"""

import matplotlib.pyplot as plt
import numpy as np
from halfspace_1d import TRUE_LIMIT, main, score_of, synthetic_patients

from dpselect.randomness import keyed_source

score = score_of(synthetic_patients())
limits = np.linspace(TRUE_LIMIT - 12_000_000, TRUE_LIMIT + 12_000_000, 81).astype(int)
wrong = [-min(score.rising(int(limit)), score.falling(int(limit))) for limit in limits]
plt.plot(limits / 1e6, wrong, label="rows on the worse side that are wrong")
plt.axvline(TRUE_LIMIT / 1e6, color="grey", linestyle=":", label="where reactions begin")
plt.axvline(main(keyed_source(1)).value / 1e6, color="tab:red", label="released")
plt.xlabel("limit, millions of nanograms")
plt.ylabel("rows")
plt.legend()
