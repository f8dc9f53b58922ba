"""A conditional search space, defined by running it, as in Optuna: linear model or network, each with its own knobs.

Needs `pip install "dpselect[optuna]"`.

    python examples/optuna_space.py

Handwritten digits; every fifth image scores the runs, the others train them. No matter what the trial suggests, noise,
sampling rate and steps are the same, so one guarantee holds for every run.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from dpselect.integrations.optuna import IndependentTrial, rehearse, tune
from dpselect.learners import DPSGDClassifier
from dpselect.mechanisms import NoisyCount, noisy_count
from dpselect.privacy import Guarantee, dp_sgd
from dpselect.randomness import RandomSource
from dpselect.repetitions import Harmonic, Repetitions
from dpselect.tuning import SearchStore, TuneResult

DELTA = 1e-5
SCORE_EPSILON = 0.5
TRAINING = {"noise_multiplier": 5.0, "sampling_rate": 0.2, "steps": 80}
PIXELS, LABELS = load_digits(return_X_y=True)
SCORES = np.arange(len(LABELS)) % 5 == 0


def model(trial: IndependentTrial) -> DPSGDClassifier:
    """What the trial suggests. `trial.random` is where noise comes from."""
    kind = trial.suggest_categorical("kind", ["linear", "network"])
    return DPSGDClassifier(
        **TRAINING,
        learning_rate=trial.suggest_float("learning_rate", 0.3, 10.0, log=True),
        hidden_units=0 if kind == "linear" else trial.suggest_int("hidden_units", 8, 64, log=True),
        activation="tanh" if kind == "linear" else trial.suggest_categorical("activation", ["tanh", "relu"]),
        row_norm=60.0,
        classes=list(range(10)),
        nominal_rows=1440,
        random=trial.random.spawn("training"),
    )


def objective(trial: IndependentTrial) -> tuple[float, DPSGDClassifier]:
    """One run: train, and count correct predictions with noise."""
    fitted = model(trial).fit(PIXELS[~SCORES], LABELS[~SCORES])
    right = np.count_nonzero(fitted.predict(PIXELS[SCORES]) == LABELS[SCORES])
    return noisy_count(right, epsilon=SCORE_EPSILON, random=trial.random.spawn("score")), fitted


def parts() -> list[Guarantee]:
    """The price of one run for a training row, and for a scoring row."""
    return [dp_sgd(**TRAINING), NoisyCount(epsilon=SCORE_EPSILON).guarantee]


def main(random: RandomSource | None = None, law: Repetitions | None = None) -> TuneResult:
    """Rehearse, search, and print what was found and what it costs."""
    rehearse(objective)  # on your own data, do this with public or synthetic rows: errors show here and nowhere else
    result = tune(
        objective,
        direction="maximize",
        base=parts(),
        repetitions=law or Harmonic(limit=30),
        random=random,
        store=SearchStore(payload_bytes=1 << 17),
    )
    print(f"the winner:       {result.params}")
    print(f"the whole search: epsilon {result.guarantee.epsilon(DELTA):.3f} at delta {DELTA:g}")
    return result


if __name__ == "__main__":
    main()
