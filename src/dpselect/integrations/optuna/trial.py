"""A trial that suggests as Optuna's do, with independent draws from one random source and without a study behind it."""

from __future__ import annotations

import dis
import functools
import inspect
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import CodeType
from typing import Any, Final, NoReturn

from dpselect.errors import ArgumentError, integer, levels_to_the_caller, missing_extra, number
from dpselect.integrations.optuna.pruner import NoisyReports
from dpselect.randomness import RandomSource
from dpselect.tuning import LogUniform, Uniform

try:
    from optuna.distributions import (
        BaseDistribution,
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
        check_distribution_compatibility,
    )
    from optuna.trial import BaseTrial
except ImportError:
    raise missing_extra("optuna", "tuning with Optuna trials") from None

__all__ = ["IndependentTrial", "TrialRefusal", "check_objective", "draw"]

_STORED: Final = "it would be kept for someone to read, and only the winner of a private search is released"
_REFUSALS: Final[dict[str, str]] = {
    "report": "every value that leaves a run has its own privacy price. Give tune a PrivatePruner, which counts it",
    "should_prune": "pruning by other runs' scores has no price. Give tune a PrivatePruner, which sees this run alone",
    "number": "the number of runs is secret, and a run must not depend on how many came before it",
    "set_user_attr": _STORED,
    "set_system_attr": _STORED,
    "set_constraint": _STORED,
    "user_attrs": "there are none: nothing but the winner's parameters and value is kept",
    "system_attrs": "there are none: nothing but the winner's parameters and value is kept",
    "constraints": "there are none: let the score say how good a run is",
    "datetime_start": "a run must not depend on anything but its own random source",
    "study": "there is no study: runs are independent and do not see each other",
    "storage": "there is no storage: no value leaves a run but the winner's",
    "relative_params": "there are none: every parameter is drawn independently",
}


_LOOKS: Final = ("report", "should_prune")


class TrialRefusal(ArgumentError, AttributeError):
    """Part of Optuna's interface that a private search cannot have."""


def _refusal(name: str) -> TrialRefusal:
    return TrialRefusal(f"trial.{name} does not exist in a private search: {_REFUSALS[name]}")


def _refused(name: str) -> property:
    """An attribute that is refused when it is read, also to be called."""

    def refuse(_: Any) -> NoReturn:
        raise _refusal(name)

    return property(refuse, doc="Refused.")


def draw(distribution: BaseDistribution, random: RandomSource) -> Any:
    """One draw from this distribution, as Optuna's random sampler draws.

    The distribution is the same but for floating point at the ends. It is of a number in [low, high]. With a step each
    multiple is equally likely. Integers with `log=True` are rounded log-uniform numbers between low - 1/2 and
    high + 1/2.

    Raises `ArgumentError` for a kind of distribution that it does not know.

    >>> from dpselect.randomness import keyed_source
    >>> draw(IntDistribution(2, 8, step=3), keyed_source(1)) in (2, 5, 8)
    True
    """
    law = _LAWS.get(type(distribution))
    if law is None:
        raise ArgumentError(f"no independent draw is known for a {type(distribution).__name__}")
    return law(distribution, random)


def _draw_float(law: FloatDistribution, random: RandomSource) -> float:
    if law.step is not None:
        level = random.below(round((law.high - law.low) / law.step) + 1)
        return min(law.low + level * law.step, law.high)
    return (LogUniform if law.log else Uniform)(law.low, law.high).sample(random)


def _draw_int(law: IntDistribution, random: RandomSource) -> int:
    if not law.log:
        return law.low + law.step * random.below((law.high - law.low) // law.step + 1)
    drawn = Uniform(math.log(law.low - 0.5), math.log(law.high + 0.5)).sample(random)
    return min(max(round(math.exp(drawn)), law.low), law.high)


_LAWS: Final[dict[type, Callable[[Any, RandomSource], Any]]] = {
    FloatDistribution: _draw_float,
    IntDistribution: _draw_int,
    CategoricalDistribution: lambda law, random: law.choices[random.below(len(law.choices))],
}


_Refusing: Any = type(BaseTrial)("_Refusing", (BaseTrial,), {name: _refused(name) for name in _REFUSALS})


class IndependentTrial(_Refusing):  # type: ignore[misc]
    """A trial that an objective gets, which suggests parameters as the trials of Optuna do.

    It has `suggest_float`, `suggest_int`, `suggest_categorical`, `params` and `distributions`.

    Each parameter is drawn from a stream of its own, which depends on the trial's key and the parameter's name only. A
    branch that asks for more or fewer parameters does not change the others.

    Asked for the same name again, it answers the same, as Optuna's trials do. Another range under that name is ignored
    with a `RuntimeWarning`.

    Args:
        random: the source of the whole trial. The trial's attribute `random`, derived from it, is the source for
            everything else that the run draws, its noise above all.
        reports: what the run reports to, if its search has a `PrivatePruner`.

    Raises:
        TrialRefusal: when the objective uses what a private search cannot have.
        ValueError: Optuna's, for the same name with other choices, another kind, or another `log`.

    >>> from dpselect.randomness import keyed_source
    >>> trial = IndependentTrial(keyed_source(1))
    >>> trial.suggest_float("rate", 1e-4, 1e-1, log=True) == trial.params["rate"]
    True
    """

    def __init__(self, random: RandomSource, reports: NoisyReports | None = None) -> None:
        self._source, self._reports = random, reports
        self._params: dict[str, Any] = {}
        self._distributions: dict[str, BaseDistribution] = {}
        self.random = random.spawn("run")

    def __repr__(self) -> str:
        return "<IndependentTrial>"

    @property
    def report(self) -> Callable[[Any, int], None]:
        """`report(count, step)`: a look of the search's `PrivatePruner`. Refused without one."""
        return self._reported("report").report

    @property
    def should_prune(self) -> Callable[[], bool]:
        """`should_prune()`: whether the noisy counts so far end this run. Refused without a `PrivatePruner`."""
        return self._reported("should_prune").should_prune

    def _reported(self, name: str) -> NoisyReports:
        if self._reports is None:
            raise _refusal(name)
        return self._reports

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        """A number in [low, high]: uniform, uniform in the logarithm, or one of the multiples of `step` from low."""
        low, high = number("low", low), number("high", high)
        return self._suggest(
            name, FloatDistribution(low, high, log=log, step=None if step is None else number("step", step))
        )

    def suggest_int(self, name: str, low: int, high: int, *, step: int = 1, log: bool = False) -> int:
        """An integer in low..high: uniform over the multiples of `step` from low, or uniform in the logarithm."""
        low, high = integer("low", low), integer("high", high)
        return self._suggest(name, IntDistribution(low, high, log=log, step=integer("step", step)))

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """One of the choices, each equally likely."""
        return self._suggest(name, CategoricalDistribution(choices))

    def suggest_uniform(self, name: str, low: float, high: float) -> float:
        """Optuna's older name for `suggest_float`."""
        return self.suggest_float(name, low, high)

    def suggest_loguniform(self, name: str, low: float, high: float) -> float:
        """Optuna's older name for `suggest_float(..., log=True)`."""
        return self.suggest_float(name, low, high, log=True)

    def suggest_discrete_uniform(self, name: str, low: float, high: float, q: float) -> float:
        """Optuna's older name for `suggest_float(..., step=q)`."""
        return self.suggest_float(name, low, high, step=q)

    def _suggest(self, name: str, distribution: BaseDistribution) -> Any:
        known = self._distributions.get(name)
        if known is None:
            self._distributions[name] = distribution
            self._params[name] = draw(distribution, self._source.spawn(f"parameter {name}"))
        elif known != distribution:
            check_distribution_compatibility(known, distribution)
            warnings.warn(
                f"parameter {name!r} was asked for again with another range: the first call's value is used, which is "
                f"of {known}. This might be a mistake",
                RuntimeWarning,
                stacklevel=levels_to_the_caller(),
            )
        return self._params[name]

    @property
    def params(self) -> dict[str, Any]:
        """The parameters suggested so far."""
        return dict(self._params)

    @property
    def distributions(self) -> dict[str, BaseDistribution]:
        """The distributions of the parameters suggested so far."""
        return dict(self._distributions)


def check_objective(objective: Callable[..., Any], pruned: bool = False) -> None:
    """Look for refused uses of the trial in the objective's own code, before anything is drawn or charged.

    A refusal inside a run would count as a failed run and show no message. A refused call in a function
    that the objective passes the trial to does not show in its code. Only a dry run finds it.

    Raises `TypeError` if it is not callable, `TrialRefusal` for a refused use.
    """
    if not callable(objective):
        raise TypeError(f"objective must be a function of a trial, got {type(objective).__name__}")
    while isinstance(objective, functools.partial):
        objective = objective.func
    function = inspect.unwrap(objective if hasattr(objective, "__code__") else type(objective).__call__)
    code = getattr(function, "__code__", None)
    if code is None:
        return
    own = code.co_varnames[: code.co_argcount]
    first = own[:1] if inspect.isfunction(objective) else own[1:2]  # after self
    for name in (name for argument in first for name in _attributes_of(code, argument)):
        if name in _REFUSALS and not (pruned and name in _LOOKS):
            raise _refusal(name)


def _attributes_of(code: CodeType, variable: str) -> Iterator[str]:
    """The attributes that code, and functions within it, read from a variable."""
    before: Any = None
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and before == variable:
            yield instruction.argval
        loaded = instruction.argval if instruction.opname.startswith(("LOAD_FAST", "LOAD_DEREF")) else None
        before = loaded[-1] if isinstance(loaded, tuple) else loaded  # one instruction may load two variables
    for inner in code.co_consts:
        if isinstance(inner, CodeType) and variable not in inner.co_varnames[: inner.co_argcount]:
            yield from _attributes_of(inner, variable)
