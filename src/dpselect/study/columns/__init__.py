"""What a study can say of a column, and how its cells become numbers; one file a kind."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
