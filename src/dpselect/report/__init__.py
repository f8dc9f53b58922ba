"""Pages for people: plots and one self-contained HTML page, made from public facts and the release only."""

from dpselect.public_api import attach_public

__getattr__, __dir__, __all__ = attach_public(__name__, __file__)
