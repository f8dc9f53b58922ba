"""The noise multiplier that a total epsilon of 3 asks for: little more for the search than for one run, much more
for five published runs.
"""

import matplotlib.pyplot as plt

from dpselect.accounting import best_of, calibrate
from dpselect.privacy import Guarantee, compose, dp_sgd
from dpselect.repetitions import Harmonic


def one_run(noise: float) -> Guarantee:
    """Training at some noise."""
    return dp_sgd(noise_multiplier=noise, sampling_rate=0.2, steps=250)


ways = {
    "one run, nothing chosen": one_run,
    "this search: 5 runs on average, at most 20": lambda noise: best_of(one_run(noise), Harmonic(limit=20)),
    "5 published runs": lambda noise: compose(*[one_run(noise)] * 5),
}
noises = [calibrate(way, epsilon=3.0, delta=1e-5, low=1.0, high=40.0, relative=0.01) for way in ways.values()]
bars = plt.barh(list(ways), noises)
plt.bar_label(bars, fmt="%.1f", padding=3, color="#7a7a7a")
plt.gca().invert_yaxis()
plt.xlabel("noise multiplier for a total epsilon of 3")
