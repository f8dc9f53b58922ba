"""Whether an answer for a row depends on the rows beside it: tried on synthetic rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["ROWS", "depends_on_company", "sum_depends_on_company"]

ROWS: Final = 32
"""How many synthetic rows `depends_on_company` asks about."""

_BATCHES: Final = (
    tuple(range(ROWS)),
    tuple(reversed(range(ROWS))),
    tuple(range(13)),
    (30, 3, 17, 8, 21),
    *((place,) for place in (0, 5, ROWS - 1)),
)


def depends_on_company(answers: Callable[[NDArray[np.intp]], Any]) -> bool:
    """Whether answers change with what else is asked, in which order, or what was asked before.

    Args:
        answers: gives one answer for each of the synthetic rows at these places, from 0 to `ROWS` - 1.

    >>> depends_on_company(lambda places: places % 3), depends_on_company(lambda places: places - places.mean())
    (False, True)
    """
    whole = np.asarray(answers(np.arange(ROWS)))
    if whole.shape[:1] != (ROWS,):  # not one answer a row
        return True
    return not all(_same(whole[list(batch)], answers(np.array(batch))) for batch in _BATCHES)


def sum_depends_on_company(total: Callable[[NDArray[np.intp]], Any]) -> bool:
    """The same of a sum: whether it is another one than that of the rows alone.

    Args:
        total: gives the sum over the synthetic rows at these places, a number or an array.
    """
    alone = np.array([total(np.array([place])) for place in range(ROWS)], dtype=np.float64)
    allowed = 1e-6 * float(np.abs(alone).max())
    return not all(
        np.allclose(total(np.array(batch)), alone[list(batch)].sum(axis=0), rtol=1e-5, atol=allowed)
        for batch in _BATCHES
    )


def _same(whole: Any, part: Any) -> bool:
    """Equal but for rounding, which may depend on a row's place in a batch."""
    first, second = np.asarray(whole), np.asarray(part)
    if first.dtype.kind in "biuf" and second.dtype.kind in "biuf":
        return first.shape == second.shape and np.allclose(first, second, rtol=1e-3, atol=1e-6, equal_nan=True)
    return np.array_equal(first, second)
