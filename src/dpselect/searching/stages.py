"""Two stages: a search with a small share of epsilon, then one run on all rows with the settings that won."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, SupportsFloat

from dpselect.accounting.planning.search_prices import SearchPrice, least_last
from dpselect.errors import number
from dpselect.privacy import compose
from dpselect.randomness import RandomSource
from dpselect.repetitions import ZeroTruncatedPoisson
from dpselect.searching.design import Design, DesignPrice, PriceRequest, search_design

__all__ = ["FIRST_STAGE", "SHARE", "FirstStage", "TwoStages"]

SHARE: Final = 0.7
"""The share of epsilon that the last run has by default.

Noisy runs tell unlike settings apart already, and only the last run's model is released. Figures with this share:
docs/evidence/better-models.md.
"""
FIRST_STAGE: Final = ZeroTruncatedPoisson(mean=5.0)
"""The number of runs of the search by default: five on average, never none."""
_KEY_BYTES: Final = 32


@search_design("two-stage")
@dataclass(frozen=True, kw_only=True)
class TwoStages(Design):
    """A search, and one run more on all rows with the settings that won and a noise of its own.

    `share`: the share of epsilon for the last run.
    """

    follows: ClassVar[bool] = True
    share: SupportsFloat = SHARE

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", number("share", self.share, above=0.0, below=1.0))

    def price(self, request: PriceRequest) -> DesignPrice:
        """The least noise of a search at its share of epsilon, then the least of the last run that meets the total.

        Claim: no matter what settings win, both are covered by the composition of their guarantees, part by part.
        Source: docs/theory/portfolio.md, Theorem 2.
        """
        epsilon, delta = request.total
        law = FIRST_STAGE if request.repetitions is None else request.repetitions
        first = request.searched(law, 1.0 - float(self.share))
        paid = [SearchPrice((part,), law).guarantee for part in first.parts]
        if request.beside is not None:
            paid = [compose(each, request.beside) for each in paid]
        noise = least_last(request.last, paid, epsilon=epsilon, delta=delta)
        return replace(first, final=request.last(noise), final_noise=noise)


@dataclass(frozen=True, repr=False)
class FirstStage:
    """A run of the search: its score, and in place of its value the key of all that the last run draws if it wins.

    `stream` names what the key is drawn from, and `value` makes the run's value of it.
    """

    run: Callable[[Mapping[str, Any], RandomSource], tuple[float, Any]]
    stream: str
    value: Callable[[bytes], Any] = bytes

    def __call__(self, params: Mapping[str, Any], random: RandomSource) -> tuple[float, Any]:
        """The score with these settings, and the key."""
        score, _ = self.run(params, random)
        return score, self.value(random.spawn(self.stream).bytes(_KEY_BYTES))
