from .accountant import EngineAccountant as EngineAccountant
from .engine import engine_guarantee as engine_guarantee
from .training import PrivateTraining as PrivateTraining
