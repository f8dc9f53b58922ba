"""The life of a holdout as a pure state machine: what was asked, what may still be asked. No input, no output.

An entry is one answer, or a note that answers were lost. Folding all entries gives the state. An entry is appended
durably before its answer is shown, so the state is never behind what anyone has seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from dpselect.errors import BudgetError

__all__ = ["Entry", "Exposure", "State"]


class Exposure(NamedTuple):
    """How much was shown: questions in all, and answers that were scores."""

    asked: int = 0
    answered: int = 0


@dataclass(frozen=True)
class Entry:
    """`agrees` is None without a claim. The entry for an answer that was lost holds no question: it states the exposure
    at that time."""

    question: str | None
    agrees: bool | None = None
    value: Any = None
    exposure: Exposure | None = None

    def fields(self) -> dict[str, Any]:
        """JSON-able."""
        if self.exposure is not None:
            return {"lost": list(self.exposure)}
        return {"question": self.question, "agrees": self.agrees, "value": self.value}

    @staticmethod
    def parse(fields: Mapping[str, Any]) -> Entry:
        if "lost" in fields:
            return Entry(None, exposure=Exposure(*fields["lost"]))
        return Entry(fields["question"], fields["agrees"], fields["value"])


@dataclass(frozen=True)
class State:
    """The answers that are on record, and the exposure, which may be more than they account for."""

    questions: int
    answers: int
    all_answer: bool = False
    """Whether every question has its own score, so that confirmed claims count as answers too."""
    exposure: Exposure = field(default_factory=Exposure)
    known: dict[str, Entry] = field(default_factory=dict)

    @property
    def questions_left(self) -> int:
        """How many questions may still be asked (0 once the answers are used up)."""
        return max(self.questions - self.exposure.asked, 0) if self.answers_left else 0

    @property
    def answers_left(self) -> int:
        """How many scores may still be given."""
        return max(self.answers - self.exposure.answered, 0)

    def check(self) -> None:
        """Raise `BudgetError` unless one more question may be asked."""
        if not self.answers_left:
            raise BudgetError("this holdout has given all its answers; one more would not be certified")
        if not self.questions_left:
            raise BudgetError("this holdout was asked all its questions; one more would not be certified")

    def after(self, entries: Iterable[Entry]) -> State:
        """The state with further entries on record.

        >>> State(questions=3, answers=2).after([Entry("a", None, 0.5), Entry("b", True, 0.6)]).questions_left
        1
        """
        state = replace(self, known=dict(self.known))
        for entry in entries:
            if entry.question is not None:
                state.known[entry.question] = entry
            state = replace(state, exposure=state.exposed(entry))
        return state

    def exposed(self, entry: Entry) -> Exposure:
        """The exposure once an entry is on record."""
        if entry.exposure is not None:
            return Exposure(*map(max, entry.exposure, self.exposure))
        scored = self.all_answer or entry.agrees is not True
        return Exposure(self.exposure.asked + 1, self.exposure.answered + scored)
