"""Epsilon against the largest number of runs: the search grows slowly, running as many as on average and composing
grows fast.
"""

import matplotlib.pyplot as plt

from dpselect.accounting import best_of
from dpselect.privacy import compose, dp_sgd
from dpselect.repetitions import Harmonic

training = dp_sgd(noise_multiplier=4.0, sampling_rate=0.2, steps=60)
laws = [Harmonic(limit=limit) for limit in (5, 20, 80, 318)]
means = [float(law.mean) for law in laws]
plt.plot(means, [best_of(training, law).epsilon(1e-5) for law in laws], "o-", label="the search")
plt.plot(
    means,
    [compose(*[training] * round(mean)).epsilon(1e-5) for mean in means],
    "s--",
    label="as many published runs",
)
plt.axhline(training.epsilon(1e-5), color="grey", linestyle=":", label="one run")
plt.xlabel("runs on average")
plt.ylabel("epsilon at delta 1e-05")
plt.legend()
