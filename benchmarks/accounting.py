"""Price of a search: this library beside dp-accounting 0.6.0, in one run. Prints one table in Markdown.

    python benchmarks/accounting.py [--repeats 30]

Three questions, least processor time of `repeats` turns, both sides in turn. A turn runs one side for at least 20 ms
and divides by the number of runs, as `timeit` does: switching sides empties the processor's caches, which would be
charged to the quicker side. The base and everything of the search are built inside the timed part, at a noise that
differs by 1e-12 from run to run so that nothing is found in a cache; the law of K, which a search fixes once, is built
outside:

- curve: Renyi epsilons of the search on dp-accounting's own 156 orders;
- epsilon: epsilon at delta = 1e-6;
- calibrate: the noise that meets a total of (3, 1e-5), by dp-accounting's own calibration to the same tolerance.

Ours by three bounds: "published" is what dp-accounting computes, the closed forms; "renyi" adds the numeric Lemma 7;
"all" is the default of `best_of`. "looser" counts the orders at which our curve is above dp-accounting's.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Callable

import numpy as np
from dp_accounting import dp_event, mechanism_calibration
from dp_accounting.rdp import rdp_privacy_accountant

from dpselect.accounting import best_of, calibrate
from dpselect.privacy import Guarantee, dp_sgd, gaussian
from dpselect.repetitions import Poisson, Repetitions, TruncatedNegativeBinomial

ORDERS = np.array(rdp_privacy_accountant.DEFAULT_RDP_ORDERS)
DELTA = 1e-6
TURN = 0.02


def fastest(repeats: int, *runs: Callable[[], object]) -> list[float]:
    """Best processor time of a run of each, in milliseconds, taking turns of at least `TURN` seconds."""
    counts = [math.ceil(TURN / processor_time(run, 1)) for run in runs]
    best = [math.inf] * len(runs)
    for _ in range(repeats):
        for i, run in enumerate(runs):
            best[i] = min(best[i], processor_time(run, counts[i]) / counts[i])
    return [1e3 * b for b in best]


def processor_time(run: Callable[[], object], count: int) -> float:
    start = time.process_time()
    for _ in range(count):
        run()
    return time.process_time() - start


def law_of(mean: float, shape: float) -> Repetitions:
    return Poisson(mean=mean) if math.isinf(shape) else TruncatedNegativeBinomial.with_mean(eta=shape, mean=mean)


def peer(event: dp_event.DpEvent, mean: float, shape: float) -> rdp_privacy_accountant.RdpAccountant:
    accountant = rdp_privacy_accountant.RdpAccountant()
    accountant.compose(dp_event.RepeatAndSelectDpEvent(event, mean, shape))
    return accountant


def sgd_event(noise: float) -> dp_event.DpEvent:
    return dp_event.SelfComposedDpEvent(dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(noise)), 1000)


BASES = {
    "Gaussian": (lambda s: gaussian(noise_multiplier=s), dp_event.GaussianDpEvent, 4.0),
    "DP-SGD": (lambda s: dp_sgd(noise_multiplier=s, sampling_rate=0.01, steps=1000), sgd_event, 1.0),
}
LAWS = {"logarithmic": 0.0, "geometric": 1.0, "Poisson": math.inf}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=30)
    repeats = parser.parse_args().repeats
    print(
        "| base | K, mean 10 | question | bound | dp-accounting ms | ours ms | ratio | dp-accounting | ours | looser |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for base_name, (make, event_of, noise) in BASES.items():
        for law_name, shape in LAWS.items():
            rows(base_name, law_name, make, event_of, noise, shape, repeats)


def rows(base_name, law_name, make, event_of, noise, shape, repeats) -> None:  # type: ignore[no-untyped-def]
    def line(question, bound, times, value=None, our_value=None, looser="") -> None:  # type: ignore[no-untyped-def]
        theirs, ours = times
        values = ["" if v is None else f"{v:.4f}" for v in (value, our_value)]
        numbers = (f"{theirs:.2f}", f"{ours:.3f}", f"{theirs / ours:.1f}")
        cells = (base_name, law_name, question, bound or "all", *numbers, *values, looser)
        print("| " + " | ".join(cells) + " |", flush=True)

    law = law_of(10.0, shape)

    fresh = itertools.count()

    def total(s: float, bound: str | None) -> Guarantee:
        return best_of(make(s * (1.0 + 1e-12 * next(fresh))), law, bound=bound)

    def theirs(s: float = noise) -> rdp_privacy_accountant.RdpAccountant:
        return peer(event_of(s), 10.0, shape)

    def their_calibration() -> float:
        return mechanism_calibration.calibrate_dp_mechanism(
            rdp_privacy_accountant.RdpAccountant,
            lambda s: dp_event.RepeatAndSelectDpEvent(event_of(s), 10.0, shape),
            3.0,
            1e-5,
            mechanism_calibration.LowerEndpointAndGuess(0.3, 2.0),
            tol=1e-4,
        )

    def our_calibration(bound: str | None) -> float:
        return calibrate(lambda s: total(s, bound), epsilon=3.0, delta=1e-5, low=0.3)

    for bound in ("published", "renyi"):
        above = total(noise, bound).renyi_curve(ORDERS) > np.asarray(theirs()._rdp) * (1 + 1e-9)
        times = fastest(repeats, theirs, lambda b=bound: total(noise, b).renyi_curve(ORDERS))
        line("curve", bound, times, looser=f"{np.count_nonzero(above)} of {ORDERS.size}")
    for bound in ("published", "renyi", None):
        few = repeats if bound else 3
        times = fastest(few, lambda: theirs().get_epsilon(DELTA), lambda b=bound: total(noise, b).epsilon(DELTA))
        line("epsilon", bound, times, theirs().get_epsilon(DELTA), total(noise, bound).epsilon(DELTA))
    for bound in ("published", "renyi", None):
        few = max(1, repeats // 10) if bound else 1
        times = fastest(few, their_calibration, lambda b=bound: our_calibration(b))
        line("calibrate", bound, times, their_calibration(), our_calibration(bound))


if __name__ == "__main__":
    main()
