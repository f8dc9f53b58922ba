from .training import PrivateTraining as PrivateTraining, engine_guarantee as engine_guarantee
