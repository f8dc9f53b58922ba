"""The rules of a gate, fixed and public when it is made."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, SupportsFloat

from dpselect.errors import ArgumentError, flag, number, public_text
from dpselect.holdout.gate.rules import CLAIMS, RULES

__all__ = ["GateRules", "GateTerms"]

_TESTS: Final = ("auto", *RULES)


@dataclass(frozen=True, kw_only=True)
class GateRules:
    """The test of a gate, declared when it is made. Nothing of it can depend on a candidate.

    Args:
        test: "sign" (outcomes 0 and 1; everything but 1 is a failure), "bet" (outcomes in [0, 1]), "wins" (the sign
            test on tasks with several repeats, which claims that the candidate wins more tasks than it loses: another
            claim than a higher mean) or "auto": "sign" where it serves, else "bet".
        margin: by how much an accepted candidate is better, in [0, 1). Only "bet" has one.
        regraded: the incumbent's outcomes are given again with every candidate, graded beside it. For graders that may
            drift. Without it the incumbent's outcomes are those that were accepted.
        bound_failure_probability: a second error budget, for lower bounds on how much better accepted candidates are,
            which `Gate.retire` gives in the end. None: no bounds.
        answer_seconds: an answer comes at a whole multiple of this time after the question. Let it be longer than the
            grader takes where its time is not to be seen.
        id_column, outcome_columns: what both are called in files. Several columns are several graders, whose mean
            counts.

    >>> GateRules(margin=0.02).margin
    0.02
    """

    test: str = "auto"
    margin: SupportsFloat = 0.0
    regraded: bool = False
    bound_failure_probability: SupportsFloat | None = None
    answer_seconds: SupportsFloat = 0.1
    id_column: str = "id"
    outcome_columns: tuple[str, ...] = ("outcome",)

    def __post_init__(self) -> None:
        if self.test not in _TESTS:
            raise ArgumentError(f"test must be one of {', '.join(_TESTS)}, got {str(self.test)[:40]!r}")
        bounds = self.bound_failure_probability
        columns = [self.outcome_columns] if isinstance(self.outcome_columns, str) else self.outcome_columns
        parsed = {
            "margin": number("margin", self.margin, at_least=0.0, below=1.0),
            "regraded": flag("regraded", self.regraded),
            "answer_seconds": number("answer_seconds", self.answer_seconds, at_least=0.0, at_most=86_400.0),
            "id_column": public_text("id_column", self.id_column),
            "outcome_columns": tuple(public_text("outcome_columns", name) for name in columns),
        }
        if bounds is not None:
            parsed["bound_failure_probability"] = number("bound_failure_probability", bounds, above=0.0, below=1.0)
        if not parsed["outcome_columns"]:
            raise ArgumentError("outcome_columns must name one column at least")
        if len({self.id_column, *columns}) != 1 + len(tuple(columns)):
            raise ArgumentError("id_column and outcome_columns must all differ")
        if parsed["margin"] and self.test in ("sign", "wins"):
            raise ArgumentError(f"margin must be 0 for the test {self.test!r}: a shifted sign test is not valid")
        for name, value in parsed.items():
            object.__setattr__(self, name, value)

    def settled(self, *, zero_one: bool, single: bool) -> str:
        """The test, once it is known whether the incumbent's outcomes are 0 and 1 and units are single outcomes."""
        if self.test == "sign" and not (zero_one and single):
            raise ArgumentError(
                'test must not be "sign" unless outcomes are 0 and 1, one a task, and without clusters; "bet" takes all'
            )
        if self.test != "auto":
            return self.test
        return "sign" if zero_one and single and not self.margin else "bet"


@dataclass(frozen=True, kw_only=True)
class GateTerms:
    """The public terms of a gate. `units` is the number of independent ones: of clusters, or else of tasks."""

    tasks: int
    units: int
    repeats: int
    test: str
    margin: float
    regraded: bool
    consultations: int
    failure_probability: float
    bound_failure_probability: float | None
    answer_seconds: float
    id_column: str
    outcome_columns: tuple[str, ...]
    public_key: str

    @property
    def claim(self) -> str:
        """The claim of an accepted candidate, with all others that are accepted, but for the failure probability."""
        return CLAIMS[self.test]

    def fields(self) -> dict[str, Any]:
        """JSON-able."""
        return {**asdict(self), "outcome_columns": list(self.outcome_columns)}

    @staticmethod
    def parse(fields: dict[str, Any]) -> GateTerms:
        return GateTerms(**{**fields, "outcome_columns": tuple(fields["outcome_columns"])})
