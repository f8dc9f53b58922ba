"""The output calculus: a price for each class of outputs, and what follows from it (Hartmann et al. 2022)."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
