from .pruner import PrivatePruner as PrivatePruner
from .trial import IndependentTrial as IndependentTrial
from .wrapper import IndependentSampler as IndependentSampler, rehearse as rehearse, tune as tune
