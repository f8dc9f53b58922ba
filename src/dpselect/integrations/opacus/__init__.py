"""Opacus training as a private run: what it costs before it starts, and a training loop whose noise is ours."""

from dpselect.public_api import attach_public

__getattr__, __dir__, __all__ = attach_public(__name__, __file__)
