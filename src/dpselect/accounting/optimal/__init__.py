"""Optimal accounting of private selection: the exact worst case over mechanisms and orders, enclosed numerically."""

from dpselect.accounting.optimal.best_of import ATOMS, optimal_best_of

__all__ = ["ATOMS", "optimal_best_of"]
