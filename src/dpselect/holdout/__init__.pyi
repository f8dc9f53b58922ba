from .saved_analysis import SavedAnalysis as SavedAnalysis
from .service import Holdout as Holdout, Score as Score
from .terms import MECHANISMS as MECHANISMS, Choice as Choice, Terms as Terms, choose_plan as choose_plan
