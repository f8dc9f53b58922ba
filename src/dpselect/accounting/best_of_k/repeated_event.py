"""dp-accounting's repeat-and-select events: the best of a random number of runs of the event inside."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dpselect.accounting.best_of_k.best_of import best_of
from dpselect.errors import ArgumentError, number
from dpselect.privacy import Adjacency, Guarantee
from dpselect.privacy.event_kinds import event_kind
from dpselect.repetitions import Geometric, Logarithmic, Poisson, Repetitions, TruncatedNegativeBinomial

__all__ = ["repeat_and_select", "repetitions_of"]


def repetitions_of(mean: Any, shape: Any) -> Repetitions | None:
    """The distribution of the number of runs that a `RepeatAndSelectDpEvent` names, or None if it is always one run.

    >>> repetitions_of(10, 1)
    Geometric(gamma=0.1)
    """
    mean = number("mean", mean, at_least=1.0, rounding="up")
    shape = number("shape", shape, at_least=0.0, finite=False)
    if shape == math.inf:
        return Poisson(mean=mean)
    if mean == 1.0:
        return None
    if shape == 0.0:
        return Logarithmic.with_mean(mean=mean)
    return Geometric.with_mean(mean=mean) if shape == 1.0 else TruncatedNegativeBinomial.with_mean(eta=shape, mean=mean)


@event_kind("RepeatAndSelectDpEvent")
def repeat_and_select(event: Any, adjacency: Adjacency, read: Callable[[Any, Adjacency], Guarantee]) -> Guarantee:
    """`best_of` the event inside. Raises `ArgumentError` for a distribution that dp-accounting does not have."""
    try:
        law = repetitions_of(event.mean, event.shape)
    except TypeError as error:
        raise ArgumentError(f"event: {error}") from None
    inner = read(event.event, adjacency)
    return inner if law is None else best_of(inner, law)
