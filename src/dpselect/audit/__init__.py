"""Measuring leakage: what outputs show about a claim. An audit finds faults; it never proves privacy."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
