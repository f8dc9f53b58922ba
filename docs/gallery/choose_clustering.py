"""Log-likelihood against the number of clusters: on the rows that it was fitted to it rises up to eight clusters,
on other rows of the block three clusters are best.
"""

import matplotlib.pyplot as plt
import numpy as np
from choose_clustering import BLOCK, CLUSTERS, score, synthetic_rows

blocks = synthetic_rows(40 * BLOCK, seed=2).reshape(40, BLOCK, 2)
fitted = [np.concatenate([block[: BLOCK // 2]] * 2) for block in blocks]
for label, shown in (("scored on the rows it was fitted to", fitted), ("scored on other rows", blocks)):
    medians = [np.median([score(block, algorithm="ward", clusters=k) for block in shown]) for k in CLUSTERS]
    plt.plot(CLUSTERS, medians, "o-", label=label)
plt.xticks(CLUSTERS)
plt.xlabel("number of clusters")
plt.ylabel("log-likelihood per row")
plt.legend()
