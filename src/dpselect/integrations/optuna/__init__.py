"""Optuna: its trials in the private tuner (`tune`), and a sampler whose studies can be priced afterwards."""

from dpselect.integrations.optuna.trial import IndependentTrial, TrialRefusal
from dpselect.integrations.optuna.wrapper import IndependentSampler, rehearse, tune

__all__ = ["IndependentSampler", "IndependentTrial", "TrialRefusal", "rehearse", "tune"]
