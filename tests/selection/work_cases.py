"""Arrays of scores in shapes that are hard for a sampler."""

import numpy as np

from dpselect.mechanisms.scores import CHUNK

COUNT = 2 * CHUNK


def shapes():
    uniform = np.random.default_rng(1).random(COUNT)
    needle = np.full(COUNT, -1000.0)
    needle[COUNT // 3] = 1.0
    # groups hold the places g, g + CHUNK/8, ...: one good member in each, seven hopeless ones
    one_of_eight = np.where(np.arange(COUNT) % CHUNK < CHUNK // 8, 0.0, -1e6)
    heavy_tail = -np.arange(COUNT, dtype=float)[::-1]
    return {
        "uniform": uniform,
        "needle": needle,
        "sorted": np.sort(uniform),
        "flat": np.ones(COUNT),
        "one of eight": one_of_eight,
        "steps": heavy_tail,
        "wide": np.random.default_rng(2).standard_cauchy(COUNT) * 1e6,
    }
