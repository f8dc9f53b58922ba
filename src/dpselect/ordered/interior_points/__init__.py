"""Interior points, and what reduces to them: any value between the smallest and the largest of the data."""

from dpselect.public_api import attach_public

__getattr__, __dir__, __all__ = attach_public(__name__, __file__)
