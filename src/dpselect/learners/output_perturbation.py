"""Logistic regression by output perturbation: train without privacy, then add noise to the weights."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, number
from dpselect.learners.classifier import PrivateClassifier, flag
from dpselect.learners.rows import PublicRowCountWarning, class_numbers, labels_of, public_classes, unit_rows
from dpselect.learners.strongly_convex import MOST_ROWS_PER_NOMINAL, LogisticProblem
from dpselect.mechanisms.grid import add_on_grid, grid_at_most, rounding_sensitivity
from dpselect.privacy import Adjacency, Guarantee, pure_dp
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.randomness import RandomSource, resolve

__all__ = ["OutputPerturbationClassifier"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class _LinearScorer:
    def scores(self, weights: tuple[Array, ...], rows: Array) -> Array:
        found = rows @ weights[0]
        # one weight vector serves two classes: the first class scores zero
        return np.hstack([np.zeros_like(found), found]) if found.shape[1] == 1 else found


@dataclass(frozen=True)
class _ConstantScorer:
    def scores(self, weights: tuple[Array, ...], rows: Array) -> Array:
        return np.zeros((len(rows), 1))
