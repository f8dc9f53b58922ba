"""Objectives of a trial: one with a conditional parameter, one that uses what is refused."""


def objective(trial):
    """Conditional, and its value tells the parameters that it saw."""
    kind = trial.suggest_categorical("kind", ["linear", "deep"])
    rate = trial.suggest_float("rate", 1e-3, 1.0, log=True)
    layers = trial.suggest_int("layers", 1, 4) if kind == "deep" else None
    return rate + float(trial.random.laplace(1)[0]), (kind, rate, layers)


class Reports:
    def __call__(self, trial):
        trial.report(1.0, 0)

    def bound(self, trial):
        return trial.number

    @staticmethod
    def inner(trial):
        return sum(trial.number for _ in range(3))
