"""What `python -m benchmarks` measures: questions, and who answers each. Ours comes first.

A contender is made only when it is measured, and an ImportError then is a peer that is not installed, which is said.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpselect.accounting import best_of
from dpselect.adaptive import SearchNoise, exponential_median, integer_grid, search_median
from dpselect.ledger import Ledger
from dpselect.mechanisms import SparseVector, exponential_mechanism, permute_and_flip
from dpselect.ordered import quantile
from dpselect.privacy import dp_sgd, gaussian, pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed, Harmonic, Logarithmic
from dpselect.selection.best import best_outcome
from dpselect.tuning import ProcessExecutor, Space, Uniform, tune

Run = Callable[[], Any]
DELTA = 1e-6


@dataclass(frozen=True)
class Question:
    """One thing that several can do; `makers` build what is timed.

    `wall` times the clock, for what waits for disks and processes; otherwise processor time counts. What a call of a
    `priced` one returns is an epsilon, which is shown.
    """

    area: str
    title: str
    makers: Mapping[str, Callable[[], Run]]
    wall: bool = False
    priced: bool = False
    rounds: int | None = None


def opendp() -> Any:
    """OpenDP, switched on."""
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious")
    return dp


def diffprivlib() -> Any:
    """diffprivlib 0.6.6 imports two names that scikit-learn 1.8 took away; they are put back for it."""
    import sklearn.tree._tree as tree

    for name in ("DOUBLE", "DTYPE"):
        if not hasattr(tree, name):
            setattr(tree, name, np.float64)
    import diffprivlib

    return diffprivlib


def accounting() -> Iterator[Question]:
    """The price of a search, and of one training."""
    noises = iter(1.0 + 1e-12 * k for k in range(10**9))  # so that nothing is found in a cache

    def repeat_and_select(event_of: Callable[[float], Any], noise: float) -> Callable[[], Run]:
        def make() -> Run:
            from dp_accounting import dp_event
            from dp_accounting.rdp import rdp_privacy_accountant

            def run() -> float:
                accountant = rdp_privacy_accountant.RdpAccountant()
                accountant.compose(dp_event.RepeatAndSelectDpEvent(event_of(noise * next(noises)), 10.0, 0.0))
                return float(accountant.get_epsilon(DELTA))

            return run

        return make

    def sgd_event(noise: float) -> Any:
        from dp_accounting import dp_event

        return dp_event.SelfComposedDpEvent(dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(noise)), 1000)

    def gaussian_event(noise: float) -> Any:
        from dp_accounting import dp_event

        return dp_event.GaussianDpEvent(noise)

    law = Logarithmic.with_mean(mean=10)
    bases = {
        "Gaussian, noise 4": (lambda s: gaussian(noise_multiplier=s), gaussian_event, 4.0),
        "DP-SGD, noise 1, rate 0.01, 1,000 steps": (
            lambda s: dp_sgd(noise_multiplier=s, sampling_rate=0.01, steps=1000),
            sgd_event,
            1.0,
        ),
    }
    for name, (base, event, noise) in bases.items():

        def ours(bound: str | None, base: Any = base, noise: float = noise) -> Callable[[], Run]:
            return lambda: lambda: best_of(base(noise * next(noises)), law, bound=bound).epsilon(DELTA)

        yield Question(
            "accounting",
            f"epsilon of the best of K, logarithmic with mean 10: {name}",
            {
                "dpselect, closed forms": ours("published"),
                "dpselect, optimal (the default)": ours(None),
                "dp-accounting": repeat_and_select(event, noise),
            },
            priced=True,
        )

    def opacus(name: str, **options: float) -> Callable[[], Run]:
        def make() -> Run:
            import warnings

            from opacus import accountants

            warnings.simplefilter("ignore")

            def run() -> float:
                accountant = getattr(accountants, name)()
                accountant.history = [(next(noises), 0.01, 1000)]
                return float(accountant.get_epsilon(1e-5, **options))

            return run

        return make

    yield Question(
        "accounting",
        "epsilon of one DP-SGD training, noise 1, rate 0.01, 1,000 steps, delta 1e-5",
        {
            "dpselect": lambda: (
                lambda: dp_sgd(noise_multiplier=next(noises), sampling_rate=0.01, steps=1000).epsilon(1e-5)
            ),
            "Opacus, PRV": opacus("PRVAccountant"),
            "Opacus, RDP": opacus("RDPAccountant"),
        },
        priced=True,
    )


def selection(count: int) -> Iterator[Question]:
    """Repetitions, and choosing by scores."""
    runs = 2000

    def nothing(_random: Any) -> tuple[float, None]:
        return 0.0, None

    def theirs() -> Run:
        dp = opendp()
        measurement = dp.m.make_user_measurement(
            dp.atom_domain(T=float, nan=False),
            dp.absolute_distance(T=float),
            dp.max_divergence(),
            function=lambda _argument: (0.0, None),
            privacy_map=lambda distance: distance,
            TO=(float, "ExtrinsicObject"),
        )
        # the number of tries is geometric: as many searches as give `runs` of them on average
        select = dp.c.make_select_private_candidate(measurement, stop_probability=0.01, threshold=1.0)
        return lambda: [select(0.0) for _ in range(runs // 100)]

    source, law = keyed_source(1), Fixed(count=runs)
    yield Question(
        "selection",
        f"{runs:,} repetitions of a candidate that does nothing",
        {
            "dpselect": lambda: lambda: best_outcome(nothing, law, source),
            "bare Python loop": lambda: lambda: [nothing(None) for _ in range(runs)],
            "OpenDP select_private_candidate (random number of tries)": theirs,
        },
    )
    scores = np.random.default_rng(1).random(count)
    generator = np.random.default_rng(2)
    parameters: dict[str, Any] = {"sensitivity": 1.0, "epsilon": 2.0, "random": source}

    def noisy_max() -> Run:
        dp = opendp()
        space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
        select = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=1.0)
        return lambda: select(scores)

    def exponential() -> Run:
        mechanism = diffprivlib().mechanisms.Exponential
        few = scores[: count // 100].tolist()
        return lambda: [mechanism(epsilon=2.0, sensitivity=1.0, utility=few).randomise() for _ in range(100)]

    yield Question(
        "selection",
        f"one of {count:,} scores",
        {
            "dpselect, exponential mechanism": lambda: lambda: exponential_mechanism(scores, **parameters),
            "dpselect, permute-and-flip": lambda: lambda: permute_and_flip(scores, **parameters),
            "NumPy max (no privacy)": lambda: lambda: scores.max(),
            "NumPy Gumbel argmax (floating point)": lambda: lambda: np.argmax(scores + generator.gumbel(size=count)),
            "OpenDP noisy max": noisy_max,
            "diffprivlib exponential (a hundred times a hundredth)": exponential,
        },
        rounds=3,
    )


def sparse_vector(count: int) -> Iterator[Question]:
    """Many comparisons, hardly a positive."""
    values, keys = np.random.default_rng(1).random(count), iter(range(10**9))

    def above() -> None:
        session = SparseVector(
            epsilon_threshold=1.0, epsilon_queries=2.0, max_positives=1, random=keyed_source(next(keys))
        )
        session.above_many(values, 60.0)

    yield Question(
        "sparse vector",
        f"{count:,} queries, none near the threshold",
        {"dpselect": lambda: above, "NumPy compare (no privacy)": lambda: lambda: (values > 60.0).any()},
    )


def quantiles(rows: int) -> Iterator[Question]:
    """One median."""
    values = np.random.default_rng(1).normal(size=rows)

    def theirs() -> Run:
        dp = opendp()
        mechanism = dp.m.make_private_quantile(
            dp.vector_domain(dp.atom_domain(T=float, nan=False)),
            dp.symmetric_distance(),
            dp.max_divergence(),
            candidates=np.linspace(-10.0, 10.0, 1001).tolist(),
            alpha=0.5,
            scale=1.0,
        )
        listed = values.tolist()
        return lambda: mechanism(listed)

    def diffpriv() -> Run:
        median = diffprivlib().tools.quantile
        return lambda: median(values, 0.5, epsilon=1.0, bounds=(-10.0, 10.0))

    yield Question(
        "quantiles",
        f"median of {rows:,} doubles at epsilon 1",
        {
            "dpselect": lambda: lambda: quantile(values, q=0.5, epsilon=1.0, lower=-10.0, upper=10.0),
            "NumPy partition (no privacy)": lambda: lambda: np.partition(values, rows // 2),
            "NumPy sort (no privacy)": lambda: lambda: np.sort(values),
            "OpenDP, 1,001 candidates": theirs,
            "diffprivlib": diffpriv,
        },
        rounds=3,
    )


def adaptive(blocks: int) -> Iterator[Question]:
    """Answers from the values of an estimator on blocks."""
    grid, source = integer_grid(-(2**31), 2**31 - 1), keyed_source(1)
    noise = SearchNoise.of_deviation(32, 100.0)
    values = np.random.default_rng(0).normal(0, 1e8, blocks)
    yield Question(
        "adaptive answers",
        f"one answer from {blocks:,} block values on 2^32 points",
        {
            "dpselect, binary search": lambda: lambda: search_median(values, grid, noise=noise, random=source),
            "dpselect, exponential mechanism": lambda: (
                lambda: exponential_median(values, grid, epsilon=0.02, random=source)
            ),
            "NumPy median (no privacy)": lambda: lambda: np.median(values),
        },
    )


def ledger(each: int) -> Iterator[Question]:
    """Durable reservations, each settled."""
    from benchmarks.ledger import bare_sqlite, through_the_ledger

    def place(work: Callable[[str, int], None]) -> Callable[[], Run]:
        def make() -> Run:
            where = str(Path(tempfile.mkdtemp(), "budget.db"))
            with Ledger.open(where) as record:
                record.create_budget("b", epsilon=10**6)
            return lambda: work(where, each)

        return make

    yield Question(
        "ledger",
        f"{each} reservations and settlements, each durable, SQLite",
        {"dpselect": place(through_the_ledger), "bare sqlite3, the same writes": place(bare_sqlite)},
        wall=True,
    )


def tuner(trials: int) -> Iterator[Question]:
    """Trivial trials, each kept durably."""
    from benchmarks.tuner import bare_commits, dpselect_tuner, optuna_journal, optuna_sqlite, optuna_with, ray_tune

    def fresh(work: Callable[[Path, int], None], count: int = trials) -> Callable[[], Run]:
        def make() -> Run:
            work(Path(tempfile.mkdtemp()), 2)  # imports, and whether it is installed
            return lambda: work(Path(tempfile.mkdtemp()), count)

        return make

    makers = {
        "dpselect, sealed, 64 KiB payload": fresh(dpselect_tuner(64 << 10)),
        "bare durable SQLite commits": fresh(bare_commits),
        "Optuna, journal file": fresh(optuna_with(optuna_journal)),
        "Optuna, SQLite": fresh(optuna_with(optuna_sqlite)),
    }
    if trials > 20:  # seconds a trial
        makers["Ray Tune (a twentieth of the trials)"] = fresh(ray_tune, trials // 20)
    yield Question("tuner", f"{trials} trivial trials, start included", makers, wall=True, rounds=3)


def trivial(params: dict[str, float], random: object) -> tuple[float, float]:  # noqa: ARG001 - an objective's
    """A trial that does nothing."""
    return params["x"], params["x"]


def search_on(workers: int, trials: int) -> None:
    """A search of trivial trials on some worker processes."""
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp()
    tune(
        trivial,
        space=Space({"x": Uniform(0.0, 1.0)}),
        base=pure_dp(epsilon=0.1),
        repetitions=Fixed(count=trials),
        executor=ProcessExecutor(workers=workers),
    )


def scaling(quick: bool) -> Iterator[tuple[str, str, int, Run, bool]]:
    """Curves: what, along what, where on it, what is run, and whether the clock counts."""
    random, largest = keyed_source(1), 20_000 if quick else 10_000_000
    sizes = [largest // 1000, largest // 100, largest // 10, largest]
    for n in sizes:
        scores = np.random.default_rng(1).random(n)
        values = np.random.default_rng(1).normal(size=n)
        yield (
            "exponential mechanism",
            "n scores",
            n,
            lambda s=scores: exponential_mechanism(s, sensitivity=1.0, epsilon=2.0, random=random),
            False,
        )
        yield (
            "median",
            "n rows",
            n,
            lambda v=values: quantile(v, q=0.5, epsilon=1.0, lower=-100.0, upper=100.0, random=random),
            False,
        )
    whole = np.sort(np.random.default_rng(1).integers(0, 2**15, largest // 10))
    for bits in (16, 32, 64, 128, 256):
        yield (
            f"median of {largest // 10:,} sorted rows",
            "bits of the domain",
            bits,
            lambda b=bits: quantile(
                whole, q=0.5, lower=0, upper=2**b - 1, epsilon=1.0, assume_sorted=True, random=random
            ),
            False,
        )
    for mean in (10, 100, 1000, 10_000):
        yield (
            "optimal price of the best of K",
            "mean of K",
            mean,
            lambda m=mean: best_of(gaussian(noise_multiplier=4.0), Logarithmic.with_mean(mean=m)).epsilon(DELTA),
            False,
        )
        yield (
            "optimal price, K limited",
            "limit of K",
            mean,
            lambda m=mean: best_of(gaussian(noise_multiplier=4.0), Harmonic(limit=m)).epsilon(DELTA),
            False,
        )
    if not quick:
        for workers in (1, 2, 4):
            yield (
                "200 trivial trials, start of the workers included",
                "worker processes",
                workers,
                lambda w=workers: search_on(w, 200),
                True,
            )


def questions(quick: bool) -> Iterator[Question]:
    """All of them, in small when quick."""
    size = 20_000 if quick else 1_000_000
    yield from accounting()
    yield from selection(size)
    yield from sparse_vector(size)
    yield from quantiles(size)
    yield from adaptive(1000 if quick else 10_000)
    yield from ledger(5 if quick else 100)
    yield from tuner(5 if quick else 200)
