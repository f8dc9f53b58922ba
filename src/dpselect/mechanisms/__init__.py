"""Primitives on scores and queries, and noise: exact laws wherever a comparison or an integer leaves."""

from dpselect.public_api import attach_public

__getattr__, __dir__, __all__ = attach_public(__name__, __file__)
