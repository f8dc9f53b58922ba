"""The findings of an audit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from dpselect.numerics.digits import rounded, rounded_down

__all__ = ["DATA_OVER_NEIGHBOUR", "NEIGHBOUR_OVER_DATA", "POWER", "Audit", "shortened"]

DATA_OVER_NEIGHBOUR: Final = "data over neighbour"
NEIGHBOUR_OVER_DATA: Final = "neighbour over data"
POWER: Final = 0.95
"""An audit that would see a leak of twice the claim less often than this cannot tell."""
_LONGEST: Final = 60
_NO_PROOF: Final = "An audit finds faults; it never proves privacy."


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The verdict on one claim, on one pair of neighbours, and what was measured on the way.

    An audit can show that a claim is false. It never shows that one is true: another event, another pair of neighbours
    or more draws may show more. `verdict` is "violated", "not violated" or "cannot tell". "Not violated" needs a
    `power` of at least .95: the same audit would have shown a leak of twice the claim.

    Attributes:
        name: what was audited.
        violated: whether the claim was shown to be false.
        epsilon_lower: no true guarantee at `delta` has a smaller epsilon (inf: none is finite). 0: nothing is shown.
        delta: where `epsilon_lower` and `claimed_epsilon` stand.
        claimed_epsilon: the claim's epsilon at `delta` (inf if it claims none there).
        confidence: what is said holds, all of it together, with this probability over the audit's draws (1 when exact).
        direction: which law exceeds which.
        event: the set of outputs that shows it, in words.
        draws: outputs drawn of each data set (0 when exact).
        method: "black-box", "exact" or "one-run".
        epsilon_limit: the largest `epsilon_lower` that so many draws can show (inf when exact). Without a violation it
            is what .95 of such audits show of a leak without limit, planted in this form of output.
        power: the probability that such an audit shows a leak of twice the claim, planted in this form of output (its
            size and its place are in `shown["planted"]`). None where it was not needed (a violation, exact laws) or
            nothing could be planted (the claim has no epsilon at `delta`).
        shown: JSON-able details: what the verdict was reckoned from.
    """

    name: str
    violated: bool
    epsilon_lower: float
    delta: float
    claimed_epsilon: float
    confidence: float
    direction: str
    event: str
    draws: int
    method: Literal["black-box", "exact", "one-run"]
    epsilon_limit: float = math.inf
    power: float | None = None
    shown: Mapping[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> Literal["violated", "not violated", "cannot tell"]:
        """The verdict on the claim."""
        if self.violated:
            return "violated"
        if self.method == "exact" or (self.power is not None and self.power >= POWER):
            return "not violated"
        return "cannot tell"

    def describe(self) -> dict[str, Any]:
        """A JSON-able summary. JSON has no infinity: None stands for it."""
        finite = {name: None if value == math.inf else value for name, value in vars(self).items()}
        shown = {key: _without_infinity(value) for key, value in self.shown.items()}
        return {"verdict": self.verdict, **finite, "shown": shown, "note": _NO_PROOF}

    def lines(self) -> list[str]:
        """The verdict in words, for a terminal."""
        how = {"exact": "from the exact laws", "one-run": "in one run"}
        drawn = f"{self.method}, {self.draws} draws of each data set"
        verdicts = {
            "violated": "VIOLATED: the claim is false",
            "not violated": "not violated: nothing here contradicts the claim",
            "cannot tell": "CANNOT TELL: this audit would often miss a leak of twice the claim",
        }
        found = [f"{self.name}: {how.get(self.method, drawn)}", verdicts[self.verdict]]
        if where := self.shown.get("violation"):
            found.append(
                # amounts: a finding at an epsilon that the audit chose, neither spent nor left
                "at epsilon {epsilon:.6g}: delta at least {delta:.4g}, claimed {claimed_delta:.4g}".format(**where)
            )
        if self.method == "one-run":
            # amounts: a finding at an epsilon that the audit chose, neither spent nor left
            found.append("p-value of the claim {p_value:.3g}, at epsilon {at_epsilon:.6g}".format(**self.shown))
        found += [
            f"epsilon at delta {self.delta:g}: at least {rounded_down(self.epsilon_lower)}, "
            f"claimed {rounded(self.claimed_epsilon, digits=6)}",
            f"event: {self.event} ({self.direction})",
        ]
        found += self._power_lines()
        if math.isfinite(self.epsilon_limit):
            many = "guesses" if self.method == "one-run" else "draws"
            where = " in this form of output" if "planted" in self.shown else ""
            found.append(f"so many {many} can show an epsilon of {rounded(self.epsilon_limit)} at most{where}")
            if not self.violated and self.epsilon_limit <= self.claimed_epsilon:
                found.append(f"too few to contradict the claim at delta {self.delta:g}, however false it is")
        if self.confidence < 1.0:
            alarms = f"{1.0 - self.confidence:.3g} of all audits"
            found.append(f"confidence {self.confidence:g}: a true claim is called violated in {alarms} at most")
        return [*found, _NO_PROOF]

    def _power_lines(self) -> list[str]:
        """How often a planted leak is seen and, where that is too rarely, what would do."""
        planted = self.shown.get("planted")
        if self.power is None or planted is None:
            return []
        # amounts: a finding at an epsilon that the audit chose, neither spent nor left
        leak = f"epsilon {planted['epsilon']:.4g}" + (f", delta {planted['delta']:.4g}" if planted["delta"] else "")
        place = f", planted in {shortened(planted['form'])}" if "form" in planted else ""
        lines = [f"power {self.power:.3g}: the share of such audits that see a leak of twice the claim ({leak}{place})"]
        if self.verdict == "cannot tell":
            enough = planted.get("enough")
            more = "more draws" if enough is None else f"about {enough} draws of each data set"
            if self.method == "one-run":
                more = "more canaries"
            lines.append(f"what would do: {more}, or an output that is simpler (one number, one label)")
        return lines


def _without_infinity(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_infinity(part) for key, part in value.items()}
    return None if value == math.inf else value


def shortened(output: object) -> str:
    """An output as a report names it.

    >>> len(shortened("x" * 1000))
    60
    """
    text = str(output)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]} ..."
