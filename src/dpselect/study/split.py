"""Step 4 of a study: bounds that are bought, which rows train and which validate, and with them one run of its search.

Bounds that no one knows are bought on all private rows, before any run and before the rows are dealt to parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.privacy import Adjacency
from dpselect.randomness import RandomSource
from dpselect.searching.portfolio import CandidateTrials
from dpselect.searching.stages import FirstStage
from dpselect.study.bounds import buy, known_columns
from dpselect.study.cell_counts import with_bounds
from dpselect.study.data import Rows
from dpselect.study.learners.recipe import Recipe, Training, trained
from dpselect.study.load import Opened
from dpselect.study.metrics import Metric, ScoreNoise
from dpselect.study.portfolio import agreement, fitted, size
from dpselect.study.price import Priced
from dpselect.study.schema import Study
from dpselect.tuning import SharedRelease
from dpselect.tuning.trial import Objective, TrialOutput

__all__ = ["NothingToTrain", "StudyObjective", "prepared", "split"]

Array = NDArray[Any]


@dataclass(frozen=True, repr=False)
class OneModel:
    """Trains one model with the parameters of the run."""

    recipe: Recipe
    noise: float

    def __call__(
        self, params: Mapping[str, Any], random: RandomSource, rows: Training
    ) -> tuple[Any, tuple[Array, ...]]:
        """The model; there is nothing to tell of it."""
        return trained(self.recipe.estimator(self.noise, params, random.spawn("train")), rows), ()


@dataclass(frozen=True, repr=False)
class StudyObjective:
    """The objective of a study: trains on one part of the rows, scores on the other, or on the same.

    The score is that of the study's metric: with noise when the rows are private, without when they are public
    (`noise` None). One run alone need not be scored (`validation` None). The value is the tuple of weight arrays,
    before them the place of a candidate that was chosen, behind them the cells of the metric with their noise if the
    score is to be released, and `beside`, which all runs share. Nothing is drawn but from the trial's source.
    """

    train: OneModel | CandidateTrials
    training: Training
    validation: tuple[Array, Array] | None
    score_rows: float
    score_noise: ScoreNoise | None
    metric: Metric
    shows_score: bool
    beside: tuple[Array, ...] = ()

    def __call__(self, params: Mapping[str, Any], random: RandomSource) -> TrialOutput:
        """Train and score with these parameters."""
        model, told = self.train(params, random, self.training)
        weights = (*told, *(np.asarray(w) for w in model.weights_))
        if self.validation is None:
            return TrialOutput(0.0, (*weights, *self.beside))
        features, labels = self.validation
        cells = self.metric.cells(model, features, labels)
        if self.score_noise is not None:
            cells = self.metric.noisy(cells, self.score_noise, random.spawn("score"))
        score = self.metric.score(cells, rows=self.score_rows, noise=self.score_noise)
        shown = (cells,) if self.shows_score else ()
        return TrialOutput(score, (*weights, *shown, *self.beside))

    def keyed(self, key: bytes) -> tuple[Array, ...]:
        """The value of a run that a last run follows: a key in place of the weights."""
        return (np.frombuffer(key, dtype=np.uint8), *self.beside)


@dataclass(frozen=True, repr=False)
class NothingToTrain:
    """The objective of a study whose cells cannot be read: each run gives what was released before the runs."""

    beside: tuple[Array, ...]

    def __call__(self, params: Mapping[str, Any], random: RandomSource) -> TrialOutput:  # noqa: ARG002
        """The same for every run."""
        return TrialOutput(0.0, self.beside)


def prepared(opened: Opened) -> Objective | SharedRelease:
    """One run of the search, or where bounds or counts are bought what buys them first; with the price of all else."""
    beside = opened.priced.price.beside
    return split(opened) if beside is None else SharedRelease(partial(_bought, opened), beside)


def _bought(opened: Opened, random: RandomSource) -> Objective:
    """One run of the search, with what every run carries along: bounds that are bought, then counts of cells."""
    known, beside = _with_bounds(opened, random)
    price = opened.priced.price.cells
    if price is not None:
        noisy = price.noisy(_cells(known), random.spawn("dpselect").spawn("cells"))
        beside = (*beside, noisy)
        if price.withheld(noisy):
            return NothingToTrain(beside)
    return split(known, beside)


def _cells(opened: Opened) -> NDArray[np.int64]:
    """The true counts, under the bounds that were bought."""
    rows, columns = opened.rows, opened.priced.settled.columns
    assert rows.cells is not None
    cells = rows.cells.copy()
    for place, (name, column) in enumerate(columns.items()):
        if isinstance(rows, Rows) and name in rows.numbers:
            cells[place] = with_bounds(cells[place], rows.numbers[name], column)
    return cells


def _with_bounds(opened: Opened, random: RandomSource) -> tuple[Opened, tuple[Array, ...]]:
    """The study with the bounds that are bought, and these."""
    settled, purchase = opened.priced.settled, opened.priced.price.purchase
    if purchase is None:
        return opened, ()
    rows = opened.rows
    assert isinstance(rows, Rows), "bounds that are private are a reason to read"
    limits = buy(purchase, settled.columns, rows.numbers, random)
    columns = known_columns(purchase, settled.columns, limits)
    known = replace(
        opened,
        priced=replace(opened.priced, settled=settled.with_columns(columns)),
        rows=rows.with_columns(columns),
        validation=None if opened.validation is None else opened.validation.with_columns(columns),
    )
    return known, (limits,)


def split(opened: Opened, beside: tuple[Array, ...] = ()) -> StudyObjective | FirstStage:
    """One run: on the parts of the private rows; or on all of them, scored by these, by public rows or not at all."""
    settled, rows = opened.priced.settled, opened.rows
    study = settled.study
    training, validation = rows.parts(study)
    score_rows = 1.0
    if opened.validation is not None:
        validation = (opened.validation.features, opened.validation.labels)
        score_rows = float(len(opened.validation.labels))
    elif validation is not None:
        score_rows = _public_rows(study, validation[1], study.validation.fraction)
    elif isinstance(rows, Rows) and study.validation.data == "training":
        validation, score_rows = rows.all, _public_rows(study, rows.labels, 1.0)
    run = StudyObjective(
        train=_training(opened.priced),
        training=training,
        validation=validation,
        score_rows=score_rows,
        score_noise=opened.priced.score_noise,
        metric=settled.metric,
        shows_score=settled.shows_score,
        beside=beside,
    )
    return run if opened.priced.price.second is None else FirstStage(run, "second", run.keyed)


def _public_rows(study: Study, labels: Array, share: float) -> float:
    """About how many rows score, a public figure."""
    if study.privacy.adjacency is Adjacency.REPLACE_ONE:
        return max(1.0, float(len(labels)))  # the rows are dealt by their positions
    return max(1.0, (study.privacy.nominal_rows or 1) * share)


def _training(priced: Priced) -> OneModel | CandidateTrials:
    settled, price = priced.settled, priced.price
    if price.portfolio is None:
        return OneModel(settled.recipe, price.noise)
    compared = agreement(settled.study.data.target, settled.recipe.shared.get("class_weights"))
    fits = [partial(fitted, each.recipe) for each in settled.candidates]
    return CandidateTrials(fits, price.portfolio, compared.cells, size, settled.recipe.nominal_rows)
