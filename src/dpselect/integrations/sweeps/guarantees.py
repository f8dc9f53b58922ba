"""The guarantee of each run of a sweep, from the settings that its columns hold."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from dpselect.errors import ArgumentError, integer, number
from dpselect.integrations.opacus.state import sampled_rate
from dpselect.integrations.sweeps.roles import Roles
from dpselect.integrations.sweeps.sweep import RecordedRun, RecordedSweep
from dpselect.privacy import Guarantee, approximate_dp, dp_sgd

__all__ = ["RunSettings", "SettingCounts", "count_runs", "count_settings", "extreme_settings"]

_SLACK = 1e-9
"""Relative: a rate that was written with fewer digits is not another one."""


@dataclass(frozen=True)
class RunSettings:
    """The settings that decide a run's guarantee: those of DP-SGD, or an epsilon and a delta."""

    noise_multiplier: float | None = None
    sampling_rate: float | None = None
    steps: int | None = None
    epsilon: float | None = None
    delta: float | None = None

    def guarantee(self) -> Guarantee:
        """The guarantee of one run, under adding or removing one row. Raises `ArgumentError`.

        Its rate is that of Opacus at most, which samples with single-precision numbers.
        """
        if self.epsilon is not None and self.delta is not None:
            return approximate_dp(epsilon=self.epsilon, delta=self.delta)
        assert self.noise_multiplier is not None
        assert self.sampling_rate is not None
        assert self.steps is not None
        return dp_sgd(
            noise_multiplier=self.noise_multiplier, sampling_rate=sampled_rate(self.sampling_rate), steps=self.steps
        )

    def describe(self) -> dict[str, float | int]:
        """The settings that are known, by their names."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class SettingCounts:
    """How many runs had each settings, which had no guarantee and why, and what was read.

    Args:
        counts: the number of runs of each settings.
        unprotected: a line for each run without a guarantee.
        grouping: how many runs only group others.
        columns: the columns or the number that each role was read from.
        declared: a line for each role whose number was given in place of a column.
        clipped: whether a column tells the clipping norm.
    """

    counts: Mapping[RunSettings, int]
    unprotected: tuple[str, ...]
    grouping: int
    columns: Mapping[str, str]
    declared: tuple[str, ...]
    clipped: bool


def count_settings(
    sweep: RecordedSweep, given: Mapping[str, str], untrained: frozenset[str] = frozenset()
) -> SettingCounts:
    """Count the runs of each settings.

    Args:
        sweep: the runs.
        given: the column or the number of each role that is not called as usual (`parse_columns`).
        untrained: the names of runs that read no data, as their owner declares.

    Returns:
        The counts, and the runs without noise or without clipping.

    Raises:
        ArgumentError: if no column tells the noise, if a run with noise lacks a rate or steps, if settings contradict
            each other or are out of range, or if no run has a name of `untrained`.
    """
    roles = Roles.among(sweep.columns, given)
    _check_names(sweep, untrained)
    if not roles.has("noise_multiplier") and not roles.has("epsilon"):
        raise _missing(sweep, "the noise multiplier", "'noise_multiplier=sigma'")
    counts, unprotected, grouping = Counter[RunSettings](), list[str](), 0
    for run in sweep.runs:
        if run.name in untrained:
            continue
        settings, why = _settings(run, roles, sweep)
        if settings is not None:
            counts[settings] += run.times
        elif run.groups and roles.value(run, "noise_multiplier") is None:
            grouping += 1
        else:
            unprotected.append(f"run {run.name!r} ({run.status}): {why}")
    if not counts and not unprotected:
        raise ArgumentError("sweep: no run of it trained: there is nothing to price")
    declared = (f"declared: {role} is {number:.12g} in every run (--columns)" for role, number in roles.numbers.items())
    found, clipped = dict(roles.found()), roles.has("clipping")
    return SettingCounts(dict(counts), tuple(unprotected), grouping, found, tuple(declared), clipped)


def count_runs(sweep: RecordedSweep, untrained: frozenset[str] = frozenset()) -> SettingCounts:
    """Count the runs of a sweep whose every run has a guarantee that is known otherwise. Raises `ArgumentError`."""
    _check_names(sweep, untrained)
    times = sum(run.times for run in sweep.runs if run.name not in untrained)
    if not times:
        raise ArgumentError("sweep: no run of it trained: there is nothing to price")
    return SettingCounts({RunSettings(): times}, (), 0, {}, (), clipped=True)


def extreme_settings(counts: Iterable[RunSettings]) -> RunSettings | None:
    """The least noise, the largest rate and the most steps, or the largest epsilon and delta. None for some of both.

    DP-SGD with less noise, a larger rate or more steps dominates. More noise and fewer steps are computed from it. A
    smaller rate is the larger one on a sample of the rows.

    >>> extreme_settings([RunSettings(noise_multiplier=n, sampling_rate=0.1 / n, steps=10) for n in (1.0, 2.0)])
    RunSettings(noise_multiplier=1.0, sampling_rate=0.1, steps=10, epsilon=None, delta=None)
    """
    every = list(counts)
    trained = [(s.noise_multiplier, s.sampling_rate, s.steps) for s in every]
    targets = [(s.epsilon, s.delta) for s in every]
    if all(None not in each for each in trained):
        noises, rates, steps = zip(*trained, strict=True)
        return RunSettings(noise_multiplier=min(noises), sampling_rate=max(rates), steps=max(steps))
    if all(None not in each for each in targets):
        epsilons, deltas = zip(*targets, strict=True)
        return RunSettings(epsilon=max(epsilons), delta=max(deltas))
    return None


def _settings(run: RecordedRun, roles: Roles, sweep: RecordedSweep) -> tuple[RunSettings | None, str]:
    """The settings of a run, or why nothing is guaranteed."""
    noise = roles.value(run, "noise_multiplier")
    epsilon, delta = roles.value(run, "epsilon"), roles.value(run, "delta")
    if noise is None and epsilon is not None:
        if delta is None:
            raise _missing(sweep, f"the delta of run {run.name!r}", "'delta=1e-5'")
        _check(run, "epsilon", lambda: number("epsilon", epsilon, at_least=0.0, rounding="up"))
        _check(run, "delta", lambda: number("delta", delta, at_least=0.0, below=1.0, rounding="up"))
        return RunSettings(epsilon=epsilon, delta=delta), ""
    if not noise:
        return None, "no noise multiplier" if noise is None else "its noise multiplier is 0"
    _check(run, "noise_multiplier", lambda: number("noise_multiplier", noise, above=0.0, rounding="down"))
    if roles.has("clipping") and (roles.value(run, "clipping") or 0.0) <= 0.0:
        return None, "no clipping norm, so its noise hides nothing"
    rate, steps = _rate(run, roles), _steps(run, roles)
    if rate is None:
        what = f"the sampling rate of run {run.name!r}, or its batch and data set sizes"
        raise _missing(sweep, what, "'sampling_rate=0.01' or 'dataset_size=60000'")
    if steps is None:
        what = f"the steps of run {run.name!r}, or its epochs"
        raise _missing(sweep, what, "'steps=1000' or 'dataset_size=60000'")
    return RunSettings(noise_multiplier=noise, sampling_rate=rate, steps=steps), ""


def _rate(run: RecordedRun, roles: Roles) -> float | None:
    """The sampling rate: as given, or the largest that a loader makes of the two sizes."""
    rate, sizes = roles.value(run, "sampling_rate"), _sizes(run, roles)
    known = "sampling_rate" in roles.given
    accumulated = None if known or (rate is None and sizes is None) else roles.accumulates(run)
    if accumulated is not None:
        raise ArgumentError(
            f"sweep: run {run.name!r} has {accumulated!r} above 1, so that its steps took several batches. "
            "Give the rate of a whole step: --columns 'sampling_rate=COLUMN'"
        )
    if rate is not None:
        _check(run, "sampling_rate", lambda: number("sampling_rate", rate, above=0.0, at_most=1.0))
        if not known and sizes is not None and rate < (1.0 - _SLACK) / math.ceil(sizes[1] / sizes[0]):
            raise ArgumentError(
                f"sweep: the sampling rate of run {run.name!r} is below its batch size over its data set size. "
                "If the rate is right, give it: --columns 'sampling_rate=COLUMN'"
            )
        return rate
    if sizes is None:
        return None
    return math.nextafter(1.0 / (sizes[1] // sizes[0]), 2.0) if sizes[1] // sizes[0] > 1 else 1.0


def _steps(run: RecordedRun, roles: Roles) -> int | None:
    """The number of steps: as given, or all that the epochs can have."""
    steps, epochs, sizes = roles.value(run, "steps"), roles.value(run, "epochs"), _sizes(run, roles)
    if steps is not None:
        _check(run, "steps", lambda: integer("steps", steps, at_least=1))
    if epochs is not None:
        _check(run, "epochs", lambda: number("epochs", epochs, above=0.0, at_most=1e9))
    if steps is not None:
        rate = roles.value(run, "sampling_rate")
        each = sizes[1] // sizes[0] if sizes is not None else math.floor((1.0 - _SLACK) / rate) if rate else 0
        least = 0.0 if epochs is None else epochs * each - 1.0
        if "steps" not in roles.given and steps < least:
            raise ArgumentError(
                f"sweep: the steps of run {run.name!r} are fewer than its epochs take. "
                "If the steps are right, give them: --columns 'steps=COLUMN'"
            )
        return int(steps)
    rate = roles.value(run, "sampling_rate")
    if epochs is None or (sizes is None and rate is None):
        return None
    of_sizes = 0 if sizes is None else math.ceil(sizes[1] / sizes[0])
    of_rate = 0 if rate is None else math.ceil((1.0 - _SLACK) / rate)
    return math.ceil(epochs * max(of_sizes, of_rate))


def _sizes(run: RecordedRun, roles: Roles) -> tuple[int, int] | None:
    """The batch size and the data set size."""
    batch, rows = roles.value(run, "batch_size"), roles.value(run, "dataset_size")
    if batch is None or rows is None:
        return None
    _check(run, "batch_size", lambda: integer("batch_size", batch, at_least=1))
    _check(run, "dataset_size", lambda: integer("dataset_size", rows, at_least=int(batch)))
    return int(batch), int(rows)


def _check_names(sweep: RecordedSweep, untrained: frozenset[str]) -> None:
    strangers = sorted(untrained - {run.name for run in sweep.runs})
    if strangers:
        raise ArgumentError(f"untrained: no run is called {strangers[0]!r}")
    counts = Counter(run.name for run in sweep.runs)
    alike = sorted(name for name in untrained if counts[name] > 1)
    if alike:
        raise ArgumentError(f"untrained: {counts[alike[0]]} runs are called {alike[0]!r}: give each its own name first")


def _check(run: RecordedRun, role: str, parse: Callable[[], object]) -> None:
    try:
        parse()
    except ArgumentError as error:
        raise ArgumentError(
            f"sweep: run {run.name!r}: {error}. Name another column: --columns '{role}=COLUMN'"
        ) from None


def _missing(sweep: RecordedSweep, what: str, example: str) -> ArgumentError:
    shown = sweep.columns[:40]
    more = "" if len(shown) == len(sweep.columns) else f" and {len(sweep.columns) - len(shown)} more"
    listed = ", ".join(map(repr, shown)) or "none"
    return ArgumentError(
        f"columns: no column holds {what}. There are {listed}{more}. Give a column or a number: --columns {example}"
    )
