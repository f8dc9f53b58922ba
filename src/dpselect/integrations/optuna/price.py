"""The price of a past Optuna search, from its storage and the declarations of its owner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from dpselect.accounting import best_of
from dpselect.decoding.json_text import json_of
from dpselect.decoding.limits import ACCOUNTANT
from dpselect.errors import ArgumentError, number
from dpselect.integrations.optuna.study import PastStudy, PastTrial
from dpselect.privacy import Guarantee, compose
from dpselect.privacy.promises import promise, refusal
from dpselect.repetitions import Fixed

__all__ = ["StudyPrice", "price_study"]

COMPOSITION: Final = "composition of all runs"
BEST_OF_FIXED: Final = "best of a fixed number of independent runs"


@dataclass(frozen=True)
class StudyPrice:
    """A price, the rule behind it, how many runs it counts by state, what it rests on, and what was missing.

    `missing` names each condition that the smaller price of the best of a fixed number still lacks. It is empty if
    that price was given.
    """

    guarantee: Guarantee
    rule: str
    counts: dict[str, int]
    rests_on: tuple[str, ...]
    missing: tuple[str, ...]


def price_study(
    study: PastStudy,
    *,
    base: Callable[[float | None], Guarantee],
    noise_parameter: str | None = None,
    planned: int | None = None,
    fixed_beforehand: bool = False,
    only_winner_seen: bool = False,
) -> StudyPrice:
    """The price of a whole study.

    By default every run that began counts, regardless of its end, as if its score and model had been published. That is
    composition, each run chosen after seeing the earlier ones. Only the owner can know `fixed_beforehand` and
    `only_winner_seen`. With both, if the study shows independent sampling, it is the best of a fixed number of runs.

    `base(noise)` is the guarantee of one run, its score and reported values included, with this noise multiplier. Runs
    hold it in the parameter or user attribute `noise_parameter`. Without such a parameter it is `base(None)`. Noise
    that was chosen run by run, perhaps by earlier scores, has no composition theorem for the values that occurred. All
    runs are then priced at the least that the study shows to have been possible.

    `planned` is a number of runs fixed in advance that the search was never to exceed, where it stopped earlier.
    Raises `ArgumentError` for a study without runs and for a noise that is not a number or that no run holds. It
    also does for `planned` below the number of runs or together with noise drawn at random.
    """
    if not callable(base):
        raise refusal("base", base, "a function from noise (or None) to a Guarantee")
    runs = [trial for trial in study.trials for _ in range(trial.runs)]
    if not runs:
        raise ArgumentError(f"study {study.name!r} holds no run that began: there is nothing to price")
    if planned is not None and planned < len(runs):
        raise ArgumentError(f"planned is {planned}, but {len(runs)} runs began")
    noises, remarks, at_random = _noises(runs, noise_parameter)
    distinct = {noise: promise("what base returns", base(noise)) for noise in dict.fromkeys(noises)}
    equal = len(distinct) == 1
    if planned is not None and (at_random or not equal):
        raise ArgumentError("planned needs runs with equal noise: what the missing ones would cost is unknown")
    missing = tuple(_missing(study, runs, equal and not remarks, planned, fixed_beforehand, only_winner_seen))
    if not missing:
        rests_on = (
            "declared: the number of runs was fixed before the first one",
            "declared: nothing but the winner was seen: no scores, no log, not this storage",
            "recorded: every parameter of every run was drawn independently, and nothing was pruned",
            *_always(study, runs),
        )
        total = best_of(distinct[noises[0]], Fixed(count=len(runs)))
        return StudyPrice(total, BEST_OF_FIXED, _counts(study), rests_on, ())
    if fixed_beforehand or planned is not None:
        bounded = f"declared: the number of runs ({planned or len(runs)}) was fixed in advance"
    else:
        bounded = (
            "must hold: the number of runs was fixed in advance; a search that ran until it looked good has no price "
            "but that of the longest that was allowed (--planned)"
        )
    noises += noises[:1] * ((planned or len(runs)) - len(runs))
    # an upper bound for any part of the runs was seen: nothing is known from below
    total = replace(compose(*[distinct[noise] for noise in noises]), lower_profile=None)
    return StudyPrice(total, COMPOSITION, _counts(study), (bounded, *remarks, *_always(study, runs)), missing)


def _noises(runs: list[PastTrial], name: str | None) -> tuple[list[float | None], tuple[str, ...], bool]:
    """The noise to charge for each run, what that rests on if not on a constant, and whether it was drawn at random."""
    if name is None:
        return [None] * len(runs), (), False
    noises = [_noise(trial, name) for trial in runs]
    if not any(noises):
        raise ArgumentError(f"noise_parameter: no run holds {name!r}, among its parameters or its user attributes")
    laws = [trial.distributions[name] for trial in runs if name in trial.distributions]
    ranges = [json_of(law, ACCOUNTANT, "the storage")["attributes"] for law in laws]
    possible = [value for one in ranges for value in (one.get("choices") or [one.get("low"), one.get("high")])]
    known = [value for value in (_number(value, name) for value in possible) if value is not None]
    # that all runs took one value says nothing where each could have taken another
    if len({*noises, *known}) == 1:
        return noises, (), False
    drawn = all(trial.marked and name in trial.parameters and name not in trial.not_drawn for trial in runs)
    if drawn and len({trial.distributions[name] for trial in runs}) == 1:
        return (
            noises,
            (f"recorded: the noise ({name}) was drawn at random in each run, no matter what came before",),
            True,
        )
    least = min([noise for noise in noises if noise is not None] + known)
    remark = (
        f"must hold: no run could have had less noise than {least:g}, at which all are priced: the noise ({name}) was "
        "chosen run by run, perhaps by earlier scores"
    )
    return [least] * len(runs), (remark,), False


def _noise(trial: PastTrial, name: str) -> float | None:
    if name in trial.rewritten:
        raise ArgumentError(f"noise_parameter {name!r}: run {trial.number} wrote several values, one over the other")
    drawn = _number(trial.parameters.get(name), name)
    stated = _number(trial.user_attributes.get(name), name)
    if None not in (drawn, stated) and drawn != stated:
        raise ArgumentError(f"noise_parameter {name!r}: run {trial.number} holds two values, drawn and as an attribute")
    return stated if drawn is None else drawn


def _number(value: Any, name: str) -> float | None:
    return None if value is None else number(f"noise parameter {name!r}", value, above=0.0)


def _counts(study: PastStudy) -> dict[str, int]:
    states = Counter(trial.state for trial in study.trials)
    return {
        "complete": states["COMPLETE"],
        "failed": states["FAIL"],
        "pruned": states["PRUNED"],
        "running": states["RUNNING"],
        "retries": sum(trial.retried and trial.state != "WAITING" for trial in study.trials),
        "waiting": states["WAITING"],
    }


def _always(study: PastStudy, runs: list[PastTrial]) -> Iterator[str]:
    reported = sum(trial.intermediate_values for trial in runs)
    extra = f", and the {reported} intermediate values reported" if reported else ""
    covered = f"all that one run gives regardless of its parameters, its score and failure too{extra}"
    yield f"must hold: the base covers {covered}"
    yield (
        "must hold: every run of the search is in this study, with one objective, "
        "chosen like its space without the data"
    )
    if study.others:
        yield f"must hold: {len(study.others)} other studies in this storage saw other data, or are priced on top"
    if study.deleted:
        yield f"must hold: {study.deleted} studies deleted from this journal saw other data, or are priced on top"


def _missing(
    study: PastStudy,
    runs: list[PastTrial],
    equal: bool,
    planned: int | None,
    fixed_beforehand: bool,
    only_winner_seen: bool,
) -> Iterator[str]:
    """Each condition for the best of a fixed number of independent runs that does not hold or is not shown."""
    marked = all(trial.marked for trial in runs)
    spaces = {tuple(sorted(trial.distributions.items())) for trial in runs}
    problems = (
        (
            not fixed_beforehand,
            "no one declares that the number of runs was fixed before the first one (--fixed-beforehand)",
        ),
        (not only_winner_seen, "no one declares that nothing but the winner was seen (--only-winner-seen)"),
        (
            not marked,
            "the storage does not show independent sampling without a pruner: Optuna records neither; "
            "dpselect.integrations.optuna.IndependentSampler leaves a record",
        ),
        (
            marked and any(trial.not_drawn for trial in runs),
            "some parameters were not drawn by the independent sampler (enqueued or fixed)",
        ),
        (
            any(trial.copied(study.name) for trial in runs),
            "some runs were copied from another study: which others there were cannot be seen",
        ),
        (any(trial.enqueued for trial in runs), "some runs were enqueued with parameters that someone chose"),
        (
            any(trial.retried for trial in study.trials),
            "runs were tried again after a failure, so their number depends on failures",
        ),
        (
            any(trial.requeued for trial in study.trials),
            "runs that had begun were put back into the queue, so their number depends on what became of them",
        ),
        (
            any(trial.state != "COMPLETE" for trial in study.trials),
            "not every run is complete: pruned, failed, unfinished or waiting runs make the number depend on outcomes",
        ),
        (
            len(spaces) > 1,
            "the search space is not the same in all runs: whether the data changed it cannot be seen",
        ),
        (study.directions != 1, "the study has several objectives, so more than one run can win"),
        (
            not equal,
            "runs have, or could have had, different guarantees: their law is not known from those that occurred",
        ),
        (planned not in (None, len(runs)), f"{planned} runs were planned and {len(runs)} began"),
    )
    return (problem for found, problem in problems if found)
