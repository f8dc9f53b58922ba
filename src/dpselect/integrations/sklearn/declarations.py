"""scikit-learn's transformers that learn nothing once all is declared that they would learn.

Their parameters tell. Only the exact types count: a subclass may learn.
"""

from __future__ import annotations

from typing import Any, Final

from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

__all__ = ["how_to_declare", "is_declared"]

_UNKNOWN: Final[dict[type, tuple[str, ...]]] = {
    OneHotEncoder: ("ignore", "infrequent_if_exist"),
    OrdinalEncoder: ("use_encoded_value",),
}


def is_declared(node: Any) -> bool:
    """Whether this is an encoder with all categories listed, or an imputer with one constant, that no row changes.

    An encoder must take unknown categories without an error and count none. An imputer must keep columns without a
    value. It must have no column that shows missing values: such a column exists only if a row has one missing.
    """
    if type(node) in _UNKNOWN:
        listed = isinstance(node.categories, (list, tuple))
        counts = node.min_frequency is not None or node.max_categories is not None
        return listed and not counts and node.handle_unknown in _UNKNOWN[type(node)]
    if type(node) is SimpleImputer:
        return node.strategy == "constant" and node.keep_empty_features is True and node.add_indicator is False
    return False


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
    return ""
