"""Labels of which three in ten are positive, and a holdout of them."""

import numpy as np

from dpselect.holdout import Holdout, HoldoutLabels, HoldoutRequest

ROWS = 4000
LABELS = np.where(np.random.default_rng(1).random(ROWS) < 0.3, "cat", "dog")


def made(folder, metric, **changes):
    options = {"metric": metric, "questions": 50, "answers": 10, "failure_probability": 0.05, **changes}
    request = HoldoutRequest(**options)
    positive = None if metric == "accuracy" else "cat"
    where = folder / "x.holdout"
    return Holdout.create(where, HoldoutLabels(ids=range(ROWS), labels=LABELS, positive=positive), request)
