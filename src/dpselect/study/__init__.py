"""Studies: a file that says what is public, and a run that turns it and private rows into one release."""

from dpselect.public_api import attach_public

__getattr__, __dir__, __all__ = attach_public(__name__, __file__)
