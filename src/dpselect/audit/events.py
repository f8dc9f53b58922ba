"""The choice of an event, on draws that never judge it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpselect.audit.limits import lower_limit, upper_limit
from dpselect.audit.outputs import Outputs
from dpselect.audit.readings import Reading, dissected, fitted_reading, is_structured
from dpselect.audit.scores import OutputScore, fitted_scores
from dpselect.numerics.search import Array
from dpselect.privacy import Guarantee

__all__ = ["OutputEvent", "Question", "choose_event"]

_THRESHOLDS: Final = 320
_AT_ONCE: Final = 1 << 14  # structured outputs that are taken apart in one go
# in standard deviations of what the judging draws will show: the luckiest of hundreds of events that hold shows 4 to 5
_PROMISING, _SURE = 5.0, 12.0


@dataclass(frozen=True, eq=False)
class Question:
    """The question about a pair: the claim as points (epsilon, delta), and how exactly it can be answered.

    Attributes:
        epsilons, deltas: points of the claim's curve, increasing in epsilon. Each is a statement by itself.
        delta: where the measured epsilon is wanted.
        error: the error probability of one confidence limit. Two are used.
    """

    epsilons: Array
    deltas: Array
    delta: float
    error: float

    @staticmethod
    def about(claim: Guarantee, *, judging: int, delta: float, error: float) -> Question:
        """The claim at every epsilon that so many draws could contradict."""
        beyond = math.log(4.0 * judging)  # exp(epsilon) times the smallest upper limit is more than 1 there
        top = min(claim.epsilon(0.1 / judging), beyond)
        wanted = [epsilon for epsilon in (claim.pure_epsilon, claim.epsilon(delta)) if epsilon < beyond]
        epsilons = np.unique(np.concatenate((np.linspace(0.0, top, 49), wanted)))
        return Question(epsilons, claim.delta(epsilons), delta, error)


@dataclass(frozen=True, eq=False)
class OutputEvent:
    """A set of outputs and the direction in which it is to be judged."""

    score: OutputScore
    threshold: float
    at_least: bool
    reverse: bool
    features: int
    reading: Reading

    def count(self, outputs: Outputs) -> int:
        """How many of these outputs are in it."""
        return int(np.count_nonzero(self.holds(outputs)))

    def holds(self, outputs: Outputs) -> NDArray[np.bool_]:
        """For each of these outputs, whether it is in the event."""
        size = _AT_ONCE if self.reading.structured else max(len(outputs), 1)
        parts = [outputs.take(slice(start, start + size)) for start in range(0, len(outputs), size)]
        scores = np.concatenate([self.score(self.reading(part).with_features(self.features)) for part in parts])
        return np.asarray(scores >= self.threshold if self.at_least else scores <= self.threshold)

    def words(self) -> str:
        """The set, for a reader."""
        return self.score.words(self.threshold, self.at_least)


@dataclass(frozen=True, eq=False)
class _Candidates:
    """The sets of one score's thresholds: how often the choosing draws of both data sets fell into each."""

    score: OutputScore
    at_least: bool
    thresholds: Array
    ours: Array
    theirs: Array


def choose_event(data: Outputs, neighbour: Outputs, question: Question, *, judging: int, low_bits: bool) -> OutputEvent:
    """The event that promises the most, from draws of both data sets. Half of them fit the scores, half compare.

    If the claim looks broken beyond doubt, it is the event with the largest measured epsilon among those that show it.
    If it may be broken, it is the event that shows it most clearly, else the one with the largest measured epsilon.
    """
    reading = Reading()
    if is_structured(data, neighbour):
        data, neighbour = dissected(data), dissected(neighbour)
        reading = fitted_reading(data.halves()[0], neighbour.halves()[0])
        data, neighbour = reading(data), reading(neighbour)
    features = max(data.columns.shape[1], neighbour.columns.shape[1])
    data, neighbour = data.with_features(features), neighbour.with_features(features)
    fitting, comparing = zip(data.halves(), neighbour.halves(), strict=True)
    sets = [found for score in fitted_scores(*fitting, low_bits=low_bits) for found in _candidates(score, *comparing)]
    of_ours, of_theirs = len(comparing[0]), len(comparing[1])
    ours = np.concatenate([found.ours for found in sets])
    theirs = np.concatenate([found.theirs for found in sets])
    both = ((ours, of_ours, theirs, of_theirs), (theirs, of_theirs, ours, of_ours))
    z = np.concatenate([_clearness(*counts, question) for counts in both]) * math.sqrt(judging / of_ours)
    epsilon = np.concatenate([_measured(*counts, question) for counts in both])
    if z.max() >= _SURE:
        best = int(np.argmax(np.where(z >= _SURE, epsilon, -np.inf)))
    elif z.max() >= _PROMISING:
        best = int(np.argmax(z))
    else:
        best = int(np.argmax(epsilon))
    reverse, place = divmod(best, ours.size)
    found, threshold = [(found, float(threshold)) for found in sets for threshold in found.thresholds][place]
    return OutputEvent(found.score, threshold, found.at_least, bool(reverse), features, reading)


def _candidates(score: OutputScore, data: Outputs, neighbour: Outputs) -> list[_Candidates]:
    """Thresholds at ranks that are close together in both tails, where the ratios are."""
    ours, theirs = score(data), score(neighbour)
    ours, theirs = np.sort(ours[~np.isnan(ours)]), np.sort(theirs[~np.isnan(theirs)])
    pooled = np.sort(np.concatenate((ours, theirs)))
    if pooled.size == 0:
        pooled = np.zeros(1)  # all NaN: the empty event, so that there is one
    ranks = np.unique(np.geomspace(1, pooled.size, _THRESHOLDS).astype(np.intp)) - 1
    low, high = np.unique(pooled[ranks]), np.unique(pooled[::-1][ranks])
    at_most = [np.searchsorted(side, low, side="right").astype(np.float64) for side in (ours, theirs)]
    at_least = [side.size - np.searchsorted(side, high, side="left").astype(np.float64) for side in (ours, theirs)]
    return [_Candidates(score, False, low, *at_most), _Candidates(score, True, high, *at_least)]


def _clearness(high: Array, of_high: int, low: Array, of_low: int, question: Question) -> Array:
    """By how many standard deviations an event exceeds the claim, at the epsilon where it does so most.

    Deviations as they would be if the claim held with equality, lest a few draws that chance to be missing look clear.
    """
    p, q = (high + 0.5) / (of_high + 1.0), (low + 1.0) / (of_low + 2.0)
    best = np.full(p.shape, -np.inf)
    for epsilon, delta in zip(question.epsilons, question.deltas, strict=True):
        factor = math.exp(epsilon)
        least = np.maximum(q, (p - delta) / factor)
        spread = np.sqrt(p * (1.0 - p) / of_high + factor**2 * least * (1.0 - least) / of_low)
        best = np.maximum(best, (p - factor * q - delta) / spread)
    return best


def _measured(high: Array, of_high: int, low: Array, of_low: int, question: Question) -> Array:
    """The epsilon that the choosing draws show by themselves: its limits keep lucky small events from winning."""
    p, q = lower_limit(high, of_high, question.error), upper_limit(low, of_low, question.error)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(p - question.delta, 0.0)) - np.log(q))
