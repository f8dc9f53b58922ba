"""One design through `tune`, a study and `PrivateSearchCV`: the same prices, and from the same key the same release.

A run of each door trains by one stream and scores by another. The doors name the streams of a last run differently, so
that a search of two stages is compared with what the design says, run under the names of each door.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from dpselect.errors import ArgumentError, BudgetError, StudyError
from dpselect.integrations.sklearn import PrivateSearchCV
from dpselect.learners import OutputPerturbationClassifier
from dpselect.mechanisms import NoisyCount
from dpselect.privacy import compose, pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed, Harmonic
from dpselect.searching.design import DESIGNS, DesignPrice, design_names
from dpselect.searching.stages import FirstStage
from dpselect.study import load_model, parse_study, run_study
from dpselect.study.load import open_rows
from dpselect.study.metrics import METRICS, ScoreNoise
from dpselect.study.price import price
from dpselect.study.validate import StudyPaths, validate
from dpselect.tuning import Categorical, PortfolioDesign, TwoStageDesign, tune
from dpselect.tuning.trial import TwoStageObjective
from tests.registered import only_in_this_file

pytestmark = pytest.mark.filterwarnings("ignore:nothing scales the columns")

ROWS, TOTAL, CHOICES = 60, 8.0, [0.01, 0.1, 1.0]
LAW = Harmonic(limit=3)


@DESIGNS.register("even-stages")
class EvenStages(DESIGNS["two-stage"]):
    """A design from outside of the package: half of epsilon for each of two stages, for any share."""

    @classmethod
    def of(cls, share=None):
        return cls(share=0.5)


@DESIGNS.register("careless")
class Careless(DESIGNS["one-run"]):
    """Finds the noise for half of what its runs cost."""

    def price(self, request):
        found = super().price(request)
        return replace(found, parts=tuple(compose(part, part) for part in found.parts))


@DESIGNS.register("two-runs")
class TwoRuns(DESIGNS["one-stage"]):
    """Two runs, no matter what is asked for."""

    def price(self, request):
        return request.searched(Fixed(count=2), 1.0)


registered = only_in_this_file((DESIGNS, "even-stages"), (DESIGNS, "careless"), (DESIGNS, "two-runs"))


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch, state, no_page):
    monkeypatch.chdir(tmp_path)
    drawn = keyed_source("rows").uniform((ROWS, 2)).round(3)
    lines = [f"{a},{b},{int(a > b)},{row}" for row, (a, b) in enumerate(drawn)]
    Path("rows.csv").write_text("\n".join(["a,b,label,row", *lines]) + "\n")


def parsed(design):
    return parse_study(
        {
            "data": {"source": "rows.csv", "label": "label", "classes": [0, 1], "bounds": [0, 1], "row_key": "row"},
            "privacy": {"epsilon": TOTAL, "nominal_rows": ROWS},
            "learner": {"name": "output-perturbation"},
            "search": {"design": design},
            "runs": {"executor": "inline"},
            "output": {"folder": "out"},
            "space": {name: {"law": "categorical", "choices": listed} for name, listed in space(design).items()},
            **({"validation": {"data": "training"}, "repetitions": LAW.describe()} if DESIGNS[design].draws else {}),
        }
    )


def space(design):
    kind = DESIGNS[design]
    return {"regularization": CHOICES[: 2 if kind.tries else 3]} if kind.draws or kind.tries else {}


class Doors:
    """One study, its rows, and what a caller makes of them without it."""

    def __init__(self, design):
        self.design = design
        self.study = parsed(design)
        self.priced = price(validate(self.study, StudyPaths(Path(), Path("out"))))
        rows = open_rows(self.priced).rows
        self.X, self.y = rows.features, rows.labels
        self.metric = METRICS["accuracy"](self.study.data.target)

    def released(self):
        """The settings and the weights that the study releases."""
        found = run_study(self.study, base_folder=Path(), random=keyed_source(3)).release
        return found["parameters"], load_model(Path("out/model.npz")).estimator.weights_

    def search(self):
        """The same by scikit-learn."""
        return PrivateSearchCV(
            OutputPerturbationClassifier(),
            space(self.design),
            design=self.design,
            epsilon=TOTAL,
            nominal_rows=ROWS,
            classes=[0, 1],
            repetitions=LAW if DESIGNS[self.design].draws else None,
            validation_fraction=None if DESIGNS[self.design].draws else 0.2,
            random=keyed_source(3),
            rehearse=False,
        )

    def model(self, params, random, noise):
        made = OutputPerturbationClassifier(
            epsilon=1.0 / noise, nominal_rows=ROWS, classes=[0, 1], random=random, **params
        )
        return made.fit(self.X, self.y)

    def run(self, params, random, noise):
        """A run as both doors make it: a model, and a noisy score by the rows that train."""
        model = self.model(params, random.spawn("train"), noise)
        score = ScoreNoise(self.priced.price.score_epsilon, self.study.privacy.adjacency)
        cells = self.metric.noisy(self.metric.cells(model, self.X, self.y), score, random.spawn("score"))
        return self.metric.score(cells, rows=float(ROWS), noise=score), model

    def base(self, noise):
        score = self.priced.price.score_epsilon
        fit = pure_dp(epsilon=1.0 / noise)
        return fit if score is None else compose(fit, NoisyCount(epsilon=score).guarantee)

    def tune(self, objective, design, **options):
        drawn = {name: Categorical(listed) for name, listed in space(self.design).items()}
        given = {"space": drawn, "base": self.base, "epsilon": TOTAL, "delta": 0.0, "random": keyed_source(3)}
        return tune(objective, design=design, **{**given, **options})


def same(weights, others):
    return len(weights) == len(others) and all(np.array_equal(a, b) for a, b in zip(weights, others, strict=True))


@pytest.mark.full
def test_one_run():
    doors = Doors("one-run")
    _, weights = doors.released()
    search = doors.search().fit(doors.X, doors.y)

    def run(params, random, noise):
        return 0.0, doors.model(params, random.spawn("train"), noise)

    tuned = doors.tune(run, "one-run")
    assert search.noise_ == doors.priced.price.noise
    assert same(search.best_estimator_.weights_, weights)
    assert same(tuned.value.weights_, weights)


@pytest.mark.full
def test_one_stage():
    doors = Doors("one-stage")
    params, weights = doors.released()
    search, noise = doors.search().fit(doors.X, doors.y), doors.priced.price.noise

    def run(params, random):
        return doors.run(params, random, noise)

    tuned = doors.tune(run, "one-stage", base=doors.base(noise), repetitions=LAW)
    assert search.noise_ == noise
    assert search.score_epsilon_ == doors.priced.price.score_epsilon
    assert search.best_params_ == tuned.params == params
    assert same(search.best_estimator_.weights_, weights)
    assert same(tuned.value.weights_, weights)


@pytest.mark.full
def test_a_portfolio():
    doors = Doors("portfolio")
    params, weights = doors.released()
    search = doors.search().fit(doors.X, doors.y)
    design = PortfolioDesign(
        score=lambda model: np.sum(model.predict(doors.X) == doors.y),
        monotonic=True,
        weights=lambda model: sum(each.size for each in model.weights_),
        nominal_rows=ROWS,
    )
    tuned = doors.tune(doors.model, design)
    assert search.plan().portfolio.noises == doors.priced.price.portfolio.noises
    assert search.best_params_ == tuned.params == params
    assert same(search.best_estimator_.weights_, weights)
    assert same(tuned.value.weights_, weights)


def followed(doors, run, stream):
    """The release of two stages by hand: what `FirstStage` says of these runs, and one run more with its key."""
    found = doors.priced.price

    def last(params, key):
        return doors.model(params, keyed_source(key), found.second.noise)

    return doors.tune(
        TwoStageObjective(FirstStage(run, stream), last, found.second.guarantee),
        "one-stage",
        base=doors.base(found.noise),
        repetitions=LAW,
    )


@pytest.mark.full
@pytest.mark.parametrize("design", ["two-stage", "even-stages"])
def test_two_stages(design):
    """One of them is registered by this file alone, and has its name in all three."""
    doors = Doors(design)
    found, run = doors.priced.price, partial(doors.run, noise=doors.priced.price.noise)
    params, weights = doors.released()
    by_hand = followed(doors, run, "second")
    assert by_hand.params == params
    assert same(by_hand.value.weights_, weights)

    search = doors.search().fit(doors.X, doors.y)
    assert (search.noise_, search.plan().final_noise) == (found.noise, found.second.noise)
    assert search.score_epsilon_ == found.score_epsilon
    by_hand = followed(doors, run, "refit")
    assert search.best_params_ == by_hand.params == params
    assert same(search.best_estimator_.weights_, by_hand.value.weights_)

    told, asked = [], TwoStageDesign(last=doors.model, price=lambda noise: pure_dp(epsilon=1.0 / noise))

    def noting(params, random, noise):
        told.append(noise)
        return doors.run(params, random, noise)

    tuned = doors.tune(noting, asked if design == "two-stage" else design, repetitions=LAW)
    assert told[0] == found.noise
    assert 0.999 * TOTAL <= tuned.guarantee.epsilon(0.0) <= TOTAL
    if design == "two-stage":
        by_hand = followed(doors, lambda params, random: run(params, random.spawn("search")), "last")
        assert tuned.params == by_hand.params
        assert same(tuned.value.weights_, by_hand.value.weights_)


def test_a_design_from_outside_is_listed():
    from dpselect.study.schema_json import study_schema

    assert design_names() == ("careless", "one-run", "portfolio", "even-stages", "one-stage", "two-runs", "two-stage")
    assert "even-stages" in study_schema()["$defs"]["SearchDesign"]["properties"]["design"]["enum"]
    assert EvenStages.of().share == 0.5


@pytest.mark.full
def test_no_door_lets_a_design_cost_more_than_the_total():
    doors = Doors("one-run")
    doors.design = "careless"
    with pytest.raises(BudgetError):
        price(validate(parsed("careless"), StudyPaths(Path(), Path("out"))))
    with pytest.raises(BudgetError):
        doors.search().plan()
    with pytest.raises(BudgetError):
        doors.tune(lambda *_: pytest.fail("was run"), "careless", space={})
    with pytest.raises(ArgumentError, match="final is needed"):
        DesignPrice(repetitions=LAW, noise=1.0, parts=(), final_noise=1.0)


@pytest.mark.full
def test_the_number_of_runs_is_the_one_that_is_priced(monkeypatch):
    doors = Doors("one-stage")
    doors.design = "two-runs"
    with pytest.raises(StudyError, match=r"repetitions: must be .*'count': 2"):
        price(validate(parsed("two-runs"), StudyPaths(Path(), Path("out"))))
    search = doors.search()
    assert search.plan().repetitions == Fixed(count=2)
    drawn = []

    def run(params, random, noise):
        drawn.append(noise)
        return float(len(drawn)), None

    found = doors.tune(run, "two-runs", repetitions=LAW)
    assert len(drawn) == 2
    assert drawn[0] == drawn[1]
    assert found.guarantee.epsilon(0.0) <= TOTAL
    monkeypatch.setattr(TwoRuns, "tries", True)
    with pytest.raises(ArgumentError, match="another kind of runs"):
        search.plan()


def test_only_stages_take_a_share():
    assert [DESIGNS[name].of(0.2) == DESIGNS[name]() for name in ("one-run", "one-stage", "portfolio")] == [True] * 3
    assert DESIGNS["two-stage"].of(0.2).share == 0.2
