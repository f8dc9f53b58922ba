"""The facts that a study can state of a column, and how its cells become numbers. Each kind has one file."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
