"""What survives a crash: durable writes, and the places of the keys that sealed records are under."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
