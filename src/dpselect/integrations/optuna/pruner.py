"""A pruner for private searches: it sees what a run reports with noise, and the price of that is known in advance."""

from __future__ import annotations

from typing import Any, Final

from dpselect.errors import ArgumentError, integer, missing_extra
from dpselect.mechanisms import NoisyCount
from dpselect.privacy import Guarantee, compose
from dpselect.randomness import RandomSource

try:
    from optuna.pruners import BasePruner, PatientPruner, ThresholdPruner
    from optuna.study import StudyDirection
    from optuna.trial import TrialState, create_trial
except ImportError:
    raise missing_extra("optuna", "tuning with Optuna trials") from None

__all__ = ["NoisyReports", "PrivatePruner"]

_OTHER_RUNS: Final = "decides by the scores of other runs, which no guarantee of a search covers"


class PrivatePruner(BasePruner):  # type: ignore[misc]
    """A pruner for `dpselect.integrations.optuna.tune`, whose looks are private.

    The objective calls `trial.report` and `trial.should_prune` as with Optuna. A reported count gets noise at once, and
    Optuna's pruner sees the noisy counts of this run. `tune` adds the price of all looks to that of a run. A run that
    is pruned is not cheaper. The proof is that of Theorem 1 in docs/theory/early-stopping.md.

    It is not for `study.optimize`, whose storage keeps each reported value as it is.

    Args:
        pruner: Optuna's `ThresholdPruner`, or a `PatientPruner` around it or around None. They decide by the run's own
            values. Others are refused.
        noise: the noise of a look. Reported values are counts that one row changes by at most one, such as a number of
            correct predictions. You must ensure this.
        looks: the number of values that a run may report, at least 1.
        part: the place in `base` of the rows that are counted, if `base` is a list with a guarantee for each part of
            the data. None: every part pays, which is always enough.

    Raises:
        ArgumentError: for another pruner, and for numbers out of range.
        TypeError: if `noise` is not a `NoisyCount`, or a number is not an integer.

    >>> from optuna.pruners import ThresholdPruner
    >>> pruner = PrivatePruner(ThresholdPruner(lower=200), noise=NoisyCount(epsilon=0.125), looks=4)
    >>> pruner.guarantee.pure_epsilon
    0.5
    """

    def __init__(self, pruner: BasePruner, *, noise: NoisyCount, looks: int, part: int | None = None) -> None:
        inner = pruner._wrapped_pruner if type(pruner) is PatientPruner else pruner
        if type(inner) is not ThresholdPruner and not (inner is None and pruner is not None):
            raise ArgumentError(
                f"pruner {type(inner).__name__} is refused: it {_OTHER_RUNS}. Give ThresholdPruner or PatientPruner"
            )
        if not isinstance(noise, NoisyCount):
            raise TypeError(f"noise must be a NoisyCount, got {type(noise).__name__}")
        self._pruner, self._noise, self._looks = pruner, noise, integer("looks", looks, at_least=1)
        self._part = None if part is None else integer("part", part, at_least=0)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of all looks of one run."""
        return compose(*[self._noise.guarantee] * self._looks)

    def added_to(self, base: Any) -> Any:
        """Return the base of a search whose runs are looked at: that of the rows that are counted is composed.

        Args:
            base: the guarantee of one run, or a list with one for each part of the data.

        Returns:
            The same with the price of all looks.

        Raises:
            ArgumentError: if there is no such part.
        """
        if not isinstance(base, (list, tuple)):
            return compose(base, self.guarantee)
        if self._part is not None and self._part >= len(base):
            raise ArgumentError(f"pruner: part must be below the number of parts of base, {len(base)}")
        return [
            compose(each, self.guarantee) if self._part in (None, place) else each for place, each in enumerate(base)
        ]

    def reports(self, random: RandomSource, direction: str, *, rehearsed: bool = False) -> NoisyReports:
        """What one run has reported so far: nothing.

        Args:
            random: the source of the noise.
            direction: "maximize" or "minimize".
            rehearsed: whether it is a dry run, which nothing ends, so that all of the objective is tried.

        Returns:
            An object that the trial reports to.
        """
        return NoisyReports(self, random, StudyDirection[direction.upper()], rehearsed)

    def prune(self, study: Any, trial: Any) -> bool:  # noqa: ARG002
        """Refuse an ordinary study. Raises `ArgumentError`."""
        raise ArgumentError(
            "pruner: PrivatePruner is for dpselect.integrations.optuna.tune. The storage of a study keeps each value "
            "as it is. Report values with noise there: then any pruner will do, at the price of all runs"
        )

    def __repr__(self) -> str:
        return f"PrivatePruner({type(self._pruner).__name__}, {self._noise!r}, looks={self._looks})"


class NoisyReports:
    """The noisy values of one run, and whether they end it."""

    def __init__(self, owner: PrivatePruner, random: RandomSource, direction: Any, rehearsed: bool) -> None:
        self._owner, self._random, self._direction, self._rehearsed = owner, random, direction, rehearsed
        self._values: dict[int, float] = {}

    def report(self, value: Any, step: int) -> None:
        """Add noise to a count, and keep that. A second value of one step is ignored, as by Optuna.

        Args:
            value: the count.
            step: the place of the look, at least 0.

        Raises:
            ArgumentError: for more values than the pruner declares, and a step below 0.
            TypeError: for a count or a step that is not an integer, without the count.
        """
        step, owner = integer("step", step, at_least=0), self._owner
        if step in self._values:
            return
        if len(self._values) == owner._looks:
            raise ArgumentError(f"trial.report: the pruner declares {owner._looks} looks, and each one has its price")
        self._values[step] = float(owner._noise.draw(value, random=self._random.spawn(step)))

    def should_prune(self) -> bool:
        """Whether Optuna's pruner ends the run, by the noisy values so far."""
        trial = create_trial(state=TrialState.RUNNING, intermediate_values=self._values)
        return bool(self._owner._pruner.prune(_Direction(self._direction), trial)) and not self._rehearsed


class _Direction:
    """All that these pruners ask a study for."""

    def __init__(self, direction: Any) -> None:
        self.direction = direction
