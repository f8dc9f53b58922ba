"""Random search with the interface of scikit-learn's searches and a guarantee for all of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from os import PathLike
from typing import Any, Self

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import validate_data

from dpselect.errors import ArgumentError, integer
from dpselect.integrations.sklearn.designs import PortfolioRun, agreement_of, one_by_one
from dpselect.integrations.sklearn.distributions import describe_value
from dpselect.integrations.sklearn.executors import executor_of
from dpselect.integrations.sklearn.free_steps import refuse_too_many_rows, usable_rows
from dpselect.integrations.sklearn.groups import GroupedRows, expect_groups, grouped_rows, parts_of
from dpselect.integrations.sklearn.guarantee import Base, private_steps
from dpselect.integrations.sklearn.plan import Request, SearchPlan, make_search_plan, summary
from dpselect.integrations.sklearn.rehearsal import draws_by_itself, rehearsal_rows, rehearse, stand_ins
from dpselect.integrations.sklearn.released_estimator import ReleasedEstimator
from dpselect.integrations.sklearn.request import expect_estimator, request_of
from dpselect.integrations.sklearn.rows import (
    nominal_rows,
    public_rows,
    read_labels,
    refuse_columns_of_other_types,
    refuse_engines,
    sliceable,
)
from dpselect.integrations.sklearn.scaling import refuse_unused_bounds, warn_if_unscaled, with_declared_scale
from dpselect.integrations.sklearn.scoring import PublicScores, Scoring
from dpselect.integrations.sklearn.several_scores import SeveralScores, scorings_of
from dpselect.integrations.sklearn.spending import whole_price
from dpselect.integrations.sklearn.trial import SearchRun, TrialRows
from dpselect.learners.rows import column_names, table_shape
from dpselect.privacy import Adjacency, Guarantee, Spender
from dpselect.privacy.paying import asked_at
from dpselect.randomness import RandomSource
from dpselect.randomness.process_start import refuse_while_starting
from dpselect.repetitions import Repetitions
from dpselect.searching.design import DESIGNS
from dpselect.searching.stages import SHARE
from dpselect.study.row_parts import SPLIT
from dpselect.tuning import Execution, Executor, SearchStore, Space, TuneResult, tune
from dpselect.tuning.trial import TwoStageObjective

__all__ = ["PrivateSearchCV"]

_LEAST_ROOM, _ROOM_WITHOUT_REHEARSAL = 1 << 16, 1 << 20


@dataclass(eq=False, repr=False)
class PrivateSearchCV(ReleasedEstimator, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Random search over a private estimator's parameters that releases the best run's model and nothing else.

    It draws a secret number of runs from a distribution. Each run draws its own parameters, trains, and is scored with
    noise on rows that it was not trained on. The model of the best run is `best_estimator_` (Papernot and Steinke,
    "Hyperparameter tuning with Renyi differential privacy", 2022, section 3.3). `guarantee_` covers all of it, and is
    known before there is data: `plan()`.

    Privacy of the estimator. It is a private learner (`dpselect.learners`, some of diffprivlib, anything with a
    data-free method `guarantee()`), or a pipeline that ends in one. Other steps must be private too, data-independent,
    or declared public: `PublicTransformer(scaler.fit(public_rows))`. Data-independent steps are Normalizer, Binarizer,
    PolynomialFeatures, an encoder whose categories are all listed and that ignores others, and a SimpleImputer with a
    constant that keeps empty columns.

    Rows. By default a public hash puts about a fifth of the rows aside for scoring: of each row's content under
    add_or_remove_one (its label included), of its position under replace_one. A row then either trains or scores, and
    the search costs it the larger of the two prices. For dpselect's learners a cell that is missing, infinite or not a
    number counts as zero. A row whose label is none of the classes trains nothing and counts as answered wrongly. Check
    the labels' spelling. Labels whose type shows that none can be a class are refused. So are columns of dates,
    durations and categories that dpselect's learners or maps get: their type decides, no cell. A row that a learner of
    others, or a step in front, would fail on trains nothing either. Under replace_one a synthetic row trains in its
    place.

    Args:
        estimator: the estimator to copy, with everything set that is not searched and `random`, `random_state` None.
        param_distributions: names to lists (each value equally likely) or distributions (frozen SciPy ones, anything
            with `rvs`, those of `dpselect.tuning`); or a list of such dictionaries. Fixed without looking at the data
            (you must ensure this). Parameters that enter the guarantee, such as an epsilon, must come from lists:
            a run is then priced as a mixture.
        design: "one-stage" is the search above. "one-run": the estimator as it is, once, on all rows, at the total
            (`param_distributions` is empty). "portfolio": two to four combinations of lists, each tried once on all
            rows at a small share of the total; the one that fits these rows best, by the exponential mechanism, is
            trained again with nearly all of the total; those listed first are the default, which has a head start. List
            models of about equally many weights: one with many more fits the rows that train it better than others.
            "two-stage": a search with 30 % of epsilon, then one run on all rows with a noise of its own; a
            `learning_rate` that was searched changes as the learner's rule does. The last two need `epsilon`, and
            release no score.
        refit_share: of two stages, the share of epsilon for the second.
        epsilon, delta: the total for everything that is released. With `repetitions` the noise of the private steps is
            set for it: `noise_multiplier`, or else `epsilon`, of the only private step; of several, all by one factor.
            Without, the estimator's noise stands and the longest harmonic law is taken.
        repetitions: the law of the number of runs, from `dpselect.repetitions`.
        max_runs: the largest limit of the harmonic law that `epsilon` alone may choose.
        base: what one fit of the estimator (of a pipeline: of its last step) promises, where it cannot say so itself; a
            `Guarantee` that holds regardless of the searched parameters, or a function from the estimator to one. The
            caller must ensure it, and that its noise comes from its parameter `random` or `random_state`, which each
            run sets; where `random_state` takes integers only it stays None, and must then mean the system's entropy.
        adjacency: "add_or_remove_one" or "replace_one"; set on private steps that have such a parameter. None: theirs.
        rows_per_group: the most rows of a person that take part, public, with `groups` of `fit`. The guarantee and
            `score_epsilon` are then for persons. It needs add_or_remove_one.
        scale: "declared" puts a `CenteredScale` of `bounds` in front of a dpselect learner: each column then counts by
            its place between its public bounds. Encoders with listed categories may stand in front, in a
            `ColumnTransformer`. None: the columns as they are, with a warning if nothing else scales them.
        bounds: the public bounds of X's columns: one pair, a list or array with a pair for each (None for an encoded
            one), or a dictionary from columns to pairs.
        nominal_rows: a public figure for the number of rows, needed for learners that have such a parameter. None: X's
            own, with a warning; refused where the price follows from it, as for `DPSGDClassifier` without `steps`.
        classes: the labels, public. None: the learner's; or those in y, with a `DataDependentClassesWarning`.
        scoring: on private rows "accuracy" (the default of classifiers), "balanced_accuracy", "neg_log_loss" (each
            row's at most ln 100) or "roc_auc"; with an estimator that has label_bounds "neg_mean_absolute_error",
            "neg_mean_squared_error" or "r2"; or a `RowScore`. On public rows, any. Several, as a list of names or a
            dictionary, need `release_score`: the one that `refit` names decides, or else the first, and the others are
            figures of the run that wins. Half of `score_epsilon` is for the one that decides, the rest for the others.
        score_epsilon: the epsilon of one run's score. None: what costs a scoring row as much as a training row; where
            one row pays for both, a tenth of the price.
        public_validation: (X, y) that are public: they score the runs, without noise, and all private rows train.
        validation_fraction: the share of the rows that is put aside. None: all rows train, and score what they trained,
            so that each pays for both.
        cv: None, or a number of folds, at least 2. A run then is one model for each fold and one noisy score of
            them all; a row is charged for cv - 1 models and the score. `best_estimator_` averages the models.
        refit: train a further model with the winner's parameters on all rows, and release it in place of the run's own.
            It is charged on top. The name of a score does the same.
        release_score: set `best_score_`, which costs nothing more.
        n_jobs: worker processes, as in scikit-learn (loky, or the Dask or Ray of a `joblib.parallel_config`); or
            `executor`, any of dpselect's. The result is the same.
        ledger: charged for the total; at `delta` where that is above 0.
        constant_runs, store, resume, key_variable, payload_bytes, random: see `dpselect.tuning.tune`. With
            `store`, `release(result)` must write the result: it is called before the store's key is destroyed.
        rehearse: run first on synthetic rows with the columns' names and types, so that wrong arguments are found
        before
            anything is charged. Or a table of public rows with the columns of X, for text that made-up words, numbers
            and dates do not stand for. False: not at all; then nothing finds steps and scores that mix rows.
        name: label in the ledger, and salt of the split.
        verbose: 1 writes what is public (law, price, the plan's note) to standard error. Nothing is written run by run.

    Attributes:
        best_estimator_, best_params_: the winner's; None when no run succeeded or none was made.
        best_score_: with `release_score`: the winner's score, noise included.
        best_score_interval_: beside it, of one model and its private scoring rows (none of `cv`, `refit` and `groups`):
            both ends of where the score is for new rows like them, with probability 0.95; None for an end without a
            bound. It counts in the noise, the rows, and that the winner is the best of many. It costs nothing more.
        best_scores_, best_score_intervals_: both for each of several scores, by name; each interval holds by itself. On
            public rows the scores are those of the released model.
        scorer_, multimetric_: as in scikit-learn.
        guarantee_: what `fit` promises for everything here.
        repetitions_, noise_, score_epsilon_: the law and the noises that were used, all public.
        receipt_: from the ledger. replayable_: see `Release`.
        classes_, n_features_in_, feature_names_in_: as in scikit-learn.

    There is no `cv_results_`. `predict` is free. `score` on private rows has no noise and is not in the guarantee.

    >>> from dpselect.learners import OutputPerturbationClassifier
    >>> from dpselect.randomness import keyed_source
    >>> from dpselect.repetitions import Harmonic
    >>> from scipy.stats import loguniform
    >>> search = PrivateSearchCV(
    ...     OutputPerturbationClassifier(), {"regularization": loguniform(1e-3, 1.0)}, epsilon=2.0,
    ...     repetitions=Harmonic(limit=8), nominal_rows=400, classes=[0, 1], random=keyed_source(1))
    >>> X = np.repeat([[0.9, 0.1], [-0.9, 0.2]], 200, axis=0) + 0.001 * np.arange(400)[:, None]
    >>> search.fit(X, np.repeat([1, 0], 200)).predict([[0.9, 0.1], [-0.9, 0.2]]).tolist()
    [1, 0]
    >>> search.guarantee_.epsilon(delta=0) <= 2.0
    True
    """

    estimator: Any
    param_distributions: Any
    _: KW_ONLY
    design: str = "one-stage"
    refit_share: float = SHARE
    epsilon: float | None = None
    delta: float = 0.0
    repetitions: Repetitions | None = None
    max_runs: int = 100
    base: Base | None = None
    adjacency: Adjacency | str | None = None
    rows_per_group: int | None = None
    scale: str | None = None
    bounds: Any = None
    nominal_rows: float | None = None
    classes: Sequence[Any] | NDArray[Any] | None = None
    scoring: Any = None
    score_epsilon: float | None = None
    public_validation: tuple[Any, Any] | None = None
    validation_fraction: float | None = 0.2
    cv: int | None = None
    refit: bool | str = False
    release_score: bool = False
    n_jobs: int | None = None
    executor: Executor | None = None
    constant_runs: bool = False
    ledger: Spender | None = None
    store: str | PathLike[str] | None = None
    resume: bool = False
    key_variable: str | None = None
    release: Callable[[TuneResult], None] | None = None
    payload_bytes: int | None = None
    rehearse: Any = True
    name: str = "search"
    random: RandomSource | None = None
    verbose: int = 0

    def plan(self, columns: int | None = None) -> SearchPlan:
        """The distribution, noise and price of one `fit`, from the parameters alone. Its `note` is about one run.

        `columns` is the number of columns of X, for estimators whose guarantee depends on it. Raises as `fit` does.
        """
        return self._planned(request_of(self, columns))

    def guarantee(self, columns: int | None = None) -> Guarantee:
        """The guarantee of one `fit`, from the parameters alone, before there is data."""
        return self.plan(columns).guarantee

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, **params: Any) -> Self:
        """Search on rows X, shape (rows, features), with labels y, shape (rows,).

        `groups`, shape (rows,), is the person of each row. Of each, `rows_per_group` rows take part, chosen by a hash
        of that person's rows. All of them train, or all of them score. Rows without a person take no part.

        `params` go to the estimator's `fit` (with metadata routing, as it asks for them). Those with one value a row
        are cut to its rows. All `params` are allowed only with `base`, which must hold for them. The price is reserved
        before anything is drawn from the rows.

        Raises `ArgumentError`, `TypeError`, `AdjacencyError` for arguments, `BudgetError` and `StudyError` as `tune`
        does. Nothing is raised because of what the rows hold: a run that fails counts as the worst.
        """
        refuse_while_starting("PrivateSearchCV.fit")
        expect_estimator(self.estimator)
        refuse_unused_bounds(self.scale, self.bounds)
        expect_groups(groups, self.rows_per_group)
        refuse_engines(X, y, groups, self.public_validation)
        if self.scale is not None:
            return self._fit_scaled(X, y, {"groups": groups, **params})
        refuse_columns_of_other_types(self.estimator, X)
        count, columns = table_shape(X)
        validate_data(self, X, skip_check_array=True)
        self._column_names = column_names(X)
        beside = self._routed(params)
        request = request_of(self, columns)
        plan = self._planned(request)
        adjacency = plan.guarantee.adjacency
        steps = private_steps(clone(self.estimator), self.base, columns=columns)
        labels = read_labels(y, count, steps, request.settings.classes, is_classifier(self.estimator))
        given = GroupedRows(sliceable(X), y, labels, beside)
        given = grouped_rows(given, groups, most=self.rows_per_group, salt=self.name)
        X, y, labels, beside = given.X, given.y, given.labels, given.beside
        count, classes = len(labels.scored), labels.classes
        settings = replace(request.settings, noise=plan.noise, classes=None if classes is None else classes.tolist())
        public = public_rows(self.public_validation, columns)
        nominal = nominal_rows(self.nominal_rows, count, adjacency, steps, used=self.release_score)
        if self.nominal_rows is None and nominal > 1.0:
            # the number of rows in one part is not what was declared public
            settings = replace(settings, nominal_rows=max(1.0, nominal * request.trained))
        refuse_too_many_rows(self.estimator, request.space, settings, count)
        warn_if_unscaled(self.estimator, request.searched_names, X)
        public_like = None if isinstance(self.rehearse, bool) else self.rehearse
        tables = rehearsal_rows(X, classes, self.estimator, beside, public_like)
        own_entropy = draws_by_itself(self.estimator, request.space, settings, tables)
        settings = replace(settings, own_entropy=own_entropy)
        scoring = self._scoring_of(plan, request, nominal, public, classes)
        size = None
        if self.rehearse is not False:
            space = one_by_one(plan.candidates) if plan.candidates else request.space
            size = rehearse(self.estimator, space, settings, scoring, tables)
        room = self._room(size, request.folds or 1, scoring)
        takes = partial(usable_rows, self.estimator, request.space, base=self.base, columns=columns)
        rows = TrialRows(X, labels.scored, beside, labels.taught, persons=given.joined).with_usable(
            labels.usable & takes(X), takes, stand_ins(X, tables) if adjacency is Adjacency.REPLACE_ONE else None
        )
        # of another model, of several that are averaged, or by rows that are not independent nothing is proved
        proved = not (request.folds or request.refit or request.grouped)
        run: SearchRun | PortfolioRun
        if plan.portfolio is not None and isinstance(scoring, Scoring):
            run = PortfolioRun(self.estimator, plan.candidates, settings, plan.portfolio, rows, scoring)
        else:
            run = SearchRun(
                estimator=self.estimator,
                settings=settings,
                rows=rows,
                parts=parts_of(
                    given,
                    adjacency=adjacency,
                    salt=self.name,
                    fraction=None if request.public_scoring else self.validation_fraction,
                    own_scores=request.own_scores,
                    folds=request.folds,
                ),
                scoring=scoring,
                shows_sums=not public and self.release_score and (proved or isinstance(scoring, SeveralScores)),
            )
        if self.verbose:
            print(summary(plan, self.delta, settings.classes), file=sys.stderr)
        result, sums = self._search(run, plan, request, room)
        self._set_outcome(plan, request, result)
        if sums is not None and isinstance(scoring, (Scoring, SeveralScores)):
            self.__dict__.update(scoring.shown(sums, runs=plan.repetitions.mean, proved=proved))
        elif isinstance(scoring, PublicScores) and self.multimetric_ and result.value is not None:
            self.best_scores_ = scoring.all(result.value)
        return self

    def _scoring_of(
        self, plan: SearchPlan, request: Request, nominal: float, public: Any, classes: NDArray[Any] | None
    ) -> Scoring | SeveralScores | PublicScores | None:
        """The score of a run: of rows with noise, of public rows, or the agreement of a portfolio."""
        if plan.portfolio is not None:
            return agreement_of(self.estimator, self.scoring, classes)
        if not DESIGNS[self.design].draws:
            return None
        return scorings_of(
            self.estimator,
            request.scoring,
            public=public,
            noise=request.score_noise(plan.score_epsilon, plan.guarantee.adjacency),
            rows=max(1.0, nominal * (1.0 if request.models is not None else self.validation_fraction or 1.0)),
            classes=classes,
        )

    def _fit_scaled(self, X: Any, y: Any, params: dict[str, Any]) -> Self:
        """Search with the declared scale in front of the learner, and take over what was found."""
        searched = request_of(self, None).searched_names
        scaled = with_declared_scale(self.estimator, X, self.bounds, searched)
        release = self.release
        inner = clone(self).set_params(
            estimator=scaled.estimator,
            param_distributions=scaled.inside(self.param_distributions),
            scale=None,
            bounds=None,
            release=None if release is None else lambda result: release(scaled.result(result)),
        )
        inner.fit(X, y, **params)
        self._forget_scores()
        found = {name: value for name, value in vars(inner).items() if name.endswith("_") or name in _KEPT}
        self.__dict__.update(found, best_params_=scaled.outside(inner.best_params_))
        return self

    def _search(
        self, run: SearchRun | PortfolioRun, plan: SearchPlan, request: Request, room: int
    ) -> tuple[TuneResult, NDArray[np.int64] | None]:
        """The result, its value being the estimator, and the noisy sums behind its score where they are shown."""
        final = replace(run.settings, nominal_rows=request.final_rows, noise=plan.final_noise or plan.noise)

        def finished(result: TuneResult) -> TuneResult:
            params, value = result.params, None
            if result.value is not None:
                params, value = run.released(result.value, result.params or {}, final)
            return replace(result, params=params, value=value, guarantee=plan.guarantee)

        kept: list[TuneResult] = []

        def write(result: TuneResult) -> None:
            kept.append(finished(result))
            if self.release is not None:
                self.release(kept[0])

        ledger = asked_at(self.ledger, self.delta)
        if ledger is not None and plan.final is not None:
            ledger = whole_price(ledger, plan.guarantee)
        result = tune(
            TwoStageObjective(run.first, partial(run.last, final))
            if isinstance(run, SearchRun) and request.refit
            else run,
            space=Space({}) if plan.candidates else request.space,
            base=plan.parts,
            repetitions=plan.repetitions,
            store=SearchStore(
                path=self.store,
                resume=self.resume,
                key_variable=self.key_variable,
                payload_bytes=room,
                fingerprint=self._fingerprint(),
                rows_digest=None if self.store is None else run.rows.digest(),
            ),
            executor=self.executor or executor_of(self.n_jobs),
            ledger=ledger,
            label=self.name,
            random=self.random,
            release=write,
            execution=Execution(constant_runs=self.constant_runs),
            rehearse=False,  # `fit` has done so
            declare_score=self.release_score,
        )
        # a search resumed after its release was written does not write it again
        sums = result.value[1] if run.shows_sums and result.value is not None else None
        return (kept[0] if kept else finished(result)), sums

    def _planned(self, request: Request) -> SearchPlan:
        return make_search_plan(request, DESIGNS[self.design].of(self.refit_share))

    def _room(self, size: int | None, models: int, scoring: Scoring | SeveralScores | PublicScores | None) -> int:
        """Public room for one run's value: so many models, whose size a rehearsal may have shown."""
        if self.payload_bytes is not None:
            return integer("payload_bytes", self.payload_bytes, at_least=1)
        sums = scoring.room if isinstance(scoring, (Scoring, SeveralScores)) else 0
        return sums + (_ROOM_WITHOUT_REHEARSAL if size is None else max(_LEAST_ROOM, 2 * models * size))

    def _routed(self, params: dict[str, Any]) -> dict[str, Any]:
        if not params:
            return {}
        if self.base is None:
            raise ArgumentError(
                f"{', '.join(sorted(params))} for fit: a weight changes what one row can do, and the estimator's "
                "guarantee does not say that it holds with it; declare what one such fit promises by base="
            )
        if sklearn.get_config().get("enable_metadata_routing", False):
            return dict(process_routing(self, "fit", **params).estimator.fit)
        return params

    def get_metadata_routing(self) -> MetadataRouter:
        """The estimator's `fit` gets what it asks for."""
        return MetadataRouter(owner=self).add(
            estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit")
        )

    def _fingerprint(self) -> str:
        if self.store is None:
            return ""
        given = {name: value for name, value in self.get_params(deep=False).items() if name not in _NOT_THE_STUDY}
        return str({name: describe_value(value) for name, value in sorted(given.items())} | {"split": SPLIT})

    def _set_outcome(self, plan: SearchPlan, request: Request, result: TuneResult) -> None:
        self.best_estimator_ = result.value
        self.best_params_ = None if result.params is None else dict(result.params)
        self.guarantee_ = result.guarantee
        self.repetitions_ = plan.repetitions
        self.noise_ = plan.noise
        self.score_epsilon_ = plan.score_epsilon
        self.receipt_ = result.receipt
        self.replayable_ = result.replayable
        self.multimetric_, self._scores = isinstance(request.scoring, Mapping), request.scoring
        self._forget_scores()
        if self.release_score and result.score is not None:
            self.best_score_ = result.score


_KEPT = ("_column_names", "_scores")
_NOT_THE_STUDY = {
    *("param_distributions", "repetitions"),  # whose own descriptions `tune` compares
    *("random", "ledger", "executor", "n_jobs", "store", "resume", "release", "key_variable", "rehearse", "verbose"),
}
