"""From anything the caller passes to unit rows and class numbers, each row by itself and without ever failing on one.

An exception, a warning or a shape that depends on a value in the data would tell something of the row that holds it.
Hence a cell that is not a finite number counts as zero, and a row that is too long is scaled down. A row whose label is
not a known class contributes nothing. Only the container (a table of so many columns, a dense array, labels of
the same length, and of a type that the classes can have) may be refused.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence, Sized
from contextlib import suppress
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.capabilities import ArrowValues, NumPyArray
from dpselect.errors import ArgumentError, levels_to_the_caller, number
from dpselect.learners.column_types import refuse_other_types
from dpselect.learners.containers import is_arrow_table, is_frame, is_sparse, numpy_kind
from dpselect.learners.fixed_point import truncate
from dpselect.numerics.search import Array
from dpselect.privacy import Adjacency
from dpselect.tables.column_cells import cells_in, unmasked
from dpselect.tables.frames import only_column, refuse_engine
from dpselect.tables.numbers import double_of

__all__ = [
    "MOST_ROWS",
    "MOST_SPARSE_CELLS",
    "DataDependentClassesWarning",
    "PublicRowCountWarning",
    "class_numbers",
    "column_names",
    "doubles",
    "labels_of",
    "number_table",
    "public_bounds",
    "public_classes",
    "public_row_count",
    "public_weights",
    "same_names",
    "table_shape",
    "targets_of",
    "unit_rows",
]

MOST_ROWS = 2**27
"""Larger tables are refused: the exactness of the sums is proved up to here."""

MOST_SPARSE_CELLS = 2**28
"""Cells of a sparse table that are made dense: two gibibytes."""

_MOST_FEATURES = 2**20
_SPARSE_CHUNK = 2**20
"""Cells of a sparse table that are made dense at a time."""


class DataDependentClassesWarning(UserWarning):
    """The classes were taken from the labels, and so the guarantee holds only if the set of labels is public."""


class PublicRowCountWarning(UserWarning):
    """The number of rows was used as if it were public, under an adjacency that means to hide it."""


def table_shape(X: Any) -> tuple[int, int]:
    """The shape of a two-dimensional table. Raises `ArgumentError` for another shape, or too large a sparse one."""
    refuse_engine(X, "X")
    if numpy_kind(X) == "c":
        raise ArgumentError("Complex data not supported: X must be real")
    shape = X.shape if is_sparse(X) else _array_of(X).shape
    if len(shape) != 2:
        raise ArgumentError(
            f"Expected 2D array, got {len(shape)}D array instead for X. Reshape your data either using "
            "array.reshape(-1, 1) if it has a single feature or array.reshape(1, -1) if it is a single sample."
        )
    rows, features = shape
    if features < 1 or features > _MOST_FEATURES:
        raise ArgumentError(
            f"X has {features} feature(s) (shape={shape}) while a minimum of 1 is required "
            f"and at most {_MOST_FEATURES} are taken"
        )
    if rows > MOST_ROWS:
        raise ArgumentError(f"X must have at most {MOST_ROWS} rows")
    if is_sparse(X) and rows * features > MOST_SPARSE_CELLS:
        raise ArgumentError(
            f"a sparse X must have at most {MOST_SPARSE_CELLS} cells, rows times columns, as learners keep dense rows: "
            "make fewer columns of it, such as HashingVectorizer(n_features=1024) does"
        )
    return rows, features


def number_table(X: Any) -> tuple[int, int]:
    """`table_shape`. Raises `ArgumentError` also for a column of dates, durations or categories, by its type."""
    refuse_other_types(X)
    return table_shape(X)


def _array_of(X: Any) -> NDArray[Any]:
    """X as an array. A cell of a list of rows may be anything, also a list, for which NumPy finds no shape."""
    lists = isinstance(X, (list, tuple)) and all(isinstance(row, (list, tuple)) for row in X)
    if not lists or len({len(row) for row in X}) != 1:
        return np.asarray(X)
    with suppress(ValueError):
        return np.asarray(X)
    cells = np.empty((len(X), len(X[0])), dtype=object)
    for place, row in enumerate(X):
        for column, cell in enumerate(row):
            cells[place, column] = cell
    return cells


def column_names(X: Any) -> list[Any] | None:
    """The names of a table's columns, texts or not, or None for a table without any.

    scikit-learn compares the names of frames whose names are all text, and takes the columns of others (an Arrow table,
    a frame whose names are numbers) as they come.
    """
    names = X.column_names if is_arrow_table(X) else X.columns if is_frame(X) else None
    return None if names is None or callable(names) else list(names)


def same_names(trained: list[Any] | None, X: Any) -> None:
    """Raise `ArgumentError` if both the training table and X name their columns, and not alike."""
    found = column_names(X)
    if trained is not None and found is not None and trained != found:
        raise ArgumentError("the columns of X must have the names of those in training, in the same order")


def doubles(X: Any) -> Array:
    """Every cell as a float64, shape of X, or NaN for a cell that is not a number at all.

    A cell's value is `double_of(cell)`, regardless of the others: letting NumPy find one type for the whole table would
    let one row's text change how the others are read. A cell that is masked is missing.
    """
    if is_sparse(X):
        return np.asarray(X.toarray(), dtype=np.float64, order="C")
    if is_arrow_table(X):
        # NumPy's own conversion has the last category where a cell of a dictionary is missing
        return np.column_stack(
            [doubles(cells_in(X.column(place), doubles=True)) for place in range(len(X.column_names))]
        )
    X = unmasked(X)
    table = _array_of(X)
    if table.dtype.kind in "biuf":
        with np.errstate(over="ignore"):  # of a longer type; a warning would tell of a cell
            return np.array(table, dtype=np.float64, order="C")
    cells = table if table.dtype.kind == "O" else np.asarray(X, dtype=object)
    return np.array([double_of(cell) for cell in cells.ravel()], dtype=np.float64).reshape(cells.shape)


def unit_rows(X: Any, row_norm: float, *, intercept: float) -> Array:
    """The rows divided by `row_norm` and scaled into the unit ball, in fixed point, shape (rows, features [+ 1]).

    `intercept` appends that constant, in fixed point, unless it is 0: a row's norm is at most sqrt(1 + intercept^2).
    Each row is a function of that row of `X` alone. Its entries are first divided by the largest and put in fixed
    point, so that the sum of their squares is exact and cannot overflow.

    >>> unit_rows([[3.0, 4.0], [0.5, float("nan")]], 1.0, intercept=False).round(3)
    array([[0.6, 0.8],
           [0.5, 0. ]])
    """
    if is_sparse(X):
        return _unit_rows_of_sparse(X, row_norm, intercept)
    rows = np.nan_to_num(doubles(X), copy=False, nan=0.0, posinf=0.0, neginf=0.0)
    ends = np.max(rows, axis=1, initial=0.0, keepdims=True), np.min(rows, axis=1, initial=0.0, keepdims=True)
    largest = np.maximum(ends[0], 0.0 - ends[1])
    rows /= np.where(largest > 0.0, largest, 1.0)
    truncate(rows, out=rows)
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    with np.errstate(over="ignore"):
        # shrunk by 2**-40 for the rounding of the square root, the quotient and the product
        scale = np.minimum(largest / row_norm, 1.0 / np.maximum(norms, 1.0)) * (1.0 - 2.0**-40)
    rows *= scale
    truncate(rows, out=rows)
    return np.hstack([rows, truncate(np.full((len(rows), 1), float(intercept)))]) if intercept else rows


def _unit_rows_of_sparse(X: Any, row_norm: float, intercept: float) -> Array:
    """The same from a sparse table, some rows at a time: only the result is as large as the dense table."""
    table, (count, features) = X.tocsr(), X.shape
    rows = np.empty((count, features + bool(intercept)))
    step = max(1, _SPARSE_CHUNK // features)
    for start in range(0, count, step):
        rows[start : start + step] = unit_rows(table[start : start + step].toarray(), row_norm, intercept=intercept)
    return rows


def targets_of(y: Any, rows: int, bounds: tuple[float, float]) -> Array:
    """Numbers to predict, clipped at the bounds and scaled to [-1, 1], in fixed point, or NaN if not a number.

    Shape (rows,). Raises `ArgumentError` for another shape.
    """
    low, high = bounds
    found = doubles(labels_of(y, rows))
    inside = np.clip(found, low, high)
    return truncate(np.clip((inside - (low / 2.0 + high / 2.0)) / (high / 2.0 - low / 2.0), -1.0, 1.0))


def public_bounds(label_bounds: Any) -> tuple[float, float]:
    """The bounds of the labels. Raises `ArgumentError` if they are not two such numbers."""
    if label_bounds is None:
        raise ArgumentError(
            "label_bounds must be given: the least and the largest label, public, not from y "
            "itself. Write label_bounds=(0, 100) with yours"
        )
    try:
        low, high = label_bounds
    except (TypeError, ValueError):
        raise ArgumentError(
            f"label_bounds must be two numbers, got {label_bounds!r}. Write label_bounds=(0, 100)"
        ) from None
    low = number("the lower of label_bounds", low, at_least=-1e300, at_most=1e300)
    return low, number("the upper of label_bounds", high, above=low, at_most=1e300)


def public_weights(weights: Mapping[Any, float] | Sequence[float] | str | None, classes: NDArray[Any]) -> Array:
    """The weight of each class, the largest being 1, shape (classes,).

    `weights`: by class (1 for those that it does not name), or one for each class in order. Raises `ArgumentError` for
    what names no class, for another number of weights, and for a weight that is not positive.
    """
    found = np.ones(len(classes))
    if isinstance(weights, (str, bytes)) or not (weights is None or isinstance(weights, Sized)):
        raise ArgumentError(
            f"class_weights must be numbers, public and not counted in y, such as {{label: 2.0}} or one for each of "
            f'the {len(classes)} classes in order, or "balanced" for learners by gradients, got {weights!r}'
        )
    if weights is not None and not isinstance(weights, Mapping):
        if len(weights) != len(classes):
            raise ArgumentError(f"class_weights must hold a weight for each of the {len(classes)} classes")
        weights = dict(zip(classes.tolist(), weights, strict=True))
    for name, weight in ({} if weights is None else weights).items():
        place = class_numbers(np.array([name], dtype=object), classes)[0]
        if place < 0:
            raise ArgumentError(f"class_weights names {name!r}, which is none of the classes")
        found[place] = number(f"class_weights[{name!r}]", weight, above=0.0, at_most=1e9)
    return found / np.max(found)


def labels_of(y: Any, rows: int) -> NDArray[Any]:
    """The labels as a one-dimensional array of the given length. Raises `ArgumentError` for another shape."""
    if y is None:
        raise ArgumentError(
            "This estimator requires y to be passed, but the target y is None; y must hold the labels. "
            "Write search.fit(X, y)"
        )
    refuse_engine(y, "y")
    y = only_column(y, "y") if is_arrow_table(y) else y
    y = cells_in(y) if isinstance(y, ArrowValues) else unmasked(y)
    if type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind != "c":
        labels = y
    elif isinstance(y, NumPyArray):
        from sklearn.utils.validation import column_or_1d  # takes a second to import; a study needs none of it

        labels = np.asarray(column_or_1d(y, warn=True))
    else:
        # not np.array(y): one row's text would turn all the others' numbers into text
        labels = np.fromiter(y, dtype=object, count=len(y))
    if len(labels) != rows:
        raise ArgumentError("y must have one label for each row of X: their lengths differ")
    return labels


def public_classes(classes: Sequence[Any] | NDArray[Any] | None, labels: NDArray[Any] | None) -> NDArray[Any]:
    """The sorted class labels: the caller's, or with a `DataDependentClassesWarning` those found in the data.

    Raises `ArgumentError` when `classes` is empty or repeats itself, or when there is neither a class nor a label. It
    is also raised when no label of the labels' type can be one of `classes`, which is public.
    """
    if classes is not None:
        given = np.asarray(classes)
        found = np.unique(given)
        if given.ndim != 1 or not len(given) or len(found) != len(given):
            raise ArgumentError(
                "classes must be a list of distinct labels, at least one. Write classes=[0, 1] with yours"
            )
        if labels is not None:
            _refuse_other_types(given, labels.dtype)
        return found
    labels = np.empty(0) if labels is None else labels
    warnings.warn(
        "classes was not given, so the class labels are taken from y; that a class occurs can reveal the only row that "
        "has it, and the guarantee holds only if the set of labels is public: pass classes=[...]",
        DataDependentClassesWarning,
        stacklevel=levels_to_the_caller(),
    )
    present = np.array([label for label in labels.tolist() if _is_label(label)])
    if not len(present):
        raise ArgumentError("classes must be given when y holds no label (0 sample(s)) to take it from")
    from sklearn.utils.multiclass import check_classification_targets

    check_classification_targets(present)
    return np.unique(present)


def _refuse_other_types(classes: NDArray[Any], labels: np.dtype[Any]) -> None:
    """Raise `ArgumentError` where the type of the labels, not their values, shows that none of them is a class."""
    if any(_of_type(label, labels) for label in classes.tolist()):
        return
    raise ArgumentError(
        f"classes={classes.tolist()!r} and y have nothing in common: y's type is {labels}, so that no row would have a "
        "class and nothing could be learnt. Give classes as the labels are, such as classes=[0, 1] for integers, "
        "or change y's type"
    )


def _of_type(label: Any, kind: np.dtype[Any]) -> bool:
    """Whether an array of this type can hold a label that is equal."""
    if kind.kind == "U":
        return isinstance(label, str)
    if kind.kind == "S":
        return isinstance(label, bytes)
    if kind.kind not in "biuf":
        return True
    if isinstance(label, str | bytes) or not isinstance(label, Number):
        return False
    if kind.kind == "f":
        return True
    low, high = (0, 1) if kind.kind == "b" else (np.iinfo(kind).min, np.iinfo(kind).max)
    return bool(low <= label <= high and label == int(label))  # type: ignore[operator, call-overload]


def _is_label(label: Any) -> bool:
    """Whether a cell holds a label at all: neither missing nor infinite."""
    return label is not None and not (isinstance(label, float) and not math.isfinite(label))


def public_row_count(nominal: float | None, count: int, adjacency: Adjacency) -> float:
    """The public normaliser: the caller's, or the number of rows, which add/remove adjacency means to hide."""
    if nominal is not None:
        return nominal
    if adjacency is Adjacency.ADD_OR_REMOVE_ONE:
        warnings.warn(
            "nominal_rows was not given, so the number of rows of X is used as if it were public, which "
            "add_or_remove_one means to hide: pass nominal_rows=(a public guess)",
            PublicRowCountWarning,
            stacklevel=levels_to_the_caller(),
        )
    return float(max(count, 1))


def class_numbers(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Each label's place in `classes`, or -1 for a label that is not among them. Never fails on a label.

    >>> class_numbers(np.array([7.0, float("nan"), 3.0]), np.array([3, 7])).tolist()
    [1, -1, 0]
    """
    if labels.dtype.kind in "biuf" and classes.dtype.kind in "biuf":
        place = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        return np.where(classes[place] == labels, place, -1)
    known = {label: k for k, label in enumerate(classes.tolist())}
    return np.array([_lookup(known, label) for label in labels.tolist()], dtype=np.intp)


def _lookup(known: dict[Any, int], label: Any) -> int:
    try:
        return known.get(label, -1)
    except TypeError:  # an unhashable label
        return -1
