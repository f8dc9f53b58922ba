"""The state machine of a search: every event in every stage, rounds and turns, losses, ranking."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, strategies as st

from dpselect.tuning.machine import (
    REPLAYS,
    TRANSITIONS,
    Bond,
    Candidate,
    Event,
    IllegalStepError,
    Search,
    Stage,
    advance,
)

LEGAL = {
    ("new", "seal", "sealed"),
    ("sealed", "reserve", "reserved"),
    ("sealed", "begin anew", "sealed"),
    ("reserved", "start", "running"),
    ("reserved", "begin anew", "reserved"),
    ("running", "resume", "running"),
    ("running", "finish trial", "running"),
    ("running", "lose trial", "running"),
    ("running", "interrupt", "reserved"),
    ("running", "begin anew", "reserved"),
    ("running", "choose", "chosen"),
    ("chosen", "settle", "settled"),
    ("settled", "release", "released"),
    ("released", "wipe", "wiped"),
}

EVENTS = {
    Event.SEAL: lambda s: s.seal(counted=1, executed=1, master=b"m" * 32, replayable=False, bond=Bond()),
    Event.RESERVE: lambda s: s.reserve(),
    Event.START: lambda s: s.start(),
    Event.RESUME: lambda s: s.resume(),
    Event.FINISH_TRIAL: lambda s: s.finish(0, None),
    Event.LOSE_TRIAL: lambda s: s.lose(0),
    Event.INTERRUPT: lambda s: s.interrupt(),
    Event.BEGIN_ANEW: lambda s: s.begin_anew(master=b"n" * 32, rows=b"r" * 32),
    Event.CHOOSE: lambda s: s.choose(None),
    Event.SETTLE: lambda s: s.settle(),
    Event.RELEASE: lambda s: s.release(),
    Event.WIPE: lambda s: s.wipe(),
}


def running(*, slots: int = 3, counted: int = 3, executed: int | None = None) -> Search:
    sealed = (
        Search(slots=slots)
        .seal(
            counted=counted,
            executed=counted if executed is None else executed,
            master=b"m" * 32,
            replayable=False,
            bond=Bond(),
        )
        .reserve()
    )
    return sealed.start()


def candidate(index: int = 0, score: float = 0.0, tag: bytes = b"t") -> Candidate:
    return Candidate(index=index, score=score, tag=tag, payload=b"")


def test_the_table_is_the_one_that_was_meant():
    assert {(a.value, e.value, b.value) for (a, e), b in TRANSITIONS.items()} == LEGAL


@pytest.mark.parametrize(("stage", "event"), list(itertools.product(Stage, Event)))
def test_every_event_in_every_stage(stage, event):
    """Methods follow the table; an event outside it raises, and the value it was sent to is as before."""
    search = Search(slots=1, stage=stage, counted=1, executed=1)
    if event is Event.CHOOSE and stage is Stage.RUNNING:
        search = search.finish(0, None)
    after = {e: b for a, e, b in LEGAL if a == stage.value}.get(event.value)
    if after is None:
        with pytest.raises(IllegalStepError, match=stage.value):
            EVENTS[event](search)
        with pytest.raises(IllegalStepError):
            advance(stage, event)
    else:
        assert EVENTS[event](search).stage.value == after
    assert search.stage is stage


def test_the_draw_happens_once():
    search = running()
    with pytest.raises(IllegalStepError):
        search.seal(counted=9, executed=9, master=b"x" * 32, replayable=False, bond=Bond())
    interrupted = search.interrupt()
    with pytest.raises(IllegalStepError):
        interrupted.seal(counted=9, executed=9, master=b"x" * 32, replayable=False, bond=Bond())


def test_nothing_is_chosen_before_the_last_turn():
    search = running(slots=3, counted=1).finish(0, candidate())
    with pytest.raises(IllegalStepError):
        search.choose(search.best)
    assert search.finish(1, None).finish(2, None).choose(candidate()).stage is Stage.CHOSEN


def test_with_other_rows_every_run_is_made_again_with_another_key():
    """The number of runs stays, and what the reservation is bound to."""
    begun = running(slots=2, counted=3).finish(0, candidate()).finish(1, None).lose(2)
    again = begun.begin_anew(master=b"n" * 32, rows=b"r" * 32)
    assert (again.counted, again.executed, again.master, again.bond.rows) == (3, 3, b"n" * 32, b"r" * 32)
    assert (again.best, again.rounds_done, sum(again.done), sum(again.losses)) == (None, 0, 0, 0)
    assert again.bond.binding == begun.bond.binding


@given(slots=st.integers(1, 5), executed=st.integers(0, 17), order=st.randoms())
def test_every_turn_is_served_once(slots, executed, order):
    """Rounds fill every slot, empty turns included: the number of turns is the slots times the rounds."""
    search = running(slots=slots, counted=executed)
    served = []
    while not search.finished:
        index = order.choice(search.pending())
        search = search.finish(index, None)
        served.append(index)
        with pytest.raises(IllegalStepError):
            search.finish(index, None)
    assert sorted(served) == list(range(slots * max(1, math.ceil(executed / slots))))
    assert search.pending() == []


@pytest.mark.parametrize("counted", [0, 1, 2, 3])
def test_turns_do_not_depend_on_the_number_of_runs(counted):
    search = running(slots=3, counted=counted)
    turns = 0
    while not search.finished:
        search = search.finish(search.pending()[0], None)
        turns += 1
    assert turns == 3


@given(
    scores=st.lists(st.sampled_from([-math.inf, -1.0, 0.0, 0.5, math.inf, math.nan, None]), min_size=1, max_size=5),
    order=st.randoms(),
)
def test_the_winner_does_not_depend_on_arrival(scores, order):
    entries = [
        None if score is None else candidate(index, score, bytes((order.randrange(256), index)))
        for index, score in enumerate(scores)
    ]

    def winner(sequence: list[int]) -> Candidate | None:
        search = running(slots=len(entries), counted=len(entries))
        for index in sequence:
            search = search.finish(index, entries[index])
        return search.best

    indices = list(range(len(entries)))
    first = winner(indices)
    for _ in range(4):
        order.shuffle(indices)
        assert winner(indices) is first
    alive = [entry for entry in entries if entry]
    numbers = [entry.score for entry in alive if not math.isnan(entry.score)]
    if not alive:
        assert first is None
    elif numbers:
        assert first.score == max(numbers)
    else:
        assert math.isnan(first.score)


class ByArrival(Candidate):
    """Broken: among equal scores the first to arrive stays."""

    def beats(self, other):
        return other is None or self.score > other.score


def test_zoo_ties_broken_by_arrival_are_caught():
    def depends_on_arrival(kind):
        a, b = kind(0, 1.0, b"a", b""), kind(1, 1.0, b"b", b"")
        start = running(slots=2, counted=2)
        return start.finish(0, a).finish(1, b).best.index != start.finish(1, b).finish(0, a).best.index

    assert not depends_on_arrival(Candidate)
    assert depends_on_arrival(ByArrival)


def test_runs_past_the_counted_ones_never_win():
    search = running(slots=3, counted=1, executed=3)
    search = search.finish(2, candidate(2, 9.0)).finish(1, candidate(1, 8.0)).finish(0, candidate(0, -5.0))
    assert search.best.index == 0


def test_a_trial_is_replayed_three_times():
    search = running(slots=2, counted=2)
    for _ in range(REPLAYS):
        search = search.lose(1)
        assert not search.exhausted(1)
    assert REPLAYS == 3
    search = search.lose(1)
    assert search.exhausted(1)
    assert not search.exhausted(0)


def test_a_resume_counts_against_the_lowest_unfinished_trial():
    search = running(slots=4, counted=3).finish(0, None)
    for _ in range(REPLAYS + 1):
        search = search.resume()
    assert search.exhausted(1)
    assert not search.exhausted(2)
    only_empty_left = running(slots=2, counted=1).finish(0, None)
    assert only_empty_left.resume().losses == only_empty_left.losses


def test_an_orderly_interruption_counts_against_nobody():
    search = running()
    assert search.interrupt().start().losses == search.losses


def test_losses_start_afresh_in_the_next_round():
    search = running(slots=1, counted=2)
    for _ in range(REPLAYS + 1):
        search = search.lose(0)
    assert not search.finish(0, None).exhausted(1)


def test_nothing_secret_shows():
    search = running(counted=2).finish(0, candidate(score=0.123))
    assert repr(search) == "<Search running>"
    assert "0.123" not in repr(search.best)
    with pytest.raises(IllegalStepError) as caught:
        search.finish(0, None)
    assert not any(character.isdigit() for character in str(caught.value))
    released = search.finish(1, None).finish(2, None).choose(None).settle().release()
    assert released.wipe().master == bytes(32)
