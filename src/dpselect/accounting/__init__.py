"""Theorems as functions from guarantees to guarantees: what a private search costs."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
