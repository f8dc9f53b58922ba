"""Exact laws of gates on few tasks: every number of tasks in each cell, every answer, in integers and fractions.

A searcher's systems are outcomes by cell: on a task of this cell, the outcome of each. Tasks are independent draws of
cells. So the searcher, who knows the law and nothing of the tasks, is a tree: a system and a stake for each answers so
far.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from dpselect.holdout.gate.error_budget import ErrorBudget
from dpselect.holdout.gate.rules import sign_test

Node = tuple[bool, ...]
After = Callable[[ErrorBudget, Fraction, bool], ErrorBudget]


def as_it_is(purse: ErrorBudget, stake: Fraction, accepted: bool) -> ErrorBudget:
    return purse.after(stake, accepted=accepted)


@dataclass(frozen=True)
class Searcher:
    """`law` is the probability of each cell, `first` the incumbent's outcome in each, `systems` each candidate's.

    `level` overrides what a gate does: it says the level of an ask from the answers so far.
    """

    law: tuple[Fraction, ...]
    first: tuple[Fraction, ...]
    systems: Mapping[Node, tuple[Fraction, ...]]
    stakes: Mapping[Node, Fraction]

    def failure(
        self,
        tasks: int,
        purse: Fraction,
        *,
        after: After = as_it_is,
        level: Callable[[Node], Fraction] | None = None,
    ) -> Fraction:
        """The exact probability that some accepted candidate is not better than its incumbent."""
        return sum(
            (
                chance
                for counts, chance in compositions(tasks, self.law)
                if self._fails(counts, ErrorBudget(purse, consultations=1), after, level)
            ),
            Fraction(0),
        )

    def _fails(
        self,
        counts: tuple[int, ...],
        purse: ErrorBudget,
        after: After,
        level: Callable[[Node], Fraction] | None,
    ) -> bool:
        node: Node = ()
        incumbent = self.first
        while node in self.systems and (level is not None or purse.left):
            candidate = self.systems[node]
            differences = [new - old for new, old in zip(candidate, incumbent, strict=True)]
            wins = sum(count for count, difference in zip(counts, differences, strict=True) if difference > 0)
            losses = sum(count for count, difference in zip(counts, differences, strict=True) if difference < 0)
            stake = purse.stake(self.stakes.get(node, "all")) if level is None else level(node)
            accepted = sign_test(wins, losses, stake)
            if accepted and not self.better(candidate, incumbent):
                return True
            purse = after(purse, stake, accepted) if level is None else purse
            incumbent = candidate if accepted else incumbent
            node = (*node, accepted)
        return False

    def better(self, candidate: tuple[Fraction, ...], incumbent: tuple[Fraction, ...]) -> bool:
        """What the sign test claims: more likely to do better than worse."""
        signs = [(new > old) - (new < old) for new, old in zip(candidate, incumbent, strict=True)]
        return sum((chance * sign for chance, sign in zip(self.law, signs, strict=True)), Fraction(0)) > 0


def compositions(tasks: int, law: tuple[Fraction, ...]) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """Numbers of tasks in each cell, with their probability."""
    for bars in itertools.combinations(range(tasks + len(law) - 1), len(law) - 1):
        ends = (-1, *bars, tasks + len(law) - 1)
        counts = tuple(right - left - 1 for left, right in itertools.pairwise(ends))
        ways = math.factorial(tasks)
        chance = Fraction(1)
        for count, probability in zip(counts, law, strict=True):
            ways //= math.factorial(count)
            chance *= probability**count
        yield counts, ways * chance


def fractions(*values: str) -> tuple[Fraction, ...]:
    return tuple(map(Fraction, values))


def attaining() -> Searcher:
    """A fair coin a task: a candidate that is better where it lands heads, then one that only swaps, on either branch.

    Heads make the first one accepted and the next one win; tails make it rejected and the other one win. So the two
    false accepts exclude each other, and nothing of the purse is left over.
    """
    return Searcher(
        law=fractions("1/2", "1/2"),
        first=fractions("1/2", "1/2"),
        systems={
            (): fractions("3/4", "1/2"),
            (True,): fractions("1", "1/4"),
            (False,): fractions("0", "1"),
        },
        stakes={(): Fraction(7, 64)},
    )
