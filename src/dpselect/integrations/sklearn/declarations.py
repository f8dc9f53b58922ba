"""scikit-learn's transformers that learn nothing once all is declared that they would learn.

Their parameters tell. Only the exact types count: a subclass may learn.
"""

from __future__ import annotations

from contextlib import suppress
from numbers import Real
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, OneHotEncoder, OrdinalEncoder
from sklearn.utils import _safe_indexing

from dpselect.integrations.sklearn.columns import chosen_places

__all__ = ["how_to_declare", "is_declared", "rows_of_listed_categories"]

_UNKNOWN: Final[dict[type, tuple[str, ...]]] = {
    OneHotEncoder: ("error", "ignore", "infrequent_if_exist"),
    OrdinalEncoder: ("error", "use_encoded_value"),
}
_FUNCTIONS: Final[dict[Any, tuple[str, ...]]] = {
    np.digitize: ("bins", "right"),
    np.clip: ("a_min", "a_max", "min", "max"),
    np.nan_to_num: ("nan", "posinf", "neginf"),
    np.round: ("decimals",),
}
"""NumPy's functions that treat each number by itself, and their arguments that are public constants."""


def is_declared(node: Any) -> bool:
    """Whether this is an encoder with all categories listed, an imputer with one constant, or a function of each cell.

    No row changes what such a step keeps. An encoder must count no categories. One that raises for an unknown category
    does so for a row by itself, and that row trains nothing. An imputer must keep columns without a value. It must have
    no column that shows missing values: such a column exists only if a row has one missing.
    """
    if type(node) in _UNKNOWN:
        listed = isinstance(node.categories, (list, tuple))
        counts = node.min_frequency is not None or node.max_categories is not None
        return listed and not counts and node.handle_unknown in _UNKNOWN[type(node)]
    if type(node) is SimpleImputer:
        return node.strategy == "constant" and node.keep_empty_features is True and node.add_indicator is False
    return type(node) is FunctionTransformer and _is_of_each_cell(node)


def _is_of_each_cell(node: FunctionTransformer) -> bool:
    """Whether it applies a function of one number to each cell. Its check of an inverse would compare rows."""
    arguments = node.kw_args or {}
    if node.inverse_func is not None and node.check_inverse:
        return False
    if node.func is None or (isinstance(node.func, np.ufunc) and (node.func.nin, node.func.nout) == (1, 1)):
        return not arguments
    known = next((names for function, names in _FUNCTIONS.items() if node.func is function), None)
    return known is not None and all(name in known and _is_constant(name, arguments[name]) for name in arguments)


def _is_constant(name: str, value: Any) -> bool:
    """Whether an argument is a number, or the list of edges: the same for every cell of every container."""
    if name == "bins":
        return isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value) == 1
    return value is None or isinstance(value, (Real, np.bool_))


def rows_of_listed_categories(node: Any, X: Any) -> NDArray[np.bool_]:
    """Whether each row has listed categories alone, in every encoder of a step that raises for others. Shape (rows,).

    A row is judged by its own cells. Encoders deep within other steps are not looked at, nor is a table that none can
    read. Fitting them row by row finds the same, but takes longer.
    """
    known = np.ones(len(X), dtype=bool)
    if type(node) is ColumnTransformer:
        for _, part, columns in node.transformers:
            if _raises_for_unknown(part):
                with suppress(Exception):
                    chosen = chosen_places(columns, X, X.shape[1])
                    known &= rows_of_listed_categories(part, _safe_indexing(X, chosen, axis=1))
    elif _raises_for_unknown(node):
        with suppress(Exception):
            marks = OrdinalEncoder(
                categories=node.categories,
                handle_unknown="use_encoded_value",
                unknown_value=-1,
                encoded_missing_value=-2,
            )
            known &= np.all(marks.fit_transform(X) != -1, axis=1)
    return known


def _raises_for_unknown(node: Any) -> bool:
    return type(node) in _UNKNOWN and is_declared(node) and node.handle_unknown == "error"


def how_to_declare(node: Any) -> str:
    """A sentence that shows how to declare such a transformer, or an empty text for others."""
    if type(node) is OneHotEncoder:
        return (
            ' Or list all categories, which are then public: OneHotEncoder(categories=[...], handle_unknown="ignore").'
        )
    if type(node) is OrdinalEncoder:
        return (
            " Or list all categories, which are then public: OrdinalEncoder(categories=[...], "
            'handle_unknown="use_encoded_value", unknown_value=-1).'
        )
    if type(node) is SimpleImputer:
        return ' Or fill with a public constant: SimpleImputer(strategy="constant", keep_empty_features=True).'
    if type(node) is KBinsDiscretizer:
        return (
            " Or give public edges: PublicBins(bins=16, bounds=(low, high)) of dpselect.preprocessing, or "
            'FunctionTransformer(np.digitize, kw_args={"bins": [...]}).'
        )
    if type(node) is FunctionTransformer:
        return (
            " Or give a function of one number without arguments, such as np.log1p, or one of np.digitize, np.clip, "
            "np.nan_to_num and np.round with public numbers as kw_args, and inverse_func only with check_inverse=False."
        )
    return ""
