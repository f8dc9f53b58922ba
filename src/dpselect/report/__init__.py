"""What a person looks at: plots and one self-contained HTML page, made from public facts and the release only."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
