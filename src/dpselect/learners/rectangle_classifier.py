"""A private axis-aligned rectangle as a scikit-learn classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, integer
from dpselect.learners.rule_classifier import RuleClassifier
from dpselect.ordered import RectangleLearner, learn_rectangle
from dpselect.ordered.labelled_rows.rectangle_plan import Slicing
from dpselect.ordered.labelled_rows.rectangles import axis_domains
from dpselect.ordered.public_domain import PublicDomain
from dpselect.privacy import Guarantee

__all__ = ["PrivateRectangleClassifier"]


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateRectangleClassifier(RuleClassifier):
    """The second class is in an axis-aligned rectangle: `learn_rectangle` as a scikit-learn classifier.

    Args:
        lower, upper, granularity: the public domain, one value or one for each column; values beyond the bounds
            count as the bounds.
        epsilon, delta: the price of one fit.
        failure_probability, slicing: see `learn_rectangle`.
        classes: the two class labels, public. None takes them from y, with a `DataDependentClassesWarning`.
        adjacency: "add_or_remove_one" or "replace_one".
        spender, label: where each fit is paid, before it looks at a row, and its name in the record.
        random: a `RandomSource`, or None for the system's entropy. Each fit draws from it again.

    Attributes:
        classes_, n_features_in_: as in scikit-learn.
        rule_: the `Rectangle`; empty when there were too few rows of the second class (a private decision).
        receipt_: what the spender gave; None without one.
        guarantee_: what the fit promises; for X with as many columns the same as `guarantee(columns)`.

    A cell that is missing or not a number leaves its row out, and is predicted as the first class. A row with
    another label is left out. `fit` raises `ArgumentError` or `TypeError` for parameters and for a container (shape,
    complex numbers), never because of what the rows hold.

    >>> from dpselect.randomness import keyed_source
    >>> model = PrivateRectangleClassifier(lower=0, upper=9, epsilon=9.0, classes=[0, 1], random=keyed_source(1))
    >>> X = np.stack(np.meshgrid(np.linspace(0, 9, 60), np.linspace(0, 9, 60)), axis=2).reshape(-1, 2)
    >>> model.fit(X, np.all((X > 2) & (X < 8), axis=1)).predict([[5.0, 5.0], [0.5, 5.0]]).tolist()
    [1, 0]
    """

    lower: Any = 0.0
    upper: Any = 1.0
    granularity: Any = None
    epsilon: float = 1.0
    delta: float = 0.0
    failure_probability: float = 0.05
    slicing: Slicing = "auto"
    label: str = "rectangle"

    def guarantee(self, columns: int | None = None) -> Guarantee:
        """The guarantee of one `fit` on so many columns (after a fit, those of X), from the parameters alone.

        >>> PrivateRectangleClassifier(epsilon=0.5).guarantee(columns=2).epsilon(delta=0) <= 0.5
        True
        """
        if columns is None:
            columns = vars(self).get("n_features_in_")
        if columns is None:
            raise ArgumentError("columns must be given before a fit")
        axes = integer("columns", columns, at_least=1, at_most=1 << 1000)
        every = PublicDomain(lower=self.lower, upper=self.upper, granularity=self.granularity)
        size = max(domain.size for domain in axis_domains(np.dtype(np.float64), axes, every))
        return RectangleLearner(dimensions=axes, domain_size=size, **self._options()).guarantee

    def _options(self) -> dict[str, Any]:
        names = ("epsilon", "delta", "failure_probability", "slicing", "adjacency")
        return {name: self.get_params()[name] for name in names}

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows X of shape (rows, features) and labels y of shape (rows,)."""
        table, numbers = self._read(X, y)
        release = learn_rectangle(
            table,
            numbers,
            lower=self.lower,
            upper=self.upper,
            granularity=self.granularity,
            **self._options(),
            spender=self.spender,
            label=self.label,
            random=self.random,
        )
        return self._learnt(release)

    def _positive(self, table: NDArray[np.float64]) -> NDArray[np.bool_]:
        return np.asarray(self.rule_.predict(table))
