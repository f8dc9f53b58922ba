"""Lists and tuples have no type of their own, and NumPy's guess at one is made from the rows.

`[0]` would be a column of whole numbers and `[]` or `[0, 0.5]` one of doubles. The type of a column declares the domain
that is drawn from, so that one row more would tell itself by the kind of number that comes out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["typed"]


def typed(values: Any, *, name: str = "values") -> Any:
    """Numbers in a list or a tuple become doubles, whatever they are, and None is missing; all else stays as it is.

    Raises `TypeError` for a list of anything else: moments, text.

    >>> typed([0]).dtype, typed([]).dtype, typed(np.array([0])).dtype
    (dtype('float64'), dtype('float64'), dtype('int64'))
    """
    if not isinstance(values, (list, tuple)):
        return values
    kind = np.asarray(values).dtype.kind if values else "f"
    if kind not in "iufbO":
        raise TypeError(
            f"{name}: a list must hold numbers; give moments as an array of their type, text with categories"
        )
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):  # of which none is shown: it names a value
        raise TypeError(f"{name}: a list must hold what doubles can hold; give all else as a typed array") from None
