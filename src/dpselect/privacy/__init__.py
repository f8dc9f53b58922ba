"""What a mechanism promises: guarantees, their composition, and what leaves a private algorithm."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
