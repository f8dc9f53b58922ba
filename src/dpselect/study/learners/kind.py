"""Learners of studies: which parameters decide privacy, and the registry of those that a study can name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dpselect.errors import StudyError
from dpselect.registry import Registry

__all__ = ["LEARNERS", "StudyLearner"]

Carry = Callable[[dict[str, Any], dict[str, Any], dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class StudyLearner:
    """A private learner, and which of its parameters decide privacy.

    `estimator` is a classifier that keeps `dpselect.testing.learner_contract` (None: there is none). It learns only the
    tuple of arrays `weights_`, and `guarantee()` is the guarantee of one fit. `regressor` takes its place if the label
    is a number (None: there is none), and takes `label_bounds` in place of `classes`. `noise_name` is the parameter
    that decides the noise of both. With `inverse`, more noise means a smaller value of it. `priced` are other
    parameters of the guarantee: all runs share them, and none is searched. `carry` adapts settings that won a search to
    another noise. It takes the settings, and an estimator's parameters before and after. `noises` are multipliers under
    which its models have their largest size, for learners whose size follows from the noise. `code`: its parameter
    `module` names code of the user's own, which makes the model. `of_texts` are estimators by task that take the places
    of hashed words as `texts`, for tables with text.
    """

    estimator: type[Any] | None
    noise_name: str
    inverse: bool = False
    priced: frozenset[str] = frozenset()
    regressor: type[Any] | None = None
    carry: Carry | None = None
    noises: tuple[float, ...] = (1.0,)
    code: bool = False
    of_texts: Mapping[str, type[Any]] = field(default_factory=dict)

    def for_task(self, task: str) -> type[Any]:
        """The estimator of a classification or a regression. Raises `StudyError` if there is none."""
        found = self._estimators.get(task)
        if found is None:
            names = ", ".join(name for name in LEARNERS if task in LEARNERS[name].tasks)
            raise StudyError(f"learner.name: this one knows no {task}; there are {names}")
        return found

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that it knows: "classification", "regression" or both."""
        return tuple(self._estimators)

    @property
    def _estimators(self) -> dict[str, type[Any]]:
        known = {"classification": self.estimator, "regression": self.regressor}
        return {task: kind for task, kind in known.items() if kind is not None}


LEARNERS: Final = Registry[StudyLearner](
    "learner", room="dpselect.study.learners", elsewhere={"torch": "dpselect.integrations.opacus.learner"}
)
"""The learners by the name that a study gives them: `LEARNERS.register("name")(StudyLearner(...))`."""
