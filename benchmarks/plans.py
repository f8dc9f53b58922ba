"""Seconds of processor time until something is priced, in a process that has priced nothing, and when asked again.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.plans [--rounds 3]

Each price is computed in an interpreter of its own, imports aside: the least of the rounds. The second time is that
of the same question, asked of new objects. The last column is what was wished for.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from dpselect.accounting import best_of, plan, plan_subset
from dpselect.integrations.sklearn import PrivateSearchCV
from dpselect.learners import DPSGDClassifier
from dpselect.mechanisms import plan_sparse_vector
from dpselect.privacy import Guarantee, compose, dp_sgd, gaussian, laplace, pure_dp
from dpselect.repetitions import Harmonic, Poisson
from dpselect.tuning import LogUniform

TOTAL = {"epsilon": 3.0, "delta": 1e-5, "nominal_rows": 10_000, "classes": [0, 1]}
RATES = {"learning_rate": LogUniform(0.5, 8.0)}


def search(repetitions: Any, learner: Mapping[str, Any], **options: Any) -> float:
    estimator = DPSGDClassifier(**learner)
    found = PrivateSearchCV(estimator, RATES, repetitions=repetitions, **TOTAL, **options).plan()
    return found.guarantee.epsilon(delta=TOTAL["delta"])


def two_searches() -> float:
    base = dp_sgd(noise_multiplier=3.0, sampling_rate=0.1, steps=250)
    return compose(best_of(base, Harmonic(limit=20)), best_of(base, Poisson(mean=10))).epsilon(delta=TOTAL["delta"])


def unlike_pure(count: int = 300) -> float:
    return compose(*[pure_dp(epsilon=0.1 + 1e-3 * k) for k in range(count)]).epsilon(delta=1e-6)


def one_after_the_other(count: int = 300) -> float:
    total = pure_dp(epsilon=0.1)
    for k in range(1, count):
        total = compose(total, pure_dp(epsilon=0.1 + 1e-3 * k))
    return total.epsilon(delta=1e-6)


def ten_searches(step: float) -> float:
    noises = [4.0 + step * k for k in range(10)]
    return compose(*[best_of(gaussian(noise_multiplier=s), Poisson(mean=10)) for s in noises]).epsilon(delta=1e-6)


def many_atoms(atoms: int) -> float:
    return best_of(gaussian(noise_multiplier=4.0), Poisson(mean=10), atoms=atoms).epsilon(delta=1e-6)


def sparse_vector() -> float:
    return plan_sparse_vector(positives=100, epsilon=1.0, delta=1e-6).best.epsilon


def plan_of(base: Any, **goal: Any) -> float:
    """The epsilon of the best option over all families."""
    return plan(base=base, delta=1e-6, **goal).best.epsilon


def sgd(noise: float) -> Guarantee:
    return dp_sgd(noise_multiplier=noise, sampling_rate=0.01, steps=1000)


def subset() -> float:
    options = plan_subset(base=NOISY["Gaussian"], epsilon=2.0, delta=1e-6, expected_quantile=0.9)
    return options[0].epsilon


NOISY: Mapping[str, Callable[[float], Guarantee]] = {
    "Gaussian": lambda noise: gaussian(noise_multiplier=noise),
    "DP-SGD": sgd,
    "Laplace": lambda noise: laplace(scale=noise),
}
SAMPLED = {"sampling_rate": 0.1, "steps": 250}
QUESTIONS: Mapping[str, tuple[Callable[[], float], float]] = {
    "a plan for DP-SGD on samples": (lambda: search(Harmonic(limit=10), SAMPLED), 0.5),
    "a plan for DP-SGD on full batches": (lambda: search(Harmonic(limit=10), {"steps": 100}), 0.5),
    "a plan of a search and one run on all rows": (lambda: search(Poisson(mean=5), SAMPLED, refit=True), 2.0),
    "the epsilon of two searches composed": (two_searches, 2.0),
    "300 unlike pure mechanisms composed": (unlike_pure, 0.5),
    "the same, one after the other": (one_after_the_other, 0.5),
    "ten equal searches composed": (lambda: ten_searches(0.0), 3.0),
    "ten unlike searches composed": (lambda: ten_searches(0.1), 3.0),
    "`plan_sparse_vector(positives=100)`": (sparse_vector, 2.0),
    **{
        f"the noise of {name} for a quantile of .9, over all families": (
            lambda base=base: plan_of(base, epsilon=2.0, expected_quantile=0.9),
            2.0,
        )
        for name, base in NOISY.items()
    },
    "the best search of a Gaussian of noise 4 within epsilon 2": (
        lambda: plan_of(NOISY["Gaussian"](4.0), epsilon=2.0),
        2.0,
    ),
    "the best search of DP-SGD of noise 1 within epsilon 5": (lambda: plan_of(sgd(1.0), epsilon=5.0), 2.0),
    "`plan_subset` over 18 options": (subset, 2.0),
    "a search by 3,000 atoms": (lambda: many_atoms(3_000), 0.15),
    "a search by 30,000 atoms": (lambda: many_atoms(30_000), 1.5),
}

ACCOUNT = ["account", "--base", "gaussian:noise_multiplier=4", "--repetitions", "harmonic:limit=20", "--delta", "1e-6"]


def answer(name: str) -> tuple[float, float, float]:
    """Seconds the first and the second time, and epsilon."""
    ask, _ = QUESTIONS[name]
    times = []
    for _ in range(2):
        began = time.process_time()
        epsilon = ask()
        times.append(time.process_time() - began)
    return times[0], times[1], epsilon


def seconds_of(command: list[str]) -> float:
    """Processor time of another process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plans", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", choices=list(QUESTIONS), help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.one is not None:
        print(json.dumps(answer(asked.one)))
        return
    print("| price | first | again | epsilon | wished |\n|---|---|---|---|---|")
    for name, (_, wish) in QUESTIONS.items():
        command = [sys.executable, "-m", "benchmarks.plans", "--one", name]
        rounds = [json.loads(subprocess.check_output(command, text=True)) for _ in range(asked.rounds)]
        first, again = (min(each[place] for each in rounds) for place in (0, 1))
        print(f"| {name} | {first:.2f} s | {again:.3f} s | {rounds[0][2]:.4f} | {wish:g} s |", flush=True)
    print("\n| command from cold | over the import of NumPy and scipy.special | wished |\n|---|---|---|")
    imports = min(seconds_of([sys.executable, "-c", "import numpy, scipy.special"]) for _ in range(asked.rounds))
    took = min(seconds_of(["dpselect", *ACCOUNT]) for _ in range(asked.rounds))
    print(f"| `dpselect {' '.join(ACCOUNT)}` | {took / imports:.2f} | 2 |")


if __name__ == "__main__":
    main()
