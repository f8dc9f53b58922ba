"""A gate that lasts: a file of an incumbent's sealed outcomes, one bit for each candidate, one error budget."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from fractions import Fraction
from typing import Any, Final, Literal, SupportsFloat

import numpy as np

from dpselect.errors import ArgumentError, BudgetError, ContentError, expect, integer, number
from dpselect.holdout.files import texts
from dpselect.holdout.gate.certificates import public_part, signed
from dpselect.holdout.gate.error_budget import ErrorBudget, log_of
from dpselect.holdout.gate.history import AskRecord, GateState, fold_gate
from dpselect.holdout.gate.outcomes import Layout, Outcomes, by_text, repeats_of
from dpselect.holdout.gate.planning import check_tasks
from dpselect.holdout.gate.rules import RULES, gain_bound
from dpselect.holdout.gate.terms import GateRules, GateTerms
from dpselect.holdout.record import Snapshot, WriteTurn
from dpselect.holdout.shared_record import AnyRecord, create_record, open_record
from dpselect.numerics.search import Array
from dpselect.privacy.boundary import run_confined
from dpselect.randomness import system_source
from dpselect.randomness.session import Session, answers

__all__ = ["Gate"]

Grader = Callable[[], Outcomes]

_KIND: Final = "gate"
_MOST_TASKS: Final = 1 << 20


class Gate(Session):
    """A test of whether a candidate is better than the incumbent, which answers one bit per query.

    Make one with `create`, find it with `open`. Any number of processes of one account may ask a gate, one after
    another.

    Accepting a candidate is a mistake if it is not better than the incumbent that it was compared with. The probability
    of any mistake is at most the failure probability, regardless of the number and the content of the queries. The
    proof is in docs/theory/gate.md, and docs/how-to/gate.md lists what you must ensure.

    Args:
        record: the open record of the gate, which `create` and `open` pass.

    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = tempfile.TemporaryDirectory()
    >>> before = {f"task {i}": i % 2 for i in range(200)}
    >>> gate = Gate.create(Path(folder.name, "my.gate"), before, consultations=4, rules=GateRules(answer_seconds=0))
    >>> gate.ask({name: i % 10 > 0 for i, name in enumerate(before)})
    True
    >>> gate.ask(before), round(gate.purse, 6)
    (False, 0.008333)
    """

    def __init__(self, record: AnyRecord) -> None:
        super().__init__()
        self._record = record
        self._secret = json.loads(record.secret())  # decodes: sealed
        self._terms = GateTerms.parse(record.terms)
        self._layout = Layout(tuple(map(tuple, self._secret["units"])), self._terms.repeats)
        self._folded = Snapshot(fold_gate, _start(self._terms))

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        outcomes: Outcomes,
        *,
        consultations: int = 20,
        failure_probability: SupportsFloat = 0.05,
        clusters: Mapping[Any, Any] | None = None,
        rules: GateRules | None = None,
        key_variable: str | None = None,
    ) -> Gate:
        """Seal the first incumbent's outcomes into a new file. All that is tested is fixed here.

        Args:
            path: the new file, or postgresql://...#NAME (docs/how-to/server.md). Its key goes to the state folder of
                the user.
            outcomes: of the incumbent, by the id of the task: a number in [0, 1], or a sequence of as many for each
                task. The mean of these repeats counts. Tasks, or clusters of them, must be independent draws from
                one population, seen by no one who shapes candidates (you must ensure this).
            consultations: how many asks share the error budget by default. It is no limit.
            failure_probability: of ever accepting a candidate that is not better.
            clusters: the cluster of each id, for tasks that are not independent of each other: each cluster counts as
                one, with the mean over its tasks.
            rules: the test, the margin and the like (by default `GateRules()`).
            key_variable: an environment variable for the key, in place of a file in the state folder.

        Raises `ContentError` for outcomes that cannot be used, `ArgumentError` for numbers out of range and when there
        are so few tasks that nothing could ever be accepted, `StudyError` when the file cannot be made.
        """
        rules = GateRules() if rules is None else rules
        expect("rules", rules, GateRules)
        consultations = integer("consultations", consultations, at_least=1, at_most=1_000_000)
        failure = number("failure_probability", failure_probability, at_least=1e-12, below=1.0)
        given = by_text(outcomes)
        groups = None if clusters is None else _clusters(clusters)
        layout = Layout.shuffled(given, groups, repeats_of(given), system_source())
        units = len(layout.units)
        integer("number of tasks", len(given), at_most=_MOST_TASKS)
        check_tasks(units, failure)
        incumbent = layout.known(given)
        zero_one = bool(np.isin(incumbent, (0.0, 1.0)).all())
        test = rules.settled(zero_one=zero_one, single=groups is None and layout.repeats == 1)
        key = system_source().bytes(32).hex()
        terms = GateTerms(
            tasks=len(given),
            units=units,
            repeats=layout.repeats,
            consultations=consultations,
            failure_probability=failure,
            public_key=public_part(key),
            **{**asdict(rules), "test": test},
        )
        secret = {"units": layout.units, "incumbent": _stored(incumbent, terms.test), "key": key}
        start = _start(terms)
        record = create_record(
            path,
            kind=_KIND,
            terms=terms.fields(),
            secret=json.dumps(secret).encode(),
            exposure=start.exposure(),
            key_variable=key_variable,
        )
        return cls(record)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Gate:
        """Find a gate again. Raises `StudyError` when it is none, was changed, is newer, or its key is missing."""
        return cls(open_record(path, kind=_KIND))

    @property
    def terms(self) -> GateTerms:
        """The terms that were declared: public."""
        return self._terms

    @property
    def identifier(self) -> str:
        """Random, public, fixed."""
        return self._record.identifier

    @property
    def purse(self) -> float:
        """The failure probability that is left: public, rounded down. 0 when nothing more can be asked."""
        return _down(self._state().budget.left)

    @answers
    def ask(
        self,
        outcomes: Outcomes | Grader,
        stake: SupportsFloat | Literal["all"] | None = None,
        *,
        candidate: str | bytes | None = None,
        incumbent: Outcomes | Grader | None = None,
    ) -> bool:
        """Whether the candidate is better than the incumbent. If so it is the incumbent from now on.

        Charged before the outcomes are looked at. True leaves the stake, False the error budget without it.
        "Rejected" does not mean "not better".

        Args:
            outcomes: of the candidate, as in `create`: the same ids, as many repeats. Anything but a number in [0, 1]
                counts as 0. Or a function without arguments that grades the candidate and returns them. It is called
                once the ask is charged, its errors and missing tasks count as 0, and what it prints is discarded.
            stake: a part of the error budget: None for an even share among the consultations left, "all" for all of it.
            candidate: what it is (a name, or a hash of its files), to have the same candidate answered from the
                record, at no charge and without grading, as long as the incumbent is the same. It must not depend on
                its outcomes: whether an ask is charged is public.
            incumbent: the incumbent's outcomes graded again, for gates that are declared `regraded`.

        Raises `ContentError` for outcomes with other ids or repeats and `ArgumentError` for a stake above what is
        left. Nothing is charged then. Raises `BudgetError` when the error budget is empty or the gate is retired, and
        `StudyError` when the file or its counter cannot be used.
        """
        begun = time.monotonic()
        read = self._checked("outcomes", outcomes)
        if (incumbent is not None) != self._terms.regraded:
            how = "needed: this gate is declared regraded" if self._terms.regraded else "not taken by this gate"
            raise ArgumentError(f"incumbent is {how}")
        regraded = None if incumbent is None else self._checked("incumbent", incumbent)
        name = _named(candidate)
        with self._record.turn(several=True) as turn:
            state = self._folded.of(turn.entries)
            if state.retired:
                raise BudgetError("this gate is retired: what it knew of gains has been shown")
            found = state.recorded(name)
            if found is None:
                state = state.charged(state.budget.stake(stake), name)
                turn.append(state.asks[-1].fields(), state.exposure())
                turn.keep()
                state = self._answered(state, read(), None if regraded is None else regraded(), turn)
                found = bool(state.asks[-1].accepted)
        _wait(begun, self._terms.answer_seconds)
        return found

    @answers
    def retire(self) -> list[float]:
        """Close the gate for good, and say how much better the accepted candidates are, in the order of their asks.

        Each number is a lower bound on the gain over the incumbent of its time (the difference of mean outcomes on
        new tasks). All of them hold, and all accepted candidates are better, but for the sum of both failure
        probabilities. Again after it was retired, the same numbers.

        Raises `ArgumentError` for a gate that was made without `bound_failure_probability`.
        """
        if self._terms.bound_failure_probability is None:
            raise ArgumentError("bound_failure_probability was not declared when this gate was made: it has no bounds")
        with self._record.turn() as turn:
            state = self._folded.of(turn.entries)
            # every time: what a crash left uncounted is counted before it is shown
            turn.append({"retired": 1}, state.closed().exposure())
        known = -1.0 if self._terms.test == "wins" else self._terms.margin
        return [
            gain_bound(self._read(ask.entry["differences"], "bet"), ask.bounds / 2, known)
            for ask in state.asks
            if ask.accepted
        ]

    def status(self) -> dict[str, Any]:
        """The public terms, the error budget, and each ask with its answer, JSON-able. Costs nothing."""
        state = self._state()
        left = state.budget.left
        return {
            **self._terms.fields(),
            "claim": self._terms.claim,
            "purse": _down(left),
            "log_purse": log_of(left) if left else None,
            "next_stake": _down(state.budget.stake(None)) if left and not state.retired else None,
            "open": bool(left) and not state.retired,
            "retired": state.retired,
            "restored": state.restored,
            "asked": state.budget.asked,
            "accepted": state.accepts,
            "asks": [_shown(ask) for ask in state.asks],
        }

    def certificate(self) -> dict[str, Any]:
        """All asks and answers so far, signed by this gate, JSON-able. `verify_certificate` checks it.

        Holds nothing that the answers do not tell. Costs nothing.
        """
        state = self._state()
        body = {
            "format": 1,
            "gate": self._record.identifier,
            "terms": self._terms.fields(),
            "claim": self._terms.claim,
            "restored": state.restored,
            "retired": state.retired,
            "asks": [
                {"stake": str(ask.stake), "candidate": ask.candidate, "verdict": _verdict(ask)} for ask in state.asks
            ],
            "purse": str(state.budget.left),
        }
        return signed(body, self._secret["key"])

    def _state(self) -> GateState:
        with self._record.turn() as turn:
            return self._folded.of(turn.entries)

    def _checked(self, name: str, outcomes: Outcomes | Grader) -> Callable[[], Array]:
        """Read outcomes of the right form, once they are charged, and never fails."""
        nothing = np.zeros(len(self._layout.units))
        if callable(outcomes):
            grade = outcomes
            return lambda: run_confined(lambda: self._layout.means(by_text(grade())), nothing)
        expect(name, outcomes, Mapping)
        given = by_text(outcomes)
        self._layout.check(given)
        return lambda: run_confined(lambda: self._layout.means(given), nothing)

    def _answered(self, state: GateState, candidate: Array, regraded: Array | None, turn: WriteTurn) -> GateState:
        """The state with the answer, on record. Everything is done and written regardless of the answer."""
        ask, test = state.asks[-1], self._terms.test
        held = self._read(state.incumbent or self._secret["incumbent"], test)
        before = held if regraded is None else regraded
        if test == "sign":
            candidate, before = np.floor(candidate), np.floor(before)
        differences = candidate - before
        accepted = RULES[test](differences, ask.stake, self._terms.margin)
        entry: dict[str, Any] = {"answer": int(accepted), "incumbent": _stored(candidate if accepted else held, test)}
        if self._terms.bound_failure_probability is not None:
            entry["differences"] = _stored(differences, "bet")
        state = state.answered(entry)
        turn.append(entry, state.exposure())
        return state

    def _read(self, stored: str, test: str) -> Array:
        return np.frombuffer(bytes.fromhex(stored), dtype=_format(test)).astype(np.float64)

    def __repr__(self) -> str:
        return f"<Gate {self._terms.test}, {self._terms.units} independent units>"


def _start(terms: GateTerms) -> GateState:
    bounds = terms.bound_failure_probability
    budget = ErrorBudget(Fraction(terms.failure_probability), terms.consultations)
    return GateState(budget, Fraction(0) if bounds is None else Fraction(bounds))


def _format(test: str) -> str:
    return "<u1" if test == "sign" else "<f8"


def _stored(values: Array, test: str) -> str:
    """Of one size, regardless of the values."""
    return values.astype(_format(test)).tobytes().hex()


def _clusters(clusters: Mapping[Any, Any]) -> dict[str, str]:
    expect("clusters", clusters, Mapping)
    names, groups = texts(list(clusters)), texts(list(clusters.values()))
    if "" in groups or "" in names or len(set(names)) != len(names):
        raise ContentError("clusters must have one id for each task and a cluster for each id, none of them empty")
    return dict(zip(names, groups, strict=True))


def _named(candidate: str | bytes | None) -> str | None:
    if candidate is None:
        return None
    expect("candidate", candidate, str, bytes)
    content = candidate.encode("utf-8", "surrogatepass") if isinstance(candidate, str) else candidate
    return hashlib.sha256(content).hexdigest()


def _down(value: Fraction) -> float:
    """The largest double at or below a fraction."""
    return number("purse", value, rounding="down")


def _verdict(ask: AskRecord) -> str:
    return {True: "accepted", False: "rejected", None: "interrupted"}[ask.accepted]


def _shown(ask: AskRecord) -> dict[str, Any]:
    return {"ask": ask.number, "stake": _down(ask.stake), "candidate": ask.candidate, "verdict": _verdict(ask)}


def _wait(begun: float, quantum: float) -> None:
    """Until an integer of quanta after the beginning."""
    if quantum:
        time.sleep(quantum - (time.monotonic() - begun) % quantum)
