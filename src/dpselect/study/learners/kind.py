"""What a study must know of a learner, and the registry of those that it can name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from dpselect.registry import Registry

__all__ = ["LEARNERS", "StudyLearner"]


@dataclass(frozen=True)
class StudyLearner:
    """A private classifier, and which of its parameters decide privacy.

    `estimator` is a class that keeps `dpselect.testing.learner_contract`: all that it learns is the tuple of arrays
    `weights_`, and `guarantee()` says what one fit promises. `noise_name` is the parameter that decides its noise;
    `inverse` says that more noise means a smaller value of it. `priced` are other parameters that enter the guarantee:
    all runs share them, none is searched.
    """

    estimator: type[Any]
    noise_name: str
    inverse: bool = False
    priced: frozenset[str] = frozenset()


LEARNERS: Final = Registry[StudyLearner]("learner", room="dpselect.study.learners")
"""The learners by the name that a study gives them: `LEARNERS.register("name")(StudyLearner(...))`."""
