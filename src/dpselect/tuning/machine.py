"""The life of a search as a table of states and events. No input, no output, no randomness.

A `Search` is an immutable value, and every event returns a new one. A crash can only come between two events, so the
tuner makes each value durable before it acts on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final

__all__ = ["REPLAYS", "TRANSITIONS", "Bond", "Candidate", "Event", "IllegalStepError", "Search", "Stage", "advance"]

REPLAYS: Final = 3
"""How often a trial lost to a dead worker is run again with its own key before it counts as the worst score."""


class Stage(StrEnum):
    """How far a search has come. Public: it says nothing about the runs."""

    NEW = "new"
    """The search has an identifier; nothing is charged and nothing is drawn."""
    SEALED = "sealed"
    """The number of runs and the master key are drawn, once and for all; nothing is known to be charged."""
    RESERVED = "reserved"
    """The price of the whole search is charged, durably, for these draws; no trial is under way."""
    RUNNING = "running"
    """Trials run. Anyone who finds a search here finds one whose process died."""
    CHOSEN = "chosen"
    """All that will be released is sealed; nothing of it has left."""
    SETTLED = "settled"
    """The reservation is settled with the hash of the release, which may leave now."""
    RELEASED = "released"
    """The caller has written the release."""
    WIPED = "wiped"
    """The key is destroyed."""


class Event(StrEnum):
    """The events in the life of a search."""

    SEAL = "seal"
    RESERVE = "reserve"
    START = "start"
    RESUME = "resume"
    FINISH_TRIAL = "finish trial"
    LOSE_TRIAL = "lose trial"
    INTERRUPT = "interrupt"
    BEGIN_ANEW = "begin anew"
    CHOOSE = "choose"
    SETTLE = "settle"
    RELEASE = "release"
    WIPE = "wipe"


TRANSITIONS: Final[Mapping[tuple[Stage, Event], Stage]] = MappingProxyType(
    {
        (Stage.NEW, Event.SEAL): Stage.SEALED,
        (Stage.SEALED, Event.RESERVE): Stage.RESERVED,
        (Stage.SEALED, Event.BEGIN_ANEW): Stage.SEALED,
        (Stage.RESERVED, Event.START): Stage.RUNNING,
        (Stage.RESERVED, Event.BEGIN_ANEW): Stage.RESERVED,
        (Stage.RUNNING, Event.RESUME): Stage.RUNNING,
        (Stage.RUNNING, Event.FINISH_TRIAL): Stage.RUNNING,
        (Stage.RUNNING, Event.LOSE_TRIAL): Stage.RUNNING,
        (Stage.RUNNING, Event.INTERRUPT): Stage.RESERVED,
        (Stage.RUNNING, Event.BEGIN_ANEW): Stage.RESERVED,
        (Stage.RUNNING, Event.CHOOSE): Stage.CHOSEN,
        (Stage.CHOSEN, Event.SETTLE): Stage.SETTLED,
        (Stage.SETTLED, Event.RELEASE): Stage.RELEASED,
        (Stage.RELEASED, Event.WIPE): Stage.WIPED,
    }
)


class IllegalStepError(RuntimeError):
    """An event that cannot happen in this stage. Names neither a trial nor a count."""


def advance(stage: Stage, event: Event) -> Stage:
    """The stage after `event`, or `IllegalStepError`.

    >>> advance(Stage.SEALED, Event.RESERVE).value
    'reserved'
    """
    try:
        return TRANSITIONS[stage, event]
    except KeyError:
        raise IllegalStepError(f"a search that is {stage.value} cannot {event.value}") from None


@dataclass(frozen=True, repr=False)
class Candidate:
    """The output of one run that did not fail. Secret, unless it wins.

    Candidates are ordered by score, and a score that is not a number is below all others. Equal scores are ordered by
    `tag`: random bytes drawn from the trial's own key, so that arrival never decides.
    """

    index: int
    score: float
    tag: bytes
    payload: bytes

    def beats(self, other: Candidate | None) -> bool:
        """Whether this one ranks above `other` (None: nothing found yet, or a run that failed)."""
        return other is None or self._rank() > other._rank()

    def _rank(self) -> tuple[bool, float, bytes]:
        is_number = self.score == self.score
        return is_number, self.score if is_number else 0.0, self.tag


@dataclass(frozen=True, repr=False)
class Bond:
    """The ties of a search to its reservation, to its rows and to its release. Secret.

    `binding` is what the reservation knows of the draws. `rows` is a digest of the private rows under the master key,
    or zeros. `claim` is the latest one that this store has made. `blinding` hides what a hash is of.
    """

    blinding: bytes = bytes(32)
    binding: bytes = bytes(32)
    rows: bytes = bytes(32)
    claim: bytes = bytes(16)


@dataclass(frozen=True, repr=False)
class Search:
    """All that a search knows. Secret but for `stage`.

    Trials are served in rounds of one slot each: trial `index` has slot `index % slots` of round `index // slots`. The
    number of slots is public, and every round fills all of them: slots past the last trial get an empty turn. So as
    long as there are no more runs than slots, there is one round regardless of the number of runs.

    `counted` is K: the best of so many runs is released. `executed` runs are made: K, or the limit of the distribution
    if the running time must hide K. `history` is what proposals need to know of every trial, or empty.
    """

    slots: int
    stage: Stage = Stage.NEW
    counted: int = 0
    executed: int = 0
    master: bytes = bytes(32)
    replayable: bool = False
    rounds_done: int = 0
    done: bytes = b""
    losses: bytes = b""
    best: Candidate | None = None
    history: bytes = b""
    bond: Bond = Bond()

    def __post_init__(self) -> None:
        if not self.done:
            object.__setattr__(self, "done", bytes(self.slots))
            object.__setattr__(self, "losses", bytes(self.slots))

    def __repr__(self) -> str:
        return f"<Search {self.stage.value}>"

    @property
    def finished(self) -> bool:
        """Whether every trial and every empty turn is done."""
        return self.rounds_done >= max(1, -(-self.executed // self.slots))

    def pending(self) -> list[int]:
        """The turns of this round that are not done, lowest first. Those at or past `executed` are empty."""
        if self.finished:
            return []
        start = self.rounds_done * self.slots
        return [start + slot for slot in range(self.slots) if not self.done[slot]]

    def exhausted(self, index: int) -> bool:
        """Whether a trial was lost more often than it may be replayed."""
        return self.losses[index % self.slots] > REPLAYS

    def seal(self, *, counted: int, executed: int, master: bytes, replayable: bool, bond: Bond) -> Search:
        """The number of runs and the master key are drawn. Can happen once only."""
        stage = advance(self.stage, Event.SEAL)
        drawn = replace(self, counted=counted, executed=executed, master=master, replayable=replayable)
        return replace(drawn, stage=stage, bond=bond)

    def reserve(self) -> Search:
        """The price is charged."""
        return replace(self, stage=advance(self.stage, Event.RESERVE))

    def claimed(self, claim: bytes) -> Search:
        """The same with the claim that is made next."""
        return replace(self, bond=replace(self.bond, claim=claim))

    def begin_anew(self, *, master: bytes, rows: bytes) -> Search:
        """The rows are others: every run is made again, of another master key. The number of runs stays."""
        stage = advance(self.stage, Event.BEGIN_ANEW)
        bond = replace(self.bond, rows=rows)
        fresh = Search(slots=self.slots, counted=self.counted, executed=self.executed, replayable=self.replayable)
        return replace(fresh, stage=stage, master=master, bond=bond)

    def start(self) -> Search:
        """Trials begin."""
        return replace(self, stage=advance(self.stage, Event.START))

    def resume(self) -> Search:
        """The process had died: the lowest unfinished trial counts as lost once."""
        stage = advance(self.stage, Event.RESUME)
        lowest = next((index for index in self.pending() if index < self.executed), None)
        return replace(self, stage=stage, losses=self.losses if lowest is None else self._one_more_loss(lowest))

    def lose(self, index: int) -> Search:
        """The worker of a trial died."""
        stage = advance(self.stage, Event.LOSE_TRIAL)
        self._check_pending(index)
        return replace(self, stage=stage, losses=self._one_more_loss(index))

    def finish(self, index: int, candidate: Candidate | None) -> Search:
        """A turn is done: with a candidate, or with none for a failed run or an empty turn. Never undone or redone."""
        stage = advance(self.stage, Event.FINISH_TRIAL)
        self._check_pending(index)
        best = candidate if candidate and index < self.counted and candidate.beats(self.best) else self.best
        done = _with(self.done, index % self.slots, 1)
        if 0 not in done:  # by the processor's own search: a test of each would take longer than a trial
            return replace(
                self,
                stage=stage,
                best=best,
                rounds_done=self.rounds_done + 1,
                done=bytes(self.slots),
                losses=bytes(self.slots),
            )
        return replace(self, stage=stage, best=best, done=done)

    def interrupt(self) -> Search:
        """The operator stopped the search in an orderly way: no trial counts as lost."""
        return replace(self, stage=advance(self.stage, Event.INTERRUPT))

    def choose(self, winner: Candidate | None) -> Search:
        """All runs are done, and this is what is released. Raises `IllegalStepError` while a turn is unfinished."""
        stage = advance(self.stage, Event.CHOOSE)
        if not self.finished:
            raise IllegalStepError("a search with unfinished trials cannot choose")
        return replace(self, stage=stage, best=winner)

    def settle(self) -> Search:
        """The reservation is settled."""
        return replace(self, stage=advance(self.stage, Event.SETTLE))

    def release(self) -> Search:
        """The release is written."""
        return replace(self, stage=advance(self.stage, Event.RELEASE))

    def wipe(self) -> Search:
        """The key is destroyed. The sealed content is forgotten."""
        return Search(slots=self.slots, stage=advance(self.stage, Event.WIPE))

    def _check_pending(self, index: int) -> None:
        in_round = self.rounds_done * self.slots <= index < (self.rounds_done + 1) * self.slots
        if self.finished or not in_round or self.done[index % self.slots]:
            raise IllegalStepError("this trial is not under way")

    def _one_more_loss(self, index: int) -> bytes:
        slot = index % self.slots
        return _with(self.losses, slot, min(self.losses[slot] + 1, 255))


def _with(values: bytes, position: int, value: int) -> bytes:
    return values[:position] + bytes((value,)) + values[position + 1 :]
