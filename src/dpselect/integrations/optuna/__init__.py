"""Optuna: its trials in the private tuner (`tune`), and a sampler whose studies can be priced afterwards."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
