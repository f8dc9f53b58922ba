"""Optimal accounting of private selection: the exact worst case over mechanisms and orders, enclosed numerically."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
