"""The contract of the learners of studies: the model that is loaded is the model that was trained.

`LearnerContract` trains each learner of the registry, so a new one is held to it without being named here: through a
study, through `PrivateSearchCV` and through `tune`, on tables whose columns have names in no order. A fresh process
then loads what was released, and predicts (`loaded_predictions`). With pytest:

    class TestLearners(LearnerContract):
        pass

`tmp_path` is pytest's. A learner that cannot be trained with the settings here gets some in `SETTINGS`.
"""

from __future__ import annotations

import csv
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import joblib
import numpy as np

import dpselect.integrations.sklearn.trial
import dpselect.learners
import dpselect.report.model_card
import dpselect.report.page
import dpselect.study.load
import dpselect.study.price
import dpselect.study.write
from dpselect.integrations.sklearn import PrivateSearchCV
from dpselect.privacy import pure_dp
from dpselect.randomness import RandomSource, keyed_source
from dpselect.repetitions import Fixed, Repetitions
from dpselect.study import Study, parse_study, run_study
from dpselect.study.bounds import Purchase
from dpselect.study.learners import LEARNERS
from dpselect.study.learners.recipe import Recipe
from dpselect.study.price import Price
from dpselect.testing import loaded_predictions
from dpselect.tuning import tune
from dpselect.tuning.space import parse_space

__all__ = ["SETTINGS", "LearnerContract", "MadeUpTable", "narrow", "numeric", "unpriced", "wide"]

SETTINGS: Final[Mapping[str, Mapping[str, Any]]] = {
    "dp-sgd": {"learner": {"sampling_rate": 0.5, "steps": 12}, "privacy": {"noise_multiplier": 1.0, "delta": 1e-5}},
    "boosted-trees": {
        "learner": {"n_estimators": 6, "max_depth": 3},
        "privacy": {"noise_multiplier": 1.0, "delta": 1e-5},
    },
}
"""The [learner] and [privacy] tables of learners for which those of `_GENERIC` do not do, or are slow to price."""
_GENERIC: Final[Mapping[str, Mapping[str, Any]]] = {"learner": {}, "privacy": {"epsilon": 8.0, "delta": 1e-5}}
_ROWS = 90
_SEEN: Final = ("zeta", "Alpha beta")
"""Columns that a label that is a number follows."""


def _searched(learner: str) -> str:
    """A parameter of the learner that a search may draw, from 0.5 to 8."""
    kind = LEARNERS[learner]
    known = kind.for_task(min(kind.tasks))().get_params()
    return "row_norm" if "row_norm" in known else "learning_rate"


def _space(learner: str) -> dict[str, Any]:
    return {_searched(learner): {"law": "log_uniform", "low": 0.5, "high": 8.0}}


@dataclass(frozen=True)
class MadeUpTable:
    """A made-up table: cells by name (numbers, texts, booleans), the label among them, and what a study declares."""

    cells: Mapping[str, list[Any]]
    columns: Mapping[str, Mapping[str, Any]]
    classes: tuple[Any, ...] = ()
    label_bounds: tuple[float, float] | None = None

    @property
    def task(self) -> str:
        """Whether the label is a class or a number."""
        return "classification" if self.label_bounds is None else "regression"

    @property
    def facts(self) -> dict[str, Any]:
        """The declarations of the label and of the columns in a study."""
        label = {"classes": list(self.classes)} if self.label_bounds is None else {"label_bounds": self.label_bounds}
        return {"label": "label", "task": self.task, "columns": dict(self.columns), **label}

    @property
    def features(self) -> dict[str, list[Any]]:
        """The cells without the label."""
        return {name: cells for name, cells in self.cells.items() if name != "label"}


def narrow() -> MadeUpTable:
    """Four columns of four kinds, two text classes that occur and one that does not."""
    random = np.random.default_rng(7)
    cells = {
        "zeta": random.normal(size=_ROWS).tolist(),
        'größe, "cm"': random.uniform(100.0, 200.0, size=_ROWS).tolist(),
        "label": [],
        "Label": random.choice(["b", "a", "", "10"], size=_ROWS).tolist(),
        "Alpha beta": (random.random(_ROWS) < 0.5).tolist(),
    }
    cells["label"] = ["no" if z > 0.3 else "yes" for z in cells["zeta"]]
    columns: dict[str, Mapping[str, Any]] = {
        "Alpha beta": {"categories": [True, False]},
        "Label": {"categories": [10, "b", "a"]},
        'größe, "cm"': {"bounds": [100, 200]},
        "zeta": {"bounds": [-1, 1]},
    }
    return MadeUpTable(cells, columns, ("yes", "unclear", "no"))


def wide(columns: int = 21, *, numbers_only: bool = False) -> MadeUpTable:
    """Many columns with names in no order, a third of them categories, and three text classes."""
    random = np.random.default_rng(8)
    cells: dict[str, list[Any]] = {}
    facts: dict[str, Mapping[str, Any]] = {}
    for i in random.permutation(columns):
        name = f"{'zyXWab'[i % 6]}{i}"
        if i % 3 == 0 and not numbers_only:
            cells[name] = random.choice(["low", "mid", "high", "unknown"], size=_ROWS).tolist()
            facts[name] = {"categories": ["mid", "high", "low"]}
        else:
            cells[name] = random.uniform(0.0, 1.0 + i, size=_ROWS).tolist()
            facts[name] = {"bounds": [0, 1.0 + i]}
        if len(cells) == columns // 2:
            cells["label"] = random.choice(["red", "blue", "green"], size=_ROWS).tolist()
    return MadeUpTable(cells, dict(sorted(facts.items())), ("red", "green", "blue"))


def numeric() -> MadeUpTable:
    """The columns of `narrow`, and a label that is a number, beyond its bounds in places."""
    table = narrow()
    labels = [20.0 * z + (5.0 if truth else 0.0) for z, truth in zip(*map(table.cells.get, _SEEN), strict=True)]
    return MadeUpTable({**table.cells, "label": labels}, table.columns, label_bounds=(-15.0, 25.0))


class LearnerContract:
    """Tests of all learners."""

    def test_what_is_loaded_is_what_was_trained(self, tmp_path: Path) -> None:
        """Labels and probabilities to the bit, under permutations of the columns, in every container."""
        folders: dict[str, Path] = {}
        with patch.dict(os.environ, XDG_STATE_HOME=str(tmp_path / "state")):
            for learner in LEARNERS:
                if LEARNERS[learner].code:  # which the user has to write
                    continue
                tasks = LEARNERS[learner].tasks
                classes = _RELEASES if "classification" in tasks else {}
                numbers = _OF_NUMBERS if "regression" in tasks else {}
                for what, release in {**classes, **numbers}.items():
                    folders[f"{learner}, {what}"] = folder = tmp_path / str(len(folders))
                    folder.mkdir()
                    release(learner, folder)
        command = [sys.executable, "-m", loaded_predictions.__name__, *map(str, folders.values())]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        for name, line in zip(folders, run.stdout.splitlines(), strict=True):
            found = json.loads(line)  # decodes: of a child process of the test
            assert found["wrong"] == [], f"{name}: {found['wrong']}"
            assert found["right"] > 0, name


@contextmanager
def unpriced() -> Iterator[None]:
    """Studies whose price and page, which take seconds, are synthetic. Neither shows anything of the model."""

    def price(study: Study, recipe: Recipe, law: Repetitions, purchase: Purchase | None) -> Price:  # noqa: ARG001
        part = recipe.guarantee(1.0)
        return Price(1.0, 1.0, (part,), part, 1e3, 1e-5, purchase)

    with (
        patch.object(dpselect.study.price, "price_study", price),
        patch.object(dpselect.study.write, "search_facts", lambda **_: {}),
        patch.object(dpselect.study.write, "strongest_columns", lambda *_: []),
        patch.object(dpselect.report.page, "render_page", lambda *_: ""),
        patch.object(dpselect.report.model_card, "render_model_card", lambda *_: ""),
    ):
        yield


@contextmanager
def _kept(place: Any, name: str) -> Iterator[list[Any]]:
    """Keep all that a function or method returns while this lasts."""
    original = getattr(place, name)
    kept: list[Any] = []

    def keeping(*arguments: Any, **named: Any) -> Any:
        kept.append(original(*arguments, **named))
        return kept[-1]

    with patch.object(place, name, keeping):
        yield kept


def _winner(trained: list[Any], params: Mapping[str, Any]) -> Any:
    """The one among the estimators that were trained which has the released parameters."""
    (found,) = [
        model
        for model in trained
        if "weights_" in vars(model) and all(model.get_params()[name] == value for name, value in params.items())
    ]
    return found


def _settings(learner: str, table: str, task: str = "classification") -> dict[str, Any]:
    found = dict(SETTINGS.get(learner, _GENERIC)[table])
    known = LEARNERS[learner].for_task(task)().get_params()
    return found if table == "privacy" else {name: value for name, value in found.items() if name in known}


def _note(folder: Path, cells: Mapping[str, list[Any]], labels: Any, probabilities: Any = None) -> None:
    """Write what is expected: labels, and the probabilities of a classifier."""
    (folder / "rows.json").write_text(json.dumps(cells), encoding="utf-8")
    expected = {"labels": np.asarray(labels), "probabilities": probabilities}
    np.savez(folder / "expected.npz", **{name: found for name, found in expected.items() if found is not None})


def _study(table: MadeUpTable, learner: str, folder: Path) -> None:
    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.cells)
        writer.writerows(zip(*table.cells.values(), strict=True))
    study = parse_study(
        {
            "data": {"source": "rows.csv", **table.facts},
            "privacy": {"nominal_rows": _ROWS, **_settings(learner, "privacy", table.task)},
            "learner": {"name": learner, **_settings(learner, "learner", table.task)},
            "space": _space(learner),
            "repetitions": {"law": "fixed", "count": 2},
            "runs": {"executor": "inline"},
            "output": {"folder": "out"},
        }
    )
    with (
        unpriced(),
        _kept(Recipe, "estimator") as trained,
        _kept(dpselect.study.load, "load") as loaded,
    ):
        found = run_study(study, base_folder=folder, folder=folder / "out", random=keyed_source(3)).release
    estimator = _winner(trained, found["parameters"])
    rows = loaded[0].features
    (folder / "out" / "model.npz").rename(folder / "model.npz")
    if table.task == "regression":
        _note(folder, table.features, estimator.predict(rows))
    else:
        labels = np.array(table.classes)[estimator.predict(rows)]
        _note(folder, table.features, labels, estimator.predict_proba(rows))


def _frame(table: MadeUpTable, *, numbered: bool) -> Any:
    import pandas

    frame = pandas.DataFrame(table.features)
    return frame.set_axis(range(frame.shape[1]), axis=1) if numbered else frame


def _in_scikit_learn(learner: str) -> Any:
    """The public estimator of what a study trains."""
    kinds = (getattr(dpselect.learners, name) for name in dir(dpselect.learners))
    trained = LEARNERS[learner].for_task("classification")
    return next(kind for kind in kinds if isinstance(kind, type) and issubclass(kind, trained))


def _search(learner: str, folder: Path, *, numbered: bool = False) -> None:
    table = wide(numbers_only=True)
    frame, labels = _frame(table, numbered=numbered), np.array(table.cells["label"])
    search = PrivateSearchCV(
        _in_scikit_learn(learner)(**_settings(learner, "learner")),
        {_searched(learner): [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]},
        repetitions=Fixed(count=2),
        score_epsilon=1.0,
        nominal_rows=_ROWS,
        classes=sorted(table.classes),
        random=keyed_source(4),
    )
    with _kept(dpselect.integrations.sklearn.trial, "train") as trained:
        search.fit(frame, labels)
    _dump(search, _winner(trained, search.best_params_ or {}), frame, folder)


def _tune(learner: str, folder: Path, *, numbered: bool = False, task: str = "classification") -> None:
    table, trained = wide(numbers_only=True), []
    frame = _frame(table, numbered=numbered)
    settings = _settings(learner, "learner", task)
    labels: Any
    if task == "regression":
        kind, labels = LEARNERS[learner].for_task(task), np.linspace(-3.0, 4.0, _ROWS)
        settings["label_bounds"] = (-2.0, 3.0)
    else:
        kind, labels = _in_scikit_learn(learner), np.array(table.cells["label"])
        settings["classes"] = sorted(table.classes)
    if "nominal_rows" in kind().get_params():
        settings["nominal_rows"] = _ROWS

    def objective(params: Mapping[str, Any], random: RandomSource) -> tuple[float, Any]:
        trained.append(kind(**settings, **params, random=random).fit(frame, labels))
        return float(random.uniform(1)[0]), trained[-1]

    base, space = pure_dp(epsilon=1.0), parse_space(_space(learner))
    result = tune(objective, space=space, base=base, repetitions=Fixed(count=3), random=keyed_source(5))
    _dump(result.value, _winner(trained, result.params or {}), frame, folder)


def _dump(released: Any, trained: Any, frame: Any, folder: Path) -> None:
    (folder / "estimator.pickle").write_bytes(pickle.dumps(released))
    joblib.dump(released, folder / "estimator.joblib")
    cells = dict(zip(wide(numbers_only=True).features, frame.to_numpy().T.tolist(), strict=True))
    probabilities = trained.predict_proba(frame) if hasattr(trained, "predict_proba") else None
    _note(folder, cells, trained.predict(frame), probabilities)


_RELEASES: Final[Mapping[str, Callable[[str, Path], None]]] = {
    "a study of few columns": partial(_study, narrow()),
    "a study of many columns": partial(_study, wide()),
    "PrivateSearchCV": _search,
    "PrivateSearchCV, names that are numbers": partial(_search, numbered=True),
    "tune": _tune,
    "tune, names that are numbers": partial(_tune, numbered=True),
}
_OF_NUMBERS: Final[Mapping[str, Callable[[str, Path], None]]] = {
    "a study of a number": partial(_study, numeric()),
    "tune, of a number": partial(_tune, task="regression"),
}
"""For learners that know regression."""
