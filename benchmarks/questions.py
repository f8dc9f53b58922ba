"""What `python -m benchmarks` measures: questions, and who answers each. Ours comes first.

A contender is made only when it is measured, and an ImportError then is a peer that is not installed, which is said.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpselect.accounting import best_of
from dpselect.adaptive import integer_grid
from dpselect.adaptive.medians import ExponentialMedian, SearchMedian
from dpselect.adaptive.search_noise import SearchNoise
from dpselect.ledger import Ledger
from dpselect.mechanisms import SparseVector, bounded_range, exponential_mechanism, permute_and_flip
from dpselect.ordered import quantile
from dpselect.privacy import compose, dp_sgd, gaussian
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed, Logarithmic
from dpselect.selection.best import best_outcome

Run = Callable[[], Any]
DELTA = 1e-6


@dataclass(frozen=True)
class Question:
    """One thing that several can do; `makers` build what is timed.

    `wall` times the clock, for what waits for disks and processes; otherwise processor time counts. What a call of a
    `priced` one returns is an epsilon, which is shown. A call of a `self_timed` one returns its own seconds. Ours
    should take `limit` seconds at most.
    """

    area: str
    title: str
    makers: Mapping[str, Callable[[], Run]]
    wall: bool = False
    priced: bool = False
    rounds: int | None = None
    self_timed: bool = False
    limit: float | None = None


def opendp() -> Any:
    """OpenDP, switched on."""
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious")
    return dp


def autodp_mechanisms() -> Any:
    """autodp's mechanisms. Its composition by characteristic functions needs a function that SciPy 1.14 took away."""
    from autodp import mechanism_zoo

    return mechanism_zoo


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

    def dp_accounting(kind: str) -> Callable[[], Run]:
        def make() -> Run:
            from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
            from dp_accounting.rdp.rdp_privacy_accountant import RdpAccountant

            accountant = {"PLD": PLDAccountant, "RDP": RdpAccountant}[kind]
            return lambda: float(accountant().compose(sgd_event(next(noises))).get_epsilon(1e-5))

        return make

    def autodp_training() -> Run:
        autodp = autodp_mechanisms()

        def run() -> float:
            trained = autodp.SubsampleGaussianMechanism({"prob": 0.01, "sigma": next(noises), "coeff": 1000})
            return float(trained.get_approxDP(1e-5))

        return run

    yield Question(
        "accounting",
        "epsilon of one DP-SGD training, noise 1, rate 0.01, 1,000 steps, delta 1e-5",
        {
            "dpselect": lambda: (
                lambda: dp_sgd(noise_multiplier=next(noises), sampling_rate=0.01, steps=1000).epsilon(1e-5)
            ),
            "dp-accounting, PLD": dp_accounting("PLD"),
            "dp-accounting, RDP": dp_accounting("RDP"),
            "Opacus, PRV": opacus("PRVAccountant"),
            "Opacus, RDP": opacus("RDPAccountant"),
            "autodp, RDP": autodp_training,
        },
        priced=True,
    )

    def autodp_exponential() -> Run:
        autodp = autodp_mechanisms()
        from autodp.transformer_zoo import Composition

        def run() -> float:
            one = autodp.ExponentialMechanism(0.1 * next(noises))
            return float(Composition()([one], [100]).get_approxDP(DELTA))

        return run

    yield Question(
        "accounting",
        "epsilon of 100 exponential mechanisms of epsilon 0.1 each, delta 1e-6",
        {
            "dpselect": lambda: lambda: compose(*[bounded_range(epsilon=0.1 * next(noises))] * 100).epsilon(DELTA),
            "autodp, zCDP and RDP": autodp_exponential,
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
    generator = np.random.default_rng(2)

    def above() -> None:
        session = SparseVector(
            epsilon_threshold=1.0, epsilon_queries=2.0, max_positives=1, random=keyed_source(next(keys))
        )
        session.above_many(values, 60.0)

    yield Question(
        "sparse vector",
        f"{count:,} queries, none near the threshold",
        {
            "dpselect": lambda: above,
            "NumPy compare (no privacy)": lambda: lambda: (values > 60.0).any(),
            "NumPy Laplace noise on every query (floating point)": lambda: (
                lambda: (values + generator.laplace(scale=2.0, size=count) > 60.0 + generator.laplace()).any()
            ),
        },
    )


def opendp_median(values: Any, reach: float) -> Callable[[], Run]:
    """OpenDP's quantile from 1,001 candidates in [-reach, reach], at epsilon 1."""

    def make() -> Run:
        dp = opendp()
        mechanism = dp.m.make_private_quantile(
            dp.vector_domain(dp.atom_domain(T=float, nan=False)),
            dp.symmetric_distance(),
            dp.max_divergence(),
            candidates=np.linspace(-reach, reach, 1001).tolist(),
            alpha=0.5,
            scale=1.0,
        )
        listed = values.tolist()
        return lambda: mechanism(listed)

    return make


def diffprivlib_median(values: Any, reach: float) -> Callable[[], Run]:
    """diffprivlib's quantile in [-reach, reach], at epsilon 1."""

    def make() -> Run:
        median = diffprivlib().tools.quantile
        return lambda: median(values, 0.5, epsilon=1.0, bounds=(-reach, reach))

    return make


def quantiles(rows: int) -> Iterator[Question]:
    """One median."""
    values = np.random.default_rng(1).normal(size=rows)
    yield Question(
        "quantiles",
        f"median of {rows:,} doubles at epsilon 1",
        {
            "dpselect": lambda: lambda: quantile(values, q=0.5, epsilon=1.0, lower=-10.0, upper=10.0),
            "NumPy partition (no privacy)": lambda: lambda: np.partition(values, rows // 2),
            "NumPy sort (no privacy)": lambda: lambda: np.sort(values),
            "OpenDP, 1,001 candidates": opendp_median(values, 10.0),
            "diffprivlib": diffprivlib_median(values, 10.0),
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
            "dpselect, binary search": lambda: lambda: SearchMedian(noise=noise)(values, grid, random=source).value,
            "dpselect, exponential mechanism": lambda: (
                lambda: ExponentialMedian(epsilon=0.02)(values, grid, random=source).value
            ),
            "NumPy median (no privacy)": lambda: lambda: np.median(values),
            "OpenDP median, 1,001 candidates (no certificate)": opendp_median(values, 2.0**31),
            "diffprivlib median (no certificate)": diffprivlib_median(values, 2.0**31),
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

    def odometer() -> Run:
        dp = opendp()
        space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
        compositor = dp.c.make_fully_adaptive_composition(*space, dp.max_divergence())
        one = dp.m.make_laplace(*space, scale=1000.0)

        def run() -> None:
            asked = compositor(0.0)
            for _ in range(each):
                asked(one)

        return run

    def accountant() -> Run:
        kind = diffprivlib().BudgetAccountant

        def run() -> None:
            budget = kind(epsilon=10.0**6, delta=0.0)
            for _ in range(each):
                budget.spend(0.001, 0.0)

        return run

    yield Question(
        "ledger",
        f"{each} reservations and settlements, each durable, SQLite",
        {
            "dpselect": place(through_the_ledger),
            "bare sqlite3, the same writes": place(bare_sqlite),
            "OpenDP, adaptive composition (in memory)": odometer,
            "diffprivlib, BudgetAccountant (in memory)": accountant,
        },
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
        "Optuna, in memory": fresh(optuna_with(lambda _folder: None)),
        "Optuna, journal file": fresh(optuna_with(optuna_journal)),
        "Optuna, SQLite": fresh(optuna_with(optuna_sqlite)),
    }
    if trials > 20:  # seconds a trial
        makers["Ray Tune (a twentieth of the trials)"] = fresh(ray_tune, trials // 20)
    yield Question("tuner", f"{trials} trivial trials, start included", makers, wall=True, rounds=3)


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
