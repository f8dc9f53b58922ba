"""A released model in files for other programs, ONNX or joblib: `dpselect export`."""

from __future__ import annotations

import io
from functools import cached_property
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from dpselect.errors import ArgumentError
from dpselect.storage.durable import write_atomically
from dpselect.study.model import ReleasedModel, labels_of
from dpselect.study.model_file import read_model
from dpselect.study.to_onnx.model import onnx_bytes

__all__ = ["ExportedModel", "export_model"]


class ExportedModel(BaseEstimator):  # type: ignore[misc]
    """A released model that scikit-learn takes for a fitted estimator: in a pipeline, a scorer, a voting.

    It holds the bytes of the model file, so a copy, by pickle or joblib, is as small as that file, and is read by the
    checks of `load_model`. `predict` and `predict_proba` are those of the released model, and take what it takes.

    Attributes:
        classes_: the classes in the order of the probabilities; none for a regression.
        feature_names_in_, n_features_in_: the columns.

    `fit` raises `ArgumentError`: what was released is not trained again.
    """

    def __init__(self, content: bytes) -> None:
        """`content` is that of a `model.npz`."""
        self.content = content

    @cached_property
    def model_(self) -> ReleasedModel:
        """The released model. Raises `StudyError` for other bytes."""
        return read_model(self.content, "the exported model")

    @property
    def classes_(self) -> NDArray[Any]:
        if not self.model_.classes:
            raise AttributeError("this model predicts a number: it has no classes")
        return labels_of(self.model_.classes)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        return np.array(list(self.model_.columns), dtype=object)

    @property
    def n_features_in_(self) -> int:
        return len(self.model_.columns)

    def fit(self, X: Any, y: Any = None) -> ExportedModel:  # noqa: ARG002
        """Refuses."""
        raise ArgumentError("a released model is fitted, and is not trained again")

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row, or its number, as an array of shape (rows,)."""
        return self.model_.predict(X)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes in the order of `classes_`, shape (rows, classes)."""
        return self.model_.predict_proba(X)

    def score(self, X: Any, y: Any) -> float:
        """Accuracy on public rows, or R2."""
        from sklearn.metrics import accuracy_score, r2_score

        return float((accuracy_score if self.model_.classes else r2_score)(y, self.predict(X)))

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, RegressorTags

        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier" if self.model_.classes else "regressor"
        tags.classifier_tags = ClassifierTags() if self.model_.classes else None
        tags.regressor_tags = None if self.model_.classes else RegressorTags()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        return {"content": self.content}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return f"<ExportedModel of {self.model_!r}>"


def export_model(model: Path, to: Path) -> None:
    """Write a released model, `model.npz`, for other programs.

    A `.onnx` file needs no dpselect where it is used: any ONNX runtime computes the labels that `predict` returns. A
    `.joblib` file is an `ExportedModel`, an estimator of scikit-learn that loads where dpselect is installed.

    Args:
        model: the path of the `model.npz` of a release.
        to: the path of the new file, which must end in `.onnx` or `.joblib`.

    Returns:
        None.

    Raises:
        ArgumentError: for another ending, a file that cannot be read or written, or a model with a part that has no
            ONNX operators. The error names the part.
        MissingExtraError: for a `.onnx` file if the package onnx is not installed.
        StudyError: if `model` is not a released model.
    """
    if to.suffix not in (".onnx", ".joblib"):
        raise ArgumentError(f"--to: must end in .onnx or .joblib, got {to.name!r}. Write --to {to.stem}.onnx")
    try:
        content = model.read_bytes()
    except OSError as error:
        raise ArgumentError(f"MODEL: {str(model)!r} cannot be read: {error.strerror}") from None
    loaded = read_model(content, str(model))
    exported = onnx_bytes(loaded) if to.suffix == ".onnx" else _joblib_bytes(content)
    try:
        write_atomically(to, exported)
    except OSError as error:
        raise ArgumentError(f"--to: {str(to)!r} cannot be written: {error.strerror}") from None


def _joblib_bytes(content: bytes) -> bytes:
    buffer = io.BytesIO()
    joblib.dump(ExportedModel(content), buffer)
    return buffer.getvalue()
