"""The first acceptable outcome by its definition, for every acceptable set."""

from __future__ import annotations

import itertools
import math

import numpy as np

from dpselect.repetitions import Repetitions


def release(masses: np.ndarray, accepted: np.ndarray, law: Repetitions, chance: float = 1.0) -> np.ndarray:
    """The law of the release by its definition: outcomes in the order given, then "none"; rows are acceptable sets."""
    kept = masses * accepted
    u = np.minimum(np.sum(kept, axis=-1), 1.0)
    factor = np.where(u > 0.0, law.success_probability(u) / np.maximum(u, 1e-300), law.mean)
    none = 1.0 - chance + chance * law.pgf(1.0 - u)
    return np.concatenate((chance * kept * factor[..., None], none[..., None]), axis=-1)


def brute_force(p: np.ndarray, q: np.ndarray, law: Repetitions, epsilon: float, chance: float = 1.0) -> float:
    """The largest divergence over all ways to call pieces rejected or accepted."""
    accepted = np.array(list(itertools.product((0.0, 1.0), repeat=p.size)))
    first, second = (release(masses, accepted, law, chance) for masses in (p, q))
    return float(np.max(np.sum(np.maximum(first - math.exp(epsilon) * second, 0.0), axis=1)))
