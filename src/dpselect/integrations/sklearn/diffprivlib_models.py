"""diffprivlib models: which of their epsilons are taken as a guarantee, and what is refused.

Read in diffprivlib 0.6.6. All its estimators use the exact number of rows, so that what they promise is about
replacing a row. Two were checked against proofs, and their `epsilon` is taken as it stands:

- `LogisticRegression` without intercept, for `data_norm` of at most 1: Chaudhuri, Monteleoni, Sarwate (2011), Algorithm
  2 and Theorem 9, which are about exact minimisers (the caller must ensure that the solver converged). With an
  intercept the objective is not strongly convex, as the theorem needs, for the intercept is not regularised. Beyond
  norm 1 the mechanism takes a row's curvature for data_norm/4, which is data_norm**2/4. Its classes are made public and
  what it keeps beside the minimiser is taken away: see `KnownClasses`.
- `StandardScaler`: Laplace noise on means and variances of clipped columns.

Others promise an epsilon too. If you take them at their word, pass `base=stated_epsilon`.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, Final, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from dpselect.errors import ArgumentError, missing_extra, number
from dpselect.learners.containers import is_pandas, without_sparsity
from dpselect.learners.rows import class_numbers, labels_of
from dpselect.privacy import Adjacency, Guarantee, pure_dp

__all__ = ["KnownClasses", "is_diffprivlib", "refuse_facts_from_data", "reviewed_epsilon", "stated_epsilon"]

_READ: Final = "0.6.6"
_PUBLIC_FACTS: Final = ("bounds", "data_norm", "bounds_X", "bounds_y")
_TRUST: Final = (
    "to take diffprivlib at its word, pass base=stated_epsilon (from dpselect.integrations.sklearn) and answer for it"
)


def is_diffprivlib(step: Any) -> bool:
    """Whether an estimator's class comes from diffprivlib, itself or by inheritance."""
    return any(kind.__module__.split(".")[0] == "diffprivlib" for kind in type(step).__mro__)


def refuse_facts_from_data(step: Any) -> None:
    """Raise `ArgumentError` if diffprivlib would take bounds or a norm from the data because no public one is set."""
    settings = step.get_params(deep=False)
    centred = bool(settings.get("centered", False))
    for name in _PUBLIC_FACTS:
        if name in settings and settings[name] is None and not (name == "bounds" and centred):
            raise ArgumentError(
                f"{type(step).__name__} has no {name}: diffprivlib would take it from the data, which no epsilon "
                f"covers; pass {name}=(public)"
            )


def takes_classes_from_rows(step: Any) -> bool:
    """Whether it is the reviewed classifier, which does not know its classes in advance."""
    return is_diffprivlib(step) and type(step).__name__ == "LogisticRegression"


def stated_epsilon(model: Any) -> Guarantee:
    """Return the guarantee that a diffprivlib model claims: pure `epsilon` under replacing a row.

    It is for `PrivateSearchCV(base=...)`. dpselect does not check the claim: you must ensure that it holds.

    Args:
        model: a diffprivlib model with a parameter `epsilon` above 0.

    Raises:
        ArgumentError: for a model that has no `epsilon` of its own, or an `epsilon` out of range.
    """
    if "epsilon" not in model.get_params(deep=False):
        raise ArgumentError(f"{type(model).__name__} has no parameter epsilon")
    return pure_dp(epsilon=number("epsilon", model.epsilon, above=0.0, rounding="up"), adjacency=Adjacency.REPLACE_ONE)


def reviewed_epsilon(step: Any) -> Guarantee:
    """The guarantee of a diffprivlib step whose proof was checked. Raises `ArgumentError` for any other."""
    name = type(step).__name__
    if version("diffprivlib") != _READ:
        raise ArgumentError(f"only diffprivlib {_READ} was checked, found {version('diffprivlib')}; {_TRUST}")
    if name == "LogisticRegression":
        if step.fit_intercept:
            raise ArgumentError(
                "diffprivlib's LogisticRegression needs fit_intercept=False: it does not regularise the intercept, and "
                f"the theorem it uses is about objectives that are strongly convex in all weights; {_TRUST}"
            )
        if not number("data_norm", step.data_norm, above=0.0) <= 1.0:
            raise ArgumentError(
                "diffprivlib's LogisticRegression needs data_norm of at most 1 (divide the rows by a public number): "
                f"for longer rows its noise is too small for its epsilon; {_TRUST}"
            )
    elif name != "StandardScaler":
        raise ArgumentError(f"the guarantee of diffprivlib's {name} was not checked by this package; {_TRUST}")
    return stated_epsilon(step)


def fresh_accountant() -> Any:
    """An accountant with nothing in it, so that no record of runs is kept by diffprivlib's global one."""
    try:
        from diffprivlib import BudgetAccountant
    except ImportError:
        raise missing_extra("diffprivlib", "a diffprivlib model") from None
    return BudgetAccountant()


class KnownClasses(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """diffprivlib's logistic regression without intercept, fitted so that its classes are public.

    By itself it takes its classes from its rows, so that the only row of a class decides the shape of the weights, and
    whether there are any. Here a row of zeros is added for each class: without intercept its loss is a constant, which
    moves no minimum. A row of another class becomes a row of zeros, and so does one that a scaler before it
    made infinite, on which every fit would fail. All this leaves neighbours neighbours.

    The number of iterations that the solver took is no function of the released weights, and is taken away.
    """

    def __init__(self, model: Any, classes: Any) -> None:
        self.model = model
        self.classes = classes

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model to rows X, shape (rows, features), with labels y, shape (rows,)."""
        classes = np.asarray(self.classes)
        table = np.array(without_sparsity(X), dtype=np.float64)
        places = class_numbers(labels_of(y, len(table)), classes)
        table[(places < 0) | ~np.all(np.isfinite(table), axis=1)] = 0.0
        rows: Any = np.vstack([table, np.zeros((len(classes), table.shape[1]))])
        if is_pandas(X):
            rows = type(X)(rows, columns=X.columns)
        self.model.fit(rows, np.concatenate([classes[np.maximum(places, 0)], classes]))
        del self.model.n_iter_
        return self
