"""Whether integers were drawn from a distribution."""

from __future__ import annotations

import numpy as np
from scipy import stats


def chi_square(drawn: np.ndarray, law: dict[int, float]) -> float:
    big = {k: p for k, p in law.items() if p * len(drawn) >= 10}
    observed = np.array([np.count_nonzero(drawn == k) for k in big], dtype=float)
    expected = np.array(list(big.values())) * len(drawn)
    observed, expected = (
        np.append(observed, len(drawn) - observed.sum()),
        np.append(expected, len(drawn) - expected.sum()),
    )
    if expected[-1] < 10:
        observed, expected = observed[:-1], expected[:-1]
    return float(stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue)
