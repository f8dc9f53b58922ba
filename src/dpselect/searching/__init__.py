"""Designs of a search: ways to spend a total on the choice of settings, each in one file that registers its name."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
