"""Black-box audits: an event is chosen on one half of the draws and judged on the other.

No matter what the choice does, it does not see the judging draws, so that given the choice the two counts of the
judging half are binomial. The two one-sided Clopper-Pearson limits hold together with the stated confidence, by a
union bound that needs no independence between the two data sets' draws. Every further statement (the verdict at each
epsilon of the claim, in both directions, and the measured epsilon) follows from these two limits and shares their
error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.audit.events import Question, choose_event
from dpselect.audit.outputs import Outputs, as_outputs, joined
from dpselect.audit.planted_power import planted_power
from dpselect.audit.result import DATA_OVER_NEIGHBOUR, NEIGHBOUR_OVER_DATA, Audit
from dpselect.audit.subject import Subject
from dpselect.audit.verdict import judge
from dpselect.capabilities import Shaped
from dpselect.errors import ArgumentError, expect, integer, number
from dpselect.privacy import Guarantee
from dpselect.privacy.promises import promise
from dpselect.randomness import RandomSource, resolve

__all__ = ["audit", "audit_outputs", "reported_delta"]

_LEAST: Final = 8  # two draws for each quarter of the work
_PORTIONS: Final = 8  # a block is drawn in so many calls, between which progress is told


def audit(
    subject: Subject,
    *,
    draws: int = 1_000_000,
    confidence: float = 0.99,
    delta: float | None = None,
    low_bits: bool = True,
    random: RandomSource | None = None,
    progress: Callable[[float], None] | None = None,
) -> Audit:
    """Test a claim on draws. A true claim is called violated with probability at most 1 - confidence.

    Half of the draws choose an event, and half judge it.

    You must ensure that the draws of one data set are independent and of one distribution. A mechanism with a state, or
    one that draws from its own fixed seed, does not do that.

    Noise that is drawn in floating point shows in the low bits of its sum with the answer (Mironov 2012).

    Args:
        subject: the mechanism, one pair of neighbours and the claim.
        draws: the number of draws of each data set, at least 8.
        confidence: the probability that everything the audit says holds, above 0 and below 1.
        delta: the delta at which the measured epsilon is reported, from 0 to below 1. By default the claim's own, or
            1e-5 if it has many.
        low_bits: whether to look at the low bits of numbers.
        random: the source of the draws, by default the operating system's.
        progress: called with the fraction of the draws that is done.

    Returns:
        An `Audit`: the verdict and what was measured.

    Raises:
        ArgumentError: for arguments out of range, for outputs of another shape or number than asked for, and when a
            second block of draws repeats the first.
        TypeError: if `subject` is not a `Subject`.

    Source: Clopper, Pearson 1934 (the limits); Ding et al. 2018 (the split).

    >>> from dpselect.privacy import pure_dp
    >>> from dpselect.randomness import keyed_source
    >>> def told(neighbour, count, random):  # yes with probability 3/4 on the data, with 1/4 on its neighbour
    ...     return random.bernoulli(0.25 if neighbour else 0.75, count)
    >>> honest = Subject(name="randomised response", draw=told, claim=pure_dp(epsilon=1.1))
    >>> found = audit(honest, draws=100_000, random=keyed_source("doctest"))
    >>> found.violated, 1.0 < found.epsilon_lower < 1.0986
    (False, True)
    >>> claimed_less = Subject(name="randomised response", draw=told, claim=pure_dp(epsilon=1.0))
    >>> audit(claimed_less, draws=100_000, random=keyed_source("doctest")).violated
    True
    """
    expect("subject", subject, Subject)
    draws = integer("draws", draws, at_least=_LEAST, at_most=1 << 40)
    confidence, delta = _parsed(subject.claim, confidence, delta)
    source = resolve(random)
    choosing = draws // 2
    blocks = (
        ("choosing, data", False, choosing),
        ("choosing, neighbour", True, choosing),
        ("judging, data", False, draws - choosing),
        ("judging, neighbour", True, draws - choosing),
    )
    parts = []
    for done, (label, neighbour, count) in enumerate(blocks):
        tell = None if progress is None else (lambda share, done=done: progress((done + share) / len(blocks)))
        parts.append(_block(subject, neighbour, count, source.spawn(label), tell))
    for first, second in zip(parts[:2], parts[2:], strict=True):
        _refuse_repeats(subject.name, first, second)
    found = _split_audit(
        parts[:2], parts[2:], subject.claim, name=subject.name, confidence=confidence, delta=delta, low_bits=low_bits
    )
    return _with_power(found, parts[0], parts[2], subject.claim, low_bits=low_bits, random=source.spawn("planted"))


def audit_outputs(
    data: NDArray[Any],
    neighbour: NDArray[Any],
    claim: Guarantee,
    *,
    name: str = "outputs",
    confidence: float = 0.99,
    delta: float | None = None,
    low_bits: bool = True,
    random: RandomSource | None = None,
) -> Audit:
    """Test a claim, as `audit` does, on outputs that were drawn elsewhere.

    The outputs are shuffled before they are split, so that their order does not matter. You must ensure that the
    outputs are independent. Only outputs at the same index of two arrays of one length may depend on each other (drawn
    with the same noise).

    Args:
        data: the outputs on the data, at least 8, as an array that `Subject.draw` might return.
        neighbour: the same on its neighbour.
        claim: the guarantee that is claimed.
        name: what the audit is called in a report.
        confidence: the probability that everything the audit says holds, above 0 and below 1.
        delta: the delta at which the measured epsilon is reported, from 0 to below 1. By default the claim's own, or
            1e-5 if it has many.
        low_bits: whether to look at the low bits of numbers.
        random: the source of the shuffle, by default the operating system's.

    Returns:
        An `Audit`: the verdict and what was measured.

    Raises:
        ArgumentError: for arguments out of range, fewer than 8 outputs, or outputs of another shape.
        PromiseError: (an `ArgumentError` and a `TypeError`) if `claim` is not a `Guarantee`.

    >>> from dpselect.privacy import pure_dp
    >>> yes, no = np.array(["yes"]), np.array(["no"])
    >>> audit_outputs(yes.repeat(1000), no.repeat(1000), pure_dp(epsilon=2)).violated
    True
    """
    confidence, delta = _parsed(claim, confidence, delta)
    source = resolve(random)
    sides = as_outputs(np.asarray(data), "data"), as_outputs(np.asarray(neighbour), "neighbour")
    for side, label in zip(sides, ("data", "neighbour"), strict=True):
        if len(side) < _LEAST:
            raise ArgumentError(f"{label} must hold at least {_LEAST} outputs, got {len(side)}")
    paired = len(sides[0]) == len(sides[1])  # then pairs stay together, and draws with common noise do no harm
    labels = ("order", "order") if paired else ("order of data", "order of neighbour")
    shuffled = [
        side.take(source.spawn(label).permutation(len(side))) for side, label in zip(sides, labels, strict=True)
    ]
    choosing, judging = zip(*(side.halves() for side in shuffled), strict=True)
    found = _split_audit(choosing, judging, claim, name=name, confidence=confidence, delta=delta, low_bits=low_bits)
    return _with_power(found, choosing[0], judging[0], claim, low_bits=low_bits, random=source.spawn("planted"))


def reported_delta(claim: Guarantee, delta: float | None) -> float:
    """The delta of the measured epsilon: as asked, else the claim's own, or 1e-5 if it has many."""
    claim = promise("claim", claim)
    if delta is not None:
        return number("delta", delta, at_least=0.0, below=1.0)
    return claim.failure if math.isfinite(claim.pure_epsilon) else 1e-5


def _parsed(claim: Guarantee, confidence: float, delta: float | None) -> tuple[float, float]:
    stands = reported_delta(claim, delta)
    return number("confidence", confidence, above=0.0, below=1.0), stands


def _block(
    subject: Subject, neighbour: bool, count: int, source: RandomSource, tell: Callable[[float], None] | None
) -> Outputs:
    """Some draws of one data set, in portions that each have a source of their own."""
    ends = np.linspace(0, count, _PORTIONS + 1).astype(int)
    portions = []
    for place, size in enumerate(np.diff(ends)):
        if size:
            drawn = subject.draw(neighbour, int(size), source.spawn(place))
            if not isinstance(drawn, np.ndarray) or drawn.shape[:1] != (size,):
                shape = drawn.shape if isinstance(drawn, Shaped) else type(drawn).__name__
                raise ArgumentError(f"{subject.name}: draw was asked for {size} outputs and gave {shape}")
            portions.append(as_outputs(drawn, subject.name))
        if tell is not None:
            tell((place + 1) / _PORTIONS)
    return joined(portions)


def _refuse_repeats(name: str, first: Outputs, second: Outputs) -> None:
    """Two blocks that agree output by output come from a fixed seed, unless one output is nearly certain."""
    size = min(len(first), len(second))
    _, counts = np.unique(first.keys[:size], return_counts=True)
    chance = float(np.sum((counts / size) ** 2)) ** size
    if chance < 1e-12 and np.array_equal(first.keys[:size], second.keys[:size]):
        raise ArgumentError(f"{name}: a second block of draws repeats the first; is it drawn from a fixed seed?")


def _split_audit(
    choosing: Sequence[Outputs],
    judging: Sequence[Outputs],
    claim: Guarantee,
    *,
    name: str,
    confidence: float,
    delta: float,
    low_bits: bool,
) -> Audit:
    """Choose on one part and judge on the other. Nothing but the event passes between them."""
    sizes = len(judging[0]), len(judging[1])
    question = Question.about(claim, judging=max(sizes), delta=delta, error=(1.0 - confidence) / 2.0)
    event = choose_event(choosing[0], choosing[1], question, judging=sizes[0], low_bits=low_bits)
    counts = event.count(judging[0]), event.count(judging[1])
    verdict = judge(counts, sizes, question, reverse=event.reverse)
    return Audit(
        name=name,
        violated=verdict.violation is not None,
        epsilon_lower=verdict.epsilon,
        delta=delta,
        claimed_epsilon=claim.epsilon(delta),
        confidence=confidence,
        direction=NEIGHBOUR_OVER_DATA if event.reverse else DATA_OVER_NEIGHBOUR,
        event=event.words(),
        draws=max(len(choosing[0]) + sizes[0], len(choosing[1]) + sizes[1]),
        method="black-box",
        epsilon_limit=judge((sizes[0], 0), sizes, question, reverse=False).epsilon,
        shown={
            "judged": {"data": sizes[0], "neighbour": sizes[1]},
            "in_event": {"data": counts[0], "neighbour": counts[1]},
            "violation": verdict.violation,
        },
    )


def _with_power(
    found: Audit, choosing: Outputs, judging: Outputs, claim: Guarantee, *, low_bits: bool, random: RandomSource
) -> Audit:
    """Add the power against a leak of twice the claim. A violation needs none."""
    if found.violated or not math.isfinite(found.claimed_epsilon):
        return found
    sizes = found.shown["judged"]["data"], found.shown["judged"]["neighbour"]
    question = Question.about(claim, judging=max(sizes), delta=found.delta, error=(1.0 - found.confidence) / 2.0)
    planted = planted_power(
        choosing, judging, question, sizes=sizes, claimed=found.claimed_epsilon, low_bits=low_bits, random=random
    )
    limit = min(found.epsilon_limit, max(planted.limit, found.epsilon_lower))
    return replace(found, power=planted.power, epsilon_limit=limit, shown={**found.shown, "planted": asdict(planted)})
