"""How the runs of a study are trained."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from dpselect.errors import AdjacencyError, ArgumentError, StudyError
from dpselect.learners.balanced_weights import BALANCED, is_balanced
from dpselect.learners.company import ROWS
from dpselect.learners.learner import PrivateLearner
from dpselect.learners.sufficient_statistics import RowSums
from dpselect.preprocessing import MAPS
from dpselect.privacy import Adjacency, Guarantee
from dpselect.randomness import RandomSource, keyed_source
from dpselect.study.columns.column import Column
from dpselect.study.cures import instead
from dpselect.study.learners.kind import LEARNERS, StudyLearner
from dpselect.study.learners.mapped import MappedLearner, indicators_of, map_for, map_parameters, texts_of
from dpselect.study.schema import Study
from dpselect.study.target import Target
from dpselect.tables.categories import positions
from dpselect.tuning.space import LAW_NAMES, parse_space

__all__ = ["BALANCING", "Recipe", "Training", "learner_keys", "recipe_of", "trained"]

Training = tuple[Any, Any]
"""Features and labels; or the sums over both that a learner takes in their place (`RowSums`), and None."""

BALANCING: Final = frozenset({"boosted-trees", "dp-sgd", "naive-bayes"})
"""Learners that know the numbers of rows by class, or can pay for them."""
# set by the study itself, not by the learner's table
_RESERVED: Final = frozenset(
    {"classes", "label_bounds", "nominal_rows", "adjacency", "random", "early_stopping", "bounds", "indicators"}
    | {"monotonic_cst", "checkpoints"}
)


@dataclass(frozen=True)
class Recipe:
    """How a study's runs are trained: an estimator from noise, drawn parameters and public numbers.

    `nominal_rows` is the public number of training rows, None when it is the (public) true one. `columns` are needed
    where there is a map, and for `features`. Guarantees are for persons with `per_person` rows each. Trainings that a
    kill interrupts are kept in `checkpoints`, if the search has made that folder.
    """

    kind: str
    shared: Mapping[str, Any]
    target: Target
    nominal_rows: float | None
    adjacency: Adjacency
    columns: Mapping[str, Column] = field(default_factory=dict)
    per_person: int = 1
    checkpoints: str | None = None

    @property
    def features(self) -> int:
        """How many features the columns become."""
        return sum(column.width for column in self.columns.values())

    @property
    def noise_name(self) -> str:
        """The learner's parameter that decides its noise."""
        return LEARNERS[self.kind].noise_name

    def noise_setting(self, noise: float) -> dict[str, float]:
        """That parameter with its value."""
        return {self.noise_name: 1.0 / noise if LEARNERS[self.kind].inverse else noise}

    def estimator(self, noise: float, drawn: Mapping[str, Any], random: RandomSource | None) -> Any:
        """An unfitted estimator. `noise` is the noise multiplier, or one over epsilon for output perturbation."""
        kind = LEARNERS[self.kind]
        asked = {**self.shared, **drawn, **self.noise_setting(noise)}
        of_maps = {"map", *map_parameters(*MAPS)}
        settings = {name: value for name, value in asked.items() if name not in of_maps}
        make = kind.for_task(self.target.task)
        public: dict[str, Any] = {"adjacency": self.adjacency.value, "nominal_rows": self.nominal_rows}
        public["checkpoints"] = self.checkpoints
        if "map" not in asked:
            public["texts"] = texts_of(self.columns)
            make = kind.of_texts.get(self.target.task, make) if public["texts"] else make
            public["indicators"] = indicators_of(self.columns, of_texts="texts" not in make().get_params())
        settings |= {name: value for name, value in public.items() if name in make().get_params()}
        label: dict[str, Any] = {"label_bounds": self.target.bounds}
        if self.target.bounds is None:
            label = {"classes": list(range(len(self.target.classes)))}
        learner = make(**settings, **label, random=random)
        return MappedLearner(*map_for(asked["map"], self.columns, asked), learner) if "map" in asked else learner

    def guarantee(self, noise: float) -> Guarantee:
        """What one run promises; the same for every setting in the space."""
        learner = replace(self, shared={key: value for key, value in self.shared.items() if key != "map"})
        guarantee = learner.estimator(noise, {}, None).guarantee()  # a map costs nothing
        if guarantee.adjacency is not self.adjacency:
            raise AdjacencyError(
                f"learner {self.kind!r} is private under {guarantee.adjacency.value}, the study states "
                f"{self.adjacency.value}; it is not converted"
            )
        return guarantee.of_rows(self.per_person)

    @property
    def pure(self) -> bool:
        """Whether a run needs no delta."""
        return math.isfinite(self.guarantee(1.0).epsilon(0.0))

    def refusal(self, drawn: Mapping[str, Any]) -> str | None:
        """Why a run with these parameters fails regardless of its rows, for which those of one feature stand."""
        try:
            self.guarantee(1.0)
            learner = self.estimator(1.0, drawn, None)
            if LEARNERS[self.kind].code:
                if self.features and learner.module is not None:
                    learner.check(self.features)
                return None
            if isinstance(learner, MappedLearner):
                if self.features:
                    learner.rows_map.fit(np.zeros((0, self.features)))
                learner = learner.learner
                _fit_to_nothing(learner, 1)
            else:
                _fit_to_nothing(learner, max(1, self.features))
        except AdjacencyError:
            raise
        except (ArgumentError, TypeError) as error:
            return str(error)
        return None

    def made_up_fit(self, drawn: Mapping[str, Any]) -> tuple[Any, Any, Any]:
        """An estimator fitted with little noise to `ROWS` synthetic rows, the rows, labels (a third of another row)."""
        source = keyed_source("made-up rows")
        try:
            learner = self.estimator(0.1, drawn, source.spawn("fit"))
        except ArgumentError:  # below what this learner takes
            learner = self.estimator(1.0, drawn, source.spawn("fit"))
        rows = source.uniform((ROWS, max(1, self.features)))
        share, bounds = rows.mean(axis=1).argsort().argsort() / ROWS, self.target.bounds
        labels = (
            np.floor(share * len(self.target.classes)).astype(int)
            if bounds is None
            else bounds[0] + share * (bounds[1] - bounds[0])
        )
        few = {name: 5 for name in ("steps", "n_estimators") if name in learner.get_params()}
        learner.set_params(**few, **({"checkpoints": None} if "checkpoints" in learner.get_params() else {}))
        learner.fit(rows, labels)
        return learner, rows, np.where(np.arange(ROWS) % 3 == 0, labels[::-1], labels)

    def empty_fit(self, noise: float, drawn: Mapping[str, Any]) -> Any:
        """An estimator fitted to no rows: the shape of what a run returns, made without data."""
        return _fit_to_nothing(self.estimator(noise, drawn, None), self.features)


def trained(estimator: Any, rows: Training) -> Any:
    """The estimator, fitted to these rows or to the sums over them."""
    return estimator.fit_sums(rows[0]) if isinstance(rows[0], RowSums) else estimator.fit(*rows)


def _fit_to_nothing(learner: Any, features: int) -> Any:
    if isinstance(learner, PrivateLearner):
        return learner.fit_nothing(features)
    if "steps" in learner.get_params():
        learner.set_params(steps=1)
    return learner.fit(np.zeros((0, features)), np.zeros(0, dtype=np.int64))


def recipe_of(study: Study, *, nominal_rows: float | None, columns: Mapping[str, Column] | None = None) -> Recipe:
    """Check the learner's table and the space against the learner; raises `StudyError` naming the key.

    `columns`: the public facts about the feature columns, needed where there is a map.
    """
    kind = LEARNERS[study.learner.name]
    wrong = {(table, name): what for table, name, what in _wrong_keys(study, kind)}
    problems = [f"{table}.{name}: {what}" for (table, name), what in wrong.items()]
    shared = {name: value for name, value in study.learner.parameters.items() if ("learner", name) not in wrong}
    searched = {name: law for name, law in study.space.items() if ("space", name) not in wrong}
    if "class_weights" in shared:
        try:
            shared["class_weights"] = _by_place(shared["class_weights"], study)
        except StudyError as error:
            problems.append(str(error))
            shared.pop("class_weights")
    privacy, target = study.privacy, study.data.target
    recipe = Recipe(
        study.learner.name, shared, target, nominal_rows, privacy.adjacency, columns or {}, privacy.per_person
    )
    try:
        problems += _wrong_values(recipe, searched)
    except AdjacencyError as error:
        problems.append(f"privacy.adjacency: {error}; take the other one, or another learner.name")
    if problems:
        raise StudyError("\n  ".join(problems))
    return recipe


def _wrong_values(recipe: Recipe, searched: Mapping[str, Any]) -> Iterator[str]:
    """What a run would refuse of the values, key by key and then together; of laws, the ends and the choices."""
    alone = {name: value for name, value in recipe.shared.items() if name in ("map", "module")}
    refused = set()
    for name, value in recipe.shared.items():
        said = replace(recipe, shared={**alone, name: value}).refusal({})
        if said is not None and name in said:
            refused.add(name)
            yield f"learner.{name}: {said.removeprefix(f'{name} ').removeprefix(f'{name}: ')}"
    if refused & {"map", "module"}:
        return
    rest = replace(recipe, shared={name: value for name, value in recipe.shared.items() if name not in refused})
    said = rest.refusal({})
    if said is not None:
        yield f"learner: {said}"
        return
    for name, law in searched.items():
        for value in _extremes(name, law):
            said = rest.refusal({name: value})
            if said is not None:
                yield f"space.{name}: {said.removeprefix(f'{name} ').removeprefix(f'{name}: ')}"
                break


def _extremes(name: str, law: Mapping[str, Any]) -> list[Any]:
    """The choices or the ends of a law; nothing of one that is none, which is refused elsewhere."""
    try:
        known = parse_space({name: law}).describe()[name]
    except ArgumentError:
        return []
    return list(known["choices"]) if "choices" in known else [known["low"], known["high"]]


def learner_keys(kind: StudyLearner, task: str = "classification") -> frozenset[str]:
    """The keys of the learner's table, but for those of a map."""
    maps = set() if kind.code else {"map"}
    return frozenset({*maps, *kind.for_task(task)().get_params()}) - _RESERVED - {kind.noise_name}


def _wrong_keys(study: Study, kind: StudyLearner) -> Iterator[tuple[str, str, str]]:
    """What is wrong with the keys of the learner's table and of the space: (the table, the key, what)."""
    shared = study.learner.parameters
    known = learner_keys(kind, study.data.task)
    maps = [name for _, name in _maps(study)]
    for table, name in _maps(study):
        if not isinstance(name, str) or name not in MAPS:
            maps = list(MAPS)  # any of them may be meant
            if table == "learner" or study.space["map"].get("law") in LAW_NAMES:  # `space_of` names another law
                yield table, "map", f"no such map; one of {', '.join(MAPS)}"
    in_learner, in_space = known | (map_parameters(*maps) if "map" in known else set()), known - kind.priced
    if kind.code and "module" not in {*shared, *study.space}:
        yield "learner", "module", 'needed: the function that makes the network, such as "my_models:build"'
    for table, names, here in (("learner", shared, in_learner), ("space", study.space, in_space)):
        for name in names:
            if name == kind.noise_name:
                yield table, name, "the noise follows from the [privacy] table"
            elif table == "space" and name in kind.priced:
                yield table, name, "enters the guarantee, so every run must share it; put it under [learner]"
            elif name not in here:
                given = study.space.get(name) if table == "space" else shared.get(name)
                yield table, name, instead(name, given, here, of=f" for {study.learner.name}")
            elif table == "space" and name in shared:
                yield table, name, "is under [learner] too"


def _maps(study: Study) -> Iterator[tuple[str, Any]]:
    """The maps that the study names, each with the table that it stands in."""
    if "map" in study.learner.parameters:
        yield "learner", study.learner.parameters["map"]
    if "map" in study.space:
        law = study.space["map"]
        choices = law.get("choices") if law.get("law") == "categorical" else None
        yield from (("space", choice) for choice in (choices if isinstance(choices, list) else [None]))


def _by_place(named: Any, study: Study) -> list[Any] | str:
    """The weights of classes in the order of the classes, or "balanced"."""
    classes = study.data.target.classes
    if is_balanced(named) and study.learner.name in BALANCING:
        if study.search.kind.tries:
            raise StudyError("learner.class_weights: a portfolio compares candidates by public weights: give a table")
        return BALANCED
    if not isinstance(named, Mapping):
        either = f', or "{BALANCED}"' if study.learner.name in BALANCING else ""
        raise StudyError(f"learner.class_weights: give a table from classes to weights{either}")
    weights: list[Any] = [1.0] * len(classes)
    for place, (name, weight) in zip(positions(list(named), classes), named.items(), strict=True):
        if place < 0:
            listed = ", ".join(map(repr, classes))
            raise StudyError(f"learner.class_weights: {name!r} is none of data.classes, {listed}")
        weights[place] = weight
    return weights
