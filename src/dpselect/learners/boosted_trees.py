"""Private boosting on random trees: a linear model, and trees that learn what it leaves over."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import AdjacencyError, ArgumentError, integer, number
from dpselect.learners.balanced_weights import is_balanced, noisy_weights, rest_of_noise, share_of_counts
from dpselect.learners.clipped_gradients import softmax_errors
from dpselect.learners.dp_sgd import DPSGDClassification
from dpselect.learners.encoding import Encoded, TableEncoding
from dpselect.learners.fixed_point import truncate
from dpselect.learners.learner import Classifier, OneGaussian, Regressor
from dpselect.learners.least_squares import LeastSquares
from dpselect.learners.monotone import signs_of
from dpselect.learners.random_trees import CodedColumns, unpack_trees
from dpselect.learners.rows import (
    class_numbers,
    doubles,
    labels_of,
    number_table,
    public_bounds,
    public_classes,
    public_row_count,
    public_weights,
    same_names,
    targets_of,
)
from dpselect.learners.training_rules import BOOSTING
from dpselect.learners.tree_rounds import CHUNK, CodedRows, TreeRounds
from dpselect.learners.waves import cosines
from dpselect.numerics.search import Array, root_between
from dpselect.privacy import Adjacency
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.randomness import RandomSource, resolve

__all__ = ["WAVES", "BoostedTreesClassification", "BoostedTreesRegression"]

WAVES: Final = 4
_READ: Final = 2**11
"""So many rows are encoded at a time. Larger arrays take longer to allocate than to fill."""
_MOST_CLASSES: Final = 128
_MOST_ERROR: Final = 8.0
_MOST_NOISE_OF_LEAST_SQUARES: Final = 1e5
_MOST_NOISE: Final = 1e6
"""The largest noise a step of the linear start."""


class _Fitted(OneGaussian):
    """A fit keeps these beside the weights: how rows are read, the linear start, and the number of scores of a row."""

    row_norm = 1.0
    _encoding: TableEncoding
    _codes: CodedColumns
    _linear: Any = None
    _outputs: int = 1


@dataclass(kw_only=True, eq=False, repr=False)
class _BoostedTrees(TableEncoding, _Fitted):
    """The parameters that both learners share, and the rounds."""

    n_estimators: int | None = None
    max_depth: int | None = None
    learning_rate: float = 0.8
    linear_share: float | None = None
    max_bins: int = 255
    monotonic_cst: Sequence[int] | None = None
    nominal_rows: float | None = None

    def _plan(self) -> tuple[int, int, float]:
        """The number of trees, their depth and the share of the linear start."""
        rows = None if self.nominal_rows is None else number("nominal_rows", self.nominal_rows, at_least=1.0)
        trees, depth, share = BOOSTING.choose(rows, self._noise())
        unstarted = parse_adjacency(self.adjacency) is Adjacency.REPLACE_ONE or self.monotonic_cst is not None
        if self.n_estimators is not None:
            trees = integer("n_estimators", self.n_estimators, at_least=1, at_most=10_000)
        if self.max_depth is not None:
            depth = integer("max_depth", self.max_depth, at_least=1, at_most=8)
        if self.linear_share is not None:
            share = number("linear_share", self.linear_share, at_least=0.0, at_most=0.95)
            if share and unstarted:
                kind = AdjacencyError if self.monotonic_cst is None else ArgumentError
                raise kind("linear_share must be 0 under replace_one, where it has no price, and with monotonic_cst")
        number("learning_rate", self.learning_rate, above=0.0, at_most=10.0)
        self._bins()
        return trees, depth, 0.0 if unstarted else share

    def _noise_left(self, rows: float) -> float:  # noqa: ARG002
        """The noise multiplier of the linear start and the trees together, for so many rows."""
        return self._noise()

    def _bins(self) -> int:
        return integer("max_bins", self.max_bins, at_least=2, at_most=255)

    def fit_nothing(self, features: int) -> Self:
        """The shape that a fit leaves, as `PrivateLearner.fit_nothing` says: of one tree, and zeros for the others."""
        trees, depth, share = self._plan()
        one = copy.copy(self)
        one.n_estimators, one.max_depth, one.linear_share = 1, depth, share
        one.fit(np.zeros((0, features)), np.zeros(0, dtype=np.int64))
        *linear, columns, sides, values = one.weights_
        kept = self.get_params()
        vars(self).update({name: value for name, value in vars(one).items() if name not in kept})
        self.weights_ = (*linear, *(np.zeros((trees, *each.shape[1:])) for each in (columns, sides, values)))
        return self

    def _coded(self, columns: int) -> CodedColumns:
        """The meaning of the codes of so many columns. Raises `ArgumentError` for parameters that do not fit them."""
        numbers, _ = self._places(columns)
        self._signs(columns)
        return CodedColumns(len(numbers), self._bins(), tuple(len(group) for group in self.indicators))

    def _signs(self, columns: int) -> tuple[int, ...]:
        return signs_of(self.monotonic_cst, columns, self._places(columns)[0])

    @abstractmethod
    def _start(self, noise_multiplier: float, rows: float, random: RandomSource) -> Any:
        """The linear start, unfitted, of at least this noise multiplier in all, or None if it takes no such noise."""

    @abstractmethod
    def _errors(self, scores: Array, targets: NDArray[Any]) -> Array:
        """Targets less answers, in multiples of `STEP`, each row's from that row alone, shape (rows, outputs)."""

    @abstractmethod
    def _linear_scores(self, learner: Any, rows: NDArray[np.floating]) -> Array:
        """The scores that the trees start from, of rows as waves, shape (rows, outputs)."""

    def _train(
        self, X: Any, known: NDArray[np.bool_], targets: NDArray[Any], counted: Array | None, random: RandomSource
    ) -> None:
        """Fit the linear start and the trees to the rows that are `known`, and keep their weights."""
        width, (trees, depth, share) = number_table(X)[1], self._plan()
        columns, signs = self._coded(width), self._signs(width)
        # a copy: parameters that are set later change the next fit, not this model
        self._encoding = TableEncoding(bounds=copy.deepcopy(self.bounds), indicators=copy.deepcopy(self.indicators))
        self._codes = columns
        rows = public_row_count(self.nominal_rows, len(known), parse_adjacency(self.adjacency))
        left, weights = self._noise_left(rows), ()
        codes = np.empty((len(columns.sizes), np.count_nonzero(known)), dtype=columns.kind)
        start, done = None, 0
        for row in self._encoded_parts(X, known):
            part = slice(done, done + len(row.numbers))
            codes[:, part], done = columns.codes(row), part.stop
            if share:
                found = cosines(row, WAVES)
                if start is None:
                    start = np.empty((codes.shape[1], found.shape[1]), np.float32)  # exact: see `batches`
                start[part] = found
        scores = np.zeros((done, self._outputs))
        self._linear = self._start(left / math.sqrt(share), rows, random) if share else None
        if self._linear is not None and start is not None:
            spent = self._linear.guarantee().gaussian_mu
            left = (1.0 + 2.0**-48) / math.sqrt(left**-2 - spent**2)
            self._linear.fit(start, targets)
            weights = self._linear.weights_
            for begin in range(0, done, CHUNK):
                part = slice(begin, begin + CHUNK)
                scores[part] = self._linear_scores(self._linear, start[part])
            start = None
        rounds = TreeRounds(
            known=columns,
            noise_multiplier=left,
            trees=trees,
            depth=depth,
            learning_rate=float(self.learning_rate),
            rows=rows,
            replace=parse_adjacency(self.adjacency) is Adjacency.REPLACE_ONE,
            signs=signs,
        )
        self.weights_ = (*weights, *rounds.run(CodedRows(codes, targets, counted, scores), self._errors, random))

    def _encoded_parts(self, X: Any, known: NDArray[np.bool_]) -> Iterator[Encoded]:
        """The rows that are `known`, some at a time, for their doubles take eight times the memory of their codes."""
        table = X if type(X) is np.ndarray else doubles(X)
        for begin in range(0, max(len(known), 1), _READ):
            part = slice(begin, begin + _READ)
            yield self.encoded(doubles(table[part])[known[part]])

    def _unit_rows(self, X: Any) -> Array:
        """The cells of the rows: each is read by its public bounds or categories, and none is scaled by the others."""
        number_table(X)
        same_names(self._column_names, X)
        return doubles(X)

    def _tree_scores(self, X: Any) -> Array:
        """The scores of rows by the linear start and all trees, shape (rows, outputs)."""
        cells = self._unit_rows(X)
        *linear, columns, sides, values = self.weights_
        trees = unpack_trees(columns, sides, self._codes)
        found = np.zeros((len(cells), values.shape[2]))
        for begin in range(0, len(cells), CHUNK):
            part = slice(begin, begin + CHUNK)
            row = self._encoding.encoded(cells[part])
            if linear:
                learner = copy.copy(self._linear)
                learner.weights_ = tuple(linear)
                found[part] = self._linear_scores(learner, cosines(row, WAVES))
            codes = self._codes.codes(row)
            for tree, value in zip(trees, values, strict=True):
                found[part] += value[tree.leaves(codes)]
        return found


@dataclass(kw_only=True, eq=False, repr=False)
class BoostedTreesClassification(_BoostedTrees, Classifier):
    """A classifier by private gradient boosting: a linear start, and random trees that learn what it leaves over.

    The linear start is that of `DPSGDClassifier` on waves of the columns (`Cosines`). A tree asks up to `max_depth`
    questions about columns. So the model knows what columns do together, which no linear model on single columns does.

    Each tree is drawn without a look at the labels. Its columns are drawn by what the questions of earlier trees told,
    its thresholds by noisy counts of the columns' bins. A round takes three kinds of noisy sums from the table: the
    clipped gradients of each leaf, the rows of each leaf, and all rows that were clipped. The last decides how the next
    round clips. The whole fit is one Gaussian mechanism (`dpselect.learners.tree_sums`, theorem and proof). The signal
    in a noisy leaf is estimated from all noisy leaves, which costs nothing.

    How `fit` treats the data. It looks at each row alone. A number that is missing has a bin of its own, and numbers
    beyond their bounds are clipped. A row whose label is not in `classes` contributes nothing. It never fails on a
    value, and no row is a table too.

    Args:
        noise_multiplier: one over the Gaussian differential privacy parameter mu of one fit, from 0.05 to 100,000.
        n_estimators: the number of trees. None: 100, 150 or 200, by the number of rows and the noise.
        max_depth: the number of questions of a tree, 1 to 8. None: 4, 5 or 6.
        learning_rate: the share of a tree's estimated values that is added, above 0.
        linear_share: the part of mu squared that pays for the linear start, from 0 (none) to 0.95. None: 0.75, 0.5 or
            0.25, and 0 with `monotonic_cst`, or under replace_one, for which the start has no price.
        max_bins: the number of equal bins between the bounds of a column, 2 to 255.
        monotonic_cst: for each column 1 if answers (the score of the second of two classes) must rise with it, -1 if
            they must fall, 0 for neither and for indicators. It costs no privacy. There is no linear start then.
        bounds: the least and the largest value of every column of numbers, or one such pair for each of them, public.
        indicators: the places of the columns that are indicators of categories, a list for each categorical column.
        classes: the class labels, public, up to 128. None takes them from y, with a `DataDependentClassesWarning`.
        class_weights: what rows of a class count, for classes that are to count more or less than 1; public. Or
            "balanced": one over the noisy number of rows of each class, for 1 % to 10 % of mu squared.
        nominal_rows: a public guess of the number of rows. None takes the number itself, with a
            `PublicRowCountWarning`.
        adjacency: "add_or_remove_one" or "replace_one".
        random: a `RandomSource`, or None for the system's entropy. Each fit draws from it again.

    Attributes:
        classes_, n_features_in_: as in scikit-learn.
        weights_: those of the linear start, if there is one, and three arrays of the trees: the columns they ask about,
            shape (trees, depth), the sides of the columns' codes, packed, and the leaves, shape (trees, leaves,
            classes).
        guarantee_: what the fit promises; the same as `guarantee()`.

    Raises at `fit`, before the data is looked at: `ArgumentError` (`AdjacencyError` for the adjacency) or `TypeError`
    naming a parameter. Afterwards only for a container: shape, complex, or a column whose type says that it holds no
    numbers, such as dates or categories.

    >>> from dpselect.learners import PrivateBoostingClassifier
    >>> from dpselect.randomness import keyed_source
    >>> X = np.random.default_rng(1).uniform(-1, 1, (4000, 2))
    >>> y = (X[:, 0] > 0) ^ (X[:, 1] > 0)
    >>> public = {"classes": [0, 1], "nominal_rows": 4000}
    >>> model = PrivateBoostingClassifier(noise_multiplier=0.5, **public, random=keyed_source(1))
    >>> model.fit(X, y).predict([[0.5, 0.5], [0.5, -0.5], [-0.5, 0.5]])
    array([0, 1, 1])
    """

    classes: Sequence[Any] | NDArray[Any] | None = None
    class_weights: Mapping[Any, float] | Sequence[float] | Literal["balanced"] | None = None

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows X of shape (rows, features) and labels y of shape (rows,)."""
        guarantee, random = self.guarantee(), resolve(self.random)
        self._plan()
        count, columns = self._prepare(X)
        self._coded(columns)
        labels = labels_of(y, count)
        classes = public_classes(self.classes, labels)
        if len(classes) > _MOST_CLASSES:
            raise ArgumentError(f"classes must be at most {_MOST_CLASSES}, got {len(classes)}")
        if self._signs(columns) and len(classes) > 2:
            raise ArgumentError("monotonic_cst must be None for more than two classes, which have no order")
        public = None if is_balanced(self.class_weights) else public_weights(self.class_weights, classes)
        numbers = class_numbers(labels, classes)
        known = numbers >= 0
        self._outputs = len(classes)
        weights = self._private_weights(numbers, known, random) if public is None else public
        self._linear_weights = weights.tolist()
        counted = None if np.all(weights == 1.0) else truncate(weights[numbers[known]])
        self._train(X, known, numbers[known], counted, random)
        self.classes_, self.guarantee_ = classes, guarantee
        return self

    def _scores(self, X: Any) -> Array:
        return self._tree_scores(X)

    def _noise_left(self, rows: float) -> float:
        noise = self._noise()
        return rest_of_noise(noise, share_of_counts(noise, rows)) if is_balanced(self.class_weights) else noise

    def _private_weights(self, labels: NDArray[Any], known: NDArray[np.bool_], random: RandomSource) -> Array:
        adjacency, noise = parse_adjacency(self.adjacency), self._noise()
        rows = public_row_count(self.nominal_rows, len(known), adjacency)
        of_counts = noise / math.sqrt(share_of_counts(noise, rows))
        replaced = adjacency is Adjacency.REPLACE_ONE
        return noisy_weights(labels[known], self._outputs, of_counts, replace=replaced, random=random)

    def _errors(self, scores: Array, targets: NDArray[Any]) -> Array:
        return -softmax_errors(scores, targets)

    def _start(self, noise_multiplier: float, rows: float, random: RandomSource) -> Any:
        weights = self._linear_weights
        classes = list(range(self._outputs))
        learner = DPSGDClassification(classes=classes, class_weights=weights, nominal_rows=rows, random=random)

        def affordable(noise: float) -> bool:
            """Whether its steps, whose number follows from the noise of each, cost no more."""
            mu = learner.set_params(noise_multiplier=noise).guarantee().gaussian_mu
            return mu is not None and mu * noise_multiplier <= 1.0

        found = root_between(affordable, safe=_MOST_NOISE, unsafe=0.01, relative=1e-6)
        return learner.set_params(noise_multiplier=found) if found < _MOST_NOISE else None

    def _linear_scores(self, learner: Any, rows: NDArray[np.floating]) -> Array:
        return learner._scores(rows)


@dataclass(kw_only=True, eq=False, repr=False)
class BoostedTreesRegression(_BoostedTrees, Regressor):
    """A regression by private gradient boosting: a linear start, and random trees that learn what it leaves over.

    As `PrivateBoostingClassifier`, with the square of the error as loss. The linear start is that of
    `PrivateLeastSquares` on waves of the columns. Labels are clipped at their bounds and scaled
    to [-1, 1]. The clip follows the errors of the rounds before, so that it bounds few of them: the fit is of the mean.

    How `fit` treats the data. It looks at each row alone. A number that is missing has a bin of its own, and numbers
    beyond their bounds are clipped. A row whose label is not a number contributes nothing. It never fails on a value,
    and no row is a table too.

    Args:
        label_bounds: the least and the largest label, public; labels beyond are clipped, and so are answers.
        noise_multiplier: one over the Gaussian differential privacy parameter mu of one fit, from 0.05 to 100,000.
        n_estimators: the number of trees. None: 100, 150 or 200, by the number of rows and the noise.
        max_depth: the number of questions of a tree, 1 to 8. None: 4, 5 or 6.
        learning_rate: the share of a tree's estimated values that is added, above 0.
        linear_share: the part of mu squared that pays for the linear start, from 0 (none) to 0.95. None: 0.75, 0.5 or
            0.25, and 0 with `monotonic_cst`, or under replace_one, for which the start has no price.
        max_bins: the number of equal bins between the bounds of a column, 2 to 255.
        monotonic_cst: for each column 1 if answers (the score of the second of two classes) must rise with it, -1 if
            they must fall, 0 for neither and for indicators. It costs no privacy. There is no linear start then.
        bounds: the least and the largest value of every column of numbers, or one such pair for each of them, public.
        indicators: the places of the columns that are indicators of categories, a list for each categorical column.
        nominal_rows: a public guess of the number of rows. None takes the number itself, with a
            `PublicRowCountWarning`.
        adjacency: "add_or_remove_one" or "replace_one".
        random: a `RandomSource`, or None for the system's entropy. Each fit draws from it again.

    Attributes:
        n_features_in_: as in scikit-learn.
        weights_: as those of `PrivateBoostingClassifier`, with one output.
        guarantee_: what the fit promises; the same as `guarantee()`.

    Raises at `fit`, before the data is looked at: `ArgumentError` (`AdjacencyError` for the adjacency) or `TypeError`
    naming a parameter. Afterwards only for a container: shape, complex, or a column whose type says that it holds no
    numbers, such as dates.

    >>> from dpselect.learners import PrivateBoostingRegressor
    >>> from dpselect.randomness import keyed_source
    >>> X = np.random.default_rng(1).uniform(-1, 1, (4000, 2))
    >>> y = 10 * X[:, 0] * X[:, 1]
    >>> model = PrivateBoostingRegressor(
    ...     label_bounds=(-10, 10), noise_multiplier=0.5, nominal_rows=4000, random=keyed_source(1)
    ... )
    >>> (model.fit(X, y).predict([[0.8, 0.8], [0.8, -0.8]]) > 0).tolist()
    [True, False]
    """

    label_bounds: tuple[float, float] | None = None

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows X of shape (rows, features) and numbers y of shape (rows,)."""
        guarantee, bounds, random = self.guarantee(), public_bounds(self.label_bounds), resolve(self.random)
        self._plan()
        count, columns = self._prepare(X)
        self._coded(columns)
        targets = targets_of(y, count, bounds)
        known = ~np.isnan(targets)
        self._train(X, known, targets[known], None, random)
        self._bounds, self.guarantee_ = bounds, guarantee
        return self

    def predict(self, X: Any) -> Array:
        """The expected label of each row, between the bounds, shape (rows,)."""
        return self._in_units(self._tree_scores(X)[:, 0])

    def _errors(self, scores: Array, targets: NDArray[Any]) -> Array:
        return truncate(np.clip(targets[:, None] - scores, -_MOST_ERROR, _MOST_ERROR))

    def _start(self, noise_multiplier: float, rows: float, random: RandomSource) -> Any:
        if noise_multiplier > _MOST_NOISE_OF_LEAST_SQUARES:
            return None
        bounds = (-1.0, 1.0)
        return LeastSquares(label_bounds=bounds, noise_multiplier=noise_multiplier, nominal_rows=rows, random=random)

    def _linear_scores(self, learner: Any, rows: NDArray[np.floating]) -> Array:
        return learner.predict(rows)[:, None]
