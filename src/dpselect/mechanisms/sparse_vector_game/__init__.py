"""The sparse vector as a game of coins: what it costs at a delta (docs/theory/sparse-vector.md)."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
