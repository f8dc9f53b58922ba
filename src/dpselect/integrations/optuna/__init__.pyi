from .trial import IndependentTrial as IndependentTrial, TrialRefusal as TrialRefusal
from .wrapper import IndependentSampler as IndependentSampler, rehearse as rehearse, tune as tune
