"""How the runs of a study are trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import AdjacencyError, ArgumentError, StudyError
from dpselect.preprocessing import MAPS
from dpselect.privacy import Adjacency, Guarantee
from dpselect.randomness import RandomSource
from dpselect.study.cells import positions
from dpselect.study.columns import Column
from dpselect.study.learners.kind import LEARNERS, StudyLearner
from dpselect.study.learners.mapped import MappedLearner, map_for, map_parameters
from dpselect.study.schema import Study
from dpselect.study.target import Target

__all__ = ["Recipe", "learner_keys", "recipe_of"]

Array = NDArray[np.float64]


# set by the study itself, not by the learner's table
_RESERVED: Final = frozenset({"classes", "label_bounds", "nominal_rows", "adjacency", "random", "early_stopping"})


@dataclass(frozen=True)
class Recipe:
    """How a study's runs are trained: an estimator from noise, drawn parameters and public numbers.

    `nominal_rows` is the public number of training rows, None when it is the (public) true one. `columns` are needed
    where there is a map.
    """

    kind: str
    shared: Mapping[str, Any]
    target: Target
    nominal_rows: float | None
    adjacency: Adjacency
    columns: Mapping[str, Column] = field(default_factory=dict)

    @property
    def noise_name(self) -> str:
        """The learner's parameter that decides its noise."""
        return LEARNERS[self.kind].noise_name

    def noise_parameter(self, noise: float) -> float:
        """Its value."""
        return 1.0 / noise if LEARNERS[self.kind].inverse else noise

    def estimator(self, noise: float, drawn: Mapping[str, Any], random: RandomSource | None) -> Any:
        """An unfitted estimator. `noise` is the noise multiplier, or one over epsilon for output perturbation."""
        kind = LEARNERS[self.kind]
        asked = {**self.shared, **drawn, kind.noise_name: self.noise_parameter(noise)}
        of_maps = {"map", *map_parameters(*MAPS)}
        settings = {name: value for name, value in asked.items() if name not in of_maps}
        make = kind.for_task(self.target.task)
        public = {"adjacency": self.adjacency.value, "nominal_rows": self.nominal_rows}
        settings |= {name: value for name, value in public.items() if name in make().get_params()}
        label: dict[str, Any] = {"label_bounds": self.target.bounds}
        if self.target.bounds is None:
            label = {"classes": list(range(len(self.target.classes)))}
        learner = make(**settings, **label, random=random)
        return MappedLearner(*map_for(asked["map"], self.columns, asked), learner) if "map" in asked else learner

    def guarantee(self, noise: float) -> Guarantee:
        """What one run promises; the same for every setting in the space."""
        guarantee: Guarantee = self.estimator(noise, {}, None).guarantee()
        if guarantee.adjacency is not self.adjacency:
            raise AdjacencyError(
                f"learner {self.kind!r} is private under {guarantee.adjacency.value}, the study states "
                f"{self.adjacency.value}; it is not converted"
            )
        return guarantee

    def empty_fit(self, noise: float, drawn: Mapping[str, Any], features: int) -> Any:
        """An estimator fitted to no rows: the shape of what a run returns, made without data."""
        estimator = self.estimator(noise, drawn, None)
        if "steps" in estimator.get_params():
            estimator.set_params(steps=1)
        return estimator.fit(np.zeros((0, features)), np.zeros(0, dtype=np.int64))


def recipe_of(study: Study, *, nominal_rows: float | None, columns: Mapping[str, Column] | None = None) -> Recipe:
    """Check the learner's table and the space against the learner; raises `StudyError` naming the key.

    `columns`: the public facts about the feature columns, needed where there is a map.
    """
    kind = LEARNERS[study.learner.name]
    problems = list(_problems(study, kind))
    if problems:
        raise StudyError("\n  ".join(problems))
    shared = _by_place(study)
    recipe = Recipe(study.learner.name, shared, study.data.target, nominal_rows, study.privacy.adjacency, columns or {})
    try:
        recipe.guarantee(1.0)
    except AdjacencyError as error:
        raise StudyError(str(error)) from None
    except (ArgumentError, TypeError) as error:
        raise StudyError(f"learner: {error}") from None
    return recipe


def learner_keys(kind: StudyLearner, task: str = "classification") -> frozenset[str]:
    """The keys of the learner's table, but for those of a map."""
    return frozenset({"map", *kind.for_task(task)().get_params()}) - _RESERVED - {kind.noise_name}


def _problems(study: Study, kind: StudyLearner) -> Iterator[str]:
    """What is wrong with the keys of the learner's table and of the space."""
    shared = study.learner.parameters
    known = learner_keys(kind, study.data.task)
    in_learner, in_space = known | map_parameters(*_maps(study)), known - kind.priced
    for table, names, here in (("learner", shared, in_learner), ("space", study.space, in_space)):
        for name in names:
            if name == kind.noise_name:
                yield f"{table}.{name}: the noise follows from the [privacy] table"
            elif table == "space" and name in kind.priced:
                yield f"space.{name}: enters the guarantee, so every run must share it; put it under [learner]"
            elif name not in here:
                yield f"{table}.{name}: unknown key for {study.learner.name}; there are {', '.join(sorted(here))}"
            elif table == "space" and name in shared:
                yield f"space.{name}: is under [learner] too"


def _maps(study: Study) -> list[str]:
    """The maps that the study names; raises `StudyError` for what is none."""
    named = study.learner.parameters
    found = [("learner.map", named["map"])] if "map" in named else []
    if "map" in study.space:
        law = study.space["map"]
        if law.get("law") != "categorical":
            raise StudyError('space.map: needs the law "categorical", with names of maps as choices')
        found += [("space.map", choice) for choice in law.get("choices") or ()]
    for key, name in found:
        if name not in MAPS:
            raise StudyError(f"{key}: no such map; one of {', '.join(MAPS)}")
    return [name for _, name in found]


def _by_place(study: Study) -> dict[str, Any]:
    """The shared parameters, with the weights of classes in the order of the classes."""
    shared = study.learner.parameters
    if "class_weights" in shared:
        named = shared["class_weights"]
        if not isinstance(named, Mapping):
            raise StudyError("learner.class_weights: give a table from classes to weights")
        places = positions(list(named), study.data.target.classes)
        if -1 in places:
            raise StudyError(f"learner.class_weights: {list(named)[list(places).index(-1)]!r} is none of data.classes")
        weights = [1.0] * len(study.data.target.classes)
        for place, weight in zip(places.tolist(), named.values(), strict=True):
            weights[place] = weight
        shared = {**shared, "class_weights": weights}
    return shared
