"""A private threshold on one column as a scikit-learn classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import integer
from dpselect.learners.rule_classifier import RuleClassifier
from dpselect.ordered import ThresholdLearner, learn_threshold
from dpselect.ordered.labelled_rows.threshold_plan import ThresholdMethod
from dpselect.ordered.labelled_rows.thresholds import Side
from dpselect.privacy import Guarantee

__all__ = ["PrivateThresholdClassifier"]


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateThresholdClassifier(RuleClassifier):
    """Two classes told apart by one number of each row: `learn_threshold` as a scikit-learn classifier, pure privacy.

    Args:
        lower, upper: public bounds of the column; values beyond them count as the bounds.
        granularity: the threshold is a multiple of it; see `learn_threshold`.
        column: which column of X is used; the others are not looked at.
        positives: where the second class is: "below" the threshold, "above" it, or "either": learnt too.
        epsilon: the price of one fit, above 0.
        method: "errors", for any labels, or "interior-point" (with a direction), for labels without error.
        classes: the two class labels, public. None takes them from y, with a `DataDependentClassesWarning`.
        adjacency: "add_or_remove_one" or "replace_one".
        spender, label: where each fit is paid, before it looks at a row, and its name in the record.
        random: a `RandomSource`, or None for the system's entropy. Each fit draws from it again.

    Attributes:
        classes_, n_features_in_: as in scikit-learn.
        rule_: the `Threshold`; the second class is positive.
        receipt_: what the spender gave; None without one.
        guarantee_: what the fit promises; the same as `guarantee()`.

    A cell that is missing or not a number leaves its row out, and is predicted as the first class. A row with
    another label is left out. `fit` raises `ArgumentError` or `TypeError` for parameters and for a container (shape,
    complex numbers), never because of what the rows hold.

    >>> from dpselect.randomness import keyed_source
    >>> model = PrivateThresholdClassifier(lower=0, upper=9, epsilon=5.0, classes=["no", "yes"], random=keyed_source(1))
    >>> X = np.linspace(0, 9, 400)[:, None]
    >>> model.fit(X, np.where(X[:, 0] > 6, "yes", "no")).predict([[1.0], [8.0]]).tolist()
    ['no', 'yes']
    """

    lower: float = 0.0
    upper: float = 1.0
    granularity: float | None = None
    column: int = 0
    positives: Side = "either"
    epsilon: float = 1.0
    method: ThresholdMethod = "errors"
    label: str = "threshold"

    def guarantee(self) -> Guarantee:
        """The guarantee of one `fit`, from the parameters alone.

        >>> PrivateThresholdClassifier(epsilon=0.5).guarantee().epsilon(delta=0)
        0.5
        """
        return ThresholdLearner(epsilon=self.epsilon, method=self.method, adjacency=self.adjacency).guarantee

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows X of shape (rows, features) and labels y of shape (rows,)."""
        self.guarantee()  # raises for parameters before there is anything to see
        table, numbers = self._read(X, y)
        place = integer("column", self.column, at_least=0, at_most=table.shape[1] - 1)
        release = learn_threshold(
            table[:, place],
            numbers,
            lower=float(self.lower),
            upper=float(self.upper),
            granularity=self.granularity,
            epsilon=self.epsilon,
            positives=self.positives,
            method=self.method,
            adjacency=self.adjacency,
            spender=self.spender,
            label=self.label,
            random=self.random,
        )
        self._column = place
        return self._learnt(release)

    def _positive(self, table: NDArray[np.float64]) -> NDArray[np.bool_]:
        return np.asarray(self.rule_.predict(table[:, self._column]))
