"""The budget record: reserve the worst case, run, settle at the realised price, verify."""

from dpselect.public_api import attach_public

__getattr__, __dir__, __all__ = attach_public(__name__, __file__)
