"""One run on made-up rows, before anything is drawn or charged: what is wrong with the arguments shows here.

Afterwards it could not be told: that a run on the data failed is part of what the guarantee protects, so that an
estimator that always fails would cost the full price and find nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from dpselect.integrations.sklearn_distributions import MixedSpace, finite_choices
from dpselect.integrations.sklearn_scoring import Scoring
from dpselect.integrations.sklearn_trial import Rows, Settings, pack, train
from dpselect.randomness import keyed_source
from dpselect.tuning import Space

__all__ = ["rehearse"]

_ROWS: Final = 32


def rehearse(
    estimator: Any, space: Space, settings: Settings, scoring: Scoring, X: Any, classes: NDArray[Any] | None
) -> int | None:
    """The largest size of a packed model among settings at the ends of the space, or None if no rows can be made up.

    Of X only the container and the types of its columns are used. Raises what training or scoring raises.
    """
    made_up = _like(X)
    if made_up is None:
        return None
    source = keyed_source("rehearsal")
    y = source.uniform(_ROWS) if classes is None else np.asarray(classes)[np.arange(_ROWS) % len(classes)]
    rows = Rows(made_up, y, {})
    sizes: list[int] = []
    for params in _ends(space):
        try:
            with threadpool_limits(1), warnings.catch_warnings(action="ignore"):
                model = train(clone(estimator), params, settings, rows.at(range(_ROWS)), source.spawn(len(sizes)))
                if scoring.scorer is None:
                    scoring.total(model, rows.X, rows.y)
            sizes.append(len(pack(model)))
        except Exception as error:
            error.add_note(f"in a rehearsal on made-up rows, with {params}; nothing was drawn or charged")
            raise
    return max(sizes)


def _like(X: Any) -> Any:
    """Rows like those of X: uniform numbers in the same container; None for columns that are no numbers."""
    if hasattr(X, "iloc"):
        if any(kind.kind not in "biuf" for kind in X.dtypes if hasattr(kind, "kind")):
            return None
        columns = _uniform(X.shape[1])
        return type(X)(columns, columns=X.columns).astype(X.dtypes)
    table = np.asarray(X)
    if hasattr(X, "columns") or table.dtype.kind not in "biuf":
        return None
    return _uniform(table.shape[1]).astype(table.dtype)


def _uniform(columns: int) -> NDArray[np.float64]:
    return keyed_source("rehearsal").spawn("rows").uniform((_ROWS, columns))


def _ends(space: Space) -> Iterator[dict[str, Any]]:
    if isinstance(space, MixedSpace):
        for part in space.spaces:
            yield from _ends(part)
        return
    drawn = space.sample(keyed_source("rehearsal"))
    for end in (min, max):
        yield {name: _end(law, drawn[name], end) for name, law in space.parameters.items()}


def _end(law: Any, drawn: Any, end: Any) -> Any:
    values = finite_choices(law) or [getattr(law, "low", drawn), getattr(law, "high", drawn)]
    try:
        return end(values)
    except TypeError:  # no order among them
        return values[0] if end is min else values[-1]
