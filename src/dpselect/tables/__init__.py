"""Tables that others wrote: one header, one reading of a cell, regardless of the door and the format."""

from dpselect.public_api import attach_public

__getattr__, __dir__, __all__ = attach_public(__name__, __file__)
