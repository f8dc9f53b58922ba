"""Laws of the number of runs K of a private selection: each draws K, and prices it by its generating function."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
