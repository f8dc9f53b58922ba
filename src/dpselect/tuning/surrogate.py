"""A surrogate for adaptive proposals: a Gaussian process over settings, in NumPy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpselect.errors import number
from dpselect.numerics.search import Array
from dpselect.tuning.proposals import Observation

__all__ = ["GaussianProcessProposer"]

_FARTHEST = 1e150
"""Scores are clipped here, so that their squares are numbers."""


@dataclass(frozen=True)
class GaussianProcessProposer:
    """A proposer that weighs candidates by a Gaussian process fitted to the scores seen so far.

    The weights are exp(greed (mean + curiosity deviation)). Numbers are put on [0, 1] by their rank among the
    candidates, which are draws from the space's distribution. So a logarithmic or an integer parameter needs no scale,
    and anything else is equal or not. Scores are standardised, and failed runs are one deviation below the worst score.
    With fewer than two scores every candidate weighs the same.

    Args:
        length_scale: the length scale of the kernel in ranks, above 0.
        noise: the deviation of a score about its setting's mean, in deviations of all scores, above 0.
        curiosity: how many deviations count on top of the mean, at least 0.
        greed: how far the best candidate's weight is above the others', at least 0. The ratios of `AdaptiveProposal`
            clip it, so a large one makes the weights equal to those ratios.

    Raises:
        ArgumentError: for numbers out of range.
    """

    length_scale: float = 0.3
    noise: float = 0.5
    curiosity: float = 0.5
    greed: float = 4.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "length_scale", number("length_scale", self.length_scale, above=0.0))
        object.__setattr__(self, "noise", number("noise", self.noise, above=0.0))
        object.__setattr__(self, "curiosity", number("curiosity", self.curiosity, at_least=0.0))
        object.__setattr__(self, "greed", number("greed", self.greed, at_least=0.0))

    def describe(self) -> dict[str, Any]:
        """A JSON-able description."""
        return {"surrogate": "gaussian process", **self.__dict__}

    def __call__(self, history: Sequence[Observation], candidates: Sequence[Mapping[str, Any]]) -> Array:
        """One weight for each candidate."""
        scores = np.array([run.score for run in history])
        finite = np.isfinite(scores)
        scores = np.clip(scores, -_FARTHEST, _FARTHEST)
        if np.count_nonzero(finite) < 2:
            return np.ones(len(candidates))
        centre, spread = float(np.mean(scores[finite])), float(np.std(scores[finite]))
        spread = spread if spread > 0.0 and math.isfinite(spread) else 1.0
        targets = np.where(finite, (scores - centre) / spread, 0.0)
        targets[~finite] = np.min(targets[finite]) - 1.0
        places = _features([run.params for run in history], candidates)
        seen, asked = places[: len(history)], places[len(history) :]
        covariance = self._kernel(seen, seen) + self.noise**2 * np.eye(len(history))
        cross = self._kernel(asked, seen)
        solved = np.linalg.solve(covariance, np.column_stack((targets, cross.T)))
        mean = cross @ solved[:, 0]
        variance = 1.0 - np.sum(cross * solved[:, 1:].T, axis=1)
        value = mean + self.curiosity * np.sqrt(np.maximum(variance, 0.0))
        # the best weighs 1, the others less: no overflow, and rounded so that the last bits do not matter
        return np.exp(np.round(self.greed * (value - np.max(value)), 6))

    def _kernel(self, one: Array, other: Array) -> Array:
        distance = np.sum((one[:, None, :] - other[None, :, :]) ** 2, axis=2)
        return np.exp(-0.5 * distance / self.length_scale**2)


def _features(history: Sequence[Mapping[str, Any]], candidates: Sequence[Mapping[str, Any]]) -> Array:
    """A row for each setting, earlier runs first: ranks of numbers among the candidates, one column for each choice."""
    columns: list[Array] = []
    for name in candidates[0]:
        values = [setting[name] for setting in (*history, *candidates)]
        if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
            known = np.sort([float(setting[name]) for setting in candidates])
            numbers = np.array(values, dtype=np.float64)
            ranks = np.searchsorted(known, numbers, side="left") + np.searchsorted(known, numbers, side="right")
            columns.append(ranks / (2.0 * len(candidates)))
        else:
            choices = sorted({repr(value) for value in values})
            columns += [np.array([repr(value) == choice for value in values]) / math.sqrt(2.0) for choice in choices]
    return np.column_stack(columns) if columns else np.zeros((len(history) + len(candidates), 1))
