"""The types of what a search releases, as mypy finds them. `./check` reads this file, and nothing runs it.

Where mypy finds another type, `assert_type` fails. Where it no longer sees a mistake, a `type: ignore` is unused, which
fails too.
"""

from typing import Any, assert_type

from dpselect.privacy import Guarantee
from dpselect.randomness import RandomSource
from dpselect.tuning import PortfolioDesign, SharedRelease, TuneResult, TwoStageDesign, tune
from dpselect.tuning.trial import TrialOutput


class Model:
    """The value of a run."""

    weights: list[float]


def run(params: dict[str, Any], random: RandomSource) -> tuple[float, Model]:
    """One run."""
    raise NotImplementedError


def named_run(params: dict[str, Any], random: RandomSource) -> TrialOutput[Model]:
    """The same."""
    raise NotImplementedError


def noisy_run(params: dict[str, Any], random: RandomSource, noise: float) -> tuple[float, Model]:
    """One run with a noise."""
    raise NotImplementedError


def fit(params: dict[str, Any], random: RandomSource, noise: float) -> Model:
    """One run of a portfolio."""
    raise NotImplementedError


def shared(random: RandomSource) -> Any:
    """What all runs share."""
    return run


def kept(result: TuneResult[Model]) -> None:
    """Write it."""


def kept_text(result: TuneResult[str]) -> None:
    """Write another."""


def types(base: Guarantee, untyped: Any) -> None:
    """All of them."""
    found = tune(run, space={}, base=base, release=kept)
    assert_type(found, TuneResult[Model])
    assert_type(found.value, Model | None)
    assert_type(found.processed(str).value, Any | None)
    assert_type(tune(named_run, space={}, base=base), TuneResult[Model])
    # the same call takes runs that return a score and a value, and runs that return a value alone
    noisy: dict[str, Any] = {"space": {}, "base": lambda _: base}
    assert_type(tune(noisy_run, **noisy, design=TwoStageDesign()), TuneResult[Any])
    assert_type(tune(fit, **noisy, design=PortfolioDesign(score=lambda _: 0.0)), TuneResult[Any])
    assert_type(tune(SharedRelease(lambda _: run, base), space={}, base=base), TuneResult[Model])
    assert_type(tune(untyped, space={}, base=base), TuneResult[Any])
    tune(run, space={}, base=base, release=kept_text)  # type: ignore[misc]
    found.value.weights  # type: ignore[union-attr]
