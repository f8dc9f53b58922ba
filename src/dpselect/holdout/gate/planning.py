"""Plans of gates, before there is any outcome: the smallest gains accepted, and the chance of a true gain.

For outcomes 0/1 and the sign test. A bet needs some 2 % more. Depends on public numbers alone.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, SupportsFloat

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, gammaln, xlog1py, xlogy

from dpselect.errors import ArgumentError, integer, number
from dpselect.holdout.gate.error_budget import ErrorBudget, log_of
from dpselect.numerics.search import first_true, root_between

__all__ = ["AskPower", "GatePlan", "check_tasks", "plan_gate"]

_MOST_TASKS: Final = 1 << 20
_LEAST_LEVEL: Final = -690.0
"""Below this logarithm a level is no float64, and no gain is believed."""
_RARE: Final = 9.0
"""Numbers of discordant tasks that lie so many deviations off are left out: their probability is below 1e-17."""


@dataclass(frozen=True, kw_only=True)
class GatePlan:
    """The plan of `plan_gate`. `level` is that of each ask with even stakes, as long as none is accepted.

    Attributes:
        smallest_gain: for each ask with even stakes, as long as none is accepted, the smallest observed gain (mean
            difference of outcomes) that is accepted when the planned share of tasks is discordant, or None.
        after_accepts: the same for each ask when all before it were accepted.
        half_power, ninety_power: true gains that the first ask accepts with probability 0.5 and 0.9, or None.
    """

    tasks: int
    consultations: int
    failure_probability: float
    discordant: float
    level: float
    smallest_gain: list[float | None]
    after_accepts: list[float | None]
    half_power: float | None
    ninety_power: float | None

    def power(self, gain: SupportsFloat) -> float:
        """The chance that the first ask accepts a candidate whose true gain is so large.

        Raises `ArgumentError` unless the gain is between minus and plus the share of discordant tasks.

        >>> round(plan_gate(tasks=500, consultations=20).power(0.1), 3)
        0.988
        """
        gain = number("gain", gain, at_least=-self.discordant, at_most=self.discordant)
        return AskPower(self.tasks, self.discordant, math.log(self.level)).power(gain)

    def describe(self) -> dict[str, Any]:
        """JSON-able."""
        return asdict(self)


def plan_gate(
    *,
    tasks: int,
    consultations: int,
    failure_probability: SupportsFloat = 0.05,
    discordant: SupportsFloat = 0.2,
) -> GatePlan:
    """The gains that a gate of so many independent tasks (or clusters of them) can accept with even stakes.

    Args:
        tasks: how many there are.
        consultations: how many asks share the error budget.
        failure_probability: of accepting anything that is not better.
        discordant: the share of tasks on which candidate and incumbent differ: a guess. No promise rests on it.

    Raises `ArgumentError` for numbers out of range.

    >>> plan = plan_gate(tasks=500, consultations=20)
    >>> plan.smallest_gain[0], round(plan.half_power, 3), round(plan.ninety_power, 3)
    (0.06, 0.058, 0.082)
    """
    tasks = integer("tasks", tasks, at_least=1, at_most=_MOST_TASKS)
    consultations = integer("consultations", consultations, at_least=1, at_most=100_000)
    failure = number("failure_probability", failure_probability, above=0.0, below=1.0)
    share = number("discordant", discordant, above=0.0, at_most=1.0)
    even = Fraction(failure) / consultations  # the level of each ask, as long as none is accepted
    first = AskPower(tasks, share, log_of(even))
    accepted, budget = list[float | None](), ErrorBudget(Fraction(failure), consultations)
    for _ in range(consultations):
        stake = budget.stake(None)
        gain = AskPower(tasks, share, log_of(stake)).smallest_gain if not accepted or accepted[-1] is not None else None
        accepted.append(gain)
        budget = budget.after(stake, accepted=True) if gain is not None else budget
    return GatePlan(
        tasks=tasks,
        consultations=consultations,
        failure_probability=failure,
        discordant=share,
        level=float(even),
        smallest_gain=[first.smallest_gain] * consultations,
        after_accepts=accepted,
        half_power=first.gain_with_power(0.5),
        ninety_power=first.gain_with_power(0.9),
    )


@dataclass(frozen=True)
class AskPower:
    """The power of one ask at a level, given its logarithm."""

    tasks: int
    discordant: float
    log_level: float

    @cached_property
    def smallest_gain(self) -> float | None:
        count = round(self.discordant * self.tasks)
        wins = _wins_needed(count, self.log_level)
        return (2 * wins - count) / self.tasks if wins <= count else None

    @cached_property
    def _needed(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Numbers of discordant tasks that are not very rare, and the wins that each needs."""
        mean = self.discordant * self.tasks
        reach = _RARE * math.sqrt(mean) + _RARE**2
        counts = np.arange(max(0, math.floor(mean - reach)), min(self.tasks, math.ceil(mean + reach)) + 1)
        wins = [_wins_needed(int(counts[0]), self.log_level)]
        for count in counts[1:]:  # one more discordant task takes none or one more win
            wins.append(wins[-1] if _accepted(wins[-1], int(count), self.log_level) else wins[-1] + 1)
        return counts, np.asarray(wins)

    def power(self, gain: float) -> float:
        """The chance of accepting a true gain."""
        counts, wins = self._needed
        chance = min(0.5 + 0.5 * gain / self.discordant, 1.0)
        enough = wins <= counts
        accepted = betainc(wins, np.maximum(counts - wins + 1, 1), chance)
        chosen = gammaln(self.tasks + 1.0) - gammaln(counts + 1.0) - gammaln(self.tasks - counts + 1.0)
        logs = chosen + xlogy(counts, self.discordant) + xlog1py(self.tasks - counts, -self.discordant)
        return float(np.sum(np.where(enough, np.exp(logs) * accepted, 0.0)))

    def gain_with_power(self, wanted: float) -> float | None:
        """The smallest true gain that is accepted with this probability."""
        if self.power(self.discordant) < wanted:
            return None
        return root_between(
            lambda gain: self.power(gain) >= wanted, safe=self.discordant, unsafe=-self.discordant, absolute=1e-9
        )


def _accepted(wins: int, count: int, log_level: float) -> bool:
    """Whether the sign test accepts, up to rounding."""
    if log_level < _LEAST_LEVEL or not 0 < wins <= count:
        return False
    return math.log(max(float(betainc(wins, count - wins + 1, 0.5)), 1e-320)) <= log_level + 1e-12


def _wins_needed(count: int, log_level: float) -> int:
    """The fewest wins among discordant tasks that the sign test accepts, or count + 1 if none are enough."""
    found = first_true(lambda wins: _accepted(wins, count, log_level), 0, count)
    return count + 1 if found is None else found


def check_tasks(tasks: int, failure_probability: float) -> None:
    """Raise `ArgumentError` when so few tasks can never accept anything, regardless of their outcomes and stakes."""
    if tasks * math.log(2.0) < -math.log(failure_probability):
        raise ArgumentError(
            f"outcomes: {tasks} independent tasks (or clusters) can accept nothing at failure probability "
            f"{failure_probability:g}, even if the candidate wins all of them; it takes "
            f"{math.ceil(-math.log2(failure_probability))}"
        )
