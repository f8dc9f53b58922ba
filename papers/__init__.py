"""The papers' figures and tables, one module a paper, each rerun by `dpselect reproduce PAPER`."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
