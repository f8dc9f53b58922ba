"""Private search over scikit-learn estimators: `PrivateSearchCV` and what its settings are made of."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
