"""Designs of a search for runs of a caller's own, beside the one in a single stage: two stages, and a portfolio.

Both choose the noise of runs for a total, by the theorems and proofs of docs/theory/portfolio.md. Both hand `tune` an
ordinary search. The runs of two stages return a key in place of a value, and the last run draws from the winner's key.
A portfolio is one run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, SupportsFloat

import numpy as np

from dpselect.accounting.planning.portfolio import MOST_CANDIDATES, PortfolioPrice, covering
from dpselect.accounting.planning.search_prices import SearchPrice, least_noise
from dpselect.cures import write_one_of
from dpselect.errors import ArgumentError, BudgetError, PromiseError, flag, number
from dpselect.mechanisms import ExponentialMechanism
from dpselect.privacy import Adjacency, Guarantee
from dpselect.privacy.boundary import run_confined
from dpselect.privacy.promises import one_or_several, promise, refusal
from dpselect.randomness import RandomSource, keyed_source
from dpselect.repetitions import Repetitions
from dpselect.searching import Design
from dpselect.searching.design import DESIGNS, DesignPrice, PriceRequest, design_names, listed
from dpselect.searching.portfolio import CandidateTrials
from dpselect.searching.stages import SHARE, FirstStage, TwoStages
from dpselect.selection.rehearsal import Rehearsal, check_function
from dpselect.tuning.limits import Limits, counting
from dpselect.tuning.options import Execution, SearchRequest, SearchStore, TuneResult
from dpselect.tuning.other_draws import seeded_draws
from dpselect.tuning.rehearsal import rehearse_objective
from dpselect.tuning.space import Categorical, Space
from dpselect.tuning.trial import Objective, SharedRelease, TrialOutput, TwoStageObjective, decode_value, encode_value

__all__ = ["AnyDesign", "NoisyRun", "PortfolioDesign", "TwoStageDesign", "designed_search"]

NoisyRun = Callable[[dict[str, Any], RandomSource, float], Any]
"""One run with a noise: a score and a value, or of a portfolio the value alone."""
_ARGUMENTS: Final = ("params", "random", "noise")
_FAILED: Final = object()
_AROUND: Final = 64
"""Bytes of a store for what a design keeps beside a value: a key, or the place of a setting."""
_STEP_BITS: Final = 12
_MOST_STEPS: Final = 2.0**52


@dataclass(frozen=True, kw_only=True, repr=False)
class TwoStageDesign:
    """A two-stage design for `tune(design=)`: a search, then one more run with the winning parameters.

    The search gets a share of epsilon. The last run has noise of its own.

    `last` runs in the process of `tune`, and again with the same draws when you resume a search. Whether it fails is
    part of what is released: nothing is found then.

    Args:
        last: `last(params, random, noise)` is the last run, on all rows for example. It returns the value that is
            released. None: the objective, whose score is dropped. A value that does not survive pickling is a failure.
            You must ensure of `last` what `tune` says of an objective.
        price: `price(noise)` returns what `last` guarantees to every row, regardless of the parameters. None: the
            largest of `base(noise)`.
        share: the fraction of epsilon that is kept for the last run, above 0 and below 1. The default is 0.7.

    Raises:
        TypeError: if `last` is not callable.
        ArgumentError: for a `share` out of range, for a `price` that is not callable, or for a `price` without `last`.

    >>> TwoStageDesign(share=0.5).share
    0.5
    """

    last: NoisyRun | None = None
    price: Callable[[float], Guarantee] | None = None
    share: SupportsFloat = SHARE

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", number("share", self.share, above=0.0, below=1.0))
        if not callable(self.last) and self.last is not None:
            raise TypeError("last must be callable: last(params, random, noise)")
        if self.price is not None and not callable(self.price):
            raise refusal("price", self.price, "a function from the noise to a Guarantee")
        if self.price is not None and self.last is None:
            raise ArgumentError("price is that of `last`: give it too, or leave both out")


@dataclass(frozen=True, kw_only=True, repr=False)
class PortfolioDesign:
    """A portfolio design for `tune(design=)`: try two to four settings once each, then train the best one again.

    Each trial gets a small share of epsilon. The space lists the settings (`Categorical` each), the default first: it
    has the larger trial, and a head start. The objective returns the value alone.

    The score has no noise of its own: the choice has it. A score that raises or is not a finite number is 0. Scores are
    compared in steps of at most 2**-11 of the sensitivity, up to 2**40 of it.

    A model with many weights fits its own rows better than others. So each weight that a setting has more than the
    first one costs it half the sensitivity. With `nominal_rows` the deduction is no larger than the effect that a
    trial's privacy allows so many rows (Lemma 2 of docs/theory/portfolio.md).

    Args:
        score: `score(value)` says how well a value fits, larger is better. You must ensure that it looks only at that
            value and at nothing else that the objective leaves.
        sensitivity: the most by which one row moves `score(value)`, rounding counted, above 0. You must ensure this for
            every value that the objective might return. A count of the rows that a model predicts correctly has
            sensitivity 1.
        monotonic: whether under add_or_remove_one another row never lowers a score, regardless of the value (as in such
            a count). This halves the noise. You must ensure it.
        weights: `weights(value)` returns the number of weights of a value. None deducts nothing. You must ensure that
            it looks at the value alone. If it raises, or gives no number from 0 up, nothing is deducted.
        nominal_rows: a public number of rows, above 0, which limits the deduction. It needs `weights`.

    Raises:
        TypeError: if `score` or `weights` is not callable.
        ArgumentError: for a number out of range, for `nominal_rows` without `weights`, or if `monotonic` is not a
            boolean.

    >>> PortfolioDesign(score=lambda answer: float(answer), sensitivity=2).sensitivity
    2.0
    """

    score: Callable[[Any], float]
    sensitivity: SupportsFloat = 1.0
    monotonic: bool = False
    weights: Callable[[Any], SupportsFloat] | None = None
    nominal_rows: SupportsFloat | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sensitivity", number("sensitivity", self.sensitivity, above=0.0, rounding="up"))
        if not callable(self.score):
            raise TypeError("score must be callable: score(value)")
        flag("monotonic", self.monotonic)
        if self.weights is not None and not callable(self.weights):
            raise TypeError("weights must be callable: weights(value)")
        if self.nominal_rows is not None:
            object.__setattr__(self, "nominal_rows", number("nominal_rows", self.nominal_rows, above=0.0))
            if self.weights is None:
                raise ArgumentError("nominal_rows goes with weights: give both, or leave both out")


Base = Callable[[float], tuple[Guarantee, ...]]
Shown = Callable[[Mapping[str, Any], Any], tuple[Mapping[str, Any], Any]]
AnyDesign = str | TwoStageDesign | PortfolioDesign
"""A design by its name, or with what `tune` needs beside the name."""


@dataclass(frozen=True, repr=False)
class DesignedSearch:
    """The search in one stage that a design is, and how its result reads: as parameters and a value."""

    objective: Objective | TwoStageObjective
    request: SearchRequest
    store: SearchStore
    shown: Shown | None = None

    def released(self, result: TuneResult) -> TuneResult:
        """The result with the parameters and the value that the design releases."""
        if result.params is None or self.shown is None:
            return result
        params, value = self.shown(result.params, result.value)
        return replace(result, params=params, value=value)


def designed_search(
    objective: Any,
    design: AnyDesign,
    request: SearchRequest,
    store: SearchStore,
    *,
    execution: Execution,
    rehearse: Rehearsal,
) -> DesignedSearch:
    """Choose the noises of a design for the total, and make its search. See `tune` for the arguments and the errors."""
    kind = _kind(design)
    base, epsilon, delta = _checked(objective, kind, request, execution)
    space = request.space if isinstance(request.space, Space) else Space(request.space)
    last = partial(_last_price, base, design)
    for price_of in (base, last) if kind.follows else (base,):
        _look_at(price_of)
    price = kind.priced(
        PriceRequest(
            epsilon=epsilon,
            delta=delta,
            searched=partial(_searched, base, epsilon, delta),
            last=last,
            trials=lambda: [partial(_one, base)] * len(_listed(space)),
            choice=partial(_choice, base, design),
            repetitions=request.repetitions,
        )
    )
    _rehearse(objective, design, rehearse, space, payload_bytes=store.payload_bytes)
    run, drawn, shown, described = _runs(objective, design, space, price, execution.limits)
    request = replace(request, space=drawn, base=price.parts, repetitions=price.repetitions, beside=price.final)
    store = replace(
        store,
        fingerprint={**store.marks, "design and price": json.dumps(described)},
        payload_bytes=store.payload_bytes + _AROUND,
    )
    return DesignedSearch(run, request, store, shown)


def _kind(design: AnyDesign) -> Design:
    if isinstance(design, TwoStageDesign):
        return TwoStages(share=design.share)
    if isinstance(design, PortfolioDesign):
        return DESIGNS["portfolio"].of()
    names = [name for name in design_names() if not DESIGNS[name].tries]
    if not isinstance(design, str) or design not in names:
        shown = ", ".join(f'"{name}"' for name in names)
        said = f"design must be {shown}, a TwoStageDesign or a PortfolioDesign, got {design!r}"
        raise ArgumentError(said + write_one_of("design", design, sorted(names, key=lambda name: name != "one-stage")))
    return DESIGNS[design].of()


def _checked(objective: Any, kind: Design, request: SearchRequest, execution: Execution) -> tuple[Base, float, float]:
    """The guarantee of a run by its noise, and the total."""
    if isinstance(objective, SharedRelease):
        raise ArgumentError("a SharedRelease goes with a search in one stage alone")
    if not callable(request.base) or isinstance(request.base, Guarantee):
        raise refusal("base", request.base, "a function from the noise to a Guarantee: a design chooses the noise")
    given = {
        "proposal": request.proposal is not None,
        "declare_score": bool(request.declare_score),
        "repetitions": request.repetitions is not None and not kind.draws,
        "pad_seconds": execution.pad_seconds is not None and kind.follows,
    }
    for name, clashes in given.items():
        if clashes:
            raise ArgumentError(f"{name} does not go with this design: leave it out")
    if request.epsilon is None or request.delta is None:
        raise ArgumentError("epsilon and delta must be given: a design chooses its noises for a total")
    epsilon = number("epsilon", request.epsilon, above=0.0, rounding="down")
    delta = number("delta", request.delta, at_least=0.0, below=1.0, rounding="down")
    return partial(_parts, request.base), epsilon, delta


def _searched(base: Base, epsilon: float, delta: float, law: Repetitions | None, share: float) -> DesignPrice:
    """The least noise with which a search meets its share of epsilon."""
    if law is None:
        raise ArgumentError("this design is a search. Write repetitions=Harmonic(limit=30)")
    noise = least_noise(
        # a part that the noise does not change (a noisy score) must fit by itself
        "the search (whose share of epsilon also pays for scores)",
        lambda value: SearchPrice(base(value), law),
        epsilon=share * epsilon,
        delta=delta,
        relative=1e-3 if share < 1.0 else 1e-4,
    )
    return DesignPrice(repetitions=law, noise=noise, parts=base(noise))


def _last_price(base: Base, design: AnyDesign, noise: float) -> Guarantee:
    """The caller's price of the last run, or the largest part of `base`."""
    price = design.price if isinstance(design, TwoStageDesign) else None
    return covering(base(noise)) if price is None else promise("what price returns", price(noise))


def _one(base: Base, noise: float) -> Guarantee:
    found = base(noise)
    if len(found) != 1:
        raise ArgumentError("base must return one Guarantee: every run of a portfolio takes all rows")
    return found[0]


def _choice(base: Base, design: AnyDesign, epsilon: float) -> ExponentialMechanism:
    """The choice by the caller's score, whose sensitivity is rounded up to whole steps."""
    assert isinstance(design, PortfolioDesign)
    adjacency, sensitivity = _one(base, 1.0).adjacency, float(design.sensitivity)
    return ExponentialMechanism(
        sensitivity=math.ceil(sensitivity / _step(sensitivity)) * _step(sensitivity),
        epsilon=epsilon,
        monotonic=design.monotonic and adjacency is Adjacency.ADD_OR_REMOVE_ONE,
        adjacency=adjacency,
    )


def _runs(
    objective: NoisyRun, design: AnyDesign, space: Space, price: DesignPrice, limits: Limits | None
) -> tuple[Objective | TwoStageObjective, Space, Shown | None, list[Any]]:
    """The objective and the space of the search, how its result reads, and what must not change before a resume.

    The price alone need not tell of a change: a guarantee may be unnamed.
    """
    if price.portfolio is not None:
        assert isinstance(design, PortfolioDesign)
        settings, tried = _listed(space), price.portfolio
        run = _PortfolioObjective(objective, design, settings, tried, limits)
        described: list[Any] = ["portfolio", space.describe(), tried.trials, tried.noises]
        return run, Space({}), partial(_chosen, settings), described
    assert price.noise is not None
    if price.final_noise is None:
        return partial(_at, objective, price.noise, None), space, None, ["runs", price.noise]
    last = design.last if isinstance(design, TwoStageDesign) else None
    first = FirstStage(partial(_at, objective, price.noise, "search"), "last")
    run_last = partial(_last_run, objective if last is None else last, last is None, price.final_noise)
    described = ["two stages", price.noise, price.final_noise, last is None]
    return TwoStageObjective(first, run_last), space, None, described


def _at(objective: NoisyRun, noise: float, stream: str | None, params: dict[str, Any], random: RandomSource) -> Any:
    return objective(params, random if stream is None else random.spawn(stream), noise)


def _last_run(last: NoisyRun, scored: bool, noise: float, params: Mapping[str, Any], key: bytes) -> Any:
    """The value that these parameters and this key give, the same at every call."""
    source = keyed_source(key)
    with seeded_draws(source):
        found = last(dict(params), source, noise)
    if scored:
        _, found = found
    return found


def _listed(space: Space) -> list[dict[str, Any]]:
    found = []
    if all(isinstance(law, Categorical) for law in space.parameters.values()):
        found = listed({name: law.choices for name, law in space.parameters.items() if isinstance(law, Categorical)})
    if not 2 <= len(found) <= MOST_CANDIDATES:
        raise ArgumentError(
            f"a portfolio is of 2 to {MOST_CANDIDATES} settings, each of which is tried once: the space must list "
            "them, each parameter a Categorical; for others take a search in two stages"
        )
    if any(one in found[:place] for place, one in enumerate(found)):
        raise ArgumentError("the space lists two settings that are the same")
    return found


def _rehearse(objective: Any, design: AnyDesign, rehearse: Rehearsal, space: Space, *, payload_bytes: int) -> None:
    """A dry run as in `rehearse_objective`, with noise 1, of the runs and of the other functions of a design."""
    rehearse_objective(
        objective,
        rehearse,
        space,
        payload_bytes=payload_bytes,
        noise=1.0,
        scored=not isinstance(design, PortfolioDesign),
    )
    if rehearse is False:
        return
    if isinstance(design, PortfolioDesign):
        for name, function in (("score", design.score), ("weights", design.weights)):
            if function is not None:
                check_function(name, function, ["value"])
    elif isinstance(design, TwoStageDesign) and design.last is not None:
        check_function("last", design.last, _ARGUMENTS)


def _look_at(base: Callable[[float], Any]) -> None:
    """Refuse a base that returns no guarantee before the search for a noise, which would report that none exists."""
    try:
        base(1.0)
    except PromiseError:
        raise
    except (ArgumentError, BudgetError):
        pass  # of this noise alone


def _parts(base: Callable[[float], Any], noise: float) -> tuple[Guarantee, ...]:
    found = base(noise)
    if isinstance(found, Sequence) and not found:
        raise refusal("what base returns", found, "a Guarantee, or one for each part of the data")
    return one_or_several("what base returns", found)


@dataclass(frozen=True, repr=False)
class _PortfolioObjective:
    """All of a portfolio as one run: the value of its last run, and the place of the setting."""

    objective: NoisyRun
    design: PortfolioDesign
    candidates: Sequence[Mapping[str, Any]]
    price: PortfolioPrice
    limits: Limits | None = None

    def __call__(self, params: Mapping[str, Any], random: RandomSource) -> TrialOutput:
        fits = [partial(self._fit, candidate) for candidate in self.candidates]
        rows = None if self.design.nominal_rows is None else float(self.design.nominal_rows)
        value, (place,) = CandidateTrials(fits, self.price, self._score, self._size, rows)(params, random, (None, None))
        if value is _FAILED:
            raise RuntimeError("the last run failed")
        return TrialOutput(0.0, (int(place), encode_value(value)))

    def _fit(self, candidate: Mapping[str, Any], noise: float, random: RandomSource, *_: Any) -> Any:
        def run() -> Any:
            with counting(self.limits):  # each run for itself: what others have counted is not paid for
                found = self.objective(dict(candidate), random, noise)
            return decode_value(encode_value(found))  # a copy, which later runs do not change

        return run_confined(run, _FAILED)

    def _score(self, value: Any, *_: Any) -> Any:
        """A trial that failed is not chosen: that it did is its private output, which is paid for."""
        if value is _FAILED:
            return np.array([-math.inf])
        found = run_confined(lambda: float(self.design.score(value)), 0.0)
        return np.array([_in_steps(found, self.price.choice.sensitivity) if math.isfinite(found) else 0.0])

    def _size(self, value: Any) -> float | None:
        count = self.design.weights
        if count is None or value is _FAILED:
            return None
        found = run_confined(lambda: float(count(value)), math.nan)
        return found if found >= 0.0 else None


def _step(sensitivity: float) -> float:
    """A power of two. The sensitivity is 2**11 to 2**12 times it."""
    return math.ldexp(1.0, math.frexp(sensitivity)[1] - _STEP_BITS)


def _in_steps(score: float, sensitivity: float) -> float:
    """The score rounded down to whole steps, and clipped where the head start could not be added without rounding.

    Scores that are an integer of steps apart stay as far apart, those that are less no further.
    """
    step = _step(sensitivity)
    return math.floor(min(max(score / step, -_MOST_STEPS), _MOST_STEPS)) * step


def _chosen(
    candidates: Sequence[Mapping[str, Any]],
    _: Mapping[str, Any],
    value: Any,
) -> tuple[Mapping[str, Any], Any]:
    place, payload = value
    return dict(candidates[place]), decode_value(payload)
