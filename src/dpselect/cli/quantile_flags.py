"""Flags of `dpselect quantile` that do not go together, or that are out of range."""

from __future__ import annotations

from typing import Any

from dpselect.errors import ArgumentError, number

__all__ = ["check_budget_flags", "check_domain_flags", "check_numbers", "check_person_flags", "for_whom"]


def check_numbers(epsilon: float, qs: list[float], range_epsilon: float | None, *, count: bool) -> None:
    """Refuse numbers out of range."""
    # a twentieth of epsilon may pay for counts, and no mechanism takes less than 2**-30
    number("--epsilon", epsilon, at_least=2.0**-25 if count else 2.0**-30, at_most=2.0**20)
    for wanted in qs:
        number("--q", wanted, at_least=0.0, at_most=1.0)
    if range_epsilon is not None:
        number("--range-epsilon", range_epsilon, at_least=2.0**-30, at_most=2.0**20)


def check_budget_flags(ledger: str | None, budget: str | None) -> None:
    """Refuse a ledger without a budget, or a budget without a ledger."""
    if (ledger is None) != (budget is None):
        absent = "--budget team" if budget is None else "--ledger budget.db"
        raise ArgumentError(f"--ledger and --budget: give both or neither. Write {absent}")


def check_domain_flags(
    lower: str | None,
    upper: str | None,
    range_epsilon: float | None,
    category: list[str] | None,
    granularity: str | None,
    kind: str | None,
) -> None:
    """Refuse flags of the domain that do not go together."""
    if (lower is None) != (upper is None):
        raise ArgumentError("--lower and --upper: give both, or neither and --range-epsilon")
    if not category and (lower is None) == (range_epsilon is None):
        raise ArgumentError(
            "public bounds are needed. Write --lower 0 --upper 100 with yours, or give --range-epsilon or --category"
        )
    if category and (lower is not None or range_epsilon is not None or granularity is not None):
        raise ArgumentError("--category: in place of bounds and --granularity")
    if kind is not None and (category or kind in ("category", "text")):
        raise ArgumentError("--kind: categories and text need --category alone")


def check_person_flags(person: str | None, rows_per_person: int | None, others: dict[str, Any]) -> None:
    """Refuse flags that do not go together. `others` are those that --person does not take."""
    if (person is None) != (rows_per_person is None):
        absent = "--person patient_id" if person is None else "--rows-per-person 1"
        raise ArgumentError(f"--person and --rows-per-person: give both or neither. Write {absent}")
    given = [flag for flag, value in others.items() if value is not None]
    if person is not None and given:
        raise ArgumentError(f"{given[0]}: not with --person, so leave it out")


def for_whom(rows_per_person: int | None) -> str:
    """Whom a price is for, in words."""
    if rows_per_person is None:
        return ""
    return f" for each person, with at most {rows_per_person} row{'s' if rows_per_person > 1 else ''} of theirs"
