"""Cases that several tests share."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpselect.learners import (
    DPSGDClassifier,
    OutputPerturbationClassifier,
)

Estimator = DPSGDClassifier | OutputPerturbationClassifier
PUBLIC: dict[str, Any] = {"classes": [0, 1, 2], "nominal_rows": 60}


def small(kind: str, **changed: Any) -> Estimator:
    parameters = {**PUBLIC, **changed}
    if kind == "output perturbation":
        return OutputPerturbationClassifier(**parameters)
    return DPSGDClassifier(steps=5, hidden_units=0 if kind == "softmax" else 4, **parameters)


def table(rows: int = 60, seed: int = 0) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    return generator.normal(size=(rows, 4)), generator.integers(0, 3, rows)
