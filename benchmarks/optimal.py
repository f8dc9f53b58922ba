"""The optimal accountant measured: width of its bracket on a grid of cases, and a comparison with dp-accounting.

    python benchmarks/optimal.py width       the relative width of epsilon_bracket on 720 cases, the worst ones printed
    python benchmarks/optimal.py compare     epsilon and time against dp-accounting's RepeatAndSelect (a Markdown table)

Times are of one process on the machine at hand, with the base's privacy-loss distribution built beforehand.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Iterator

import dp_accounting
import numpy as np
from dp_accounting.rdp import rdp_privacy_accountant

from dpselect.accounting.optimal import optimal_best_of
from dpselect.privacy import Guarantee, approximate_dp, dp_sgd, gaussian, laplace, pure_dp
from dpselect.repetitions import (
    BetaBinomial,
    Binomial,
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
MEANS = (2, 10, 100, 1000)


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
    """Every base with every law at every mean; deltas rotate so that each meets everything."""
    rotation = itertools.cycle(DELTAS)
    for base, law, mean in itertools.product(BASES, LAWS, MEANS):
        for _ in range(3):
            yield base, law, mean, next(rotation)


def width(minutes: float) -> None:
    bases = {name: make() for name, make in BASES.items()}
    found, slow, outside, misses = [], [], 0, []
    started = time.perf_counter()
    for base, law, mean, delta in cases():
        if time.perf_counter() - started > 60.0 * minutes:
            print(f"stopped after {minutes:g} minutes")
            break
        begin = time.perf_counter()
        lower, upper = optimal_best_of(bases[base], LAWS[law](mean)).epsilon_bracket(delta=delta)
        slow.append((time.perf_counter() - begin, base, law, mean, delta))
        if not 0.05 <= upper <= 20.0 and np.isfinite(upper):
            outside += 1
            continue
        relative = upper / lower - 1.0 if lower > 0.0 else np.inf
        found.append((relative, base, law, mean, delta, lower, upper))
        if not relative <= 2e-3:
            misses.append(found[-1])
    widths = np.array([f[0] for f in found])
    print(f"{len(found)} cases with epsilon in [0.05, 20] ({outside} outside), {len(misses)} wider than 0.2 %")
    if widths.size:
        print(f"median {np.median(widths):.2e}, 95 % {np.quantile(widths, 0.95):.2e}, worst {widths.max():.2e}")
    for relative, base, law, mean, delta, lower, upper in sorted(found, reverse=True)[:12]:
        print(f"  {relative:.2e}  {base}; {law}; E[K] = {mean}; delta = {delta:g}: [{lower:.6f}, {upper:.6f}]")
    times = np.array([s[0] for s in slow])
    print(f"seconds a bracket: median {np.median(times):.2f}, worst {times.max():.2f} ({max(slow)[1:]})")


def compare() -> None:
    laws = {
        "negative binomial, eta 2, mean 10": (2.0, 10),
        "logarithmic, mean 10": (0.0, 10),
        "logarithmic, mean 100": (0.0, 100),
        "geometric, mean 10": (1.0, 10),
        "Poisson, mean 10": (np.inf, 10),
    }
    single = {
        "Gaussian 4": dp_accounting.GaussianDpEvent(4.0),
        "Gaussian 1": dp_accounting.GaussianDpEvent(1.0),
        "DP-SGD 1, 0.01, 1000": dp_accounting.SelfComposedDpEvent(
            dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.0)), 1000
        ),
        "DP-SGD 1, 0.01, 10000": dp_accounting.SelfComposedDpEvent(
            dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.0)), 10000
        ),
    }
    ours = {name: BASES[name]() for name in single if name in BASES}
    ours["DP-SGD 1, 0.01, 10000"] = dp_sgd(noise_multiplier=1.0, sampling_rate=0.01, steps=10000)
    for guarantee in ours.values():
        guarantee.epsilon(delta=1e-6)
    print("| base | K | dp-accounting | here (upper) | ratio | attained | seconds there | seconds here |")
    print("|---|---|---|---|---|---|---|---|")
    for base, (law, (eta, mean)) in itertools.product(single, laws.items()):
        start = time.perf_counter()
        accountant = rdp_privacy_accountant.RdpAccountant()
        if np.isinf(eta):
            event = dp_accounting.dp_event.RepeatAndSelectDpEvent(single[base], mean, np.inf)
            repetitions: Repetitions = Poisson(mean=mean)
        else:
            event = dp_accounting.dp_event.RepeatAndSelectDpEvent(single[base], mean, eta)
            repetitions = TruncatedNegativeBinomial.with_mean(eta=eta, mean=mean)
        accountant.compose(event)
        theirs = accountant.get_epsilon(1e-6)
        middle = time.perf_counter()
        total = optimal_best_of(ours[base], repetitions)
        upper = total.epsilon(delta=1e-6)
        end = time.perf_counter()
        lower = total.epsilon_bracket(delta=1e-6)[0]
        print(
            f"| {base} | {law} | {theirs:.4f} | {upper:.4f} | {upper / theirs:.3f} | {lower:.4f} "
            f"| {middle - start:.3f} | {end - middle:.3f} |"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("width", "compare"))
    parser.add_argument("--minutes", type=float, default=30.0, help="stop `width` after this long")
    arguments = parser.parse_args()
    if arguments.what == "width":
        width(arguments.minutes)
    else:
        compare()
