"""The plan of a search and its price, before anything is drawn. All of it is public."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any, Final

from dpselect.accounting.planning.search_prices import SearchPrice, longest_within
from dpselect.errors import ArgumentError, BudgetError, PromiseError, integer, number
from dpselect.numerics.digits import rounded_up
from dpselect.privacy import Guarantee
from dpselect.privacy.promises import one_or_several, refusal
from dpselect.repetitions import Repetitions
from dpselect.tuning.machine import REPLAYS
from dpselect.tuning.options import Execution, SearchRequest, SearchStore
from dpselect.tuning.proposals import ENTRY_BYTES, AdaptiveProposal
from dpselect.tuning.sealed_store import Shape
from dpselect.tuning.space import Space
from dpselect.tuning.trial import encode_value

__all__ = ["SLOT_QUANTILE", "Plan", "make_plan"]

SLOT_QUANTILE: Final = 0.999
LARGEST_FULL_STORE: Final = 10_000
"""A law gets as many slots as its limit; without a limit up to this one, as its 0.999 quantile. Both are public."""

_DRAWS: Final = 3
"""Changes when the learners draw otherwise from the same key. A trial of another number cannot be run again alike."""


@dataclass(frozen=True)
class Plan:
    """A priced search.

    `total` is the guarantee of the whole search: the best of `repetitions` runs, each with parameters drawn
    from `space`, or proposed by `proposal`.
    """

    space: Space
    repetitions: Repetitions
    total: Guarantee
    shape: Shape
    store: SearchStore
    execution: Execution
    declare_score: bool
    fingerprint: str
    proposal: AdaptiveProposal | None = None


def make_plan(request: SearchRequest, store: SearchStore, execution: Execution, *, has_ledger: bool) -> Plan:
    """Check and price a search. See `tune` for the arguments and the errors."""
    space, base, proposal = request.space, request.base, request.proposal
    space = space if isinstance(space, Space) else Space(space)
    try:
        parts = one_or_several("base", base)
    except PromiseError:
        raise refusal(
            "base",
            base,
            "a Guarantee of one run, no matter what its parameters (or one for each part of the data; "
            "to choose the noise for a total, use dpselect.accounting.calibrate first)",
        ) from None
    if not isinstance(proposal, AdaptiveProposal | None):
        raise TypeError(
            "proposal must be an AdaptiveProposal or None: a sampler that is free to go where earlier scores lead it "
            f"makes the runs depend on each other without bound, which has no price but composition; got "
            f"{type(proposal).__name__}"
        )
    ratio = None if proposal is None else (proposal.lower_ratio, proposal.upper_ratio)
    price = _price(request, lambda law: SearchPrice(parts, law, request.beside, ratio))
    repetitions, limit = price.law, price.law.limit
    if execution.constant_runs and limit is None:
        raise ArgumentError(
            "constant_runs needs a repetition law with a limit, such as Harmonic(limit=...) or law.at_most(limit)"
        )
    if limit is None or limit > LARGEST_FULL_STORE:
        public_slots = int(repetitions.quantile(SLOT_QUANTILE))
    else:
        public_slots = limit
    slots = max(1, public_slots if store.slots is None else store.slots)
    shape = Shape(
        slots=slots,
        payload_bytes=store.payload_bytes,
        history_bytes=0 if proposal is None else ENTRY_BYTES * slots,
    )
    if proposal is not None:
        proposal.check(repetitions, slots)
    if store.example is not None and len(encode_value(store.example)) > shape.payload_bytes:
        raise ArgumentError(
            f"example takes {len(encode_value(store.example))} bytes, above payload_bytes {shape.payload_bytes}; "
            "a run whose value is larger counts as failed"
        )
    return Plan(
        space=space,
        repetitions=repetitions,
        total=price.guarantee,
        shape=shape,
        store=store,
        execution=execution,
        declare_score=bool(request.declare_score),
        proposal=proposal,
        fingerprint=_fingerprint(
            store.marks,
            {
                "dpselect": _version(),
                "replays": REPLAYS,
                "draws": _DRAWS,
                "space": list(space.describe().items()),
                "base": [_described(part) for part in parts],
                "repetitions": repetitions.describe(),
                "shape": [shape.slots, shape.payload_bytes],
                "options": [bool(execution.constant_runs), bool(request.declare_score), has_ledger],
                **({} if request.beside is None else {"beside": _described(request.beside)}),
                **({} if proposal is None else {"proposal": proposal.describe()}),
                **({} if execution.limits is None else {"limits": execution.limits.describe()}),
            },
        ),
    )


def _price(request: SearchRequest, price: Callable[[Repetitions], SearchPrice]) -> SearchPrice:
    repetitions, epsilon, delta = request.repetitions, request.epsilon, request.delta
    if (epsilon is None) != (delta is None):
        raise ArgumentError("epsilon and delta go together. Write epsilon=1.0, delta=1e-6")
    if epsilon is None or delta is None:
        if repetitions is None:
            raise ArgumentError(
                "the number of runs or a total is needed. Write repetitions=Harmonic(limit=30), "
                "or epsilon=3.0, delta=1e-5"
            )
        return price(repetitions)
    most = number("epsilon", epsilon, above=0.0, rounding="down")
    delta = number("delta", delta, at_least=0.0, below=1.0, rounding="down")
    if repetitions is None:
        max_runs = integer("max_runs", request.max_runs, at_least=1)
        return longest_within(price, epsilon=most, delta=delta, max_runs=max_runs)
    found = price(repetitions)
    if not found.epsilon(delta) <= most:
        raise BudgetError(
            f"the search costs epsilon {rounded_up(found.epsilon(delta))} at delta {delta:g}, above the total {most:g}"
        )
    return found


def _described(guarantee: Guarantee) -> list[Any]:
    """The facts of a guarantee that must be the same at a resume, also if it was made by hand and has no terms."""
    numbers = [guarantee.failure, guarantee.pure_epsilon, guarantee.gaussian_mu]
    return [guarantee.adjacency.value, guarantee.theorem, *numbers, dict(guarantee.terms)]


@cache
def _version() -> str:
    return version("dpselect")


def _digest(description: Any) -> str:
    try:
        text = json.dumps(description, sort_keys=True)
    except (TypeError, ValueError):
        raise TypeError("space, base and repetitions must have JSON-able descriptions") from None
    return hashlib.sha256(b"dpselect study " + text.encode()).hexdigest()


def _fingerprint(*described: Mapping[str, Any]) -> str:
    """A digest of each part, in groups: where one has changed, what changes in later ones follows from it."""
    return json.dumps([{name: _digest(part) for name, part in parts.items()} for parts in described], sort_keys=True)
