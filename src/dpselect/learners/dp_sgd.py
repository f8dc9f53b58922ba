"""DP-SGD on softmax regression or a network with one hidden layer, in NumPy."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, integer, number
from dpselect.learners.balanced_weights import is_balanced, noisy_weights, rest_of_noise, share_of_counts
from dpselect.learners.batches import Batches, poisson_sample
from dpselect.learners.clipped_gradients import (
    HiddenLayerNetwork,
    LogisticRegression,
    Model,
    SoftmaxRegression,
    clipped_gradient_sum,
)
from dpselect.learners.early_stopping import EarlyStopping
from dpselect.learners.fixed_point import STEP
from dpselect.learners.learner import Classifier, PrivateLearner
from dpselect.learners.rows import (
    class_numbers,
    labels_of,
    public_classes,
    public_row_count,
    public_weights,
)
from dpselect.learners.training_rules import CLASSIFICATION, TrainingRule
from dpselect.mechanisms.grid import gaussian_steps, grid_at_most
from dpselect.numerics.search import Array
from dpselect.privacy import Adjacency, Guarantee, OutputGuarantee, dp_sgd, gaussian
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.randomness import RandomSource, resolve
from dpselect.steps import each_step

__all__ = ["DPSGDClassification"]

Weights = tuple[Array, ...]


@dataclass(frozen=True)
class GradientSchedule:
    """The public numbers of a run."""

    noise_multiplier: float
    sampling_rate: float
    steps: int
    clip_norm: float
    learning_rate: float
    momentum: float
    averaged_share: float
    normalizer: float
    initial: Weights | None = None
    """Where it starts, if not where the model does."""

    def run(
        self, model: Any, rows: Batches, labels: NDArray[Any], random: RandomSource, counted: Array | None = None
    ) -> Weights:
        """The average of the last iterates."""
        *_, (_, average) = self.train(model, rows, labels, random, [self.steps], counted)
        assert average is not None
        return average

    def train(
        self,
        model: Any,
        rows: Batches,
        labels: NDArray[Any],
        random: RandomSource,
        stops: Sequence[int],
        counted: Array | None = None,
    ) -> Iterator[tuple[int, Weights | None]]:
        """After each step its number and, at a stop, the average of the last iterates.

        Every use of the rows is one noisy sum of a Poisson sample. `counted` is what each row's gradient is multiplied
        by once it is clipped, at most 1, shape (rows,).
        """
        paired = isinstance(model, LogisticRegression)
        clip = self.clip_norm / math.sqrt(2.0) if paired else self.clip_norm
        step = grid_at_most(clip) * STEP
        deviation = self.noise_multiplier * clip / (STEP * step)
        unit = STEP * step / self.normalizer
        averaged = {k: max(1, round(self.averaged_share * k)) for k in stops}
        weights = self._started(model.initial(random))
        velocity = tuple(np.zeros_like(w) for w in weights)
        totals = dict.fromkeys(stops, velocity)
        for t in each_step("steps of training", self.steps):
            sums = [np.zeros((len(w), 1) if paired else w.shape, dtype=np.int64) for w in weights]
            for part in rows.parts(poisson_sample(self.sampling_rate, len(rows), random)):
                layers = model.layers(weights, part.rows, labels[part.which])
                weighed = None if counted is None else counted[part.which]
                terms = clipped_gradient_sum(layers, clip, step, weighed, part.squares)
                for total, term in zip(sums, terms, strict=True):
                    total += term
            gradient = [(total + gaussian_steps(deviation, total.shape, random)) * unit for total in sums]
            gradient = [np.hstack([-g, g]) for g in gradient] if paired else gradient
            velocity = tuple(self.momentum * v + g for v, g in zip(velocity, gradient, strict=True))
            weights = tuple(w - self.learning_rate * v for w, v in zip(weights, velocity, strict=True))
            for k in stops:
                if k - averaged[k] <= t < k:
                    totals[k] = tuple(a + w for a, w in zip(totals[k], weights, strict=True))
            yield t + 1, tuple(a / averaged[t + 1] for a in totals[t + 1]) if t + 1 in averaged else None

    def _started(self, model: Weights) -> Weights:
        if self.initial is None:
            return model
        needed, given = ([each.shape for each in weights] for weights in (model, self.initial))
        if given != needed:
            raise ArgumentError(f"initial_weights must be arrays of the shapes {needed}, got {given}")
        return self.initial


def initial_from(weights: Sequence[Array] | None) -> Weights | None:
    """The weights that a fit starts from, checked."""
    try:
        found = None if weights is None else tuple(np.array(each, dtype=np.float64) for each in weights)
    except (TypeError, ValueError):
        found = (np.array(math.nan),)
    if found is not None and not all(np.all(np.isfinite(each)) for each in found):
        raise ArgumentError("initial_weights must be finite arrays, one a layer, as `weights_` is")
    return found


@dataclass(kw_only=True, eq=False, repr=False)
class NoisyGradients(PrivateLearner):
    """A learner by noisy gradients: its own parameters, and those of a rule for the ones that are None."""

    noise_multiplier: float = 30.0
    steps: int | None = None
    clip_norm: float | None = None
    learning_rate: float | None = None
    averaged_share: float = 0.5
    row_norm: float = 1.0
    intercept_scale: float | None = None
    nominal_rows: float | None = None
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE.value
    random: RandomSource | None = None

    _rule: ClassVar[TrainingRule]
    # full batches without momentum, of learners that have no such parameters
    sampling_rate = 1.0
    momentum = 0.0

    def _rows(self) -> float | None:
        """The public number of rows."""
        return None if self.nominal_rows is None else number("nominal_rows", self.nominal_rows, at_least=1.0)

    def _steps(self) -> int:
        return integer("steps", self.steps, at_least=1) if self.steps is not None else math.ceil(self._by_rule())

    def _by_rule(self) -> float:
        noise = number("noise_multiplier", self.noise_multiplier, at_least=0.01, at_most=1e6, rounding="up")
        return self._rule.steps_for(self._rows(), noise / float(self.sampling_rate))

    def _noise(self) -> float:
        """A step's noise in units of `clip_norm`.

        It is more than asked for if a rule's steps were rounded up. So the whole costs what the unrounded number of
        steps would, and the price does not leap where there is a step more.
        """
        noise = number("noise_multiplier", self.noise_multiplier, at_least=0.01, at_most=1e6, rounding="down")
        return noise if self.steps is not None else noise * math.sqrt(self._steps() / self._by_rule())

    def _work(self, steps: int) -> Guarantee:
        """The guarantee of so many noisy sums of clipped gradients. Full batches are one Gaussian mechanism, exactly.

        T Gaussian mechanisms of noise multiplier sigma on the same rows are one with sigma/sqrt(T), also when each is
        chosen by what came before (Dong, Roth, Su 2022, Corollary 3.3). A row that is replaced moves a sum by up to
        twice `clip_norm`.
        """
        adjacency, sigma = parse_adjacency(self.adjacency), self._noise()
        if number("sampling_rate", self.sampling_rate, above=0.0, at_most=1.0) < 1.0:
            return dp_sgd(noise_multiplier=sigma, sampling_rate=self.sampling_rate, steps=steps, adjacency=adjacency)
        count = integer("steps", steps, at_least=1, at_most=2**40)
        moved = 2.0 if adjacency is Adjacency.REPLACE_ONE else 1.0
        return gaussian(noise_multiplier=sigma / moved / math.sqrt(count) * (1.0 - 2.0**-50), adjacency=adjacency)

    def _schedule(self, normalizer: float) -> GradientSchedule:
        """A rate that is given is one for gradients of norm 1, so that they are clipped there by default."""
        noise, sampled, steps = self._noise(), float(self.sampling_rate), self._steps()
        clip = self._rule.clip_norm if self.learning_rate is None else 1.0
        clip = clip if self.clip_norm is None else number("clip_norm", self.clip_norm, at_least=1e-6, at_most=1e3)
        reach = self._rule.reach_for(self._rows(), sampled * math.sqrt(steps) / noise)
        rate = reach / (clip * steps) if self.learning_rate is None else self.learning_rate
        return GradientSchedule(
            noise_multiplier=noise,
            sampling_rate=sampled,
            steps=steps,
            clip_norm=clip,
            learning_rate=number("learning_rate", rate, above=0.0, at_most=1e6),
            momentum=number("momentum", self.momentum, at_least=0.0, below=1.0),
            averaged_share=number("averaged_share", self.averaged_share, at_least=0.0, at_most=1.0),
            normalizer=normalizer,
        )

    def _appended(self) -> float:
        """The constant that is appended to rows."""
        chosen = self._rule.intercept_scale if self.learning_rate is None else 1.0
        scale = chosen if self.intercept_scale is None else self.intercept_scale
        return number("intercept_scale", scale, above=0.0, at_most=1.0)


@dataclass(kw_only=True, eq=False, repr=False)
class DPSGDClassification(NoisyGradients, Classifier):
    """A classifier trained by DP-SGD (Abadi et al. 2016): noisy sums of clipped gradients over Poisson samples.

    By default full batches, with few enough steps, a bound on gradients and a rate that follow from the public number
    of rows and from the noise (`training_rules`). A parameter that is None is chosen so, any other stays.

    At each step a coin of its own takes each row with probability `sampling_rate`. The gradients of the rows taken are
    scaled to norm at most `clip_norm` (all layers together) and summed. Gaussian noise of standard deviation
    `noise_multiplier * clip_norm` is added. The sum is divided by the public number `sampling_rate * nominal_rows`.
    One step is the Gaussian mechanism of sensitivity `clip_norm` under adding or removing a row, on a Poisson sample.
    `guarantee()` is its composition over the steps. For full batches it is one Gaussian mechanism, exactly. Momentum,
    the average of the last iterates and prediction use these noisy sums only and cost nothing. Under replace-one a row
    moves a sum by up to 2*clip_norm, and `guarantee()` states that price.

    Exactness. The sum is exact in fixed point (`clipped_gradient_sum`), and the noise is a rounded Gaussian on the
    sum's own grid (`gaussian_steps`). So the noisy sum is a post-processing of the continuous Gaussian mechanism on a
    real-valued sum of sensitivity at most `clip_norm`. Rounding adds nothing to the sensitivity, and the guarantee is
    that of `noise_multiplier` unreduced. The same keyed source and data give bit-identical weights.

    How `fit` treats the data. It divides each row alone by `row_norm`, scales it into the unit ball and appends the
    constant `intercept_scale`. A cell that is missing, infinite or not a number counts as zero. A row whose label is
    not in `classes` contributes nothing. It never fails on a value, and no row or an empty sample is a table like
    another.

    Args:
        noise_multiplier: the standard deviation of a step's noise in units of `clip_norm`, at least 0.01. With
            `steps=None` up to 1.3 % more is taken, as the number of steps is rounded up.
        sampling_rate: the probability with which a row is taken at a step, in (0, 1].
        steps: the number of steps. None: 40 to 250, the more the more rows and the less noise.
        clip_norm: the bound on one row's gradient norm. Without clipping softmax regression reaches 2. None: 0.3, or 1
            where there is a `learning_rate`.
        learning_rate: the factor of the mean gradient. None: such that all steps together reach far enough.
        momentum: in [0, 1).
        averaged_share: the share of the steps, counted from the end, whose weights are averaged; 0 is the last alone.
        hidden_units: 0 for softmax regression, else the width of the hidden layer.
        activation: "tanh", or "relu" (clipped at 16).
        row_norm: a public bound on the rows' L2 norm; longer rows are scaled down.
        intercept_scale: the constant that is appended to each row, up to 1. None: 0.3, or 1 where there is a
            `learning_rate`.
        class_weights: what rows of a class count, for classes that are to count more or less than 1; public. The
            largest is taken for 1, and a row's clipped gradient is multiplied by its weight: the price stays. Or
            "balanced": one over the noisy number of rows of each class. A fit of full batches pays 1 % to 10 % of its
            squared Gaussian differential privacy parameter for these.
        classes: the class labels, public. None takes them from y, with a `DataDependentClassesWarning`.
        nominal_rows: a public guess of the number of rows. None takes the number itself, with a
            `PublicRowCountWarning`, and steps as for a thousand rows.
        adjacency: "add_or_remove_one" or "replace_one".
        early_stopping: an `EarlyStopping` whose last stop is `steps`, or None. At each of its stops the average of the
            last iterates up to there is scored, and may be where training ends; the price is that of the stop.
        random: a `RandomSource`, or None for the system's entropy. Each fit draws from it again.

    Attributes:
        classes_, n_features_in_: as in scikit-learn.
        weights_: one array a layer, of shape (inputs + 1, outputs), for rows divided by `row_norm`. Softmax regression
            of two classes moves one column by g and the other by -g.
        guarantee_: what the fit promises; the same as `guarantee()`.
        n_steps_, scores_, realised_, receipt_: with `early_stopping`, the steps taken, the scores at the stops passed,
            the price of the stop that was reached (see `Run`), and the receipt of its spender (None without one).

    Raises at `fit`, before the data is looked at: `ArgumentError` (`AdjacencyError` for the adjacency) or `TypeError`
    naming a parameter. Afterwards only for a container: shape, complex numbers, or
    a column whose type says that it holds no numbers, such as dates or categories.

    >>> from dpselect.learners import DPSGDClassifier
    >>> from dpselect.randomness import keyed_source
    >>> model = DPSGDClassifier(classes=[0, 1], nominal_rows=400, random=keyed_source(1))
    >>> X = np.repeat([[0.9, 0.1], [-0.9, 0.2]], 200, axis=0)
    >>> model.fit(X, np.repeat([1, 0], 200)).predict([[1.0, 0.0], [-1.0, 0.0]])
    array([1, 0])
    >>> model.guarantee().epsilon(delta=1e-5) == model.guarantee_.epsilon(delta=1e-5)
    True
    """

    _rule = CLASSIFICATION

    sampling_rate: float = 1.0
    momentum: float = 0.0
    hidden_units: int = 0
    activation: Literal["tanh", "relu"] = "tanh"
    class_weights: Mapping[Any, float] | Sequence[float] | Literal["balanced"] | None = None
    classes: Sequence[Any] | NDArray[Any] | None = None
    early_stopping: EarlyStopping | None = None

    def __getstate__(self) -> dict[str, Any]:
        # a copy of a released model must not carry a budget, or the private rows of a score
        state: dict[str, Any] = super().__getstate__()
        return {**state, "early_stopping": None}

    def guarantee(self) -> Guarantee:
        """The guarantee of one `fit`, from the parameters alone, before there is data.

        With early stopping it is the largest of the stops.

        >>> from dpselect.learners import DPSGDClassifier
        >>> round(DPSGDClassifier(noise_multiplier=40.0, steps=100).guarantee().epsilon(delta=1e-6), 4)
        1.0607
        """
        price = self.price()
        return self._work(self._steps()) if price is None else price.worst()

    def price(self) -> OutputGuarantee | None:
        """The price by stopping point, or None without early stopping."""
        self._work(1)
        self._steps()
        if self.early_stopping is None:
            return None
        if self.steps != self.early_stopping.stops[-1]:
            raise ArgumentError(f"steps must be the last stop of early_stopping, got {self.steps!r}")
        return self.early_stopping.guarantee(self._work)

    def _balanced(self) -> bool:
        """Whether class weights follow from noisy numbers of rows. Full batches without early stopping pay for them."""
        if not is_balanced(self.class_weights):
            return False
        if float(self.sampling_rate) != 1.0 or self.early_stopping is not None:
            raise ArgumentError(
                'class_weights="balanced" needs sampling_rate=1 and no early_stopping: give these, or public weights'
            )
        return True

    def _model(self, features: int, classes: int) -> Model:
        hidden_units = integer("hidden_units", self.hidden_units, at_least=0, at_most=4096)
        if self.activation not in ("tanh", "relu"):
            raise ArgumentError(f"activation must be 'tanh' or 'relu', got {self.activation!r}")
        if not hidden_units:
            return LogisticRegression(features, 2) if classes == 2 else SoftmaxRegression(features, classes)
        return HiddenLayerNetwork(features, classes, hidden_units, self.activation)

    def _scores(self, X: Any) -> Array:
        rows = self._unit_rows(X)
        return self._scorer.scores(self.weights_, rows)

    def fit(self, X: Any, y: Any, *, initial_weights: Sequence[Array] | None = None) -> Self:
        """Learn from rows X of shape (rows, features) and labels y of shape (rows,).

        `initial_weights` are the `weights_` to start from, as another fit left them, in place of zeros (of a network:
        random ones). The caller must ensure that they are public, or that what found them is private and paid for.
        """
        price, initial = self.price(), initial_from(initial_weights)
        adjacency = self._work(1).adjacency
        self._schedule(1.0)
        self._model(1, 1)
        balanced = self._balanced()
        row_norm = number("row_norm", self.row_norm, above=0.0)
        intercept, nominal, random = self._appended(), self._rows(), resolve(self.random)

        count, features = self._prepare(X)
        labels = labels_of(y, count)
        nominal = public_row_count(nominal, count, adjacency)
        classes = public_classes(self.classes, labels)
        numbers = class_numbers(labels, classes)
        public = None if self.class_weights is None or balanced else public_weights(self.class_weights, classes)

        # a row with an unknown label contributes nothing, which is to leave it out: neighbours stay neighbours
        known = numbers >= 0
        rows, numbers = Batches.of_table(X, known, row_norm, intercept), numbers[known]
        model = self._model(features + 1, len(classes))
        schedule = replace(self._schedule(float(self.sampling_rate) * nominal), initial=initial)
        weights = public
        if balanced:
            noise = schedule.noise_multiplier / math.sqrt(schedule.steps)
            share = share_of_counts(noise, nominal)
            # replaced rows are charged for gradients that move by 2, and move the counts by sqrt(2)
            weights = noisy_weights(numbers, len(classes), noise / math.sqrt(share), replace=False, random=random)
            schedule = replace(schedule, noise_multiplier=rest_of_noise(schedule.noise_multiplier, share))
        counted = None if weights is None else weights[numbers]
        self.classes_, self._scorer, self._intercept = classes, model, intercept
        if self.early_stopping is None or price is None:
            self.weights_ = schedule.run(model, rows, numbers, random, counted)
            self.guarantee_ = self._work(schedule.steps)
            return self
        shown = copy.copy(self)  # so that a run that fails leaves no weights without their guarantee
        with self.early_stopping.open(price, random=random) as run:
            stops = self.early_stopping.stops
            for step, average in schedule.train(model, rows, numbers, random, stops, counted):
                shown.weights_ = average if average is not None else ()
                if run.stop(step, shown):
                    break
        self.weights_, self.guarantee_ = shown.weights_, run.guarantee
        self.realised_, self.receipt_ = run.realised, run.receipt
        self.n_steps_, self.scores_ = run.steps, run.scores
        return self
