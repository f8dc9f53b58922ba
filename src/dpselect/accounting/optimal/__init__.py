"""Optimal accounting of private selection: the exact worst case over mechanisms and orders, enclosed numerically."""

from dpselect.accounting.optimal.best_of import optimal_best_of

__all__ = ["optimal_best_of"]
