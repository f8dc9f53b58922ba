"""Designs of a search: each has a name and a price, and the price decides what is run.

`tune`, studies and `PrivateSearchCV` give the costs of their runs in public facts (`PriceRequest`). The design chooses
the noises (`DesignPrice`). A `final_noise` means a last run, and a `portfolio` means trials of listed candidates.
Without a portfolio, runs draw their settings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, Final, SupportsFloat

from dpselect.accounting.planning.portfolio import PortfolioPrice
from dpselect.accounting.planning.search_prices import SearchPrice
from dpselect.errors import ArgumentError
from dpselect.mechanisms import ExponentialMechanism
from dpselect.privacy import Guarantee
from dpselect.registry import Registry
from dpselect.repetitions import Repetitions

__all__ = [
    "DESIGNS",
    "Design",
    "DesignPrice",
    "PriceRequest",
    "Scored",
    "design_names",
    "listed",
    "search_design",
]


@dataclass(frozen=True, kw_only=True)
class DesignPrice:
    """The cost and the noise of the runs of a design. Public.

    - `repetitions`: the distribution of the number of runs. `noise`: of one run, None if it is the caller's own.
    - `parts`: the guarantees of one run, by what it does with a row.
    - `score_epsilon`: the score's share of them.
    - `score_multiplier`: in its place, the noise multiplier of a score with Gaussian noise.
    - `final`, `final_noise`: the guarantee and the noise of a last run on all rows.
    - `portfolio`: the noises of listed candidates that are tried once each. `noise` is then the first one's last run's.
    """

    repetitions: Repetitions
    noise: float | None
    parts: tuple[Guarantee, ...]
    score_epsilon: float | None = None
    score_multiplier: float | None = None
    final: Guarantee | None = None
    final_noise: float | None = None
    portfolio: PortfolioPrice | None = None

    def __post_init__(self) -> None:
        if self.final_noise is not None and self.final is None:
            raise ArgumentError("final is needed beside final_noise: what the last run promises")

    @property
    def search(self) -> SearchPrice:
        """The price of the runs and of the last run."""
        return SearchPrice(self.parts, self.repetitions, self.final)


Scored = tuple[tuple[Guarantee, ...], float | None, float | None]
"""The parts of a run, and epsilon or the noise multiplier of its score."""


def _unscored(portfolio: Guarantee) -> Scored:
    return (portfolio,), None, None


@dataclass(frozen=True, kw_only=True)
class PriceRequest:
    """The public facts of a caller about its runs.

    - `epsilon`, `delta`: the total for everything that is released. Without epsilon the runs have a noise already.
    - `repetitions`: the distribution of the number of runs, if the caller gives one.
    - `beside`: what every row pays beside the design.
    - `searched(repetitions, share)`: the price of a search with this share of epsilon. A last run follows if it is
      below 1, and makes room for what is paid beside.
    - `last(noise)`: what a run on all rows promises, whichever settings won.
    - `trials()`: for each listed candidate, what training it promises at a noise. `choice(epsilon)`: among these.
    - `scored(portfolio)`: from the price of all trials, what a run costs a row by parts, and epsilon or the noise
      multiplier of its score.
    """

    epsilon: float | None
    delta: float
    searched: Callable[[Repetitions | None, float], DesignPrice]
    last: Callable[[float], Guarantee]
    trials: Callable[[], Sequence[Callable[[float], Guarantee]]]
    choice: Callable[[float], ExponentialMechanism]
    repetitions: Repetitions | None = None
    beside: Guarantee | None = None
    scored: Callable[[Guarantee], Scored] = _unscored

    @property
    def total(self) -> tuple[float, float]:
        """Epsilon and delta. Raises `ArgumentError` without epsilon."""
        if self.epsilon is None:
            raise ArgumentError("epsilon must be given: this design has several noises, which are chosen for a total")
        return self.epsilon, self.delta


@dataclass(frozen=True, kw_only=True)
class Design(ABC):
    """A way to spend a total on the choice of settings. A new one is a subclass under `search_design("its-name")`.

    Attributes:
        whole: the usual name of the whole procedure, "search" unless a class says otherwise.
        draws: whether runs draw settings from the space and are compared by scores. True unless a class says otherwise.
        tries: whether the space lists candidates that are tried once each. False unless a class says otherwise.
        follows: whether a last run on all rows follows. Its class then has a field `share`, of epsilon. False unless a
            class says otherwise.
    """

    whole: ClassVar[str] = "search"
    draws: ClassVar[bool] = True
    tries: ClassVar[bool] = False
    follows: ClassVar[bool] = False

    @classmethod
    def of(cls, share: SupportsFloat | None = None) -> Design:
        """The design with this share of epsilon for its last run, if it has one. None takes the design's own."""
        return cls(share=share) if cls.follows and share is not None else cls()  # type: ignore[call-arg]

    @abstractmethod
    def price(self, request: PriceRequest) -> DesignPrice:
        """Choose the noises for the total. Raises `BudgetError` if no noise meets it."""

    def priced(self, request: PriceRequest) -> DesignPrice:
        """The same. Raises `ArgumentError` if the price is of other runs than the class says."""
        found = self.price(request)
        if (found.final_noise is not None, found.portfolio is not None) != (self.follows, self.tries):
            raise ArgumentError(f"{type(self).__name__}.price says another kind of runs than `follows` and `tries` do")
        return found


DESIGNS: Final = Registry[type[Design]]("design", room=__package__ or "")
"""The classes of all designs by the names that `tune(design=)`, `PrivateSearchCV(design=)` and studies know."""
search_design: Final = DESIGNS.register


def design_names() -> tuple[str, ...]:
    """The names of all designs, those without a search first."""
    return tuple(sorted(DESIGNS, key=lambda name: (DESIGNS[name].draws, name)))


def listed(choices: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every combination of the choices, those listed first before others.

    >>> listed({"map": ["cos4", "joint"], "steps": [3]})
    [{'map': 'cos4', 'steps': 3}, {'map': 'joint', 'steps': 3}]
    """
    return [dict(zip(choices, found, strict=True)) for found in product(*choices.values())]
