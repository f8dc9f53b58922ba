"""Parts of mechanisms with structured outputs: a noisy count, coins, and the pair that they are audited on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

import numpy as np

from dpselect.audit import Subject, function_subject
from dpselect.privacy import pure_dp
from dpselect.randomness import RandomSource

__all__ = [
    "DATA",
    "NEIGHBOUR",
    "START",
    "Answer",
    "Mechanism",
    "Named",
    "below",
    "coin",
    "count",
    "noise",
    "subject",
    "told",
]

Mechanism = Callable[[Sequence[str], RandomSource], Any]

DATA: Final = ("a", "b", "c")
NEIGHBOUR: Final = ("a", "c")
START: Final = datetime(2030, 1, 1)


def subject(mechanism: Mechanism) -> Subject:
    """One of these mechanisms with its claim, for an audit."""

    def draw(data: Sequence[str], random: RandomSource) -> Any:
        return mechanism(data, random)

    return function_subject(
        draw, data=DATA, neighbour=NEIGHBOUR, claim=pure_dp(epsilon=1.0), name=mechanism.__name__.strip("_")
    )


class Named(NamedTuple):
    """A count with a mark."""

    value: float
    mark: Any


@dataclass(frozen=True)
class Answer:
    """The same as a dataclass."""

    count: float
    mark: Any


def count(data: Sequence[str], random: RandomSource) -> float:
    """The number of rows with Laplace noise of scale 1 on a grid."""
    return len(data) + round(float(random.laplace(1)[0]) * 2**20) / 2**20


def noise(random: RandomSource) -> float:
    """Laplace noise of scale 1 on a grid."""
    return round(float(random.laplace(1)[0]) * 2**20) / 2**20


def coin(random: RandomSource, probability: float = 0.5) -> bool:
    """True with this probability."""
    return bool(random.bernoulli(probability, 1)[0])


def below(random: RandomSource, bound: int) -> int:
    """An integer below `bound`."""
    return int(random.words(1)[0] >> np.uint64(11)) % bound


def told(data: Sequence[str], random: RandomSource, share: float = 0.9) -> bool:
    """Whether "b" is there, right with probability `share`."""
    return ("b" in data) == coin(random, share)
