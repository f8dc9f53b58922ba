"""Free text as counts of hashed words or runs of letters: nothing is learnt from the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from dpselect.numerics.search import Array
from dpselect.tables.categories import category, composed

__all__ = ["MOST_FEATURES", "HashedText"]

Analyzer = Literal["word", "char", "char_wb"]
MOST_FEATURES: Final = 1 << 16
"""Features are held in a dense matrix of 8 bytes each."""
_ROWS: Final = 1 << 12
"""Rows that are hashed at a time; the sparse counts of all would double the memory."""


@dataclass(frozen=True)
class HashedText:
    """Encodes texts with scikit-learn's `HashingVectorizer`, whose arguments these are.

    The features of a text are the counts of its terms, hashed to `n_features` places and scaled to Euclidean norm 1.
    They are not negative (`alternate_sign=False`) and depend on this text alone. A text without terms becomes zeros.
    """

    n_features: int
    analyzer: Analyzer
    ngram_range: tuple[int, int]

    def encode(self, cells: Sequence[Any]) -> Array:
        """The features, shape (cells, n_features). No content of a cell makes it raise."""
        from sklearn.feature_extraction.text import HashingVectorizer

        vectorizer = HashingVectorizer(
            n_features=self.n_features, analyzer=self.analyzer, ngram_range=self.ngram_range, alternate_sign=False
        )
        features = np.zeros((len(cells), self.n_features))
        for start in range(0, len(cells), _ROWS):
            texts = [_text(cell) for cell in cells[start : start + _ROWS]]
            features[start : start + _ROWS] = vectorizer.transform(texts).toarray()
        return features


def _text(cell: Any) -> str:
    """A cell as text in Unicode's form NFC. A missing cell gives the empty text."""
    if category(cell) == "":
        return ""
    text = cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell)
    return composed(text.encode("utf-8", "replace").decode())  # a lone surrogate cannot be hashed
