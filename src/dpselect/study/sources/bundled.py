"""Bundled sets of scikit-learn: `sklearn:digits`, `sklearn:digits/train`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpselect.errors import StudyError
from dpselect.study.sources.table import SOURCES, Origin, Table

__all__ = ["open_bundled"]

_BUNDLED = ("digits", "breast_cancer", "iris", "wine", "diabetes")
_TEST_EVERY = 5


@SOURCES.register("sklearn:")
def open_bundled(origin: Origin) -> Table:
    """A set of scikit-learn: all rows, or one of two parts, every fifth row from the first on being "test"."""
    known, _, part = origin.source.removeprefix("sklearn:").partition("/")
    if known not in _BUNDLED:
        raise StudyError(f"{origin.key}: scikit-learn set {known!r} is not one of {', '.join(_BUNDLED)}")
    if part not in ("", "train", "test"):
        raise StudyError(f"{origin.key}: a part of sklearn:{known} is /train or /test, got {part!r}")
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{known}")()
    names = tuple(str(n) for n in bunch.feature_names)
    tests = np.arange(len(bunch.target)) % _TEST_EVERY == 0
    kept = {"": np.full_like(tests, True), "train": ~tests, "test": tests}[part]

    def read(wanted: Sequence[str]) -> dict[str, Any]:
        columns = {**{n: bunch.data[kept, i] for i, n in enumerate(names)}, "target": bunch.target[kept]}
        return {name: columns[name] for name in wanted}

    return Table((*names, "target"), read, dict.fromkeys(names, "number"))
