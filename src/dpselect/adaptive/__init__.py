"""Asking the same data again and again: adaptive estimators, verification, and bounds for generalisation.

`docs/how-to/adaptive.md` says which class to use when. `docs/theory/generalisation.md` has the proofs.
"""

from dpselect.public_api import attach_public

__getattr__, __dir__, __all__ = attach_public(__name__, __file__)
