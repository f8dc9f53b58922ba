"""Primitives on scores and queries, and noise: exact laws wherever a comparison or a whole number leaves."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
