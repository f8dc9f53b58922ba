"""Private training that may stop early and pays for the steps it took.

Hartmann, Bindschaedler, Bentkamp, West, "Privacy accounting economics" (2022), Algorithm 3. Its price is
that of `dpselect.accounting.iterative`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Protocol, Self, SupportsFloat, SupportsIndex, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpselect.accounting import iterative
from dpselect.errors import AdjacencyError, ArgumentError, BudgetError, StudyError, integer, number
from dpselect.learners.containers import is_sparse
from dpselect.learners.rows import labels_of
from dpselect.mechanisms import NoisyCount
from dpselect.privacy import Adjacency, Guarantee, OutputGuarantee, Spender, compose, worst_of
from dpselect.privacy.output.guarantee import RealisedPrice
from dpselect.privacy.paying import Payment
from dpselect.privacy.promises import output_promise, promise
from dpselect.privacy.release import Receipt
from dpselect.randomness import RandomSource, resolve
from dpselect.randomness.session import Session, answers

__all__ = ["EarlyStopping", "NoGain", "PrivateValidation", "PublicValidation", "Reached", "Run"]


@runtime_checkable
class ModelScore(Protocol):
    """How good is this model? The number is released. `guarantee` is its price, None if it sees no private rows."""

    @property
    def guarantee(self) -> Guarantee | None:
        """The price of one call."""
        ...

    @property
    def disjoint(self) -> bool:
        """Whether the rows it sees are apart from the training rows."""
        ...

    def __call__(self, model: Any, random: RandomSource) -> float:
        """The score of a model, larger being better."""
        ...


@dataclass(frozen=True)
class Reached:
    """A rule that stops when the last score is at least `target`.

    Args:
        target: the score at which to stop.

    >>> Reached(0.9)([0.5, 0.91])
    True
    """

    target: float

    def __call__(self, scores: Sequence[float]) -> bool:
        return scores[-1] >= self.target


@dataclass(frozen=True)
class NoGain:
    """A rule that stops when the last `patience` scores did not beat the best score before them by more than `least`.

    Args:
        patience: the number of last scores that must bring no gain, at least 1.
        least: the gain that does not count, in units of the score, at least 0.

    Raises:
        ArgumentError: for a number out of range.
        TypeError: if an argument is not a number.

    >>> NoGain(patience=2)([0.5, 0.8, 0.79, 0.8])
    True
    """

    patience: int = 1
    least: float = 0.0

    def __post_init__(self) -> None:
        integer("patience", self.patience, at_least=1)
        number("least", self.least, at_least=0.0)

    def __call__(self, scores: Sequence[float]) -> bool:
        recent, before = scores[-self.patience :], scores[: -self.patience]
        return bool(before) and not max(recent) > max(before) + self.least


@dataclass(frozen=True, eq=False)
class PublicValidation:
    """The fraction of correct predictions on public rows, which costs no privacy.

    Args:
        X: the public rows, shape (rows, features).
        y: their labels, shape (rows,).
        guarantee: None, because it sees no private rows. Leave it as it is.
        disjoint: whether the rows are apart from the training rows. Leave it as it is.
    """

    X: Any = field(repr=False)
    y: Any = field(repr=False)
    guarantee: None = None
    disjoint: bool = True

    def __call__(self, model: Any, random: RandomSource) -> float:  # noqa: ARG002
        return _right(model, self.X, self.y) / max(len(self.X), 1)


class PrivateValidation:
    """The number of right predictions on private rows, plus noise, over a public number of rows.

    Args:
        X, y: the rows of shape (rows, features) and their labels.
        nominal_rows: a public guess of their number.
        epsilon, noise_multiplier: the noise on the number of right predictions (see `NoisyCount`); give one. This is
            the price of every look, at each stopping point but the last.
        disjoint: whether no one is in both these rows and the training rows, by a rule on a single row (the caller must
            ensure it). A row then pays for training or for validation, whichever is more expensive, and not for both.
        adjacency: which data sets are neighbours.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        nominal_rows: SupportsFloat,
        epsilon: float | None = None,
        noise_multiplier: float | None = None,
        disjoint: bool = False,
        adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
    ) -> None:
        self._rows, self._labels = X, y
        self._nominal = number("nominal_rows", nominal_rows, at_least=1.0)
        self._noise = NoisyCount(epsilon=epsilon, noise_multiplier=noise_multiplier, adjacency=adjacency)
        self.disjoint = bool(disjoint)
        self.guarantee = self._noise.guarantee

    def __call__(self, model: Any, random: RandomSource) -> float:
        """The noisy share, which may be outside [0, 1]."""
        right = _right(model, self._rows, self._labels)
        return float(self._noise.draw(right, random=random) / self._nominal)

    def __repr__(self) -> str:
        return f"PrivateValidation({self.guarantee!r}, disjoint={self.disjoint})"


def _right(model: Any, X: Any, y: Any) -> int:
    found: NDArray[Any] = model.predict(X)
    return int(np.count_nonzero(np.asarray(found == labels_of(y, X.shape[0] if is_sparse(X) else len(X)), dtype=bool)))


@dataclass(frozen=True, kw_only=True, eq=False)
class EarlyStopping:
    """When to stop, and how the run is paid for. All is fixed before the data is seen.

    Args:
        stops: the numbers of steps after which the run may stop; the last one is the longest run.
        delta: the delta of the whole run, never refunded. Leave it out for `PrivateTraining`.
        rule: from the scores so far (one a stopping point) to whether to stop. It sees nothing else.
        score: `PublicValidation`, `PrivateValidation`, or anything that says its price. A validation loss on private
            rows without noise has none: with it nothing that is printed here holds.
        spender: where the run is paid; a budget of a ledger. The worst case is reserved, and the budget locked, before
            the first step; the price of the stopping point reached is what stays charged. A run that raises or is
            killed leaves the reservation, and the lock, as they are: settle by the identifier in the record.
        label: public text for the record.
        shares, worst_epsilon: see `iterative`.

    >>> from dpselect.privacy import gaussian
    >>> stopping = EarlyStopping(stops=[10, 40], delta=1e-5, score=lambda model, random: model, rule=Reached(0.9))
    Traceback (most recent call last):
    ...
    TypeError: score must say its price: a callable with `guarantee` (None if it sees no private rows) and `disjoint`
    """

    stops: Sequence[int]
    delta: SupportsFloat | None = None
    rule: Callable[[Sequence[float]], bool]
    score: ModelScore
    spender: Spender | None = None
    label: str = "training with early stopping"
    shares: Sequence[SupportsFloat] | None = None
    worst_epsilon: SupportsFloat | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.score, ModelScore):
            raise TypeError(
                "score must say its price: a callable with `guarantee` (None if it sees no private rows) and `disjoint`"
            )
        if not callable(self.rule):
            raise TypeError("rule must be callable: rule(scores) -> whether to stop")
        object.__setattr__(self, "stops", tuple(integer("stops", k, at_least=1) for k in self.stops))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:  # copies: a plan that scikit-learn's clones share
        # scikit-learn's clone() copies parameters; nothing here changes, and a budget is not to be copied
        return self

    def guarantee(self, steps: Callable[[int], Guarantee] | Sequence[Guarantee]) -> OutputGuarantee:
        """The price by stopping point of training whose steps have these guarantees (see `iterative`).

        A private score on the same rows is one more step at every stop but the last. On disjoint rows training and
        scores are two runs, and a row is in one of them: the more expensive price and the larger delta at every stop.
        """
        if self.delta is None:
            raise ArgumentError("delta is missing: it is the delta of the whole run, such as 1e-5")
        check = self.score.guarantee
        together = check is not None and not self.score.disjoint
        run = iterative(
            steps,
            stops=self.stops,
            delta=self.delta,
            shares=self.shares,
            worst_epsilon=self.worst_epsilon,
            check=check if together else None,
        )
        if check is None or together or len(self.stops) == 1:
            return run
        _refuse_parts(check, run.adjacency)
        # the last stop shows no look that the one before it has not paid for
        last = len(self.stops) - 1
        looks = iterative([check] * last, stops=range(1, last + 1), delta=self.delta)
        costlier: dict[Hashable, float] = {
            stop: max(run.price(stop), looks.price(min(i + 1, last))) for i, stop in enumerate(self.stops)
        }
        if self.worst_epsilon is not None and max(costlier.values()) > run.worst_epsilon:
            raise BudgetError("worst_epsilon is too small for the private looks")
        return replace(run, epsilons=costlier)

    def full_guarantee(self, training: Guarantee) -> Guarantee:
        """Return the guarantee of a run that pays for all its steps and looks, no matter where it stops.

        It is smaller than the worst of `guarantee`, because an early stop gives nothing back. `PrivateTraining` has
        this guarantee, and a search counts it for each run. Source: docs/theory/early-stopping.md, Theorem 1;
        docs/theory/early-stopping.md, Theorem 2 (`disjoint`).

        Args:
            training: the guarantee of all steps up to the last stop. You must ensure that it composes step by step.

        Returns:
            The composition of the training with a look at each stop but the last. With `disjoint` a row is in one of
            them, and the larger guarantee holds.

        Raises:
            AdjacencyError: if the score has another adjacency, or parts are disjoint under replace_one.
            PromiseError: if `training` is no guarantee, such as the cost of an output.

        >>> from dpselect.mechanisms import NoisyCount
        >>> from dpselect.privacy import gaussian
        >>> X, y = np.eye(2), np.array([0, 1])
        >>> look = PrivateValidation(X, y, nominal_rows=2, epsilon=0.125)
        >>> stopping = EarlyStopping(stops=[10, 20, 30], score=look, rule=Reached(0.9))
        >>> whole = stopping.full_guarantee(gaussian(noise_multiplier=2.0))
        >>> round(gaussian(noise_multiplier=2.0).epsilon(1e-5), 3), round(whole.epsilon(1e-5), 3)
        (1.993, 2.113)
        """
        training = promise("training", training)
        check, looks = self.score.guarantee, len(self.stops) - 1
        if check is None or not looks:
            return training
        if not self.score.disjoint:
            return compose(training, *[check] * looks)
        _refuse_parts(check, training.adjacency)
        return worst_of(training, compose(*[check] * looks))

    def open(self, price: OutputGuarantee, *, random: RandomSource | None = None) -> Run:
        """A run at this price (from `guarantee`), to be used as a context around the training loop.

        >>> from dpselect.privacy import gaussian
        >>> X, y = np.eye(2), np.array([0, 1])
        >>> stopping = EarlyStopping(stops=[2, 4], delta=1e-5, score=PublicValidation(X, y), rule=Reached(0.9))
        >>> class Model:  # what the private steps have made so far
        ...     def predict(self, X): return np.argmax(X, axis=1)
        >>> with stopping.open(stopping.guarantee([gaussian(noise_multiplier=20.0)] * 4)) as run:
        ...     for step in range(1, 5):
        ...         if run.stop(step, Model()):
        ...             break
        >>> run.steps, run.scores, run.realised.epsilon(delta=1e-5) < 0.3 < run.guarantee.epsilon(delta=1e-5)
        (2, (1.0,), True)
        """
        price = output_promise("price", price)
        if tuple(price.table or ()) != tuple(self.stops):
            raise ArgumentError("price must be for these stops: use `guarantee`")
        return Run(self, price, resolve(random))


def _refuse_parts(check: Guarantee, adjacency: Adjacency | str) -> None:
    """Raise unless training and looks may be of disjoint rows."""
    if check.adjacency is not adjacency:
        raise AdjacencyError("the score and the training must be under one adjacency")
    if adjacency is not Adjacency.ADD_OR_REMOVE_ONE:
        raise AdjacencyError("disjoint=True needs add_or_remove_one: a replaced row may change its part")


class Run(Session):
    """One run of a training loop: ask `stop` after every step. Leaving the context settles its cost.

    Anyone who leaves the loop at another step than `stop` says pays for the next stopping point. You must ensure two
    things: that step depends on released outputs alone, and every step that was trained was counted.
    An exception leaves the reservation unsettled.

    Attributes after the context: `steps` that ran, `scores` (released), `guarantee` (of the run, known before it
    began), `realised` and `receipt` (None without a spender). `realised` is the price of the stopping point reached,
    which adds up in a ledger only.
    """

    def __init__(self, stopping: EarlyStopping, price: OutputGuarantee, source: RandomSource) -> None:
        super().__init__()
        self._stopping, self._price, self._source = stopping, price, source
        self._payment: Payment | None = None
        self._scores: list[float] = []
        self._open = False
        self.steps = 0
        self.receipt: Receipt | None = None

    @property
    def scores(self) -> tuple[float, ...]:
        """The scores so far, one a stopping point."""
        return tuple(self._scores)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the whole run, regardless of the stop: the largest price."""
        return self._price.worst()

    @property
    def realised(self) -> RealisedPrice:
        """The cost of the steps that ran in a ledger, charged at their stopping point."""
        return self._price.observed(self.steps)

    @answers
    def __enter__(self) -> Self:
        if self._open or self.steps:
            raise StudyError("a run is opened once")
        price = replace(self._price, interactive=True)  # nothing else may run on the same data meanwhile
        self._payment = Payment.open(price, spender=self._stopping.spender, label=self._stopping.label)
        self.receipt = self._payment.receipt
        self._open = True
        return self

    @answers
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False
        if kind is None and self._payment is not None:
            self.receipt = self._payment.close(self.steps)

    @answers
    def stop(self, step: SupportsIndex, model: Any) -> bool:
        """Whether to stop after this step (1, 2, ..., each once). At a stopping point the model is scored.

        Raises `StudyError` outside the context, for a step that is not the next one, and past a stop.
        """
        step = integer("step", step)
        if not self._open or step != self.steps + 1:
            raise StudyError("steps are counted one by one while the run is open: what is not counted is not paid for")
        self.steps = step
        if step == self._stopping.stops[-1]:
            self._open = False
        elif step in self._stopping.stops:
            self._scores.append(float(self._stopping.score(model, self._source)))
            self._open = not self._stopping.rule(self.scores)
        return not self._open
