"""The power of an audit: would the same test have seen a leak of twice the claim in outputs of this very form?

The leak is planted in the mechanism's own outputs on one data set. A share of them has some value of a feature (a
type, a key, a digit, the tail of a number). Two sets of draws are made of them that differ in how often this value
occurs, by twice what is claimed, and in nothing else. An event is chosen as the audit chooses its own, and the power is
that of the judging step on the two laws that were made, at the audit's number of draws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

from dpselect.audit.events import OutputEvent, Question, choose_event
from dpselect.audit.outputs import Outputs
from dpselect.audit.readings import dissected, fitted_reading, is_structured
from dpselect.audit.result import POWER
from dpselect.audit.verdict import judge
from dpselect.numerics.search import Array, first_true
from dpselect.randomness import RandomSource

__all__ = ["Planted", "planted_power"]

_SHARE: Final = 0.1  # of the outputs hold the planted value on the side that leaks
_LEAST_EPSILON: Final = 0.1  # twice nothing is nothing: planted against a claim of epsilon 0 and delta 0
_FORMS: Final = 3  # features that a leak is planted in, one after the other
_LEVELS: Final = 64  # a column with more values is cut at a quantile
_DRAWS: Final = 20_000  # of each side, for the choice of an event: seconds, not minutes
_AUDITS: Final = 300  # that are played with the event
_DOUBLINGS: Final = 20


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A leak of twice the claim, and how often so many draws show it.

    Attributes:
        power: the share of audits that call the claim violated, for the form in which this share is smallest.
        epsilon, delta: of the leak.
        share: of the outputs that hold the planted value on the side where it is more frequent.
        form: the feature that it was planted in, in words.
        limit: the epsilon that .95 of such audits show where one side alone gives the planted value.
        enough: a number of draws of each data set that would do, once the form is known, or None if none would.
    """

    power: float
    epsilon: float
    delta: float
    share: float
    form: str
    limit: float
    enough: int | None


@dataclass(frozen=True)
class _Form:
    """The outputs that have a column of a reading between two numbers."""

    place: int
    low: float
    high: float
    words: str

    def holds(self, outputs: Outputs) -> NDArray[np.bool_]:
        column = outputs.columns[:, self.place]
        return np.asarray((column >= self.low) & (column <= self.high))


@dataclass(frozen=True)
class _Seen:
    """How often an event holds of the outputs with the planted value, and of the others: plausible shares of each."""

    inside: Array
    outside: Array
    reverse: bool


@dataclass(frozen=True)
class _Trial:
    """An audit that is played with planted leaks: what it chooses from, what it judges on, and how."""

    pool: Outputs
    judges: Outputs
    question: Question
    sizes: tuple[int, int]
    low_bits: bool
    random: RandomSource

    def seen(self, form: _Form | None, shares: tuple[float, float]) -> _Seen:
        """The event that is chosen on draws with the planted leak, and what it tells on others."""
        if form is None:  # a new value of outputs that hardly vary is seen for certain
            return _Seen(np.ones(_AUDITS), np.zeros(_AUDITS), False)
        with_it, without = (self.random.permutation(len(self.pool)) for _ in range(2))
        holds = form.holds(self.pool)
        with_it, without = with_it[holds[with_it]], without[~holds[without]]
        sides = []
        for share in shares:
            count = round(share * len(self.pool))
            rows = np.concatenate((np.resize(with_it, count), np.resize(without, len(self.pool) - count)))
            with_it, without = np.roll(with_it, -count), np.roll(without, count - len(self.pool))
            sides.append(self.pool.take(rows[self.random.permutation(len(rows))]))
        event = choose_event(sides[0], sides[1], self.question, judging=self.sizes[0], low_bits=self.low_bits)
        return _told(event, form, self.judges, self.random)


def planted_power(
    choosing: Outputs,
    judging: Outputs,
    question: Question,
    *,
    sizes: tuple[int, int],
    claimed: float,
    low_bits: bool,
    random: RandomSource,
) -> Planted:
    """The power, for the weakest of a few forms. `choosing` and `judging` are draws of one data set.

    `sizes` are those of the audit's judging draws. `claimed` is the claim's epsilon at the question's delta.
    """
    epsilon, delta = 2.0 * claimed, 2.0 * question.delta
    if epsilon == 0.0 and delta == 0.0:
        epsilon = _LEAST_EPSILON
    share = min(0.9, max(_SHARE, delta))
    shares = share, max(0.0, share - delta) * math.exp(-epsilon)
    pool, judges = _read(choosing.take(slice(0, _DRAWS)), judging.take(slice(0, _DRAWS)))
    trial = _Trial(pool, judges, question, sizes, low_bits, random)
    power, weakest = math.inf, None
    forms: list[_Form] | list[None] = _forms(pool, share, random) or [None]
    for form in forms:
        if (rarely := _power(trial.seen(form, shares), shares, sizes, question, random)) < power:
            power, weakest = rarely, form
        if power < POWER:  # no verdict, no matter what the others have
            break
    gross = trial.seen(weakest, (1.0, 0.0))  # the event that shows this form best
    return Planted(
        power=power,
        epsilon=epsilon,
        delta=delta,
        share=share,
        form="a value that is new" if weakest is None else weakest.words,
        limit=_usual(gross, (1.0, 0.0), sizes, question)[0],
        enough=None if power >= POWER else _enough(gross, shares, sizes, question),
    )


def _read(pool: Outputs, judges: Outputs) -> tuple[Outputs, Outputs]:
    """Draws of one data set with the columns in which they vary."""
    if not is_structured(pool, pool):
        return pool, judges.with_features(pool.columns.shape[1])
    pool, judges = dissected(pool), dissected(judges)
    reading = fitted_reading(*pool.halves())
    return reading(pool), reading(judges)


def _told(event: OutputEvent, form: _Form, judges: Outputs, random: RandomSource) -> _Seen:
    """Shares that the counts allow (Jeffreys): those of an event that was seen rarely are not taken for certain."""
    chosen, planted = event.holds(judges), form.holds(judges)
    inside, outside = (
        betaincinv(
            np.count_nonzero(chosen & kind) + 0.5, np.count_nonzero(~chosen & kind) + 0.5, random.uniform(_AUDITS)
        )
        for kind in (planted, ~planted)
    )
    return _Seen(inside, outside, event.reverse)


def _forms(pool: Outputs, share: float, random: RandomSource) -> list[_Form]:
    """In a few columns at random: the value, or the upper tail, that has about the share wanted."""
    forms = []
    for place in random.permutation(pool.columns.shape[1]):
        column = pool.columns[:, place]
        numbers = column[~np.isnan(column)]
        levels, counts = np.unique(numbers, return_counts=True)
        if levels.size > _LEVELS:
            beyond = min(1.0, share * len(column) / numbers.size)
            low, high = float(np.quantile(numbers, 1.0 - beyond)), math.inf
        elif (usable := (counts >= 0.1 * share * len(column)) & (counts <= 0.95 * len(column))).any():
            distance = np.where(usable, np.abs(np.log(counts / (share * len(column)))), np.inf)
            low = high = float(levels[np.argmin(distance)])
        else:
            continue
        if not 0.0 < np.mean((column >= low) & (column <= high)) < 1.0:
            continue
        name = pool.names[place] if pool.names else f"feature {place}" if pool.columns.shape[1] > 1 else "output"
        forms.append(_Form(int(place), low, high, name))
        if len(forms) == _FORMS:
            break
    return forms


def _laws(seen: _Seen, shares: tuple[float, float]) -> list[Array]:
    """Probabilities of the event on the side that leaks and on the other."""
    return [portion * seen.inside + (1.0 - portion) * seen.outside for portion in shares]


def _power(
    seen: _Seen, shares: tuple[float, float], sizes: tuple[int, int], question: Question, random: RandomSource
) -> float:
    """The share of played audits that call the claim violated."""
    laws = _laws(seen, shares)
    counts = [_binomial(law, size, random) for law, size in zip(laws, sizes, strict=True)]
    pairs = list(zip(*(side.tolist() for side in counts), strict=True))
    return float(np.mean([judge(pair, sizes, question, reverse=seen.reverse).violation is not None for pair in pairs]))


def _binomial(law: Array, size: int, random: RandomSource) -> NDArray[np.int64]:
    """One count for each probability."""
    rng = np.random.default_rng(int(random.words(1)[0]))  # plays audits; nothing of it is released
    return rng.binomial(size, np.clip(law, 0.0, 1.0))


def _usual(seen: _Seen, shares: tuple[float, float], sizes: tuple[int, int], question: Question) -> tuple[float, bool]:
    """The epsilon that about .95 of audits show at least: both counts nearer to each other than expected."""
    counts = []
    typicals = [float(np.mean(law)) for law in _laws(seen, shares)]
    signs = (-1.0, 1.0) if typicals[0] >= typicals[1] else (1.0, -1.0)  # towards each other
    for typical, size, sign in zip(typicals, sizes, signs, strict=True):
        deviation = float(ndtri(0.975)) * math.sqrt(typical * (1.0 - typical) * size)
        counts.append(min(size, max(0, round(typical * size + sign * deviation))))
    verdict = judge((counts[0], counts[1]), sizes, question, reverse=seen.reverse)
    return verdict.epsilon, verdict.violation is not None


def _enough(seen: _Seen, shares: tuple[float, float], sizes: tuple[int, int], question: Question) -> int | None:
    """Draws of each data set, half of which judge, as a power of two times those that there were."""
    size = max(sizes)
    steps = first_true(lambda step: _usual(seen, shares, (size << step, size << step), question)[1], 1, _DOUBLINGS)
    return None if steps is None else 2 * (size << steps)
