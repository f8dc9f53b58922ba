"""The budget record: reserve the worst case, run, settle at the realised price; verify."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
