"""The contract of gates, as tests of any implementation.

With pytest, subclass and say how a gate is made: by an adapter where it is a server or a program.

    class TestMyGate(GateContract):
        @pytest.fixture
        def make(self, tmp_path):
            numbers = itertools.count()
            return lambda outcomes, **options: MyGate(tmp_path / str(next(numbers)), outcomes, **options)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from dpselect.testing.ledger_contract import refusal

__all__ = ["GateContract", "GateLike", "MakeGate"]

Outcomes = Mapping[str, Any]

TASKS = 200
NAMES = [f"task {number}" for number in range(TASKS)]
HALF: Outcomes = {name: number % 2 for number, name in enumerate(NAMES)}
WORST: Outcomes = dict.fromkeys(NAMES, 0)
BETTER: Outcomes = {name: int(number % 10 > 0) for number, name in enumerate(NAMES)}
BEST: Outcomes = dict.fromkeys(NAMES, 1)


class GateLike(Protocol):
    """A gate as the contract uses it. Refusals, also of an empty error budget, are any `Exception`."""

    @property
    def purse(self) -> float:
        """The failure probability that is left."""

    def ask(self, outcomes: Outcomes, stake: Any = None, *, candidate: str | None = None) -> bool:
        """Whether the candidate is better than the incumbent, and then it is the incumbent."""


class MakeGate(Protocol):
    """Makes a gate with an incumbent's outcomes."""

    def __call__(self, outcomes: Outcomes, *, consultations: int, failure_probability: float) -> GateLike: ...


def _near(one: float, other: float) -> bool:
    return abs(one - other) <= 1e-6 * max(abs(one), abs(other))


class GateContract:
    """Tests of one kind of gate. `make` makes them (a fixture)."""

    def test_what_is_better_is_accepted_and_becomes_the_incumbent(self, make: MakeGate) -> None:
        gate = make(HALF, consultations=10, failure_probability=0.05)
        assert gate.ask(BETTER) is True
        assert gate.ask(BETTER) is False
        assert gate.ask(HALF) is False

    def test_a_rejection_costs_the_stake_and_an_acceptance_leaves_it(self, make: MakeGate) -> None:
        gate = make(HALF, consultations=4, failure_probability=0.04)
        assert gate.ask(WORST) is False
        assert _near(gate.purse, 0.03)  # an even share of four
        assert gate.ask(WORST, 0.01) is False
        assert _near(gate.purse, 0.02)
        assert gate.ask(BETTER, 0.015) is True
        assert _near(gate.purse, 0.015)

    def test_an_empty_purse_answers_nothing(self, make: MakeGate) -> None:
        gate = make(HALF, consultations=4, failure_probability=0.05)
        assert gate.ask(WORST, gate.purse) is False
        assert gate.purse == 0.0
        refusal(lambda: gate.ask(BEST), Exception)

    def test_no_more_is_staked_than_is_left(self, make: MakeGate) -> None:
        gate = make(HALF, consultations=4, failure_probability=0.05)
        for stake in (0.06, 0.0, -0.01, float("nan")):
            refusal(lambda stake=stake: gate.ask(BEST, stake), Exception)  # type: ignore[misc]
        assert _near(gate.purse, 0.05)

    def test_the_number_of_asks_is_no_limit(self, make: MakeGate) -> None:
        gate = make(HALF, consultations=2, failure_probability=0.05)
        for _ in range(6):
            assert gate.ask(WORST, 0.001) is False
        assert gate.ask(BEST, gate.purse) is True

    def test_other_ids_are_refused_and_not_charged(self, make: MakeGate) -> None:
        gate = make(HALF, consultations=4, failure_probability=0.05)
        lacking = dict.fromkeys(NAMES[1:], 1)
        for outcomes in (lacking, {**lacking, "elsewhere": 1}, {**BEST, "elsewhere": 1}, {}):
            refusal(lambda outcomes=outcomes: gate.ask(outcomes), Exception)  # type: ignore[misc]
        assert _near(gate.purse, 0.05)

    def test_what_is_no_outcome_is_a_failure_and_charged(self, make: MakeGate) -> None:
        """An error that depends on outcomes and costs nothing would be an answer that no one paid for."""
        gate = make(HALF, consultations=10, failure_probability=0.05)
        for value in (None, "error", float("nan"), 2, -1):
            before = gate.purse
            assert gate.ask(dict.fromkeys(NAMES, value)) is False
            assert gate.purse < before

    def test_a_candidate_that_was_asked_is_answered_from_the_record(self, make: MakeGate) -> None:
        gate = make(HALF, consultations=10, failure_probability=0.05)
        assert gate.ask(WORST, candidate="a") is False
        left = gate.purse
        assert gate.ask(BEST, candidate="a") is False
        assert gate.purse == left
        assert gate.ask(BETTER, candidate="b") is True
        left = gate.purse
        assert gate.ask(WORST, candidate="a") is False  # another incumbent, another pair
        assert gate.purse < left

    def test_equal_outcomes_are_charged(self, make: MakeGate) -> None:
        """Were they not, the purse would tell whether outcomes are equal."""
        gate = make(HALF, consultations=10, failure_probability=0.05)
        for name in ("a", "b", None):
            before = gate.purse
            assert gate.ask(WORST, candidate=name) is False
            assert gate.purse < before

    def test_equal_systems_on_sorted_tasks_are_not_told_apart(self, make: MakeGate) -> None:
        """At level 0.0025 each. A test in the order of the tasks would accept all of them."""
        first = {name: 0.75 * (number < 100) for number, name in enumerate(NAMES)}
        last = {name: 0.75 * (number >= 100) for number, name in enumerate(NAMES)}
        gates = [make(last, consultations=20, failure_probability=0.05) for _ in range(3)]
        assert sum(gate.ask(first) for gate in gates) < 3
