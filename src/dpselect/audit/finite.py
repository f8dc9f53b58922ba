"""Exact audits: mechanisms with finitely many outputs, by their laws. No draws, no confidence."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from numbers import Real
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.audit.black_box import reported_delta
from dpselect.audit.result import DATA_OVER_NEIGHBOUR, NEIGHBOUR_OVER_DATA, Audit, shortened
from dpselect.audit.subject import FiniteSubject, Subject
from dpselect.errors import ArgumentError, expect, number
from dpselect.numerics.search import Array
from dpselect.privacy import Guarantee
from dpselect.randomness import RandomSource

__all__ = ["exact_audit", "sampled"]

Masses = NDArray[Any]  # of Fractions or of floats

_GRID: Final = 257
_EXAMINED: Final = 32
_LARGEST: Final = 700.0  # exp() of more is not a double


def exact_audit(subject: FiniteSubject, *, delta: float | None = None, tolerance: float = 1e-12) -> Audit:
    """Compare the hockey-stick divergences of two exact distributions with a claim, in both directions.

    The divergence H(epsilon) is the sum of p - exp(epsilon) q over the outputs for which that is positive. It is
    evaluated at every breakpoint log(p/q), at the claim's own epsilons and on a grid between them.

    Rounding. Masses that are all Fractions (or ints) are computed exactly. The claim is a float, so it is read
    with a relative slack of 1e-12 in epsilon and 1e-9 in delta. Other masses also have a relative error of up to
    `tolerance` and an absolute error. The latter is `tolerance` / 1000 plus the distance of their sum from 1. A mass of
    0 is exact. Nothing that such errors could explain is called a violation.

    Args:
        subject: the mechanism by its two distributions, and the claim.
        delta: the delta at which `epsilon_lower`, the smallest epsilon that holds, is reported, from 0 to below 1. By
            default the claim's own, or 1e-5 if it has many.
        tolerance: the relative error of masses that are floats, from 0 to 1e-3.

    Returns:
        An `Audit` with confidence 1 and no draws.

    Raises:
        ArgumentError: for masses that are negative or do not sum to one (floats: within 1e-9), or numbers out of range.
        TypeError: if `subject` is not a `FiniteSubject`.

    >>> from dpselect.privacy import pure_dp
    >>> half, quarter = Fraction(1, 2), Fraction(1, 4)
    >>> laws = {"data": {"yes": half, "no": half}, "neighbour": {"yes": quarter, "no": 1 - quarter}}
    >>> found = exact_audit(FiniteSubject(name="leaky", claim=pure_dp(epsilon=0.5), **laws))
    >>> found.violated, round(found.epsilon_lower, 6)
    (True, 0.693147)
    """
    expect("subject", subject, FiniteSubject)
    delta = reported_delta(subject.claim, delta)
    tolerance = number("tolerance", tolerance, at_least=0.0, at_most=1e-3)
    labels, laws = _laws(subject)
    rational = all(law.dtype == object for law in laws)
    lower = upper = laws
    if not rational:
        laws = [law.astype(np.float64) for law in laws]
        errors = [1e-3 * tolerance + abs(math.fsum(law) - 1.0) for law in laws]
        lower = [np.maximum(law * (1.0 - tolerance) - error, 0.0) for law, error in zip(laws, errors, strict=True)]
        upper = [
            np.where(law > 0.0, law * (1.0 + tolerance) + error, 0.0) for law, error in zip(laws, errors, strict=True)
        ]
    found = []
    for direction, ours, theirs in (
        (DATA_OVER_NEIGHBOUR, lower[0], upper[1]),
        (NEIGHBOUR_OVER_DATA, lower[1], upper[0]),
    ):
        violation, inside = _violation(ours, theirs, subject.claim, delta)
        epsilon, widest = _smallest_epsilon(ours, theirs, delta)
        found.append((violation, epsilon, direction, inside if violation else widest))
    violated = [one for one in found if one[0]]
    violation, _, direction, inside = max(violated or found, key=lambda one: (_excess(one[0]), one[1]))
    return Audit(
        name=subject.name,
        violated=bool(violated),
        epsilon_lower=max(epsilon for _, epsilon, _, _ in found),
        delta=delta,
        claimed_epsilon=subject.claim.epsilon(delta),
        confidence=1.0,
        direction=direction,
        event=_words([label for label, chosen in zip(labels, inside, strict=True) if chosen]),
        draws=0,
        method="exact",
        shown={"outputs": len(labels), "rational": rational, "violation": violation or None},
    )


def sampled(subject: FiniteSubject) -> Subject:
    """Return the same mechanism as one that can be run, for a black-box audit.

    It draws from the exact distributions, up to 2**-52. Outputs that are numbers which a float64 holds stay numbers.
    Others are labels.

    Args:
        subject: the mechanism by its two distributions, and the claim.

    Raises:
        ArgumentError: for masses that are negative or do not sum to one (floats: within 1e-9).
    """
    labels, laws = _laws(subject)
    outputs: NDArray[Any]
    if all(isinstance(label, float) or (isinstance(label, int) and abs(label) <= 1 << 53) for label in labels):
        outputs = np.array([float(label) for label in labels])  # type: ignore[arg-type]
    else:
        outputs = np.array([str(label) for label in labels])
        if len(set(outputs.tolist())) < len(labels):
            outputs = np.array([repr(label) for label in labels])
    steps = [np.cumsum(law.astype(np.float64))[:-1] for law in laws]

    def draw(neighbour: bool, count: int, random: RandomSource) -> NDArray[Any]:
        return np.asarray(outputs[np.searchsorted(steps[int(neighbour)], random.uniform(count), side="right")])

    return Subject(name=subject.name, draw=draw, claim=subject.claim)


def _laws(subject: FiniteSubject) -> tuple[list[Hashable], list[Masses]]:
    """All outputs, and the masses of both laws in their order."""
    labels = list(dict.fromkeys((*subject.data, *subject.neighbour)))
    named = (("data", subject.data), ("neighbour", subject.neighbour))
    return labels, [_masses(law, labels, name) for name, law in named]


def _masses(law: Mapping[Hashable, Fraction | float], labels: Sequence[Hashable], name: str) -> Masses:
    """In the order of the labels: Fractions in an object array, or floats."""
    values = [law.get(label, 0) for label in labels]
    if any(not isinstance(value, Real) for value in values):
        raise ArgumentError(f"{name}: probabilities must be numbers")
    if not labels or any(not 0 <= value <= 1 + 1e-9 for value in values):
        raise ArgumentError(f"{name}: probabilities must be between 0 and 1, and there must be some")
    if all(isinstance(value, (Fraction, int)) for value in values):
        masses = np.array([Fraction(value) for value in values], dtype=object)
        right = sum(masses) == 1
    else:
        masses = np.array([float(value) for value in values])
        right = abs(math.fsum(masses) - 1.0) <= 1e-9
    if not right:
        raise ArgumentError(f"{name}: probabilities must sum to 1")
    return masses


def _violation(ours: Masses, theirs: Masses, claim: Guarantee, delta: float) -> tuple[dict[str, float], NDArray[Any]]:
    """The point where the claim is exceeded most (epsilon, delta, delta claimed; empty if nowhere) and the event.

    A screen in floats picks the points, by difference and by ratio. These are then reckoned with exactly.
    """
    p, q = ours.astype(np.float64), theirs.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.log(p) - np.log(q)
    breaks = np.unique(losses[np.isfinite(losses) & (losses > 0.0)])
    own = [epsilon for epsilon in (claim.pure_epsilon, claim.epsilon(delta)) if math.isfinite(epsilon)]
    top = min(max([1.0, *breaks[-1:], *own]), _LARGEST)
    epsilons = np.unique(np.minimum(np.concatenate((np.linspace(0.0, top, _GRID), breaks, own)), _LARGEST))
    deltas = claim.delta(epsilons)
    screened = _screen(p, q, losses, epsilons)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(screened > 0.0, screened / deltas, 0.0)
    examined = {*np.argsort(deltas - screened)[:_EXAMINED].tolist(), *np.argsort(-ratios)[:_EXAMINED].tolist()}
    best: dict[str, float] = {}
    event = np.zeros(ours.size, dtype=bool)
    for place in sorted(examined):
        epsilon, claimed = float(epsilons[place]), float(deltas[place])
        gaps = ours - _factor(epsilon, ours.dtype == object) * theirs
        shown = gaps[gaps > 0].sum()
        reached = {"epsilon": epsilon, "delta": float(shown), "claimed_delta": claimed}
        if shown > Fraction(claimed) * (1 + Fraction(1, 10**9)) and _excess(reached) > _excess(best):
            best, event = reached, gaps > 0
    return best, event


def _screen(p: Array, q: Array, losses: Array, at: Array) -> Any:
    """H at many epsilons, by cumulative sums over the outputs in the order of their losses."""
    order = np.argsort(-np.where(p > 0.0, losses, -np.inf))
    more, less = (np.concatenate(([0.0], np.cumsum(mass[order]))) for mass in (p, q))
    inside = np.searchsorted(-losses[order], -at, side="left")
    return more[inside] - np.exp(at) * less[inside]


def _factor(epsilon: float, rational: bool) -> Any:
    """exp(epsilon), rounded up by what the claim may have lost in being written as a float."""
    if epsilon == 0.0:
        return 1
    raised = math.exp(epsilon * (1.0 + 1e-12)) * (1.0 + 1e-12)
    return Fraction(raised) if rational else raised


def _excess(violation: Mapping[str, float]) -> float:
    return violation["delta"] - violation["claimed_delta"] if violation else -1.0


def _smallest_epsilon(ours: Masses, theirs: Masses, delta: float) -> tuple[float, NDArray[Any]]:
    """The smallest epsilon >= 0 with H(epsilon) <= delta, rounded down, and the event that needs it.

    H(epsilon) is the largest P(E) - exp(epsilon) Q(E) over the sets E that hold the outputs of largest p/q; so epsilon
    is the largest log((P(E) - delta) / Q(E)) over them.
    """
    rational = ours.dtype == object
    start: Any = Fraction(delta) if rational else delta
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.log(ours.astype(np.float64)) - np.log(theirs.astype(np.float64))
    order = np.argsort(-np.where(ours > 0, losses, -np.inf), kind="stable")
    more, less, best, widest = 0 * start, 0 * start, 0.0, 0
    for place, output in enumerate(order):
        more, less = more + ours[output], less + theirs[output]
        if more > start:
            epsilon = _log_ratio(more - start, less) if less > 0 else math.inf
            if epsilon > best:
                best, widest = epsilon, place + 1
    event = np.zeros(ours.size, dtype=bool)
    event[order[:widest]] = True
    return max(0.0, best), event


def _log_ratio(more: Any, less: Any) -> float:
    """Of Fractions of any size, or of floats. Rounded down."""
    if isinstance(more, Fraction):
        ratio = more / Fraction(less)
        logs = math.log(ratio.numerator), math.log(ratio.denominator)
    else:
        logs = math.log(more), math.log(less)
    return logs[0] - logs[1] - 1e-14 - 1e-15 * (abs(logs[0]) + abs(logs[1]))


def _words(labels: Sequence[Hashable]) -> str:
    if not labels:
        return "none: no set of outputs is likelier"
    few = ", ".join(map(shortened, labels[:4]))
    return f"output is one of {few}" + (f" and {len(labels) - 4} more" if len(labels) > 4 else "")
