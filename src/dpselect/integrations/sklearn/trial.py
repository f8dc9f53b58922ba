"""One run of a search over scikit-learn estimators, and what of a fitted model leaves it.

Every draw comes from the run's own source: a step with a parameter `random` gets a source of its own, one with
`random_state` a NumPy generator seeded from it. Neither leaves with the model, whose noise could be drawn again from
it. `pack` takes them out wherever they are, and replaces diffprivlib's accountants by empty ones.
"""

from __future__ import annotations

import io
import pickle
import random as standard_random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from threadpoolctl import threadpool_limits

from dpselect.errors import ArgumentError
from dpselect.integrations.sklearn.diffprivlib_models import (
    KnownClasses,
    fresh_accountant,
    is_diffprivlib,
    takes_classes_from_rows,
)
from dpselect.integrations.sklearn.distributions import numpy_source, with_params
from dpselect.integrations.sklearn.folds import average_of_folds
from dpselect.integrations.sklearn.guarantee import Base, PrivateStep, dense, private_steps
from dpselect.integrations.sklearn.scoring import PublicScores, Scoring
from dpselect.integrations.sklearn.several_scores import SeveralScores
from dpselect.integrations.sklearn.split import Part
from dpselect.integrations.sklearn.synthetic_rows import one_a_row, with_row
from dpselect.learners import DPSGDClassifier, DPSGDRegressor
from dpselect.learners.column_types import of_any_type
from dpselect.privacy import Adjacency
from dpselect.randomness import RandomSource, keyed_source
from dpselect.study.learners import LEARNERS
from dpselect.tuning.trial import TrialOutput, ValuePickler

__all__ = ["SearchRun", "Settings", "TrialRows", "noise_parameter", "pack", "train", "unpack"]


@dataclass(frozen=True, repr=False)
class Settings:
    """The parameters that the search sets on every private step that has them, beside the searched ones.

    `noise` is the noise multiplier of the only private step, or one over its epsilon. With more private steps it is the
    common factor of theirs. `nominal_rows` is the public number of rows of one training, or None. `own_entropy`: the
    last step, which `base` is declared for, keeps `random_state` None and draws from the system's entropy.
    """

    adjacency: Adjacency | None
    classes: list[Any] | None
    nominal_rows: float | None
    noise: float | None
    base: Base | None
    columns: int | None
    own_entropy: bool = False

    def steps(self, estimator: Any) -> list[PrivateStep]:
        """The private steps of an unfitted estimator, which is changed, with everything set."""
        steps = private_steps(estimator, self.base, columns=self.columns)
        for place in steps:
            step, has = place.step, place.has
            declared = self.base is not None and place is steps[-1]
            if not declared and not {"random", "random_state"} & set(has):
                raise ArgumentError(
                    f"estimator{f' step {place.path[:-2]!r}' if place.path else ''} has no parameter random or "
                    "random_state, so a run cannot set its noise: worker processes that share a generator draw the "
                    "same noise in every run. Give it one, or declare by base= that its runs draw independently"
                )
            for name in ("random", "random_state"):
                if has.get(name) is not None:
                    raise ArgumentError(
                        f"{place.path}{name} must stay None: every run draws from the search's own secret source. "
                        "Give random= to the search to repeat it in a test"
                    )
            if self.adjacency is not None and "adjacency" in has:
                step.set_params(adjacency=self.adjacency.value)
            if self.classes is not None and "classes" in has and has["classes"] is None:
                step.set_params(classes=self.classes)
            if self.nominal_rows is not None and "nominal_rows" in has and has["nominal_rows"] is None:
                step.set_params(nominal_rows=self.nominal_rows)
            if self.noise is not None:
                name, inverse = noise_parameter(place)
                own = 1.0 if len(steps) == 1 else float(has[name])
                step.set_params(**{name: own / self.noise if inverse else own * self.noise})
        return steps


def noise_parameter(place: PrivateStep) -> tuple[str, bool]:
    """The name of a step's noise parameter, and whether more noise means a smaller value."""
    for name, inverse in (("noise_multiplier", False), ("epsilon", True)):
        if name in place.has:
            return name, inverse
    raise ArgumentError(
        f"{type(place.step).__name__} has neither noise_multiplier nor epsilon, so its noise cannot be chosen for a "
        "total: give repetitions without epsilon, or epsilon without repetitions"
    )


@dataclass(frozen=True, repr=False)
class TrialRows:
    """Rows, their labels and what else is given for each row, by name.

    `taught` are the labels for training, if they are others. `usable`: which rows a model can be trained on, each from
    itself alone. None: all. Others train nothing, or with a `stand_in` that public row trains in the place of each.
    Under replace_one a row that is left out would make more than one row's difference. Either way neighbours stay
    neighbours, and nothing tells that there was such a row.
    `persons` are the digests of the rows' persons, if they are known.
    """

    X: Any
    y: Any
    beside: Mapping[str, Any]
    taught: Any = None
    usable: NDArray[np.bool_] | None = None
    stand_in: tuple[Any, Any] | None = None
    persons: bytes = b""

    def digest(self) -> bytes:
        """A digest of all that a run takes, private like the rows."""
        return bytes.fromhex(joblib.hash((self.X, self.y, dict(self.beside), self.persons), hash_name="sha1"))

    def at(self, positions: Any) -> tuple[Any, Any, dict[str, Any]]:
        """The rows at these positions."""
        if len(positions) == len(self.y):
            return self.X, self.y, dict(self.beside)
        aligned = {
            name: _safe_indexing(value, positions) if one_a_row(value, len(self.y)) else value
            for name, value in self.beside.items()
        }
        return _safe_indexing(self.X, positions), _safe_indexing(self.y, positions), aligned

    def with_usable(
        self,
        usable: NDArray[np.bool_],
        takes: Callable[[Any], NDArray[np.bool_]],
        stand_ins: Sequence[tuple[Any, Any]] | None,
    ) -> TrialRows:
        """With the rows that a model can be trained on. The first of `stand_ins` that is taken trains for the others.

        If no such row can be taken either, all rows train, and a run that fails on one counts as failed.
        """
        if stand_ins is None:
            return replace(self, usable=usable)
        first = next((each for each in stand_ins if takes(each[0])[0]), None)
        return self if first is None else replace(self, usable=usable, stand_in=first)

    def training(self, positions: Any) -> tuple[Any, Any, dict[str, Any]]:
        """The same for rows that train."""
        rows = self if self.taught is None else replace(self, y=self.taught)
        if self.usable is None or np.all(self.usable):
            return rows.at(positions)
        known = self.usable[positions]
        if self.stand_in is None:
            return rows.at(positions[known])
        X, y, beside = rows.at(positions)
        where = np.where(known, np.arange(len(y)), len(y))
        label = np.asarray([self.stand_in[1]]).astype(y.dtype)
        return (
            _safe_indexing(with_row(X, self.stand_in[0]), where),
            np.concatenate([y, label])[where],
            beside,
        )

    def scored(self, positions: NDArray[np.intp]) -> Iterator[tuple[Any, Any]]:
        """The rows at these positions as a model is scored on them: those that it may fail on by themselves."""
        known = np.ones(len(positions), dtype=bool) if self.usable is None else self.usable[positions]
        for part in (positions[known], positions[~known]):
            X, y, _ = self.at(part)
            yield X, y


def train(
    estimator: Any,
    params: Mapping[str, Any],
    settings: Settings,
    rows: tuple[Any, Any, Any],
    random: RandomSource,
    *,
    state_of: Callable[[RandomSource], Any] = numpy_source,
) -> Any:
    """A fitted copy of `estimator` with these parameters. All that it draws comes from `random`.

    `state_of` makes what a parameter `random_state` is set to.
    """
    model = dense(with_params(estimator, params))
    places = settings.steps(model)
    for place in places:
        source = random.spawn(place.path) if place.path else random
        has = place.has
        if "random" in has:
            place.step.set_params(random=source)
        if "random_state" in has and not (settings.own_entropy and place is places[-1]):
            place.step.set_params(random_state=state_of(source))
        if has.get("verbose"):
            place.step.set_params(verbose=0)  # compiled code prints past what is silenced, once for every run
        if is_diffprivlib(place.step):
            place.step.set_params(accountant=fresh_accountant())
            if "n_jobs" in has:
                # each of several processes would get a copy of the generator, and draw the same noise
                place.step.set_params(n_jobs=1)
    X, y, beside = rows
    reviewed = [place for place in places if settings.base is None and takes_classes_from_rows(place.step)]
    for place in reviewed:
        model = _with_step(model, place.path, KnownClasses(place.step, settings.classes))
    model.fit(X, y, **beside)
    for place in reviewed:
        model = _with_step(model, place.path, place.step)
    return model


def _with_step(model: Any, path: str, step: Any) -> Any:
    return model.set_params(**{path.removesuffix("__"): step}) if path else step


@dataclass(frozen=True, repr=False)
class SearchRun:
    """The objective: train on each part's rows, score on those held out (or on public rows), with one noise for all.

    The value is the packed model. With `shows_sums` the noisy sums follow, from which the score is made: they are what
    its noise pays for. One run alone is not scored (`scoring` None).
    """

    estimator: Any
    settings: Settings
    rows: TrialRows
    parts: Sequence[Part]
    scoring: Scoring | SeveralScores | PublicScores | None
    shows_sums: bool = False

    @of_any_type()
    def __call__(self, params: Mapping[str, Any], random: RandomSource) -> TrialOutput:
        """Train and score with these parameters."""
        source = random.spawn("train")
        models = [
            train(
                self.estimator,
                params,
                self.settings,
                self.rows.training(training),
                source.spawn(fold) if len(self.parts) > 1 else source,
            )
            for fold, (training, _) in enumerate(self.parts)
        ]
        model = models[0] if len(models) == 1 else average_of_folds(models)
        # before the model sees rows that it is to be scored on: what its predict may keep of them must not leave
        value = pack(model)
        if self.scoring is None:
            return TrialOutput(0.0, value)
        if isinstance(self.scoring, PublicScores):
            return TrialOutput(self.scoring(model), value)
        total: Any = 0
        for each, (_, held_out) in zip(models, self.parts, strict=True):
            for X, y in self.rows.scored(held_out):
                total += self.scoring.total(each, X, y)
        sums = self.scoring.noisy(total, random.spawn("score"))
        return TrialOutput(self.scoring.score(sums), (value, sums) if self.shows_sums else value)

    def first(self, params: Mapping[str, Any], random: RandomSource) -> TrialOutput:
        """A run that the further one may follow: in place of the model, the key of all that the further one draws."""
        score, value = self(params, random)
        key = random.spawn("refit").bytes(32)
        return TrialOutput(score, (key, value[1]) if self.shows_sums else key)

    @of_any_type()
    def last(self, final: Settings, params: Mapping[str, Any], value: Any) -> Any:
        """The packed model of the further run, with the `final` settings, and the sums of the run that won."""
        key, *sums = value if self.shows_sums else (value,)
        rows = self.rows.training(np.arange(len(self.rows.y)))
        with threadpool_limits(1):
            packed = pack(train(self.estimator, self._carried(params, final), final, rows, keyed_source(key)))
        return (packed, *sums) if self.shows_sums else packed

    def released(self, value: Any, params: Mapping[str, Any], final: Settings) -> tuple[dict[str, Any], Any]:
        """The parameters and the model of the winner, or of the further run."""
        packed = value[0] if self.shows_sums else value
        return self._carried(params, final), unpack(packed)

    def _carried(self, params: Mapping[str, Any], final: Settings) -> dict[str, Any]:
        """The parameters that won, those that depend on noise and rows changed as the learner's rule does."""
        found, carry = dict(params), LEARNERS["dp-sgd"].carry
        if final.noise == self.settings.noise:
            return found
        first, second = (each.steps(with_params(self.estimator, found)) for each in (self.settings, final))
        for old, new in zip(first, second, strict=True):
            name = f"{old.path}learning_rate"
            if name in found and isinstance(old.step, (DPSGDClassifier, DPSGDRegressor)) and carry is not None:
                found[name] = carry({"learning_rate": found[name]}, old.has, new.has)["learning_rate"]
        return found


class _Packer(ValuePickler):
    def reducer_override(self, obj: Any) -> Any:
        """None in the place of an object that must not leave with a model."""
        if isinstance(obj, _SECRET):
            return type(None), ()
        if type(obj).__name__ == "BudgetAccountant" and is_diffprivlib(obj):
            return fresh_accountant, ()
        return super().reducer_override(obj)


_SECRET = (
    RandomSource,
    np.random.RandomState,
    np.random.Generator,
    np.random.BitGenerator,
    np.random.SeedSequence,
    standard_random.Random,
)


def pack(model: Any) -> bytes:
    """The bytes of a fitted model without any source of randomness."""
    buffer = io.BytesIO()
    _Packer(buffer, protocol=5).dump(model)
    return buffer.getvalue()


def unpack(value: bytes) -> Any:
    """The model that was packed."""
    return pickle.loads(value)
