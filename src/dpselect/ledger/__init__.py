"""The budget record: reserve the worst case, run, settle at what came out; verify."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
