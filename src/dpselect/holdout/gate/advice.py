"""The searcher's side: whether to ask now, from tasks of the searcher's own, and what to stake.

Nothing here knows the gate's tasks, and nothing certified rests on it: a bad stake costs power, never validity.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Final, SupportsFloat

import numpy as np

from dpselect.errors import integer, number
from dpselect.holdout.gate.error_budget import log_of
from dpselect.holdout.gate.planning import AskPower

__all__ = ["GateAdvice", "advise_gate"]

_ROUNDS: Final = 4
"""The stake depends on the chance and the chance on the stake: so often one is computed from the other."""
_WORTH: Final = 0.75
_GRID: Final = np.linspace(-0.5, 0.5, 41)


@dataclass(frozen=True, kw_only=True)
class GateAdvice:
    """The advice of `advise_gate`.

    Attributes:
        ask: whether to ask now. If not, make further changes on top of this one, or drop it.
        stake: the error budget times the chance, to be given to the gate.
        chance: that the gate accepts, as far as the development tasks tell.
        expected_gain: of the candidate over the incumbent, as far as they tell.
    """

    ask: bool
    stake: float
    chance: float
    expected_gain: float

    def describe(self) -> dict[str, Any]:
        """JSON-able."""
        return asdict(self)


def advise_gate(
    *,
    tasks: int,
    purse: SupportsFloat,
    wins: int,
    losses: int,
    development_tasks: int,
    typical_gain: SupportsFloat = 0.05,
) -> GateAdvice:
    """Whether to ask a gate of so many tasks, from what was won and lost on development tasks.

    Before the development tasks are seen, half of all true gains are taken to be smaller than `typical_gain` and a few
    to be far larger (a Cauchy distribution). So clear evidence from the development tasks is believed. The stake that
    keeps most is the error budget times the chance of being accepted, which is computed together with it.

    Args:
        tasks: of the gate.
        purse: the error budget that is left: public.
        wins, losses: development tasks on which the candidate does better and worse than the gate's incumbent. They
            must be other tasks than the gate's.
        development_tasks: how many there are.
        typical_gain: how large the gains of experiments are, good and bad.

    Raises `ArgumentError` for numbers out of range.

    >>> advise_gate(tasks=500, purse=0.05, wins=90, losses=40, development_tasks=500).ask
    True
    >>> advise_gate(tasks=80, purse=0.05, wins=24, losses=0, development_tasks=80).ask
    True
    >>> advise_gate(tasks=500, purse=0.05, wins=60, losses=50, development_tasks=500).ask
    False
    """
    tasks = integer("tasks", tasks, at_least=1, at_most=1 << 20)
    left = number("purse", purse, above=0.0, below=1.0)
    count = integer("development_tasks", development_tasks, at_least=1, at_most=1 << 30)
    won = integer("wins", wins, at_least=0, at_most=count)
    lost = integer("losses", losses, at_least=0, at_most=count - won)
    typical = number("typical_gain", typical_gain, above=0.0, at_most=1.0)
    discordant = (won + lost + 1.0) / (count + 2.0)
    gains = _GRID * 2.0 * discordant
    chances = np.clip(0.5 + 0.5 * gains / discordant, 1e-9, 1.0 - 1e-9)
    logs = won * np.log(chances) + lost * np.log1p(-chances) - np.log1p((gains / typical) ** 2)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    chance = 0.5
    for _ in range(_ROUNDS):
        level = log_of(Fraction(left)) + math.log(max(chance, 1e-6))
        power = AskPower(tasks, discordant, level).power
        chance = float(sum(weight * power(float(gain)) for weight, gain in zip(weights, gains, strict=True)))
    stake = left * min(max(chance, 1e-6), 1.0)
    return GateAdvice(ask=chance >= _WORTH, stake=stake, chance=chance, expected_gain=float(weights @ gains))
