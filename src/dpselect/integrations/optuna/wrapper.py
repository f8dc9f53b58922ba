"""Optuna's define-by-run search spaces in the private tuner, and a sampler whose studies can be priced afterwards.

`tune(objective, ...)` runs an objective that takes an Optuna trial in `dpselect.tuning.tune`: draws are independent,
from dpselect's own randomness, and there is no study, no storage and no log. `IndependentSampler` is for ordinary
Optuna studies: it records that every parameter was drawn independently, which `dpselect account --optuna` reads.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Final, Literal

from dpselect.errors import ArgumentError, missing_extra, secret_number
from dpselect.integrations.optuna.pruner import PrivatePruner
from dpselect.integrations.optuna.study import DRAWN, MARK, MARK_VERSION
from dpselect.integrations.optuna.trial import IndependentTrial, TrialRefusal, check_objective, draw
from dpselect.privacy import Guarantee
from dpselect.public_api import options_of
from dpselect.randomness import RandomSource, resolve, system_source
from dpselect.selection.rehearsal import Rehearsal, made_up
from dpselect.tuning import SearchStore, Space, TuneResult, tune as tune_in_space

try:
    from optuna import logging as optuna_logging
    from optuna.pruners import NopPruner
    from optuna.samplers import BaseSampler, RandomSampler
except ImportError:
    raise missing_extra("optuna", "tuning with Optuna trials") from None

__all__ = ["IndependentSampler", "IndependentTrial", "TrialRefusal", "rehearse", "tune"]

Direction = Literal["maximize", "minimize"]
Objective = Callable[[IndependentTrial], Any]

_ADAPTIVE: Final = (
    "best-of-K prices independent draws from one distribution. A sampler that looks at earlier scores, or that never "
    "tries a setting twice, makes the runs depend on each other. Leave sampler out for random search; for "
    "proposals that adapt within a proved bound see docs/how-to/adaptive-search.md"
)
_FIXED_SPACE: Final = "the objective defines its space as it runs; use dpselect.tuning.tune with a fixed space for it"


@options_of(tune_in_space)
def tune(
    objective: Objective,
    *,
    direction: Direction,
    base: Guarantee | list[Guarantee] | tuple[Guarantee, ...],
    sampler: BaseSampler | None = None,
    pruner: Any = None,
    rehearse: Rehearsal = True,
    release: Callable[[TuneResult], None] | None = None,
    store: str | PathLike[str] | SearchStore | None = None,
    **options: Any,
) -> TuneResult:
    """Run a private random search with an objective that takes an Optuna trial, and return the best run.

    The trial suggests as Optuna's does, conditional spaces included.

    You must ensure more than what `dpselect.tuning.tune` says. The parameters' names, ranges and order may depend on
    parameters suggested before, never on the data, unless `base` covers what they tell. The winner's parameters are
    released with its value: leave room for both in the store's `payload_bytes`.

    A refusal inside a run (`trial.report`, `trial.number`, ...) is found here if the objective's own code shows it. In
    a function that it calls, it would count as a failed run, without a message. So give `rehearse`.

    Args:
        objective: `objective(trial) -> (score, value)`, or a score alone (then the value is None). Everything but the
            parameters must be drawn from `trial.random`.
        direction: "maximize": the largest score wins. "minimize": the smallest. There is no default because Optuna's is
            "minimize" and that of `dpselect.tuning.tune` is the opposite.
        base: the guarantee of one run, or of each part of the data, as in `dpselect.tuning.tune`.
        sampler: None, or Optuna's `RandomSampler`, whose seed is not used.
        pruner: a `PrivatePruner`, whose price is added to `base`. None, or Optuna's `NopPruner`, prunes nothing.
        rehearse: the objective bound to synthetic or public rows. It is run before anything is drawn or charged, and
            what it raises is raised. By default, and without such rows, names that are defined nowhere are found. See
            `dpselect.tuning.tune`.
        release: `release(result)` writes the result durably, as in `dpselect.tuning.tune`.
        store: the file of the sealed store, or a `SearchStore`. None keeps all in memory.
        options: those of `dpselect.tuning.tune`: `repetitions`, `epsilon`, `delta`, `executor`, `ledger`, ... Not
            `space` or `proposal`, which need a space that is known in advance.

    Returns:
        A `TuneResult`: the best run's parameters and value, and one guarantee for the whole search.

    Raises:
        ArgumentError: for another `direction`, a sampler that is not Optuna's `RandomSampler`, a pruner, `space` or
            `proposal`.
        TrialRefusal: (an `ArgumentError`) if the objective's own code uses what a private search cannot have.
        Exception: anything that `dpselect.tuning.tune` raises.

    >>> from dpselect.privacy import pure_dp
    >>> from dpselect.repetitions import Harmonic
    >>> def objective(trial):
    ...     rate = trial.suggest_float("rate", 1e-3, 1.0, log=True)
    ...     return trial.random.laplace(1)[0] - rate, "model"
    >>> result = tune(objective, direction="maximize", base=pure_dp(epsilon=1.0), repetitions=Harmonic(limit=4))
    >>> result.value, 1e-3 <= result.params["rate"] <= 1.0
    ('model', True)
    """
    if direction not in ("maximize", "minimize"):
        raise ArgumentError(f"direction must be 'maximize' or 'minimize', got {direction!r}")
    if sampler is not None and type(sampler) is not RandomSampler:
        raise ArgumentError(f"sampler {type(sampler).__name__} is refused: {_ADAPTIVE}")
    looks = pruner if isinstance(pruner, PrivatePruner) else None
    if looks is None and pruner is not None and type(pruner) is not NopPruner:
        raise ArgumentError(
            f"pruner {type(pruner).__name__} is refused: it stops runs by the scores of others, or by values without "
            "noise. Write pruner=PrivatePruner(ThresholdPruner(...), noise=NoisyCount(epsilon=...), looks=...)"
        )
    for name in ("space", "proposal"):
        if name in options:
            raise ArgumentError(f"{name} cannot be given here: {_FIXED_SPACE}")
    check_objective(objective, pruned=looks is not None)
    on_made_up_rows = made_up("objective", objective, rehearse, ["trial"])

    def unpacked(result: TuneResult) -> TuneResult:
        params, value = result.value if result.value is not None else (None, None)
        score = result.score if result.score is None or direction == "maximize" else -result.score
        return replace(result, params=params, value=value, score=score)

    kept = SearchStore.of(store)
    result = tune_in_space(
        _Run(objective, direction, looks),
        space=Space({}),
        base=base if looks is None else looks.added_to(base),
        store=kept if kept.example is None else replace(kept, example=({}, kept.example)),
        release=None if release is None else lambda result: release(unpacked(result)),
        rehearse=False if on_made_up_rows is None else _Run(on_made_up_rows, direction, looks, rehearsed=True),
        **options,
    )
    return unpacked(result)


def rehearse(
    objective: Objective, *, random: RandomSource | None = None, pruner: PrivatePruner | None = None
) -> tuple[dict[str, Any], float, Any]:
    """Run an objective once on PUBLIC data, with its errors shown.

    Inside a search a run that raises counts as failed and shows no message, so rehearse an objective first. No
    guarantee covers what this returns or raises.

    Args:
        objective: `objective(trial) -> (score, value)`, or a score alone, bound to public or synthetic rows.
        random: the source of the draws, by default the operating system's.
        pruner: that of the search, if it has one.

    Returns:
        The parameters that the trial suggested, the score, and the value (None if there is a score alone).

    Raises:
        TypeError: if `objective` is not callable, or its score is not a number.
        TrialRefusal: for a use of the trial that a private search cannot have.
        Exception: anything that the objective raises.

    >>> from dpselect.randomness import keyed_source
    >>> params, score, value = rehearse(lambda trial: float(trial.suggest_int("depth", 3, 3)), random=keyed_source(1))
    >>> params, score, value
    ({'depth': 3}, 3.0, None)
    """
    check_objective(objective, pruned=pruner is not None)
    trial = _trial(resolve(random), pruner, "maximize", rehearsed=True)
    score, value = _parts(objective(trial))
    return trial.params, score, value


@dataclass(frozen=True, repr=False)
class _Run:
    """The objective as the tuner calls it: the released value carries the parameters, which only a run can know."""

    objective: Objective
    direction: Direction
    looks: PrivatePruner | None = None
    rehearsed: bool = False

    def __call__(self, _params: Mapping[str, Any], random: RandomSource) -> tuple[float, Any]:
        trial = _trial(random, self.looks, self.direction, self.rehearsed)
        with _silence():
            score, value = _parts(self.objective(trial))
        return (score if self.direction == "maximize" else -score), (trial.params, value)


def _trial(
    random: RandomSource, looks: PrivatePruner | None, direction: Direction, rehearsed: bool
) -> IndependentTrial:
    if looks is None:
        return IndependentTrial(random)
    return IndependentTrial(random, looks.reports(random.spawn("looks"), direction, rehearsed=rehearsed))


def _parts(outcome: Any) -> tuple[float, Any]:
    score, value = outcome if isinstance(outcome, tuple) else (outcome, None)
    return secret_number("score", score), value


@contextmanager
def _silence() -> Iterator[None]:
    """Optuna's own log lines would tell how many runs there are."""
    before = optuna_logging.get_verbosity()
    optuna_logging.set_verbosity(logging.CRITICAL + 1)
    try:
        yield
    finally:
        optuna_logging.set_verbosity(before)


class IndependentSampler(BaseSampler):  # type: ignore[misc]
    """Random search for an ordinary Optuna study, with a record in its storage that it was one.

    Draws come from the operating system's entropy. There is no seed, because anyone who knows the seed knows all
    settings in advance. A known list of settings is a grid, which is priced by composition. Each run is marked before
    it starts and each parameter when it is drawn, so that a run that a person enqueued or fixed can be recognised.

    A study sampled like this still keeps every score in its storage. Anyone who reads it pays for all runs. See
    `dpselect account --optuna` for when the smaller price of the best of a fixed number applies.

    Raises `ArgumentError` when the study has a pruner: create it with `pruner=optuna.pruners.NopPruner()`.
    """

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:  # noqa: ARG002
        """Nothing is drawn jointly."""
        return {}

    def sample_relative(self, study: Any, trial: Any, search_space: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """Nothing is drawn jointly."""
        return {}

    def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
        """One draw from the distribution, no matter what came before."""
        value = draw(param_distribution, system_source())
        study._storage.set_trial_system_attr(trial._trial_id, DRAWN + param_name, MARK_VERSION)
        return value

    def before_trial(self, study: Any, trial: Any) -> None:
        """Mark the run, and refuse a study that prunes."""
        if type(study.pruner) is not NopPruner:
            raise ArgumentError(
                f"the study has a pruner ({type(study.pruner).__name__}): create it with "
                "pruner=optuna.pruners.NopPruner(), or runs depend on the scores of others"
            )
        study._storage.set_trial_system_attr(trial._trial_id, MARK, [study.study_name, trial.number])
