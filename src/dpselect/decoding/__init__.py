"""Decoders of documents that others wrote, each under limits that its caller states."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
