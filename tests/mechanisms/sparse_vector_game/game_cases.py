"""Values of the sparse vector game, and threshold noise on integers."""

import math

import numpy as np

from dpselect.mechanisms.sparse_vector_game.mesh import Mesh
from dpselect.mechanisms.sparse_vector_game.values import game_values, limited_values

RATE = math.log(1.5)


def values_at(pairs, positives, losses, *, queries=None, width=RATE / 40, **more):
    """The game's values at some losses, each read at the next point of the mesh."""
    mesh = Mesh.between(-6.0, 6.0, width)
    found = (
        game_values(mesh, pairs, positives, **more)
        if queries is None
        else limited_values(mesh, pairs, positives, queries)
    )
    places = np.ceil(np.asarray(losses) / width - 1e-9).astype(int) - mesh.first
    return found[places]


THRESHOLDS = [
    [(r, 0.2) for r in range(-2, 3)],
    [(r, p) for r, p in zip(range(-2, 3), (0.05, 0.15, 0.4, 0.25, 0.15), strict=True)],
    [(0, 0.5), (1, 0.5)],
]


def shifted(threshold, shift, value):
    """E[v(log f(r) / f(r + shift) - .)] for a law on integers."""
    law = dict(threshold)
    return sum(p * (value(math.log(p / law[r + shift])) if r + shift in law else 1.0) for r, p in threshold)
