"""The gate and the holdout in the tools that search: each a few lines of the user's (docs/how-to/gate-plugs.md)."""

from dpselect.public_api import attach_public

__getattr__, __dir__, __all__ = attach_public(__name__, __file__)
