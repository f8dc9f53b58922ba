"""What a past search cost: a grid, a random search, and what it should have been."""

# %% [markdown]
# # What did last year's search cost?
#
# Last year someone trained models on private rows, by DP-SGD with noise multiplier 1.1, sampling rate 0.01 and 2,000
# steps each, and published the best. No one counted the search. What is its price? It depends on how the settings were
# chosen and on what became known: a grid and a random search are different mechanisms.
#
# A notebook as a script: `python examples/last_years_search.py [--quick]`; `--quick` trains less, for tests.

# %%
import sys

import matplotlib.pyplot as plt

from dpselect.accounting import best_of, calibrate, threshold_stopping
from dpselect.privacy import compose, dp_sgd
from dpselect.repetitions import Fixed, Harmonic, Logarithmic

QUICK = "--quick" in sys.argv
DELTA = 1e-6
RUNS = 24
STEPS = 200 if QUICK else 2000
training = dp_sgd(noise_multiplier=1.1, sampling_rate=0.01, steps=STEPS)
prices = {"one training": training.epsilon(DELTA)}

# %% [markdown]
# ## A grid: 24 different settings, once each
#
# All 24 saw the data and they are unlike each other: the price is that of releasing all of them. It is the same for a
# sweep in random order, for a Latin hypercube, and for a random search whose seed is known.

# %%
prices["grid of 24, composed"] = compose(*[training] * RUNS).epsilon(DELTA)

# %% [markdown]
# Trainings of different length compose as well, each at its own price:

# %%
halves = [dp_sgd(noise_multiplier=1.1, sampling_rate=0.01, steps=STEPS // 2)] * (RUNS // 2) + [training] * (RUNS // 2)
prices["grid, half of it stopped at half time by plan"] = compose(*halves).epsilon(DELTA)

# %% [markdown]
# ## A random search: 24 independent draws, as many as planned
#
# Every setting was drawn from one law, with replacement, by a generator no one knows the seed of, and no one saw more
# than the winner. Then it is the best of 24 draws of one mechanism; that is cheaper, though not by much.

# %%
prices["random search, 24 fixed in advance"] = best_of(training, Fixed(count=RUNS)).epsilon(DELTA)

# %% [markdown]
# ## Until one was good enough
#
# "We stopped at the first with a noisy accuracy of 0.9." The threshold came from outside of the data, and after each
# failure they would have given up with probability 1/100. The number of tries is not released.

# %%
stopping = threshold_stopping(training, stop_probability=0.01)
prices["first above a threshold"] = stopping.epsilon(DELTA)

# %% [markdown]
# "Until it looked good", with no rule fixed in advance, has no price.
#
# ## What it should have been
#
# The same 24 runs on average, the number drawn from a law and kept secret:

# %%
prices["logarithmic, 24 on average"] = best_of(training, Logarithmic.with_mean(mean=RUNS)).epsilon(DELTA)
prices["harmonic, never more than 100"] = best_of(training, Harmonic(limit=100)).epsilon(DELTA)
for way, epsilon in prices.items():
    print(f"{way:46} epsilon {epsilon:6.2f}")

# %% [markdown]
# The same as a picture: what is published of a search decides its price more than how many runs it made.

# %%
plt.barh(list(prices), list(prices.values()))
plt.gca().invert_yaxis()
plt.xlabel(f"epsilon at delta {DELTA:g}")
plt.show()

# %% [markdown]
# ## And the noise that this year's search needs for the grid's price

# %%
law = Harmonic(limit=100)


def search(noise_multiplier: float):
    """This year's search at some noise."""
    return best_of(dp_sgd(noise_multiplier=noise_multiplier, sampling_rate=0.01, steps=STEPS), law)


target = prices["grid of 24, composed"]
noise = calibrate(search, epsilon=target, delta=DELTA, low=0.3, high=20.0, relative=0.01)
print(f"for epsilon {target:.2f} a search of up to 100 runs needs noise {noise:.2f}; the grid had 1.10")
