"""One of each kind of session, with a question for it: for tests that hold all of them against the same attacks."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpselect.accounting.candidates.sampled_percentile import SmoothedOdds
from dpselect.adaptive import AdaptiveAnalysis, AdaptiveMeans, EffectiveRounds, MultiplicativeWeights
from dpselect.holdout import Gate, GateRules, SavedAnalysis
from dpselect.learners import EarlyStopping, PublicValidation
from dpselect.learners.early_stopping import Run
from dpselect.mechanisms import BrownianReduction, LaplaceReduction, ScoreChunks, SparseVector
from dpselect.ordered.slices import Ordered, ReorderSliceCompute
from dpselect.privacy import OutputGuarantee, gaussian, pure_dp
from dpselect.privacy.output.filter import OutputFilter, additive
from dpselect.randomness.session import Session
from dpselect.selection import PercentileSparseVector, SampledSparseVector

Callback = Callable[..., Any]


@dataclass(frozen=True)
class Kind:
    """A kind of session.

    `make` gives a fresh one that answers exactly `budget` times what `ask` asks. `ask` calls `callback` amid the answer
    where the kind takes code of the caller (`calls_back`), and else ignores it. `interrupt` is how many answers less
    there are when that code raises what is no `Exception`: none where nothing was drawn or looked at before.
    """

    name: str
    make: Callable[[], Session]
    ask: Callable[[Any, Callback], Any]
    budget: int
    calls_back: bool = True
    interrupt: int = 1


def nothing(*_: Any, **__: Any) -> float:
    """A callback."""
    return 0.0


class Number:
    """A number that calls when it is read."""

    def __init__(self, callback: Callback, value: float) -> None:
        self._callback, self._value = callback, value

    def __float__(self) -> float:
        self._callback()
        return self._value


def estimator(callback: Callback) -> Callback:
    """The mean, which calls first."""

    def mean(block: Any, axis: int | None = None) -> Any:
        callback()
        return np.mean(block, axis=axis)

    return mean


def sparse_vector() -> SparseVector:
    return SparseVector(epsilon_threshold=1.0, epsilon_queries=1.0, max_positives=40)


def batch(session: Any, callback: Callback) -> Any:
    """One query, always far above; from a stream that is read twice, the second time for its values."""
    reads = []

    def read() -> list[Any]:
        reads.append(1)
        if len(reads) == 2:
            callback()
        return [np.array([1e9])]

    return session.above_many(ScoreChunks(read), 0.0)


def percentile() -> PercentileSparseVector:
    return PercentileSparseVector(guarantee=pure_dp(epsilon=0.01), epsilon=50.0, max_queries=40)


def sampled() -> SampledSparseVector:
    counts = SmoothedOdds(samples=20, smoothing=20.0, sensitivity=2.0)
    return SampledSparseVector(guarantee=pure_dp(epsilon=0.01), statistic=counts, epsilon=800.0, max_queries=6)


def never_passing(callback: Callback) -> Callback:
    """A candidate below every threshold."""

    def candidate(random: Any) -> tuple[float, None]:
        callback()
        return -1.0, None

    return candidate


def zeros_and_ones(count: int) -> Any:
    return np.arange(count) % 2.0


SMALL: dict[str, Any] = {"subsample_size": 1, "failure_probability": 0.9, "grid_size": 2, "order": "given"}


def analysis() -> AdaptiveAnalysis:
    return AdaptiveAnalysis(zeros_and_ones(300), queries=20, **SMALL)


def verifying() -> AdaptiveAnalysis:
    return AdaptiveAnalysis(zeros_and_ones(20_000), queries=1, verifications=20, refusals=1, **SMALL)


def estimate(session: Any, callback: Callback) -> Any:
    return session.estimate(estimator(callback), lower=0, upper=1, granularity=1)


def axis_estimate(session: Any, callback: Callback) -> Any:
    return session.estimate(estimator(callback), lower=0, upper=1, granularity=1, axis=True)


def saved() -> SavedAnalysis:
    where = Path(tempfile.mkdtemp(), "rows.analysis")
    return SavedAnalysis.create(where, zeros_and_ones(300), queries=10, **SMALL)


def gate() -> Gate:
    """One that rejects."""
    where, rules = Path(tempfile.mkdtemp(), "my.gate"), GateRules(answer_seconds=0)
    return Gate.create(where, dict.fromkeys("abcdefgh", 1), consultations=4, rules=rules)


def by_number(session: Any, callback: Callback) -> Any:
    """A question with a name of its own."""
    name = f"question {np.random.default_rng().integers(1 << 60)}"
    return session.estimate(name, estimator(callback), lower=0, upper=1, granularity=1)


def slices(**counts: int) -> ReorderSliceCompute:
    declared = {"slices": 6, "computations": 1, "applications": 1} | counts
    return ReorderSliceCompute(list(range(50)), slice_epsilon=0.5, computation=pure_dp(epsilon=0.05), **declared)


def one_slice() -> ReorderSliceCompute:
    session = slices(computations=30)
    session.slice(5, Ordered())
    return session


class OwnMap:
    """A row map that is declared to grow, and calls."""

    def __init__(self, callback: Callback) -> None:
        self._callback = callback

    def __call__(self, rows: Any) -> Any:
        self._callback()
        return rows


def running() -> Run:
    stopping = EarlyStopping(
        stops=range(1, 7), delta=1e-5, score=PublicValidation(np.eye(2), np.array([0, 1])), rule=lambda scores: False
    )
    return stopping.open(stopping.guarantee([gaussian(noise_multiplier=20.0)] * 6)).__enter__()


class Step:
    """The next step of a run, read when the run has its turn."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def __index__(self) -> int:
        return min(self._run.steps + 1, 6)


class Model:
    """Predicts the first class, and calls."""

    def __init__(self, callback: Callback) -> None:
        self._callback = callback

    def predict(self, rows: Any) -> Any:
        self._callback()
        return np.zeros(len(rows), dtype=int)


TOSS = OutputGuarantee(cell=bool, epsilons={True: 1.0, False: 0.25})


KINDS = (
    Kind("sparse vector", sparse_vector, lambda s, call: s.above(Number(call, 1e9), 0.0), 40, interrupt=0),
    Kind("sparse vector, batches", sparse_vector, batch, 40, interrupt=40),
    Kind("percentile sparse vector", percentile, lambda s, call: s.above(Number(call, -600.0)), 40, interrupt=0),
    Kind("sampled sparse vector", sampled, lambda s, call: s.above(never_passing(call), 1.0), 6),
    Kind(
        "laplace reduction",
        lambda: LaplaceReduction(epsilons=[0.1 * k for k in range(1, 31)], sensitivity=1).open(9),
        lambda s, call: s.release(),
        30,
        calls_back=False,
    ),
    Kind(
        "brownian reduction",
        lambda: BrownianReduction(noise_multipliers=[30, 20, 10], delta=1e-6, sensitivity=1, boundary="linear").open(
            9.0
        ),
        lambda s, call: s.release(),
        3,
        calls_back=False,
    ),
    Kind("adaptive analysis", analysis, estimate, 20),
    Kind("adaptive choices", analysis, lambda s, call: s.choose([estimator(call)], axis=True), 20),
    Kind(
        "adaptive verification", verifying, lambda s, call: s.verify(estimator(call), 0.5, axis=True), 20, interrupt=20
    ),
    Kind(
        "verification",
        lambda: verifying().verification,  # type: ignore[arg-type, return-value]
        lambda s, call: s.check(lambda: np.full(s.blocks.count, 0.5) + call(), 0.5),
        20,
        interrupt=20,
    ),
    Kind(
        "effective rounds",
        lambda: EffectiveRounds(
            zeros_and_ones(30_000), rounds=2, queries=15, subsample_size=1, failure_probability=0.9, order="given"
        ),
        axis_estimate,
        15,
    ),
    Kind(
        "adaptive means",
        lambda: AdaptiveMeans(zeros_and_ones(200), queries=5, failure_probability=0.25),
        lambda s, call: s.mean(lambda rows: rows + call(), lower=0, upper=1),
        5,
    ),
    Kind(
        "multiplicative weights",
        lambda: MultiplicativeWeights(
            zeros_and_ones(80_000).astype(np.int64), universe=2, queries=3, grid_size=2, failure_probability=0.9
        ),
        lambda s, call: s.estimate([0.0, Number(call, 1.0)], lower=0, upper=1, granularity=1),
        3,
        interrupt=0,
    ),
    Kind("slices", lambda: slices(maps_grow=True), lambda s, call: s.slice(5, OwnMap(call)), 6),
    Kind("computations on a slice", one_slice, lambda s, call: s.compute(0, call), 30),
    Kind("applications", lambda: slices(applications=7), lambda s, call: s.restart(), 6, calls_back=False),
    Kind("saved analysis", saved, by_number, 10, interrupt=0),
    Kind("gate", gate, lambda s, call: s.ask(lambda: {"a": call()}), 4),
    Kind(
        "early stopping",
        running,
        lambda s, call: s.stop(Step(s), Model(call)),
        6,
    ),
    Kind(
        "output filter", lambda: OutputFilter(additive(epsilon=12)), lambda s, call: s.start(TOSS), 1, calls_back=False
    ),
)
