"""The supremum over every mechanism that the base allows, as a bound on the best of K runs."""

from __future__ import annotations

import numpy as np

from dpselect.accounting.best_of_k.search_bound import search_bound
from dpselect.accounting.optimal.best_of import ATOMS, optimal_best_of
from dpselect.privacy import Guarantee
from dpselect.repetitions import Repetitions

__all__ = ["optimal"]


@search_bound("optimal", by_default=True)
def optimal(base: Guarantee, law: Repetitions, *, atoms: int = ATOMS) -> Guarantee | None:
    """The supremum over every mechanism that the base allows (docs/theory/optimal-selection.md)."""
    if base.profile is None and base.renyi_curve is None and not np.isfinite(base.pure_epsilon):
        return None
    return optimal_best_of(base, law, atoms=atoms)
