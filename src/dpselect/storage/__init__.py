"""What survives a crash: durable writes, and the places of the keys that sealed records are under."""

from dpselect.public_api import attach_public

__getattr__, __dir__, __all__ = attach_public(__name__, __file__)
