"""The price of a sweep: as it was run, if its settings followed results, and as a private search."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from dpselect.accounting import best_of, mixture
from dpselect.accounting.stopping.odometer import odometer_epsilon
from dpselect.errors import ArgumentError, number
from dpselect.integrations.sweeps.guarantees import (
    RunSettings,
    SettingCounts,
    count_runs,
    count_settings,
    extreme_settings,
)
from dpselect.integrations.sweeps.sweep import RecordedSweep
from dpselect.privacy import Adjacency, Guarantee, compose
from dpselect.repetitions import Repetitions
from dpselect.repetitions.by_name import law_named
from dpselect.repetitions.quality import Quality, quality_of

__all__ = ["PrivateSearch", "SettingsPrice", "SweepPrice", "price_sweep"]

_LAWS: Final = ("logarithmic", "geometric", "poisson")
"""From the smallest price to the best winner, all with the mean of the sweep's number of runs."""
_SHOWN: Final = 10


@dataclass(frozen=True)
class SettingsPrice:
    """One combination of settings, how many runs had it, and the epsilon of one of them."""

    settings: RunSettings
    runs: int
    epsilon: float


@dataclass(frozen=True)
class PrivateSearch:
    """The same sweep as a private search: the distribution of the number of runs, its price, how good its winner is."""

    law: Repetitions
    epsilon: float
    quality: Quality


@dataclass(frozen=True)
class SweepPrice:
    """The verdict on a sweep, at one delta.

    Args:
        sweep: the sweep.
        delta: the delta of the whole sweep.
        settings: each combination of settings with its price, those of most runs first.
        runs: the number of runs with a guarantee.
        unprotected: the number of runs without one.
        statuses: how many runs of the record had each status.
        epsilon: the epsilon that holds under `rests_on`. Infinity if a run had no guarantee.
        rule: the rule behind `epsilon`.
        composed: the epsilon of all runs with a guarantee, if settings and number were fixed in advance.
        bounded: the same if each run could have had the extremes of all settings that occurred.
        adaptive: the same if nothing was fixed in advance: the odometer. None if there is none.
        adjacency: the neighbours.
        searches: the same as private searches. None of one run.
        columns: what each role was read from.
        rests_on: the conditions for `epsilon`.
        missing: what keeps a guarantee or the smaller price away, and what to record.
    """

    sweep: RecordedSweep
    delta: float
    settings: tuple[SettingsPrice, ...]
    runs: int
    unprotected: int
    statuses: Mapping[str, int]
    epsilon: float
    rule: str
    composed: float | None
    bounded: float | None
    adaptive: float | None
    adjacency: Adjacency
    searches: tuple[PrivateSearch, ...]
    columns: Mapping[str, str]
    rests_on: tuple[str, ...]
    missing: tuple[str, ...]


def price_sweep(
    sweep: RecordedSweep,
    *,
    delta: float,
    columns: Mapping[str, str] | None = None,
    known: Literal["fixed", "bounded"] | None = None,
    untrained: frozenset[str] = frozenset(),
    base: Guarantee | None = None,
) -> SweepPrice:
    """Return what a sweep has cost, under adding or removing one row unless `base` has another adjacency.

    Every run counts, regardless of its end, as if its model and its score had been published. Runs with equal
    guarantees compose, also if each followed the results before it. Runs with unequal ones do so if their settings
    were fixed in advance. If only their limits were, each run counts with the least noise, the largest rate and the
    most steps. If nothing was, the odometer holds.

    Args:
        sweep: the record of the sweep.
        delta: the delta of the whole sweep, in (0, 1).
        columns: the column or the number of each role, as `parse_columns` reads them.
        known: what the owner declares of the noise, rate and steps of the runs. "fixed": none of them depended on an
            earlier result. "bounded": no run could have had less noise, a larger rate or more steps than the extremes
            that occurred. None, the default, declares nothing.
        untrained: the names of runs that read no data, as their owner declares.
        base: the guarantee of every run. None, the default, reads each run's settings of DP-SGD from its columns.

    Returns:
        The price, what it rests on, and what is missing.

    Raises:
        ArgumentError: if the settings of a run are not found or contradict each other, or if delta is out of range.
    """
    delta = number("delta", delta, above=0.0, below=1.0, rounding="down")
    if base is not None and columns:
        raise ArgumentError("columns: the base gives every run's guarantee, so leave columns or base out")
    found = count_settings(sweep, columns or {}, untrained) if base is None else count_runs(sweep, untrained)
    guarantees = {settings: base or settings.guarantee() for settings in found.counts}
    priced = sorted(
        (
            SettingsPrice(settings, times, guarantees[settings].epsilon(delta))
            for settings, times in found.counts.items()
        ),
        key=lambda each: (-each.runs, each.epsilon),
    )
    runs = sum(found.counts.values())
    totals = _totals(found.counts, guarantees, delta)
    unequal = len(found.counts) > 1
    rule = _rule(found, known, sweep.independent is not None)
    return SweepPrice(
        sweep=sweep,
        delta=delta,
        settings=tuple(priced),
        runs=runs,
        unprotected=len(found.unprotected),
        statuses=_statuses(sweep),
        adjacency=Adjacency.ADD_OR_REMOVE_ONE if base is None else base.adjacency,
        epsilon=_or_infinity(totals.get(rule)),
        rule=rule if totals.get(rule) is not None else NOTHING,
        composed=totals.get(COMPOSITION),
        bounded=totals.get(BOUNDED),
        adaptive=totals.get(ODOMETER),
        searches=_searches(guarantees, found.counts, runs, delta) if not found.unprotected else (),
        columns=found.columns,
        rests_on=tuple(_rests_on(sweep, found, known, untrained, rule)),
        missing=tuple(_missing(found, unequal and rule == ODOMETER)),
    )


NOTHING: Final = "no guarantee"
COMPOSITION: Final = "composition of all runs"
BOUNDED: Final = "composition of as many runs at the least noise, the largest rate and the most steps"
ODOMETER: Final = "odometer of all runs"


def _totals(
    counts: Mapping[RunSettings, int], guarantees: Mapping[RunSettings, Guarantee], delta: float
) -> dict[str, float | None]:
    """The epsilon of all runs by each rule."""
    if not counts:
        return {}
    pairs = [(guarantees[settings], times) for settings, times in counts.items()]
    composed = _composed([guarantee for guarantee, times in pairs for _ in range(times)], delta)
    extreme = extreme_settings(counts)
    bounded = None if extreme is None else _composed([extreme.guarantee()] * sum(counts.values()), delta)
    exact = all(guarantee.failure == 0.0 for guarantee, _ in pairs)
    return {
        COMPOSITION: composed,
        BOUNDED: composed if len(counts) == 1 else bounded,
        ODOMETER: odometer_epsilon(pairs, delta) if exact else None,
    }


def _composed(guarantees: list[Guarantee], delta: float) -> float:
    # an upper bound, as a part of the runs may have been seen: nothing is known from below
    return replace(compose(*guarantees), lower_profile=None).epsilon(delta)


def _rule(found: SettingCounts, known: str | None, independent: bool) -> str:
    if found.unprotected:
        return NOTHING
    if len(found.counts) == 1 or known == "fixed" or (known is None and independent):
        return COMPOSITION
    return BOUNDED if known == "bounded" else ODOMETER


def _or_infinity(epsilon: float | None) -> float:
    return math.inf if epsilon is None else epsilon


def _statuses(sweep: RecordedSweep) -> dict[str, int]:
    """How many runs had each status, and how many began again."""
    counts = Counter(run.status for run in sweep.runs)
    again = sum(run.times - 1 for run in sweep.runs)
    return {**counts, **({"repeated": again} if again else {})}


def _searches(
    guarantees: Mapping[RunSettings, Guarantee], counts: Mapping[RunSettings, int], runs: int, delta: float
) -> tuple[PrivateSearch, ...]:
    """The best of a random number of draws from the settings of the sweep, its best model and its score released."""
    if runs < 2:
        return ()
    one = next(iter(guarantees.values()))
    base = one if len(guarantees) == 1 else mixture([guarantees[s] for s in counts], list(counts.values()))
    laws = [law_named(name, {"mean": runs}) for name in _LAWS]
    return tuple(PrivateSearch(law, best_of(base, law).epsilon(delta), quality_of(law)) for law in laws)


def _rests_on(
    sweep: RecordedSweep, found: SettingCounts, known: str | None, untrained: frozenset[str], rule: str
) -> Iterator[str]:
    if len(found.counts) > 1 and rule == COMPOSITION:
        declared = "declared: no run's noise, rate or steps depended on an earlier result (--settings fixed)"
        yield str(sweep.independent) if known is None else declared
    if len(found.counts) == 1 and sum(found.counts.values()) > 1 and RunSettings() not in found.counts:
        yield "must hold: no run could have had other noise, rate and steps than these, which are equal in all runs"
    if rule == BOUNDED:
        yield (
            "declared: no run could have had less noise, a larger rate or more steps than the extremes that occurred "
            "(--settings bounded)"
        )
    if rule in (COMPOSITION, BOUNDED):
        yield "must hold: the number of runs was fixed in advance, or is the largest that was allowed"
    yield from found.declared
    yield "must hold: every run of the sweep is in this record, on these rows"
    if any(settings.noise_multiplier is not None for settings in found.counts):
        clipped = "" if found.clipped else "every per-sample gradient was clipped, "
        yield (
            f"must hold: {clipped}batches were Poisson samples at these rates, and in every step the noise multiplier "
            "is the noise's standard deviation over the clipping norm of the summed gradients"
        )
    if RunSettings() in found.counts:
        yield "must hold: the base covers all that one run gives, its score and failure too"
    if any(settings.epsilon is not None for settings in found.counts):
        yield "must hold: each run without a noise multiplier met the epsilon and delta that were its target"
    yield "must hold: scores were computed on rows that need no protection, or are priced on top"
    yield from sweep.rests_on
    if found.grouping:
        yield f"must hold: {found.grouping} parent runs without noise trained nothing themselves"
    if untrained:
        yield f"declared: {len(untrained)} runs read no data (--untrained)"


def _missing(found: SettingCounts, undeclared: bool) -> Iterator[str]:
    for line in found.unprotected[:_SHOWN]:
        yield f"no guarantee: {line}"
    if len(found.unprotected) > _SHOWN:
        yield f"no guarantee: {len(found.unprotected) - _SHOWN} more runs"
    if found.unprotected:
        yield (
            "record in each run noise_multiplier, max_grad_norm, steps, and sampling_rate (or batch_size and "
            "dataset_size); declare runs that read no data by --untrained NAME,NAME"
        )
    if undeclared:
        yield (
            "the runs have unequal guarantees, and the record does not show that earlier results had no part in that. "
            "If they had none, declare it (--settings fixed). If the runs that occurred show the limits "
            "of their settings, declare that (--settings bounded)"
        )
        if any(settings.epsilon is not None for settings in found.counts):
            yield "guarantees with a delta have no odometer: record the noise multiplier, the rate and the steps"
