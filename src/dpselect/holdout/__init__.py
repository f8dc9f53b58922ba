"""Holdouts that last: sealed labels on disk, adaptive questions from many processes, a certificate for every answer.

`docs/holdout.md` says which mechanism serves when.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
