"""What `IndependentSampler` writes into an Optuna storage, and the account of a past study looks for."""

from __future__ import annotations

from typing import Final

__all__ = ["DRAWN", "MARK", "MARK_VERSION"]

MARK: Final = "dpselect:independent"
"""A system attribute of a trial that `IndependentSampler` began, in a study without a pruner.

Its value is the study's name and the trial's number: a run that was copied out of another study is told apart.
"""

DRAWN: Final = "dpselect:drawn:"
"""Followed by a parameter's name: a system attribute for a parameter that it drew."""

MARK_VERSION: Final = 1
