"""Studies: a file that says what is public, and a run that turns it and private rows into one release."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
