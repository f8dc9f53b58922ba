"""The released model as a file: plain arrays and a description, no pickles."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, StudyError
from dpselect.privacy import Adjacency
from dpselect.study.data import encode_columns
from dpselect.study.learners import Recipe
from dpselect.study.schema import Column

__all__ = ["ReleasedModel", "load_model", "model_bytes"]

Array = NDArray[np.float64]
_FORMAT = 2


@dataclass(frozen=True, repr=False)
class ReleasedModel:
    """A released classifier for rows as they stand in the study's source, its other columns left out.

    `columns` names the feature columns in the order of the source, with the public facts that encode them.
    """

    columns: Mapping[str, Column]
    classes: tuple[Any, ...]
    estimator: Any

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row. X: a data frame with the columns' names, or a table with the columns in order."""
        return np.asarray(self.classes)[self.estimator.predict(self._encoded(X))]

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes in the order of `classes`, shape (rows, classes)."""
        return np.asarray(self.estimator.predict_proba(self._encoded(X)))

    def _encoded(self, X: Any) -> Array:
        names = list(self.columns)
        if hasattr(X, "columns"):
            table = {name: np.asarray(X[name]) for name in names}
        else:
            rows = np.asarray(X)
            if rows.ndim != 2 or rows.shape[1] != len(names):
                raise ArgumentError(f"X must have {len(names)} columns")
            table = {name: rows[:, i] for i, name in enumerate(names)}
        return encode_columns(table, self.columns)

    def __repr__(self) -> str:
        return f"<ReleasedModel {type(self.estimator).__name__}, {len(self.columns)} columns>"


def model_bytes(
    recipe: Recipe,
    *,
    noise: float,
    parameters: Mapping[str, Any],
    weights: Sequence[Array],
    columns: Mapping[str, Column],
    classes: Sequence[Any],
) -> bytes:
    """The file's bytes (NumPy .npz): the weights and a JSON description. Equal arguments give equal bytes."""
    description = {
        "format": _FORMAT,
        "learner": recipe.kind,
        "shared": dict(recipe.shared),
        "parameters": dict(parameters),
        "noise": noise,
        "nominal_rows": recipe.nominal_rows,
        "adjacency": recipe.adjacency.value,
        "classes": list(classes),
        # a list, because weights belong to columns by their order
        "columns": [{"name": name, **column.model_dump(exclude_none=True)} for name, column in columns.items()],
    }
    buffer = io.BytesIO()
    arrays = {f"weights_{i}": np.asarray(w) for i, w in enumerate(weights)}
    text = np.frombuffer(json.dumps(description).encode(), dtype=np.uint8)
    np.savez(buffer, allow_pickle=False, description=text, **arrays)
    return buffer.getvalue()


def load_model(path: str | Path) -> ReleasedModel:
    """Load the model of a release: `dpselect.load_model("digits-search/model.npz").predict(X)`.

    Raises `StudyError` for a file that is not such a model.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            description = json.loads(archive["description"].tobytes())
            weights = tuple(archive[f"weights_{i}"] for i in range(len(archive.files) - 1))
    except (OSError, ValueError, KeyError):
        raise StudyError(f"{str(path)!r} is not a released model") from None
    if description.get("format") == 1:
        raise StudyError(
            f"{str(path)!r} is a model in format 1, which lost the order of its columns: its predictions may be wrong. "
            "Train it again with this version of dpselect"
        )
    if description.get("format") != _FORMAT:
        raise StudyError(f"{str(path)!r} was written by another version of dpselect")
    columns = {fact.pop("name"): Column.model_validate(fact) for fact in description["columns"]}
    recipe = Recipe(
        description["learner"],
        description["shared"],
        len(description["classes"]),
        description["nominal_rows"] or 1.0,
        Adjacency(description["adjacency"]),
    )
    features = sum(len(column.categories or (0,)) for column in columns.values())
    estimator = recipe.empty_fit(description["noise"], description["parameters"], features)
    estimator.weights_ = weights
    return ReleasedModel(columns, tuple(description["classes"]), estimator)
