"""The kinds of cells and what people declare of a column: one reading for every package. One file a kind."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
