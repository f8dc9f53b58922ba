"""Choosing among private candidates: the best of a random number of runs, the first above a threshold, and others.

`docs/how-to/selection.md` says which selector to use when.
"""

from dpselect.public_api import attach_public

__getattr__, __dir__, __all__ = attach_public(__name__, __file__)
