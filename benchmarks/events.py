"""Each kind of event beside dp-accounting's own accountants: epsilon at delta 1e-6, and the ratio of processor times.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.events [--rounds 3]

In each round both price an event with a noise of its own, so that no answer is kept from the round before. The peer is
the accountant of dp-accounting with the smaller epsilon, mostly that of loss distributions. The time is that of the
same accountant. The ratio is the median over the rounds, after one that warms imports. A mixture of Gaussians takes
dp-accounting half a minute a round.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

from dp_accounting import NeighboringRelation, dp_event as de
from dp_accounting.pld import pld_privacy_accountant
from dp_accounting.rdp import rdp_privacy_accountant

from dpselect.privacy import from_dp_event

DELTA = 1e-6
ADD, REPLACE = NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE


def poisson(noise: float, steps: int) -> Any:
    return de.SelfComposedDpEvent(de.PoissonSampledDpEvent(0.01, de.GaussianDpEvent(noise)), steps)


def together(noise: float) -> Any:
    return de.ComposedDpEvent([de.LaplaceDpEvent(5.0), de.GaussianDpEvent(noise), de.GaussianDpEvent(2.0 * noise)])


EVENTS: dict[str, tuple[Callable[[float], Any], NeighboringRelation]] = {
    "Gaussian": (lambda x: de.GaussianDpEvent(2.0 * x), ADD),
    "Laplace": (lambda x: de.LaplaceDpEvent(x), ADD),
    "discrete Laplace": (lambda x: de.DiscreteLaplaceDpEvent(0.5 / x, 3), ADD),
    "zCDP": (lambda x: de.ZCDpEvent(0.05 / x), ADD),
    "randomised response": (lambda x: de.RandomizedResponseDpEvent(0.3 * x, 4), REPLACE),
    "Gaussian on a Poisson sample": (lambda x: poisson(x, 1), ADD),
    "the same, 1,000 times": (lambda x: poisson(x, 1000), ADD),
    "the same, a row replaced": (lambda x: poisson(x, 1000), REPLACE),
    "Laplace on a Poisson sample": (lambda x: de.PoissonSampledDpEvent(0.1, de.LaplaceDpEvent(x)), ADD),
    "Laplace, 100 times": (lambda x: de.SelfComposedDpEvent(de.LaplaceDpEvent(10.0 * x), 100), ADD),
    "three mechanisms composed": (lambda x: together(4.0 * x), ADD),
    "truncated Poisson sample": (lambda x: de.TruncatedSubsampledGaussianDpEvent(1000, 0.01, 30, 2.0 * x), ADD),
    "repeat and select": (lambda x: de.RepeatAndSelectDpEvent(de.GaussianDpEvent(4.0 * x), 10, 1), ADD),
    "mixture of Gaussians": (lambda x: de.MixtureOfGaussiansDpEvent(x, [0.0, 1.0, 2.0], [0.9, 0.09, 0.01]), ADD),
}
PEERS: dict[str, Callable[[NeighboringRelation], Any]] = {
    "loss distribution": lambda relation: pld_privacy_accountant.PLDAccountant(relation),
    "Renyi": lambda relation: rdp_privacy_accountant.RdpAccountant(neighboring_relation=relation),
}


def timed(price: Callable[[], float]) -> tuple[float, float]:
    """The price and the processor time that it took."""
    begin = time.process_time()
    epsilon = float(price())
    return epsilon, time.process_time() - begin


def theirs(event: Any, relation: NeighboringRelation) -> tuple[float, float, str]:
    """The smallest epsilon of dp-accounting's accountants that take the event, its time and the accountant."""
    found = []
    for name, make in PEERS.items():
        if make(relation).supports(event):
            found.append((*timed(lambda make=make: make(relation).compose(event).get_epsilon(DELTA)), name))
    return min(found, default=(math.inf, math.nan, "none"))


def row(name: str, rounds: int) -> str:
    """A line of the table."""
    make, relation = EVENTS[name]
    ratios, ours, peer = [], math.nan, (math.nan, math.nan, "")
    for turn in range(rounds + 1):
        event = make(1.0 + 1e-3 * turn)
        ours, own = timed(lambda event=event: from_dp_event(event, adjacency=relation.name.lower()).epsilon(DELTA))
        peer = theirs(event, relation)
        ratios += [own / peer[1]] if turn else []
    return f"| {name} | {ours:.5f} | {peer[0]:.5f} | {peer[2]} | {statistics.median(ratios):.2g} |"


def main() -> None:
    """Print the table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    print(f"| event (delta {DELTA:g}) | dpselect | dp-accounting | by | time, dpselect / dp-accounting |")
    print("|---|---|---|---|---|")
    for name in EVENTS:
        print(row(name, rounds), flush=True)


if __name__ == "__main__":
    main()
