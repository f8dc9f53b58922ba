"""What a search will do and what it costs, settled before anything is drawn. Public through and through."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any, Final, SupportsFloat

from dpselect.accounting import best_of
from dpselect.accounting.best_of_k.adaptive_proposals import adaptive_best_of
from dpselect.errors import ArgumentError, BudgetError, integer, number
from dpselect.privacy import Guarantee, worst_of
from dpselect.privacy.promises import promises, refusal
from dpselect.repetitions import Harmonic, Repetitions
from dpselect.tuning.limits import Limits
from dpselect.tuning.machine import REPLAYS
from dpselect.tuning.proposals import ENTRY_BYTES, AdaptiveProposal
from dpselect.tuning.sealed_store import Shape
from dpselect.tuning.space import Space
from dpselect.tuning.trial import encode_value

__all__ = ["SLOT_QUANTILE", "Plan", "longest_within", "make_plan"]

SLOT_QUANTILE: Final = 0.999
LARGEST_FULL_STORE: Final = 10_000
"""A law gets as many slots as its limit; without a limit up to this one, as its 0.999 quantile. Both are public."""


@dataclass(frozen=True)
class Plan:
    """A priced search.

    `total` is the guarantee of the whole search: the best of `repetitions` runs, each with parameters drawn
    from `space`, or proposed by `proposal`.
    """

    space: Space
    base: tuple[Guarantee, ...]
    repetitions: Repetitions
    total: Guarantee
    shape: Shape
    constant_runs: bool
    declare_score: bool
    fingerprint: str
    proposal: AdaptiveProposal | None = None


def make_plan(
    *,
    space: Space | Mapping[str, Any],
    base: Guarantee | Sequence[Guarantee],
    repetitions: Repetitions | None,
    epsilon: SupportsFloat | None,
    delta: SupportsFloat | None,
    max_runs: int,
    slots: int | None,
    payload_bytes: int,
    constant_runs: bool,
    declare_score: bool,
    fingerprint: str,
    has_ledger: bool,
    example: Any,
    limits: Limits | None = None,
    proposal: AdaptiveProposal | None = None,
) -> Plan:
    """Check and price a search. See `tune` for the arguments and the errors."""
    space = space if isinstance(space, Space) else Space(space)
    if not isinstance(base, (Guarantee, Sequence)) or not base:
        raise refusal(
            "base",
            base,
            "a Guarantee of one run, whatever its parameters (or one for each part of the data; "
            "to choose the noise for a total, use dpselect.accounting.calibrate first)",
        )
    parts = promises("base", (base,) if isinstance(base, Guarantee) else base)
    if not isinstance(proposal, AdaptiveProposal | None):
        raise TypeError(
            "proposal must be an AdaptiveProposal or None: a sampler that is free to go where earlier scores lead it "
            f"makes the runs depend on each other without bound, which has no price but composition; got "
            f"{type(proposal).__name__}"
        )
    repetitions, total = _price(parts, proposal, repetitions, epsilon, delta, max_runs)
    limit = repetitions.limit
    if constant_runs and limit is None:
        raise ArgumentError(
            "constant_runs needs a repetition law with a limit, such as Harmonic(limit=...) or law.at_most(limit)"
        )
    if limit is None or limit > LARGEST_FULL_STORE:
        public_slots = int(repetitions.quantile(SLOT_QUANTILE))
    else:
        public_slots = limit
    slots = max(1, public_slots if slots is None else integer("slots", slots, at_least=1))
    shape = Shape(
        slots=slots,
        payload_bytes=integer("payload_bytes", payload_bytes, at_least=1),
        history_bytes=0 if proposal is None else ENTRY_BYTES * slots,
    )
    if proposal is not None:
        proposal.check(repetitions, slots)
    if example is not None and len(encode_value(example)) > shape.payload_bytes:
        raise ArgumentError(
            f"example takes {len(encode_value(example))} bytes, above payload_bytes {shape.payload_bytes}; "
            "a run whose value is larger counts as failed"
        )
    return Plan(
        space=space,
        base=parts,
        repetitions=repetitions,
        total=total,
        shape=shape,
        constant_runs=bool(constant_runs),
        declare_score=bool(declare_score),
        proposal=proposal,
        fingerprint=_digest(
            {
                "dpselect": _version(),
                "replays": REPLAYS,
                "space": list(space.describe().items()),
                "base": [[g.adjacency.value, g.theorem, g.failure, dict(g.terms)] for g in parts],
                "repetitions": repetitions.describe(),
                "shape": [shape.slots, shape.payload_bytes],
                "options": [bool(constant_runs), bool(declare_score), has_ledger],
                "caller": str(fingerprint),
                **({} if proposal is None else {"proposal": proposal.describe()}),
                **({} if limits is None else {"limits": limits.describe()}),
            }
        ),
    )


def _search_price(parts: tuple[Guarantee, ...], proposal: AdaptiveProposal | None, law: Repetitions) -> Guarantee:
    """A row is in one part only, so it pays the largest of the finished curves."""
    if proposal is None:
        return worst_of(*[best_of(part, law) for part in parts])
    low, high = proposal.lower_ratio, proposal.upper_ratio
    return worst_of(*[adaptive_best_of(part, law, lower_ratio=low, upper_ratio=high) for part in parts])


def _price(
    parts: tuple[Guarantee, ...],
    proposal: AdaptiveProposal | None,
    repetitions: Repetitions | None,
    epsilon: SupportsFloat | None,
    delta: SupportsFloat | None,
    max_runs: int,
) -> tuple[Repetitions, Guarantee]:
    if (epsilon is None) != (delta is None):
        raise ArgumentError("epsilon and delta go together")
    if epsilon is None or delta is None:
        if repetitions is None:
            raise ArgumentError("repetitions is needed, or epsilon and delta of the whole search")
        return repetitions, _search_price(parts, proposal, repetitions)
    most = number("epsilon", epsilon, above=0.0)
    delta = number("delta", delta, at_least=0.0, below=1.0)
    if repetitions is not None:
        total = _search_price(parts, proposal, repetitions)
        if not total.epsilon(delta) <= most:
            raise BudgetError(
                f"the search costs epsilon {total.epsilon(delta):.6g} at delta {delta:g}, above the total {most:g}"
            )
        return repetitions, total
    max_runs = integer("max_runs", max_runs, at_least=1)
    return longest_within(lambda law: _search_price(parts, proposal, law), epsilon=most, delta=delta, max_runs=max_runs)


def longest_within(
    price: Callable[[Repetitions], Guarantee], *, epsilon: float, delta: float, max_runs: int
) -> tuple[Repetitions, Guarantee]:
    """The harmonic law with the largest limit, up to `max_runs`, that the total pays for, and its price.

    Bisection takes the price to grow with the limit; were it not to, the answer would be shorter, never too dear.
    """

    def offer(limit: int) -> tuple[Repetitions, Guarantee]:
        law = Harmonic(limit=limit)
        return law, price(law)

    found = offer(1)
    if not found[1].epsilon(delta) <= epsilon:
        raise BudgetError(
            f"one run alone costs epsilon {found[1].epsilon(delta):.6g} at delta {delta:g}, above the total {epsilon:g}"
        )
    affordable, too_long = 1, max_runs + 1
    while too_long - affordable > 1:
        # The largest limit is often affordable, so it is asked first.
        limit = max_runs if too_long > max_runs else (affordable + too_long) // 2
        longer = offer(limit)
        if longer[1].epsilon(delta) <= epsilon:
            affordable, found = limit, longer
        else:
            too_long = limit
    return found


@cache
def _version() -> str:
    return version("dpselect")


def _digest(description: Any) -> str:
    try:
        text = json.dumps(description, sort_keys=True)
    except (TypeError, ValueError):
        raise TypeError("space, base and repetitions must have JSON-able descriptions") from None
    return hashlib.sha256(b"dpselect study " + text.encode()).hexdigest()
