"""What a design of a search is: a name, a price, and what follows from the price.

`tune`, studies and `PrivateSearchCV` say in public facts what their runs cost (`PriceRequest`). The design chooses the
noises (`DesignPrice`), and these say what is run: a last run if there is a `final_noise`, trials of listed candidates
if there is a `portfolio`, else runs that draw their settings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, Final, Protocol, SupportsFloat, TypeVar

from dpselect.accounting.planning.portfolio import PortfolioPrice
from dpselect.accounting.planning.search_prices import SearchPrice
from dpselect.mechanisms import ExponentialMechanism
from dpselect.privacy import Guarantee
from dpselect.registry import Registry
from dpselect.repetitions import Repetitions

__all__ = [
    "Design",
    "DesignPrice",
    "PriceRequest",
    "design_class",
    "design_names",
    "listed",
    "search_design",
]

Made = TypeVar("Made", bound="type[Design]")


@dataclass(frozen=True, kw_only=True)
class DesignPrice:
    """What the runs of a design cost and with which noise they run; public.

    - `repetitions`: the distribution of the number of runs. `noise`: of one run, None if it is the caller's own.
    - `parts`: the guarantees of one run, by what it does with a row. `score_epsilon`: what of them is the score's.
    - `final`, `final_noise`: the guarantee and the noise of a last run on all rows.
    - `portfolio`: the noises of listed candidates that are tried once each. `noise` is then the first one's last run's.
    """

    repetitions: Repetitions
    noise: float | None
    parts: tuple[Guarantee, ...]
    score_epsilon: float | None = None
    final: Guarantee | None = None
    final_noise: float | None = None
    portfolio: PortfolioPrice | None = None

    @property
    def search(self) -> SearchPrice:
        """The price of the runs and of the last run."""
        return SearchPrice(self.parts, self.repetitions, self.final)


class PriceRequest(Protocol):
    """What a front door says about its runs, in public facts."""

    @property
    def repetitions(self) -> Repetitions | None:
        """The distribution of the number of runs, if the caller gives one."""

    @property
    def beside(self) -> Guarantee | None:
        """What every row pays beside the design."""

    def total(self) -> tuple[float, float]:
        """Epsilon and delta for everything that is released. Raises an error that names the argument if not given."""

    def searched(self, repetitions: Repetitions | None, share: float) -> DesignPrice:
        """The price of a search with this share of epsilon: below 1, a search that a last run follows."""

    def last(self, noise: float) -> Guarantee:
        """What a run on all rows with this noise promises, whichever settings won."""

    def trials(self) -> Sequence[Callable[[float], Guarantee]]:
        """What training each listed candidate promises at a noise."""

    def choice(self, epsilon: float) -> ExponentialMechanism:
        """The choice among candidates whose trials are compared."""

    def tried(self, portfolio: PortfolioPrice) -> DesignPrice:
        """The price of one run that tries all candidates."""


@dataclass(frozen=True, kw_only=True)
class Design(ABC):
    """A way to spend a total on the choice of settings. A new one is a subclass under `search_design("its-name")`.

    - `whole`: what people call all of it.
    - `draws`: whether runs draw settings from the space and are compared by scores.
    - `tries`: whether the space lists candidates that are tried once each.
    - `follows`: whether a last run on all rows follows. Its class then has a field `share`, of epsilon.
    """

    whole: ClassVar[str] = "search"
    draws: ClassVar[bool] = True
    tries: ClassVar[bool] = False
    follows: ClassVar[bool] = False

    @classmethod
    def of(cls, share: SupportsFloat | None = None) -> Design:
        """The design with this share of epsilon for its last run, if it has one; None takes the design's own."""
        return cls(share=share) if cls.follows and share is not None else cls()  # type: ignore[call-arg]

    @abstractmethod
    def price(self, request: PriceRequest) -> DesignPrice:
        """Choose the noises for the total. Raises `BudgetError` if no noise meets it."""


_DESIGNS: Final = Registry[type[Design]]("design", room=__package__ or "")


def search_design(name: str) -> Callable[[Made], Made]:
    """Register a class of designs under a name, from this room or from outside.

    `tune(design=)`, `PrivateSearchCV(design=)` and `search.design` of a study then know it.
    """
    return _DESIGNS.register(name)  # type: ignore[return-value]


def design_names() -> tuple[str, ...]:
    """The names of all designs, those without a search first."""
    return tuple(sorted(_DESIGNS, key=lambda name: (_DESIGNS[name].draws, name)))


def design_class(name: str) -> type[Design]:
    """The class of this name. Raises `ArgumentError`, which lists the names."""
    return _DESIGNS[name]


def listed(choices: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every combination of the choices, those listed first before others.

    >>> listed({"map": ["cos4", "joint"], "steps": [3]})
    [{'map': 'cos4', 'steps': 3}, {'map': 'joint', 'steps': 3}]
    """
    return [dict(zip(choices, found, strict=True)) for found in product(*choices.values())]
