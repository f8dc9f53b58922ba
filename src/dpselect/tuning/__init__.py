"""Private hyperparameter search: the space, the search's life, the sealed store, the executors and the tuner."""

from dpselect.public_api import attach_public

__getattr__, __dir__, __all__ = attach_public(__name__, __file__)
