"""Arguments by the names of other libraries: what to type instead of a name that a callable does not have."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Final, TypeVar, cast

__all__ = ["answer_foreign_names"]

Made = TypeVar("Made", bound=Callable[..., Any])

_NOISE: Final = "did you mean noise_multiplier= (standard deviation / sensitivity)?"
_STEPS: Final = "give steps= (epochs / sampling_rate)"
_RATE: Final = "did you mean sampling_rate= (batch size / number of rows)?"
_RUNS: Final = (
    "the number of runs is drawn from a law and stays secret, which is what makes the search cheap: give repetitions=, "
    "or epsilon= and delta="
)
_TOTAL: Final = "noise is set by noise_multiplier=; for a total, use calibrate or PrivateSearchCV(epsilon=)"
_NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "noise_multiplier": dict.fromkeys(("sigma", "std", "stddev", "noise", "noise_scale", "standard_deviation"), _NOISE)
    | dict.fromkeys(("epsilon", "target_epsilon"), _TOTAL),
    "steps": dict.fromkeys(("epochs", "num_epochs", "n_epochs"), _STEPS)
    | dict.fromkeys(("iterations", "num_steps", "max_iter"), "did you mean steps=?"),
    "sampling_rate": dict.fromkeys(("sample_rate", "q", "sampling_probability", "batch_size"), _RATE),
    "scale": dict.fromkeys(("b", "noise_scale", "noise_parameter"), "did you mean scale= (noise scale / sensitivity)?")
    | {"epsilon": "give scale= (sensitivity / epsilon)"},
    "rho": {"epsilon": "give rho=, or write approximate_dp(epsilon=, delta=)"},
    "epsilon": {"eps": "did you mean epsilon=?", "target_epsilon": "did you mean epsilon=?"},
    "repetitions": dict.fromkeys(("n_trials", "n_iter", "num_trials", "num_samples", "n_runs", "max_evals"), _RUNS),
    "space": dict.fromkeys(("param_distributions", "param_grid", "search_space"), "did you mean space=?"),
    "base": {"guarantee": "did you mean base=, the guarantee of one run?"},
    "gamma": {"mean": "use {name}.with_mean(mean={value!r})"},
    "limit": {"mean": "give limit=, the largest number of runs; its mean follows"},
    "count": {"n": "did you mean count=?", "trials": "did you mean count=?"},
}
"""By our argument, the names that others have for it and what to type."""


def answer_foreign_names(make: Made) -> Made:
    """The same callable, which answers an argument by another library's name with what to type.

    Of a class the constructor. Only names that the callable does not take are answered; others raise as before.
    """
    if isinstance(make, type):
        make.__init__ = _answering(make.__init__, make.__name__)  # type: ignore[misc]
        return cast("Made", make)
    return cast("Made", _answering(make, make.__name__))


def _answering(call: Callable[..., Any], name: str) -> Callable[..., Any]:
    known = inspect.signature(call).parameters

    @wraps(call)
    def answering(*args: Any, **given: Any) -> Any:
        for foreign in given.keys() - known.keys():
            for ours in known:
                if advice := _NAMES.get(ours, {}).get(foreign):
                    advice = advice.format(name=name, value=given[foreign])
                    raise TypeError(f"{name} has no argument {foreign}: {advice}")
        return call(*args, **given)

    return answering
