"""Laws of the number of runs K of a private selection: each draws K, and prices it by its generating function."""

from dpselect.public_api import attach_public

__getattr__, __dir__, __all__ = attach_public(__name__, __file__)
