"""Differentially private selection: choose among private runs and know what the choice cost."""

from dpselect.public_api import attach_public

__getattr__, __dir__, __all__ = attach_public(__name__, __file__)
