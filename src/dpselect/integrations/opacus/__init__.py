"""Opacus training as a private run: what it costs before it starts, and a training loop whose noise is ours."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
