"""Propose-test-release: propose a bound, test privately that the data are far from violating it, then answer."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, SupportsFloat, SupportsIndex, TypeVar

from dpselect.errors import ArgumentError, number
from dpselect.mechanisms.mechanism import Mechanism, real
from dpselect.numerics.logs import ROUND_UP
from dpselect.privacy import Adjacency, OutputGuarantee
from dpselect.privacy.output.amounts import charged_amount, charged_price, noise_epsilon
from dpselect.privacy.output.calculus import first_answer
from dpselect.randomness import RandomSource
from dpselect.randomness.lazy import coin, tail_enclosure

__all__ = ["Answer", "Cascade", "ProposeTestRelease", "answered", "dwork_lei_delta"]

T = TypeVar("T")
Answer = Callable[[RandomSource], T]
"""What is drawn when the test is passed; not None."""
Distance = SupportsIndex | Callable[[], SupportsIndex]
"""How far the data are from violating the proposal, or what computes it."""


def answered(output: object) -> bool:
    """The cell: whether there is an answer, None being none.

    >>> answered(0.0), answered(None)
    (True, False)
    """
    return output is not None


@dataclass(frozen=True, kw_only=True)
class ProposeTestRelease(Mechanism):
    """A private test of a proposal, and an answer with noise for it if the test is passed (Dwork, Lei 2009).

    A proposal is public: a bound on how far a statistic moves when one row changes. It is admissible for data x if no
    neighbour moves the statistic of x further. A call takes `distance`: how many rows of x must change at least until
    the data are inadmissible. It is 0 for inadmissible data, and it moves by one between neighbours at most. The test
    is passed when

            distance + Laplace(1/epsilon_test) >= margin,    margin = log(1/(2 delta)) / epsilon_test,

    decided in real arithmetic. Only then is the answer drawn. Its noise has price `epsilon_answer` and is for the
    proposal.

    You must ensure the distance, and that the answer is epsilon_answer-private between admissible data and every
    neighbour. No other part of the run may look at the data (no "not enough rows, hence none" in advance).

    `guarantee`: cells `answered`: none costs epsilon_test, an answer epsilon_test + epsilon_answer, with one delta that
    is never refunded (Hartmann et al. 2022, section 5.1, where both are equal). Proof. The test alone is
    epsilon_test-private, which is all of "none". From admissible data an answer has the test's ratio times its own.
    From inadmissible data it has mass at most P(Laplace >= epsilon_test margin) = delta.

    Args:
        epsilon_test: the price of the test, in [2**-20, 2**10].
        epsilon_answer: the price of the answer's noise, in [2**-20, 2**10].
        delta: the probability, at most, that inadmissible data pass the test, in [1e-300, 0.5].
        adjacency: which data sets are neighbours, as `Adjacency` or its text. The default is add_or_remove_one.

    Raises:
        ArgumentError: for a parameter out of range.
        AdjacencyError: if `adjacency` is neither of the two.

    >>> from dpselect.randomness import keyed_source
    >>> test = ProposeTestRelease(epsilon_test=0.5, epsilon_answer=0.5, delta=1e-6)
    >>> round(test.margin, 2), dict(test.guarantee.epsilons)
    (26.24, {True: 1.0, False: 0.5})
    >>> test(100, lambda random: "an answer", random=keyed_source(1)).value
    'an answer'
    """

    epsilon_test: float = field(metadata=real(at_least=2.0**-20, at_most=2.0**10, rounding="down"))
    epsilon_answer: float = field(metadata=real(at_least=2.0**-20, at_most=2.0**10, rounding="down"))
    delta: float = field(metadata=real(at_least=1e-300, at_most=0.5, rounding="down"))
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE

    @property
    def margin(self) -> float:
        """The distance in rows that is passed with probability one half, rounded up."""
        return -math.log(2.0 * self.delta) / self.epsilon_test * ROUND_UP

    @property
    def guarantee(self) -> OutputGuarantee:
        """The price of "none" and of an answer, and delta."""
        test, answer = (charged_amount("epsilon", epsilon) for epsilon in (self.epsilon_test, self.epsilon_answer))
        both = charged_price(test + answer)
        epsilons: dict[Hashable, float] = {True: both, False: self.epsilon_test}
        return OutputGuarantee(cell=answered, epsilons=epsilons, delta=self.delta, adjacency=self.adjacency)

    def prepared(self, distance: Distance, answer: Answer[T]) -> Callable[[RandomSource], T | None]:
        """The answer, or None when the test is not passed.

        The distance is secret. It may be a function that computes it, which is called when the run is paid for. Raises
        `TypeError`, without quoting it, for a distance that is not an integer. Exceptions of `answer` pass through and
        may tell of the data.

        >>> test = ProposeTestRelease(epsilon_test=1.0, epsilon_answer=1.0, delta=1e-6)
        >>> test(10_000, lambda random: "an answer").value
        'an answer'
        """
        if not callable(distance):
            known = _whole(distance)
        if not callable(answer):
            raise TypeError("answer must be callable: answer(random) -> what is released")

        def run(random: RandomSource) -> T | None:
            far = _whole(distance()) if callable(distance) else known
            needed = noise_epsilon(self.epsilon_test) * (Fraction(self.margin) - far)
            if not coin(lambda bits: tail_enclosure(needed, needed, bits), random):
                return None
            found = answer(random)
            if found is None:  # it would be charged as "none"
                raise ArgumentError("answer must not be None: None is what a failed test gives")
            return found

        return run


@dataclass(frozen=True)
class Cascade(Mechanism):
    """Propose-test-release again and again on the same data until a stage answers.

    Outputs are (stage, value) or None, with stages counted from 1.

    `guarantee`: see `dpselect.privacy.output.calculus.first_answer`. With K equal stages the j-th answers at (j - 1)
    epsilon_test + (epsilon_test + epsilon_answer), none costs K epsilon_test, and delta is 1 - (1 - delta)^K. (Lemma 10
    of Hartmann et al. 2022 writes delta for two stages. That holds where `delta` bounds both stages together, not for
    what their Definition 9 asks of each.)

    Args:
        stages: the tests, in the order in which they run, at least one and all of one adjacency. Public: their number
            and order must not depend on the data (you must ensure this).

    Raises:
        ArgumentError: if `stages` is empty.
        AdjacencyError: from `guarantee`, if the stages have different adjacencies.

    >>> from dpselect.randomness import keyed_source
    >>> stage = ProposeTestRelease(epsilon_test=0.5, epsilon_answer=0.5, delta=0.01)
    >>> both = Cascade([stage, stage])
    >>> dict(both.guarantee.epsilons), round(both.guarantee.delta, 6)
    ({0: 1.0, 1: 1.0, 2: 1.5}, 0.0199)
    >>> both([(0, lambda random: 1), (99, lambda random: 2)], random=keyed_source(1)).value
    (2, 2)
    """

    stages: Sequence[ProposeTestRelease]

    def __post_init__(self) -> None:
        self._parsed(stages=tuple(self.stages))
        if not self.stages:
            raise ArgumentError("stages must not be empty")

    @property
    def guarantee(self) -> OutputGuarantee:
        """Prices by the stage that answered, 0 for none, and delta."""
        return first_answer([stage.guarantee for stage in self.stages], none=False)

    def prepared(
        self, attempts: Sequence[tuple[Distance, Answer[Any]]]
    ) -> Callable[[RandomSource], tuple[int, Any] | None]:
        """The first answer with its stage, or None. `attempts` has (distance, answer) for each stage.

        The order of the attempts must not depend on the data (you must ensure this). Exceptions of an answer pass
        through and may reveal data.
        """
        if len(attempts) != len(self.stages):
            raise ArgumentError(f"attempts must be as many as there are stages, {len(self.stages)}")
        runs = [stage.prepared(*attempt) for stage, attempt in zip(self.stages, attempts, strict=True)]

        def run(random: RandomSource) -> tuple[int, Any] | None:
            for place, one in enumerate(runs, start=1):
                found = one(random)
                if found is not None:
                    return place, found
            return None

        return run


def dwork_lei_delta(*, rows: int, epsilon: SupportsFloat) -> float:
    """Return the delta of one test with Dwork and Lei's margin (log rows)^2.

    It is rows^(-epsilon log rows) / 2, rounded up.

    Args:
        rows: how many rows there are, at least 2. Public.
        epsilon: the price of the test (`epsilon_test`), above 0.

    Raises:
        ArgumentError: for a number out of range.
        TypeError: if an argument is not a number.

    >>> dwork_lei_delta(rows=1000, epsilon=0.5) < 2.2e-11 < dwork_lei_delta(rows=1000, epsilon=0.1)
    True
    """
    logarithm = math.log(number("rows", rows, at_least=2))
    return 0.5 * math.exp(-number("epsilon", epsilon, above=0.0, rounding="down") * logarithm**2) * ROUND_UP


def _whole(distance: SupportsIndex) -> int:
    try:
        return max(operator.index(distance), 0)
    except TypeError:
        raise TypeError("distance must be an integer") from None
