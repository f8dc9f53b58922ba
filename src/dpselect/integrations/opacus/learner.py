"""A network of the user's own as a learner of studies: `[learner] name = "torch"`, trained by `PrivateTraining`.

Nothing here imports torch: `table_network` does, when there is something to train or to predict.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import AdjacencyError, ArgumentError, integer, missing_extra, number
from dpselect.learners.learner import Classifier, PrivateLearner, Regressor
from dpselect.learners.rows import (
    class_numbers,
    doubles,
    labels_of,
    number_table,
    public_bounds,
    public_classes,
    public_row_count,
    targets_of,
)
from dpselect.numerics.search import Array
from dpselect.privacy import Adjacency, Guarantee, dp_sgd
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.randomness import RandomSource, resolve
from dpselect.study.learners import LEARNERS, StudyLearner
from dpselect.study.user_module import function_of

__all__ = ["OPTIMIZERS", "NetworkClassification", "NetworkRegression"]

OPTIMIZERS: Final = ("adam", "adamw", "sgd")
CLIPPINGS: Final = ("flat", "per_layer", "automatic")


@dataclass(kw_only=True, eq=False, repr=False)
class _Network(PrivateLearner):
    """The parameters and the training of both tasks."""

    module: str | Callable[[int, int], Any] | None = None
    optimizer: Literal["adam", "adamw", "sgd"] = "adam"
    learning_rate: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 0.0
    steps: int = 200
    sampling_rate: float = 0.1
    clip_norm: float = 1.0
    max_physical_batch_size: int = 512
    grad_sample_mode: Literal["hooks", "ghost"] = "hooks"
    clipping: Literal["flat", "per_layer", "automatic"] = "flat"
    noise_multiplier: float = 1.0
    nominal_rows: float | None = None
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE.value
    random: RandomSource | None = None
    checkpoints: str | None = None

    _alone = False
    """Whether rows are answered one at a time, as scores need it."""
    _features = 0

    def guarantee(self) -> Guarantee:
        """The guarantee of one `fit`, from the parameters alone."""
        if parse_adjacency(self.adjacency) is not Adjacency.ADD_OR_REMOVE_ONE:
            raise AdjacencyError("noisy gradients are private under add_or_remove_one, not under replace_one")
        return dp_sgd(noise_multiplier=self._noise(), sampling_rate=self.sampling_rate, steps=self.steps)

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows X of shape (rows, features) and labels y of shape (rows,).

        Raises `ArgumentError` that names a parameter, before the data is looked at, for one that is out of range and
        for a module that `PrivateTraining` refuses. Afterwards for a container that is no table.
        """
        guarantee, random = self.guarantee(), resolve(self.random)
        nominal = None if self.nominal_rows is None else number("nominal_rows", self.nominal_rows, at_least=1.0)
        self._training(1.0)
        count, features = number_table(X)
        rows, targets = self._known_rows(np.nan_to_num(doubles(X), posinf=0.0, neginf=0.0), y, count)
        training = self._training(public_row_count(nominal, count, guarantee.adjacency))
        kept = self.checkpoints if self.checkpoints is not None and Path(self.checkpoints).is_dir() else None
        self.weights_ = self._table_network(features).trained(training, rows, targets, random, kept)
        self.guarantee_, self._features, self._alone = guarantee, features, True
        return self

    def fit_nothing(self, features: int) -> Self:
        """The shape that a fit to so many features leaves, with weights of zero."""
        self.weights_ = self._table_network(features).zeros()
        self._features, self._alone = features, False
        return self

    def check(self, features: int) -> None:
        """Try the module on synthetic rows of so many features. Raises `ArgumentError` as `fit` would."""
        self._table_network(features).check(self._training(1.0))

    def _answers(self, X: Any) -> Array:
        """The outputs of the network, shape (rows, outputs)."""
        number_table(X)
        rows = np.nan_to_num(doubles(X), posinf=0.0, neginf=0.0)
        return self._table_network(self._features).answers(self.weights_, rows, alone=self._alone)

    def _noise(self) -> float:
        return number("noise_multiplier", self.noise_multiplier, at_least=0.01, at_most=1e6, rounding="down")

    def _training(self, rows: float) -> dict[str, Any]:
        """The numbers of the training, checked, by the names of `PrivateTraining` and of its optimizer."""
        if self.optimizer not in OPTIMIZERS:
            raise ArgumentError(f"optimizer must be one of {', '.join(OPTIMIZERS)}, got {self.optimizer!r}")
        if self.grad_sample_mode not in ("hooks", "ghost"):
            raise ArgumentError(f"grad_sample_mode must be one of hooks, ghost, got {self.grad_sample_mode!r}")
        if self.clipping not in CLIPPINGS:
            raise ArgumentError(f"clipping must be one of {', '.join(CLIPPINGS)}, got {self.clipping!r}")
        rate = number("sampling_rate", self.sampling_rate, above=0.0, at_most=1.0)
        return {
            "training": {
                "noise_multiplier": self._noise(),
                "sampling_rate": rate,
                "steps": integer("steps", self.steps, at_least=1),
                "max_grad_norm": number("clip_norm", self.clip_norm, at_least=1e-6, at_most=1e6),
                "expected_batch_size": rate * rows,
                "max_physical_batch_size": integer("max_physical_batch_size", self.max_physical_batch_size, at_least=1),
                "grad_sample_mode": self.grad_sample_mode,
                "clipping": self.clipping,
            },
            "optimizer": {
                "name": self.optimizer,
                "learning_rate": number("learning_rate", self.learning_rate, above=0.0, at_most=1e6),
                "momentum": number("momentum", self.momentum, at_least=0.0, below=1.0),
                "weight_decay": number("weight_decay", self.weight_decay, at_least=0.0, at_most=1e6),
            },
        }

    def _table_network(self, features: int) -> Any:
        if self.module is None:
            raise ArgumentError('module must be given: a function that makes the network, such as "my_models:build"')
        try:
            from dpselect.integrations.opacus.table_network import TableNetwork
        except ImportError:
            raise missing_extra("torch", "a study that trains your network") from None
        return TableNetwork(function_of(self.module), features, *self._outputs())

    @abstractmethod
    def _outputs(self) -> tuple[int, bool]:
        """How many numbers the network gives for a row, and whether they are scores of classes."""

    @abstractmethod
    def _known_rows(self, rows: Array, y: Any, count: int) -> tuple[Array, NDArray[Any]]:
        """The rows whose label is known, and what the network is to give for them."""


@dataclass(kw_only=True, eq=False, repr=False)
class NetworkClassification(_Network, Classifier):
    """A classifier by your torch network, trained by DP-SGD with Opacus's per-sample gradients.

    The network takes float32 rows of shape (rows, columns), as the study encodes them, and gives one score for each
    class. The loss is the cross-entropy.

    Args:
        module: the function that makes the network, such as "my_models:build". It is called with the number of columns
            and the number of classes.
        optimizer: "adam", "adamw" or "sgd".
        learning_rate: the learning rate of the optimizer.
        momentum: of "sgd", in [0, 1).
        weight_decay: the weight decay of the optimizer.
        steps: the number of steps.
        sampling_rate: the probability with which a row is taken at a step, in (0, 1].
        clip_norm: the bound on one row's gradient norm.
        max_physical_batch_size: the number of rows that are held at once. A larger batch is cut into parts.
        grad_sample_mode: "hooks", or "ghost" for less memory with wide layers.
        clipping: "flat", "per_layer", or "automatic", which needs no search of `clip_norm`.
        noise_multiplier: the standard deviation of a step's noise / `clip_norm`, at least 0.01.
        nominal_rows: a public guess of the number of rows.
        adjacency: "add_or_remove_one".
        random: a `RandomSource`, or None for the system's entropy.
        checkpoints: the folder in which a study keeps trainings that a kill interrupts. None keeps nothing.
        classes: the class labels, public.

    >>> model = NetworkClassification(classes=[0, 1], noise_multiplier=2.0, steps=100, sampling_rate=0.1)
    >>> round(model.guarantee().epsilon(delta=1e-5), 2)
    2.34
    """

    classes: Sequence[Any] | NDArray[Any] | None = None

    def _outputs(self) -> tuple[int, bool]:
        return len(public_classes(self.classes, None)), True

    def _known_rows(self, rows: Array, y: Any, count: int) -> tuple[Array, NDArray[Any]]:
        self.classes_ = public_classes(self.classes, None)
        places = class_numbers(labels_of(y, count), self.classes_)
        # a row with an unknown label is left out: neighbours stay neighbours
        return rows[places >= 0], places[places >= 0]

    def fit_nothing(self, features: int) -> Self:
        """The shape that a fit to so many features leaves, with weights of zero."""
        self.classes_ = public_classes(self.classes, None)
        return super().fit_nothing(features)

    def _scores(self, X: Any) -> Array:
        return self._answers(X)


@dataclass(kw_only=True, eq=False, repr=False)
class NetworkRegression(_Network, Regressor):
    """A regression by your torch network, trained by DP-SGD with Opacus's per-sample gradients.

    The network takes float32 rows of shape (rows, columns), as the study encodes them, and gives one number. The label
    is scaled to [-1, 1], and the loss is the squared error.

    Args:
        module: the function that makes the network, such as "my_models:build". It is called with the number of columns
            and 1.
        optimizer: "adam", "adamw" or "sgd".
        learning_rate: the learning rate of the optimizer.
        momentum: of "sgd", in [0, 1).
        weight_decay: the weight decay of the optimizer.
        steps: the number of steps.
        sampling_rate: the probability with which a row is taken at a step, in (0, 1].
        clip_norm: the bound on one row's gradient norm.
        max_physical_batch_size: the number of rows that are held at once. A larger batch is cut into parts.
        grad_sample_mode: "hooks", or "ghost" for less memory with wide layers.
        clipping: "flat", "per_layer", or "automatic", which needs no search of `clip_norm`.
        noise_multiplier: the standard deviation of a step's noise / `clip_norm`, at least 0.01.
        nominal_rows: a public guess of the number of rows.
        adjacency: "add_or_remove_one".
        random: a `RandomSource`, or None for the system's entropy.
        checkpoints: the folder in which a study keeps trainings that a kill interrupts. None keeps nothing.
        label_bounds: the least and the largest label, public; labels beyond are clipped, and so are answers.

    >>> model = NetworkRegression(label_bounds=(0, 10), noise_multiplier=2.0, steps=100, sampling_rate=0.1)
    >>> round(model.guarantee().epsilon(delta=1e-5), 2)
    2.34
    """

    label_bounds: tuple[float, float] | None = None

    def _outputs(self) -> tuple[int, bool]:
        return 1, False

    def _known_rows(self, rows: Array, y: Any, count: int) -> tuple[Array, NDArray[Any]]:
        self._bounds = public_bounds(self.label_bounds)
        targets = targets_of(y, count, self._bounds)
        known = ~np.isnan(targets)
        return rows[known], targets[known]

    def fit_nothing(self, features: int) -> Self:
        """The shape that a fit to so many features leaves, with weights of zero."""
        self._bounds = public_bounds(self.label_bounds)
        return super().fit_nothing(features)

    def predict(self, X: Any) -> Array:
        """The expected label of each row, between the bounds, shape (rows,)."""
        return self._in_units(self._answers(X)[:, 0])


LEARNERS.register("torch")(
    StudyLearner(
        NetworkClassification,
        "noise_multiplier",
        priced=frozenset({"sampling_rate", "steps"}),
        regressor=NetworkRegression,
        code=True,
    )
)
