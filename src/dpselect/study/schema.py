"""The study file: what is public about a search, checked before a row of data is read."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from dpselect.errors import public_text
from dpselect.privacy import Adjacency
from dpselect.study.schema_data import Clashes, Data, StudyTable
from dpselect.tuning.space import with_law

if TYPE_CHECKING:
    from dpselect.searching import Design

__all__ = [
    "DEFAULT_FIGURES",
    "DEFAULT_METRICS",
    "FILL_IN",
    "Card",
    "Data",
    "Learner",
    "Output",
    "Privacy",
    "PrivateBounds",
    "Refit",
    "Runs",
    "SearchDesign",
    "Study",
    "Test",
    "Validation",
]

DEFAULT_METRICS: Final = {"classification": "accuracy", "regression": "absolute-error"}
DEFAULT_FIGURES: Final = {"classification": "accuracy", "regression": "median-error"}
"""Of a model that is not compared with others: what says something of it at few rows too."""
FILL_IN: Final = "FILL IN"
"""Stands in a draft for what only a person can know."""
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Drawn = Annotated[dict[str, Any], BeforeValidator(lambda given: with_law(given) if isinstance(given, dict) else given)]
Words = Annotated[str, AfterValidator(partial(public_text, "it", longest=1000))]


def _learner(name: str) -> str:
    from dpselect.study.learners import LEARNERS  # not with this module, which the command line loads to print a schema

    LEARNERS[name]
    return name


def _metric(name: str | None) -> str | None:
    from dpselect.study.metrics import METRICS

    if name is not None:
        METRICS[name]
    return name


def _design(name: str) -> str:
    from dpselect.searching.design import DESIGNS

    if name != "auto":
        DESIGNS[name]
    return name


class Privacy(StudyTable):
    """`[privacy]`: the total for the whole search, or a noise multiplier; the adjacency; public row count; a ledger."""

    epsilon: Positive | None = None
    """Epsilon of the whole search; the noise follows from it."""
    delta: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Delta of the whole search."""
    noise_multiplier: Positive | None = None
    """In place of epsilon: the noise of one run of DP-SGD."""
    adjacency: Adjacency = Adjacency.ADD_OR_REMOVE_ONE
    """Which data sets are neighbours."""
    nominal_rows: Annotated[int, Field(ge=1)] | None = None
    """A public figure for the number of rows (with data.person, of those that take part); needed under
    add_or_remove_one."""
    rows_per_person: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """With data.person: at most so many rows of a person take part, and the guarantee is for a person. By default it is
    for a row."""
    ledger: str | None = None
    """A ledger to spend from: a file, relative to the study file, or a postgresql:// URL."""
    budget: Annotated[str, AfterValidator(partial(public_text, "budget"))] | None = None
    """The budget in it."""

    @property
    def per_person(self) -> int:
        """How many rows the guarantee covers together: a person's, or 1."""
        return self.rows_per_person or 1

    def _clashes(self) -> Clashes:
        if self.rows_per_person is not None and self.adjacency is Adjacency.REPLACE_ONE:
            yield (
                "adjacency",
                "rows_per_person needs add_or_remove_one: a person in another's place may have fewer rows, or more",
            )
        if (self.epsilon is None) == (self.noise_multiplier is None):
            yield (
                "epsilon",
                "give exactly one of epsilon (for the whole search) and noise_multiplier (of one run). "
                + ("Write epsilon = 3.0" if self.epsilon is None else "Leave noise_multiplier out"),
            )
        if (self.ledger is None) != (self.budget is None):
            cure = 'budget = "team"' if self.budget is None else 'ledger = "budget.db"'
            yield "ledger", f"ledger (a file or URL) and budget (a name in it) go together. Write {cure}"
        if self.adjacency is Adjacency.ADD_OR_REMOVE_ONE and self.nominal_rows is None:
            yield (
                "nominal_rows",
                "nominal_rows is needed under add_or_remove_one: the true row count is private, so a public number "
                "must set the sampling rate, the delta check and the scale of the score. Write nominal_rows = 1000",
            )
        if self.nominal_rows is not None and self.delta >= 1.0 / self.nominal_rows:
            fits = 10.0 ** -(math.ceil(math.log10(self.nominal_rows)) + 2)
            yield "delta", f"must be below one over nominal_rows. Write delta = {fits:g}"


class PrivateBounds(StudyTable):
    """`[preparation]`: what bounds cost that are bought (`bounds = "private"`); by default what the rule says."""

    epsilon: Positive | None = None
    """Epsilon of all of them together, at the study's delta."""
    share: Annotated[float, Field(gt=0, lt=1)] | None = None
    """In place of epsilon: the share of the total, in squares of the noise that it allows; without delta of epsilon."""

    def _clashes(self) -> Clashes:
        if self.epsilon is not None and self.share is not None:
            yield "share", "give epsilon or share, not both"


class Validation(StudyTable):
    """`[validation]`: how a run is scored.

    By a fraction of the private rows, or by those that train, with noise whose price is part of the guarantee; or by a
    file that the study declares public.
    """

    metric: Annotated[str | None, AfterValidator(_metric)] = None
    """By what runs are compared, and which figure is released; by default accuracy, of a regression the absolute error
    in a search and the median error of one run."""
    data: Literal["private", "training", "public", "none"] = "private"
    """Whether private rows put aside score a run, all that train, or a public file; of one run, none need."""
    fraction: Annotated[float, Field(gt=0, lt=1)] = 0.2
    """The share of the private rows that validates."""
    source: str | None = None
    """The public file, with data = "public"."""
    score_epsilon: Positive | None = None
    """Epsilon of one score; by default what the total allows."""
    release_score: bool = True
    """Release the winner's score with it: its noise is part of the total already, so that this costs nothing more."""

    def _clashes(self) -> Clashes:
        if (self.data == "public") != (self.source is not None):
            yield "source", 'give source exactly when data = "public"'
        if self.data == "training" and "fraction" in self.model_fields_set:
            yield "fraction", 'goes with data = "private": here all rows train and score'
        if self.data == "training" and self.release_score and "release_score" in self.model_fields_set:
            yield "release_score", "of rows that trained a score is too good, so that it is not released"


class Test(StudyTable):
    """`[test]`: public rows on which the released model is tried. They take no part in the search and cost nothing."""

    __test__ = False
    source: str
    """Where they are, as in `[data]`: a table with the label and the feature columns."""


class Learner(StudyTable):
    """`[learner]`: its name and the parameters that every run shares; any further key is a parameter."""

    model_config = ConfigDict(extra="allow", frozen=True)
    name: Annotated[str, AfterValidator(_learner)] = "dp-sgd"
    """Which learner."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The shared parameters."""
        return dict(self.model_extra or {})


class Runs(StudyTable):
    """`[runs]`: where trials run, and what hides the number of runs or limits one."""

    executor: Literal["inline", "process", "loky", "dask", "ray"] | None = None
    """Where trials run. By default a search runs in processes of its own, and one run in this process."""
    workers: Annotated[int, Field(ge=1, le=4096)] = 2
    """How many at a time."""
    address: str | None = None
    """Of a running Dask or Ray scheduler."""
    resources: dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = Field(default_factory=dict)
    """What one trial needs on a Dask or Ray cluster."""
    constant: bool = False
    """Always execute the distribution's limit, so that the number of runs does not show in running time."""
    pad_seconds: Positive | None = None
    """Release at a whole multiple of this public duration."""
    limit_seconds: Positive | None = None
    """Time of one trial, after which it counts as failed."""
    limit_bytes: Annotated[int, Field(ge=1)] | None = None
    """Memory of one trial, beyond which it counts as failed."""
    failure_is_private: bool = False
    """Declares that the price covers whether a trial fails; limits need it."""

    def _clashes(self) -> Clashes:
        if self.executor not in ("dask", "ray") and (self.address is not None or self.resources):
            yield "executor", 'address and resources go with executor = "dask" or "ray"'
        if self.executor == "dask" and self.address is None:
            yield "address", 'executor = "dask" needs the address of a scheduler, such as "tcp://127.0.0.1:8786"'
        if self.executor in ("loky", "dask", "ray") and self.workers < 2:
            yield "workers", f"executor = {self.executor!r} needs at least 2 workers"
        if (self.limit_seconds or self.limit_bytes) and not self.failure_is_private:
            yield (
                "failure_is_private",
                "limit_seconds and limit_bytes need failure_is_private = true: no noise protects a failure",
            )


class Card(StudyTable):
    """`[card]`: what the report and `model-card.md` say to people, in words of anyone who makes the model; public."""

    purpose: Words | None = None
    """What the model is for."""
    not_for: Words | None = None
    """What it must not be used for."""
    license: Words | None = None
    """Under which licence it is given on, as an identifier such as "cc-by-4.0"."""


class SearchDesign(StudyTable):
    """`[search]`: whether one model is trained, the best of a few unlike ones, or the best of a random number."""

    design: Annotated[str, AfterValidator(_design)] = "auto"
    """One run of settings that are given or follow from a rule; a portfolio of the candidates that the space lists,
    each tried once; a search of the space in one stage, or in two, of which the second is one run on all rows. auto is
    what the rule of docs/reference/study-file.md chooses from public facts."""

    @property
    def kind(self) -> type[Design]:
        """The class of the design; before the rule has chosen one, that of a search in one stage."""
        from dpselect.searching.design import DESIGNS

        return DESIGNS["one-stage" if self.design == "auto" else self.design]


class Refit(StudyTable):
    """`[refit]`: the second stage of a search in two, one run on all rows with the settings that won."""

    share: Literal["auto"] | Annotated[float, Field(gt=0, lt=1)] = "auto"
    """The share of epsilon that is kept for it; auto is 0.7."""


class Output(StudyTable):
    """`[output]`: the folder of the release and where the key of the sealed store is."""

    folder: str
    """Where the release goes, relative to the working directory; must not hold one."""
    key_variable: str | None = None
    """An environment variable with the key of the sealed store (32 bytes in base64)."""


class Study(StudyTable):
    """A parsed study. Everything in it is public.

    Args:
        name: the name of the study, on the release and in the ledger.
        data: where the rows are, and public facts about the columns.
        privacy: the total, the adjacency and the budget.
        preparation: the cost of bounds that are estimated privately.
        validation: how a run is scored.
        test: public rows on which the released model is tried. None: there are none.
        learner: the learner, with the parameters that every run shares.
        search: the design: one run, or a search.
        space: the distribution of every searched parameter, by name. Empty: none is searched.
        repetitions: the distribution of the number of runs of a search. Empty: none is named.
        refit: the second stage of a search in two.
        runs: where trials run, and their limits.
        card: what the report says to people.
        output: where the release goes.
    """

    name: Annotated[str, AfterValidator(partial(public_text, "name"))] = "study"
    """Its name, on the release and in the ledger."""
    data: Data
    """Where the rows are, and public facts about the columns."""
    privacy: Privacy
    """The total, the adjacency, the budget."""
    preparation: PrivateBounds = PrivateBounds()
    """What bounds cost that are bought."""
    validation: Validation = Validation()
    """How a run is scored."""
    test: Test | None = None
    """Public rows on which the released model is tried."""
    learner: Learner = Learner()
    """What is trained, with the parameters that every run shares."""
    search: SearchDesign = SearchDesign()
    """One run, or a search."""
    space: dict[str, Drawn] = Field(default_factory=dict)
    """What each run of a search draws: the distribution of every searched parameter."""
    repetitions: Drawn = Field(default_factory=dict)
    """The distribution of the number of runs of a search."""
    refit: Refit = Refit()
    """The second stage of a search in two."""
    runs: Runs = Runs()
    """Where trials run, and their limits."""
    card: Card = Card()
    """What the report says to people."""
    output: Output
    """Where the release goes."""

    def _clashes(self) -> Clashes:
        if (self.data.person is None) != (self.privacy.rows_per_person is None):
            given, other = ("data.person", "privacy.rows_per_person")[:: 1 if self.data.person is not None else -1]
            yield (
                given,
                f"give {other} too: data.person is the column that says whose row it is, privacy.rows_per_person how "
                "many rows of a person take part at most",
            )

    @property
    def person(self) -> dict[str, Any] | None:
        """The column of persons and the most rows of each, JSON-able. None if the guarantee is for rows."""
        rows = self.privacy.rows_per_person
        return None if rows is None else {"column": self.data.person, "rows": rows}

    @property
    def metric(self) -> str:
        """The name of the metric by which runs are compared."""
        return self.validation.metric or DEFAULT_METRICS[self.data.task]
