"""Reading what a caller of `PrivateSearchCV.fit` passes, and what must be known of it before anything is charged."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from dpselect.errors import ArgumentError, number
from dpselect.integrations.sklearn.columns import passed_through
from dpselect.integrations.sklearn.diffprivlib_models import takes_classes_from_rows
from dpselect.integrations.sklearn.guarantee import PrivateStep
from dpselect.integrations.sklearn.methods import has_method
from dpselect.learners.column_types import refuse_other_types
from dpselect.learners.containers import is_frame, without_sparsity
from dpselect.learners.learner import PrivateLearner
from dpselect.learners.rows import class_numbers, doubles, labels_of, public_classes, public_row_count, table_shape
from dpselect.learners.rule_classifier import RuleClassifier
from dpselect.preprocessing.maps.row_map import MapOfRows
from dpselect.privacy import Adjacency
from dpselect.tables.frames import refuse_engine

__all__ = [
    "Labels",
    "nominal_rows",
    "public_rows",
    "read_labels",
    "refuse_columns_of_other_types",
    "refuse_engines",
    "rows_taken",
    "sliceable",
]


@dataclass(frozen=True, repr=False)
class Labels:
    """The labels that score a model, those that train it, the value of each for the split, the public classes.

    `usable`: which rows have a label that the estimator can be trained with, each from its own label. For the split a
    label is its class's number, or the number itself.
    """

    scored: NDArray[Any]
    taught: NDArray[Any]
    places: NDArray[Any]
    classes: NDArray[Any] | None
    usable: NDArray[np.bool_]

    def at(self, positions: NDArray[np.intp]) -> Labels:
        """The labels at these positions, of the same classes."""
        scored, taught, places = (part[positions] for part in (self.scored, self.taught, self.places))
        return Labels(scored, taught, places, self.classes, self.usable[positions])


def refuse_engines(X: Any, y: Any, groups: Any, public: Any) -> None:
    """Raise `ArgumentError` for the first of these whose rows are not in memory."""
    pair = public if isinstance(public, (tuple, list)) else ()
    given = [(X, "X"), (y, "y"), (groups, "groups"), *((part, "public_validation") for part in pair)]
    for values, argument in given:
        refuse_engine(values, argument)


def sliceable(X: Any) -> Any:
    """A data frame as it is, anything else as a dense array: numbers, or cells that each keep their own type."""
    if is_frame(X):
        return X
    X = without_sparsity(X)
    table = np.asarray(X)
    return table if table.dtype.kind in "biuf" else np.asarray(X, dtype=object)


def read_labels(
    y: Any, count: int, steps: Sequence[PrivateStep], classes: Sequence[Any] | None, classifier: bool
) -> Labels:
    """The labels of the rows. A cell that is no label, and a label of no class, raises nothing."""
    if classifier:
        labels = labels_of(y, count)
        given = [classes, *(place.has.get("classes") for place in steps)]
        known = public_classes(next((each for each in given if each is not None), None), labels)
        places = class_numbers(labels, known)
        if not any(map(_needs_known_labels, steps)):
            return Labels(labels, labels, places, known, np.ones(count, dtype=bool))
        taught = known[np.maximum(places, 0)]  # all of one type, no matter what stood beside them
        return Labels(taught if np.all(places >= 0) else labels, taught, places, known, places >= 0)
    numbers = doubles(labels_of(y, count))
    usable = np.isfinite(numbers) | (not any(map(_is_of_others, steps)))
    return Labels(numbers, np.where(usable, numbers, 0.0), numbers, None, usable)


def nominal_rows(
    nominal: float | None, count: int, adjacency: Adjacency, steps: Sequence[PrivateStep], *, used: bool
) -> float:
    """The public number of rows. Warns (`PublicRowCountWarning`) if it is X's own, and is `used` or needed by a step.

    Else 1: a score that is not released needs no scale, and one taken from the private number of rows could round
    different scores to equal ones, by that number.
    """
    if nominal is not None:
        return number("nominal_rows", nominal, at_least=1.0)
    if used or any(place.has.get("nominal_rows", 0) is None for place in steps):
        return public_row_count(None, count, adjacency)
    return 1.0


def public_rows(pair: Any, columns: int) -> tuple[Any, Any] | None:
    """The public rows that score the runs. Raises `ArgumentError` unless they are a pair (X, y) that fits X."""
    if pair is None:
        return None
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise ArgumentError("public_validation must be a pair (X, y) of public rows and their labels")
    X, y = sliceable(pair[0]), np.asarray(pair[1])
    if table_shape(X)[1] != columns:
        raise ArgumentError("public_validation must have the columns of X")
    return X, y


def _needs_known_labels(place: PrivateStep) -> bool:
    """Whether it is a classifier of others, which the label of one row could make fail on all."""
    step = place.step
    return has_method(step, "predict") and _is_of_others(place) and not takes_classes_from_rows(step)


def _is_of_others(place: PrivateStep) -> bool:
    return type(place.step).__module__.split(".")[0] != "dpselect"


def refuse_columns_of_other_types(estimator: Any, X: Any) -> None:
    """Raise `ArgumentError` for a column whose type holds no numbers that one of this package's steps gets as it is.

    A `ColumnTransformer` in front hands on some columns unchanged, but without their types, so that the step could not
    tell dates from other objects. Other steps may turn a column into numbers. A dry run shows whether they do.
    """
    steps = [step for _, step in estimator.steps] if isinstance(estimator, Pipeline) else [estimator]
    places: Set[int] | None = None
    for step in steps:
        if isinstance(step, (PrivateLearner, RuleClassifier, MapOfRows)):
            refuse_other_types(X, places)
        elif type(step) is ColumnTransformer and places is None and (is_frame(X) or isinstance(X, np.ndarray)):
            places = passed_through(step, X, table_shape(X)[1])
            continue
        if step not in (None, "passthrough"):
            return


def rows_taken(X: Any, steps: Sequence[PrivateStep]) -> NDArray[np.bool_]:
    """Whether the private steps of others can take each row, by its own cells. dpselect's take all. Shape (rows,).

    They cannot take a cell that is missing, infinite or so large that a product of two could be infinite. They can take
    a cell that is not a number only if the steps' tags tell that they take text or categories.
    """
    foreign = [place.step for place in steps if _is_of_others(place)]
    cells = np.asarray(without_sparsity(X))
    if not foreign or not cells.size:
        return np.ones(len(cells), dtype=bool)
    cells = cells.reshape(len(cells), -1)
    largest = math.sqrt(float(np.finfo(cells.dtype if cells.dtype.kind == "f" else np.float64).max))
    if cells.dtype.kind in "biu":
        return np.ones(len(cells), dtype=bool)
    numbers = cells if cells.dtype.kind == "f" else doubles(cells)
    taken = np.abs(numbers) <= largest
    if cells.dtype.kind != "f" and all(_takes_text(step) for step in foreign):
        text = [not isinstance(cell, Number) for cell in cells.astype(object).ravel().tolist()]
        taken |= np.array(text, dtype=bool).reshape(cells.shape)
    return np.asarray(np.all(taken, axis=1))


def _takes_text(step: Any) -> bool:
    tags = get_tags(step).input_tags
    return bool(tags.string or tags.categorical)
