"""The optimal accountant measured: width of its bracket on a grid of cases, its speed, and a comparison.

    python benchmarks/optimal.py width                   720 cases, each printed as it is done, and a summary
    python benchmarks/optimal.py width --part 3/12       the third of twelve parts, spread over the grid
    python benchmarks/optimal.py small                   runs that leak little: processor time and width of the bracket
    python benchmarks/optimal.py speed                   processor time of one epsilon, one bracket and one curve
    python benchmarks/optimal.py table                   against dp-accounting's repeat-and-select, as a Markdown table
    python benchmarks/optimal.py table --write docs/explanation/optimal-vs-repeat-and-select.md

Times are processor time of this process (all its threads), with the base's privacy-loss distribution built in advance.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import dp_accounting
import numpy as np
from dp_accounting.rdp import rdp_privacy_accountant

from dpselect.accounting.candidates.threshold import threshold_stopping
from dpselect.accounting.optimal.best_of import optimal_best_of
from dpselect.privacy import Guarantee, approximate_dp, dp_sgd, gaussian, laplace, pure_dp
from dpselect.repetitions import (
    BetaBinomial,
    Binomial,
    Fixed,
    Geometric,
    Harmonic,
    Logarithmic,
    Poisson,
    Repetitions,
    TruncatedNegativeBinomial,
    Uniform,
    capped,
)

DELTAS = (1e-12, 1e-10, 1e-8, 1e-6, 1e-3)
MEANS = (2, 6, 30, 200, 1000)
GOAL = 2e-3


def _harmonic(mean: int) -> Repetitions:
    limit = 2
    while Harmonic(limit=limit).mean < mean:
        limit = limit * 5 // 4 + 1
    return Harmonic(limit=limit)


LAWS: dict[str, Callable[[int], Repetitions]] = {
    "negative binomial, eta -0.5": lambda m: TruncatedNegativeBinomial.with_mean(eta=-0.5, mean=m),
    "logarithmic": lambda m: Logarithmic.with_mean(mean=m),
    "geometric": lambda m: Geometric.with_mean(mean=m),
    "negative binomial, eta 3": lambda m: TruncatedNegativeBinomial.with_mean(eta=3.0, mean=m),
    "Poisson": lambda m: Poisson(mean=m),
    "binomial": lambda m: Binomial(trials=2 * m, probability=0.5),
    "harmonic": _harmonic,
    "uniform": lambda m: Uniform(limit=2 * m),
    "beta-binomial": lambda m: BetaBinomial(trials=3 * m, shape=0.5),
    "capped geometric": lambda m: capped(Geometric.with_mean(mean=m), 2 * m),
    "geometric at most": lambda m: Geometric.with_mean(mean=2 * m).at_most(3 * m),
    "fixed": lambda m: Fixed(count=m),
}

BASES: dict[str, Callable[[], Guarantee]] = {
    "pure 0.3": lambda: pure_dp(epsilon=0.3),
    "approximate 0.5, 1e-17": lambda: approximate_dp(epsilon=0.5, delta=1e-17),
    "Laplace 1": lambda: laplace(scale=1.0),
    "Gaussian 4": lambda: gaussian(noise_multiplier=4.0),
    "Gaussian 1": lambda: gaussian(noise_multiplier=1.0),
    "DP-SGD 1, 0.01, 1000": lambda: dp_sgd(noise_multiplier=1.0, sampling_rate=0.01, steps=1000),
}


def cases() -> Iterator[tuple[str, str, int, float]]:
    """Every base with every law at every mean, at two deltas that shift from one to the next."""
    places = {name: place for names in (BASES, LAWS) for place, name in enumerate(names)}
    for base, law, (place, mean) in itertools.product(BASES, LAWS, enumerate(MEANS)):
        for shift in (0, 2):
            yield base, law, mean, DELTAS[(places[base] + places[law] + place + shift) % len(DELTAS)]


def relative_width(lower: float, upper: float) -> float:
    """(upper - lower) / upper; a refusal (no upper value) is as wide as can be."""
    return (upper - lower) / upper if math.isfinite(upper) else 1.0


def width(part: int, parts: int) -> None:
    """Every `parts`-th case, printed as it is done; what is outside [0.05, 20] is printed but not counted."""
    bases: dict[str, Guarantee] = {}
    found, seconds, outside = [], [], 0
    for base, law, mean, delta in itertools.islice(cases(), part - 1, None, parts):
        if base not in bases:
            bases[base] = BASES[base]()
            bases[base].epsilon(delta=1e-6)
        started = time.process_time()
        lower, upper = optimal_best_of(bases[base], LAWS[law](mean)).epsilon_bracket(delta=delta)
        seconds.append(time.process_time() - started)
        counted = 0.05 <= upper <= 20.0 or math.isinf(upper)
        outside += not counted
        relative = relative_width(lower, upper)
        case = f"{base}; {law}; E[K] = {mean}; delta = {delta:g}: [{lower:.6f}, {upper:.6f}]"
        mark = "outside" if not counted else "MISS" if relative > GOAL else "ok"
        print(f"{relative:.2e}  {seconds[-1]:6.2f} s  {mark:7}  {case}", flush=True)
        if counted:
            found.append((relative, case))
    widths = np.array([f[0] for f in found])
    missed = int(np.sum(widths > GOAL))
    print(f"{len(found)} cases with epsilon in [0.05, 20] ({outside} outside), {missed} wider than {GOAL:.1%}")
    print(f"median {np.median(widths):.2e}, 95 % {np.quantile(widths, 0.95):.2e}, worst {max(found)}")
    print(f"processor seconds a bracket: median {np.median(seconds):.2f}, worst {max(seconds):.2f}")


SMALL: dict[str, tuple[Callable[[], Guarantee], float]] = {
    **{
        f"threshold, pure {epsilon:g}, stop {stop:g}": (
            lambda epsilon=epsilon, stop=stop: threshold_stopping(pure_dp(epsilon=epsilon), stop_probability=stop),
            1e-6,
        )
        for epsilon in (1e-3, 1e-2)
        for stop in (0.1, 1e-3)
    },
    "threshold, Gaussian 1000, stop 1e-5": (
        lambda: threshold_stopping(gaussian(noise_multiplier=1000.0), stop_probability=1e-5),
        1e-6,
    ),
    "threshold, pure 0.001, stop 0.01, capped at 20": (
        lambda: threshold_stopping(pure_dp(epsilon=1e-3), stop_probability=0.01, max_runs=20, truncation="capped"),
        1e-6,
    ),
    "best of, pure 0.001, capped geometric 10": (
        lambda: optimal_best_of(pure_dp(epsilon=1e-3), capped(Geometric.with_mean(mean=10), 20)),
        1e-6,
    ),
    "best of, Laplace 1000, geometric 10": (
        lambda: optimal_best_of(laplace(scale=1000.0), Geometric.with_mean(mean=10)),
        1e-6,
    ),
    **{
        f"best of, Gaussian 1000, {law.law_name} {law.mean:.0f}": (
            lambda law=law: optimal_best_of(gaussian(noise_multiplier=1000.0), law),
            1e-6,
        )
        for law in (
            Geometric.with_mean(mean=10),
            Geometric.with_mean(mean=1e5),
            capped(Geometric.with_mean(mean=10), 20),
            capped(Logarithmic.with_mean(mean=10), 1000),
        )
    },
}


def small() -> None:
    """Runs that leak little: processor seconds of a bracket from scratch, and how wide it is."""
    for name, (make, delta) in SMALL.items():
        started = time.process_time()
        lower, upper = make().epsilon_bracket(delta=delta)
        spent = time.process_time() - started
        print(f"{spent:6.2f} s  {relative_width(lower, upper):.1e}  {name}: [{lower:.8f}, {upper:.8f}]", flush=True)


def speed() -> None:
    """One epsilon, one bracket and one curve for DP-SGD, a negative binomial law first and laws on a table after it."""
    base = dp_sgd(noise_multiplier=1.0, sampling_rate=0.01, steps=10_000)
    started = time.process_time()
    base.epsilon(delta=1e-6)
    print(f"DP-SGD 1, 0.01, 10000: distribution built in {time.process_time() - started:.2f} s")
    laws: tuple[Repetitions, ...] = (
        TruncatedNegativeBinomial.with_mean(eta=0.5, mean=10),
        Geometric.with_mean(mean=100),
        Poisson(mean=10),
        Fixed(count=10),
        Harmonic(limit=29),
        Uniform(limit=20),
        BetaBinomial(trials=30, shape=0.5),
        Geometric.with_mean(mean=10).at_most(20),
        capped(Logarithmic.with_mean(mean=10), 1000),
    )
    for law in laws:
        total = optimal_best_of(base, law)
        seconds = [time.process_time()]
        total.epsilon(delta=1e-6)
        seconds.append(time.process_time())
        total.epsilon_bracket(delta=1e-6)
        seconds.append(time.process_time())
        total.delta(np.linspace(0.0, 12.0, 200))
        seconds.append(time.process_time())
        epsilon, bracket, curve = np.diff(seconds)
        print(
            f"{law.law_name}, E[K] = {law.mean:.1f}: epsilon {epsilon:.2f} s, then a bracket {bracket:.2f} s, "
            f"a curve of 200 points {curve:.2f} s",
            flush=True,
        )


PEER_LAWS: dict[str, tuple[float, int]] = {
    "negative binomial, eta 2, mean 10": (2.0, 10),
    "geometric, mean 10": (1.0, 10),
    "logarithmic, mean 10": (0.0, 10),
    "logarithmic, mean 100": (0.0, 100),
    "Poisson, mean 10": (math.inf, 10),
}

PEER_DELTA = 1e-6
COMMAND = "python benchmarks/optimal.py table --write docs/explanation/optimal-vs-repeat-and-select.md"


def _sampled(steps: int) -> dp_accounting.DpEvent:
    once = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.0))
    return dp_accounting.SelfComposedDpEvent(once, steps)


PEER_BASES: dict[str, tuple[Callable[[], Guarantee], Callable[[], dp_accounting.DpEvent]]] = {
    "Gaussian 10": (lambda: gaussian(noise_multiplier=10.0), lambda: dp_accounting.GaussianDpEvent(10.0)),
    "Gaussian 4": (lambda: gaussian(noise_multiplier=4.0), lambda: dp_accounting.GaussianDpEvent(4.0)),
    "Gaussian 1": (lambda: gaussian(noise_multiplier=1.0), lambda: dp_accounting.GaussianDpEvent(1.0)),
    "DP-SGD 1, 0.01, 1000": (BASES["DP-SGD 1, 0.01, 1000"], lambda: _sampled(1000)),
    "DP-SGD 1, 0.01, 10000": (
        lambda: dp_sgd(noise_multiplier=1.0, sampling_rate=0.01, steps=10_000),
        lambda: _sampled(10_000),
    ),
}


def _theirs(event: dp_accounting.DpEvent, eta: float, mean: int) -> float:
    accountant = rdp_privacy_accountant.RdpAccountant()
    accountant.compose(dp_accounting.dp_event.RepeatAndSelectDpEvent(event, mean, eta))
    return float(accountant.get_epsilon(PEER_DELTA))


def rows() -> Iterator[tuple[str, str, float, float, float, float, float]]:
    """Base, law, their epsilon, the bracket here, and the processor seconds of each upper value."""
    for name, (base, event) in PEER_BASES.items():
        guarantee = base()
        guarantee.epsilon(delta=PEER_DELTA)
        for law, (eta, mean) in PEER_LAWS.items():
            begin = time.process_time()
            theirs = _theirs(event(), eta, mean)
            middle = time.process_time()
            repetitions: Repetitions = (
                Poisson(mean=mean) if math.isinf(eta) else TruncatedNegativeBinomial.with_mean(eta=eta, mean=mean)
            )
            total = optimal_best_of(guarantee, repetitions)
            total.epsilon(delta=PEER_DELTA)
            end = time.process_time()
            lower, upper = total.epsilon_bracket(delta=PEER_DELTA)
            yield name, law, theirs, lower, upper, middle - begin, end - middle


def table(page: Path | None) -> None:
    """The comparison as Markdown, printed row by row and written as a page."""
    lines = [
        "| base | K | dp-accounting | here | ratio | attained | seconds there | seconds here | time ratio |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    ratios, times = [], []
    for name, law, theirs, lower, upper, there, here in rows():
        ratios.append(upper / theirs)
        times.append(here / there)
        lines.append(
            f"| {name} | {law} | {theirs:.4f} | {upper:.4f} | {ratios[-1]:.3f} | {lower:.4f} "
            f"| {there:.3f} | {here:.3f} | {times[-1]:.1f} |"
        )
        print(lines[-1], flush=True)
    summary = (
        f"Epsilon here is between {min(ratios):.3f} and {max(ratios):.3f} of the other, {float(np.median(ratios)):.3f} "
        f"in the middle; the time is between {min(times):.1f} and {max(times):.1f} times the other's."
    )
    print(summary)
    if page is not None:
        page.write_text(PAGE.format(command=COMMAND, table="\n".join(lines), summary=summary, delta=PEER_DELTA))


PAGE = """# The optimal bound beside repeat-and-select

Written by `{command}`; every number on this page is from that one run.

dp-accounting prices the best of K runs by the Renyi bounds of Papernot and Steinke (2022): `RepeatAndSelectDpEvent` in
its `RdpAccountant`, with its own choice of orders. Here the same base and the same distribution of K are priced by
`best_of(base, law)`, whose default is the smallest valid bound ([why](theory/optimal-selection.md)). Both are upper
bounds on the same thing: epsilon at delta = {delta:g}, add or remove one. DP-SGD is (noise multiplier, sampling rate,
steps) with Poisson sampling. "Attained" is an epsilon that some mechanism with that base needs, so nothing valid lies
below it. "Ratio" is here over there.

Seconds are processor time of one epsilon; the privacy-loss distribution of the base is built in advance and not
counted, while on the other side the Renyi curve of the base is.

{table}

{summary}
"""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("width", "small", "speed", "table"))
    parser.add_argument("--part", default="1/1", help="of `width`: i/n takes every n-th case from the i-th on")
    parser.add_argument("--write", type=Path, default=None, help="of `table`: the page to write")
    arguments = parser.parse_args()
    if arguments.what == "width":
        width(*(int(x) for x in arguments.part.split("/")))
    elif arguments.what == "small":
        small()
    elif arguments.what == "speed":
        speed()
    else:
        table(arguments.write)
