"""The life of a gate as a pure fold over its entries: what was asked, what is left. No input, no output.

An entry is a charge, the answer that follows it, the end, or a note that entries were lost. A charge is durable before
outcomes are opened, an answer before it is shown. A charge without an answer stays: no answer was shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from dpselect.holdout.gate.error_budget import ErrorBudget, shortened

__all__ = ["AskRecord", "GateState", "fold_gate"]


@dataclass(frozen=True)
class AskRecord:
    """One ask. `accepted` is None if the process ended before there was an answer. `number` counts from 1."""

    number: int
    stake: Fraction
    candidate: str | None
    bounds: Fraction
    accepted: bool | None = None
    entry: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def fields(self) -> dict[str, Any]:
        """The entry of the charge."""
        return {"charge": [str(self.stake), self.candidate]}


@dataclass(frozen=True)
class GateState:
    """The sum of the entries. `bounds`: left of the second error budget. `restored`: how often entries were lost."""

    budget: ErrorBudget
    bounds: Fraction
    asks: tuple[AskRecord, ...] = ()
    incumbent: str | None = None
    restored: int = 0
    retired: bool = False

    @property
    def accepts(self) -> int:
        """How many candidates became the incumbent."""
        return sum(ask.accepted is True for ask in self.asks)

    def recorded(self, candidate: str | None) -> bool | None:
        """The answer to this candidate against the present incumbent, where there is one."""
        if candidate is None:
            return None
        for ask in reversed(self.asks):
            if ask.accepted is True and ask.candidate != candidate:
                return None
            if ask.candidate == candidate and ask.accepted is not None:
                return ask.accepted
        return None

    def charged(self, stake: Fraction, candidate: str | None) -> GateState:
        """With a charge that has no answer yet. The stakes of both error budgets are in proportion."""
        share = shortened(self.bounds * stake / self.budget.left)
        ask = AskRecord(self.budget.asked + 1, stake, candidate, share)
        return replace(self, budget=self.budget.charged(stake), bounds=self.bounds - share, asks=(*self.asks, ask))

    def answered(self, entry: Mapping[str, Any]) -> GateState:
        """With the answer to the last charge."""
        *before, ask = self.asks
        accepted = bool(entry["answer"])
        now = replace(self, asks=(*before, replace(ask, accepted=accepted, entry=entry)), incumbent=entry["incumbent"])
        return replace(now, budget=replace(now.budget, left=ask.stake), bounds=ask.bounds / 2) if accepted else now

    def exposure(self) -> tuple[int, ...]:
        """The counter: asks, and exponents of both error budgets. Before an answer it is as after the worse one."""
        open_ask = self.asks[-1] if self.asks and self.asks[-1].accepted is None else None
        left, bounds = self.budget.left, self.bounds
        if open_ask is not None:
            left, bounds = min(left, open_ask.stake), min(bounds, open_ask.bounds / 2)
        return (
            self.budget.asked,
            replace(self.budget, left=left).exponent(),
            replace(self.budget, left=bounds).exponent(),
        )

    def closed(self) -> GateState:
        """Nothing more is asked."""
        return replace(self, budget=replace(self.budget, left=Fraction(0)), retired=True)

    def lost(self, exposure: Iterable[int]) -> GateState:
        """After an older copy was restored: no more is left than the counter knows of."""
        asked, left, bounds = exposure
        return replace(
            self,
            budget=replace(
                self.budget,
                left=min(self.budget.left, ErrorBudget.left_from(left)),
                asked=max(self.budget.asked, asked),
            ),
            bounds=min(self.bounds, ErrorBudget.left_from(bounds)),
            restored=self.restored + 1,
        )


def fold_gate(start: GateState, entries: Iterable[Mapping[str, Any]]) -> GateState:
    """The state that a record amounts to.

    >>> start = GateState(ErrorBudget(Fraction(1, 16), consultations=4), Fraction(0))
    >>> fold_gate(start, [{"charge": ["1/64", "a"]}, {"answer": 0, "incumbent": None}]).budget.left
    Fraction(3, 64)
    """
    state = start
    earlier: list[AskRecord] = []
    for entry in entries:
        if "charge" in entry:
            stake, candidate = entry["charge"]
            earlier += state.asks  # put aside: to copy them with every entry would take quadratic time
            state = replace(state, asks=()).charged(Fraction(stake), candidate)
        elif "answer" in entry:
            state = state.answered(entry)
        elif "lost" in entry:
            state = state.lost(entry["lost"])
        else:
            state = state.closed()
    return replace(state, asks=(*earlier, *state.asks))
