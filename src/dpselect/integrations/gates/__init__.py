"""The gate and the holdout in the tools that search: each a few lines of the user's (docs/gate-plugs.md)."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
