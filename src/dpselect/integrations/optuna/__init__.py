"""Optuna: its trials in the private tuner (`tune`), and a sampler whose studies can be priced afterwards."""

from dpselect.public_api import attach_public

__getattr__, __dir__, __all__ = attach_public(__name__, __file__)
