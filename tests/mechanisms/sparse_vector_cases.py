"""A session of the sparse vector from a key."""

from __future__ import annotations

from dpselect.mechanisms import SparseVector
from dpselect.randomness import keyed_source


def session(seed: object, **changes: object) -> SparseVector:
    parameters = {
        "epsilon_threshold": 1.0,
        "epsilon_queries": 2.0,
        "max_positives": 1,
        "random": keyed_source(str(seed)),
    }
    return SparseVector(**{**parameters, **changes})  # type: ignore[arg-type]
