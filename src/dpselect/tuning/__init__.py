"""Private hyperparameter search: the space, the search's life, the sealed store, the executors and the tuner."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
