"""The released model as a file: plain arrays and a description, no pickles, and nothing trusted when it is read."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from dpselect.cures import near_file
from dpselect.decoding.arrays import arrays_of
from dpselect.decoding.files import read_content
from dpselect.decoding.json_text import json_of
from dpselect.decoding.limits import DOCUMENT, MODEL, LimitError
from dpselect.errors import ArgumentError, StudyError
from dpselect.numerics.search import Array
from dpselect.privacy import Adjacency
from dpselect.study.columns.column import OF_A_MODEL, Column
from dpselect.study.learners import LEARNERS
from dpselect.study.learners.recipe import Recipe
from dpselect.study.model import ReleasedModel
from dpselect.study.schema import Positive
from dpselect.study.target import Target
from dpselect.study.user_module import function_of
from dpselect.tables.kinds.declared import Scalar

__all__ = ["load_model", "model_bytes", "read_model"]

_FORMAT = 3
_EARLIER = {
    1: "which lost the order of its columns: its predictions may be wrong",
    2: "whose features lay between 0 and 1, where they now have their middle at 0",
}
_UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
"""What the checks below raise for a description and weights that are none, or do not belong together."""


class _NamedColumn(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    facts: Column


class _Description(BaseModel):
    """What stands beside the weights. `columns` is a list, because weights belong to columns by their order."""

    model_config = ConfigDict(extra="forbid")
    format: Literal[3]
    learner: str
    shared: dict[str, Any]
    parameters: dict[str, Any]
    noise: Positive
    nominal_rows: Positive | None
    adjacency: Adjacency
    classes: Annotated[tuple[Scalar, ...], Field(min_length=2)] | None = None
    label_bounds: tuple[float, float] | None = None
    columns: Annotated[tuple[_NamedColumn, ...], Field(min_length=1)]


def model_bytes(recipe: Recipe, *, noise: float, parameters: Mapping[str, Any], weights: Sequence[Array]) -> bytes:
    """The file's bytes (NumPy .npz): the weights and a JSON description. Equal arguments give equal bytes."""
    columns = [{"name": name, "facts": each.model_dump(exclude_none=True)} for name, each in recipe.columns.items()]
    description = {
        "format": _FORMAT,
        "learner": recipe.kind,
        "shared": dict(recipe.shared),
        "parameters": dict(parameters),
        "noise": noise,
        "nominal_rows": recipe.nominal_rows,
        "adjacency": recipe.adjacency.value,
        **_label(recipe.target),
        "columns": columns,
    }
    buffer = io.BytesIO()
    # numbers, of which nothing is pickled; `allow_pickle=` would be taken for an array's name by NumPy 1
    arrays: dict[str, Any] = {f"weights_{i}": np.asarray(w, dtype=np.float64) for i, w in enumerate(weights)}
    text = np.frombuffer(json.dumps(description).encode(), dtype=np.uint8)
    np.savez(buffer, description=text, **arrays)
    return buffer.getvalue()


def load_model(path: str | Path, *, module: str | Callable[[int, int], Any] | None = None) -> ReleasedModel:
    """Load the model of a release: `dpselect.load_model("digits-search/model.npz").predict(X)`.

    Nothing in the file is executed, and no code that it names.

    Args:
        path: the `model.npz` of a release.
        module: the function that made the network, for a model of the learner "torch", or its name, such as
            "my_models:build". It is called.

    Returns:
        The `ReleasedModel`, with `predict`, `partial_dependence` and, for classes, `predict_proba`.

    Raises:
        TypeError: if `path` is not the name of a file.
        StudyError: for a file that cannot be read or is not such a model, no matter what it holds. Also for a network
            without `module`, or with another one than made it.
    """
    if not isinstance(path, (str, Path)):
        raise TypeError(f'path must be the name of a file, got {type(path).__name__}. Write load_model("model.npz")')
    try:
        content = read_content(Path(path), MODEL)
    except IsADirectoryError:
        raise StudyError(f"cannot read the model {str(path)!r}: it is a folder; give the model.npz in it") from None
    except OSError as error:
        said = f"cannot read the model {str(path)!r}: {error.strerror or 'not readable'}"
        raise StudyError(said + near_file(path)) from None
    except LimitError as error:
        raise StudyError(f"cannot read the model {str(path)!r}: {error}") from None
    return read_model(content, str(path), module=module)


def read_model(content: bytes, shown: str, *, module: str | Callable[[int, int], Any] | None = None) -> ReleasedModel:
    """The model in these bytes; `shown` is what errors call them. Raises `StudyError` as `load_model` does."""
    try:
        # a release is not compressed: it unpacks to less than there is
        arrays = arrays_of(content, replace(MODEL, decoded=len(content)), "the model")
        document = json_of(arrays.pop("description").tobytes(), DOCUMENT, "the model's description")
        _check_format(document, shown)
        description = _Description.model_validate(document, context=OF_A_MODEL)
        code = description.learner in LEARNERS and LEARNERS[description.learner].code
        if code:
            _check_module(description, shown, module)
        return _model_of(description, arrays, {"module": module} if code else {})
    except _Refused:
        raise
    except _UNREADABLE:
        near = near_file(Path(shown).with_name("model.npz"))
        said = f"{shown!r} is not a released model, or is damaged: give the model.npz of a release"
        raise StudyError(said + near) from None


def _label(target: Target) -> dict[str, Any]:
    """What the description says of the label."""
    return {"classes": list(target.classes)} if target.bounds is None else {"label_bounds": list(target.bounds)}


class _Refused(StudyError):
    """A model of another format."""


def _check_format(document: Any, path: str) -> None:
    found = document.get("format") if isinstance(document, dict) else None
    if found in _EARLIER:
        raise _Refused(f"{path!r} is a model in format {found}, {_EARLIER[found]}. Train it again with this version")
    if found is not None and found != _FORMAT:
        raise _Refused(f"{path!r} was written by another version of dpselect")


def _check_module(description: _Description, shown: str, module: Any) -> None:
    """Raise if no module is given for a network, or one that cannot be used. The file's own is never taken."""
    named = str({**description.shared, **description.parameters}.get("module"))
    if module is None:
        raise _Refused(
            f"{shown!r} is a network of {named!r}, whose code is not in the file: give load_model(path, module=the "
            "function), or dpselect predict --module"
        )
    try:
        function_of(module)
    except ArgumentError as error:
        raise _Refused(str(error)) from None


def _model_of(description: _Description, arrays: Mapping[str, NDArray[Any]], given: Mapping[str, Any]) -> ReleasedModel:
    """Rebuild the estimator; raises `ArgumentError` where the parts do not belong together.

    `given` are parameters that are not taken from the file.
    """
    columns = {column.name: column.facts for column in description.columns}
    if description.learner not in LEARNERS or len(columns) != len(description.columns):
        raise ArgumentError("no such learner, or two columns of one name")
    if (description.classes is None) == (description.label_bounds is None):
        raise ArgumentError("a label has classes or bounds")
    target = Target(description.classes or (), description.label_bounds)
    # None where the number of rows is public: what was trained with it has the shape that follows from none
    rows, adjacency = description.nominal_rows, description.adjacency
    if rows is None and adjacency is Adjacency.ADD_OR_REMOVE_ONE:
        rows = 1.0
    recipe = Recipe(description.learner, description.shared, target, rows, adjacency, columns)
    estimator = recipe.empty_fit(description.noise, {**description.parameters, **given})
    weights = [arrays.get(f"weights_{i}") for i in range(len(arrays))]
    right = [len(weights) == len(estimator.weights_)]
    right += [
        w is not None and w.dtype == np.float64 and w.shape == empty.shape
        for w, empty in zip(weights, estimator.weights_, strict=False)
    ]
    if not all(right) and given:
        raise _Refused("the weights are not those of the network that module= makes: give the one that was trained")
    if not all(right):
        raise ArgumentError("the weights are not those of this learner")
    estimator.weights_ = tuple(weights)
    return ReleasedModel(columns, target.classes, estimator, target.bounds)
