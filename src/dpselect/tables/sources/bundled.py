"""Bundled sets of scikit-learn: `sklearn:digits`, `sklearn:digits/train`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

import numpy as np

from dpselect.errors import ArgumentError
from dpselect.tables.table import SOURCES, Origin, Table

__all__ = ["open_bundled"]

_NUCLEUS = (
    *("radius", "texture", "perimeter", "area", "smoothness"),
    *("compactness", "concavity", "concave points", "symmetry", "fractal dimension"),
)
_BUNDLED: Final = {
    "digits": tuple(f"pixel_{row}_{column}" for row in range(8) for column in range(8)),
    "breast_cancer": tuple(form.format(name) for form in ("mean {}", "{} error", "worst {}") for name in _NUCLEUS),
    "iris": tuple(f"{part} {side} (cm)" for part in ("sepal", "petal") for side in ("length", "width")),
    "wine": (
        *("alcohol", "malic_acid", "ash", "alcalinity_of_ash", "magnesium", "total_phenols", "flavanoids"),
        *("nonflavanoid_phenols", "proanthocyanins", "color_intensity", "hue", "od280/od315_of_diluted_wines"),
        "proline",
    ),
    "diabetes": ("age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6"),
}
"""The features' names, as scikit-learn has them: it takes a second to import, and a check of a study reads no row."""
_TEST_EVERY: Final = 5


@SOURCES.register("sklearn:")
def open_bundled(origin: Origin) -> Table:
    """A set of scikit-learn: all rows, or one of two parts, every fifth row from the first on being "test"."""
    known, _, part = origin.source.removeprefix("sklearn:").partition("/")
    if known not in _BUNDLED:
        raise ArgumentError(f"{origin.key}: scikit-learn set {known!r} is not one of {', '.join(_BUNDLED)}")
    if part not in ("", "train", "test"):
        raise ArgumentError(f"{origin.key}: a part of sklearn:{known} is /train or /test, got {part!r}")
    names = _BUNDLED[known]

    def chunks(wanted: Sequence[str], numbers: Collection[str]) -> Iterator[dict[str, Any]]:  # noqa: ARG001
        from sklearn import datasets

        rows, labels = vars(datasets)[f"load_{known}"](return_X_y=True)
        tests = np.arange(len(labels)) % _TEST_EVERY == 0
        kept = {"": np.full_like(tests, True), "train": ~tests, "test": tests}[part]
        columns = {**{name: rows[kept, i] for i, name in enumerate(names)}, "target": labels[kept]}
        yield {name: columns[name] for name in wanted}

    return Table((*names, "target"), chunks, dict.fromkeys(names, "number"))
