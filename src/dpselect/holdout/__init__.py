"""Holdouts that last: sealed labels on disk, adaptive questions from many processes, a certificate for every answer.

`docs/how-to/holdout.md` says which mechanism serves when.
"""

from dpselect.public_api import attach_public

__getattr__, __dir__, __all__ = attach_public(__name__, __file__)
