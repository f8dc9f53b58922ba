"""Holdouts that last: sealed labels on disk, adaptive questions from many processes, a certificate for every answer.

`docs/holdout.md` says which mechanism serves when.
"""

from dpselect.holdout.saved_analysis import SavedAnalysis
from dpselect.holdout.service import Holdout, Score
from dpselect.holdout.terms import MECHANISMS, Choice, Terms, choose_plan

__all__ = ["MECHANISMS", "Choice", "Holdout", "SavedAnalysis", "Score", "Terms", "choose_plan"]
