"""Studies that protect persons with several rows: which rows take part, what a person moves, and what it costs."""

import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import chain, combinations_with_replacement, product
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dpselect.cli.app import app
from dpselect.errors import StudyError
from dpselect.mechanisms import ExponentialMechanism
from dpselect.ordered.order_statistics.joint import joint_rate
from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source
from dpselect.study import check_study, forecast_study, load_model, price as price_module, run_study
from dpselect.study.bounds import Purchase, purchase_of
from dpselect.study.cell_counts import cell_price
from dpselect.study.learners.recipe import Recipe
from dpselect.study.load import open_rows
from dpselect.study.metrics import METRICS, ScoreNoise
from dpselect.study.portfolio import agreement, the_choice
from dpselect.study.price import _fingerprint
from dpselect.study.row_parts import validation_mask
from dpselect.study.split import split
from tests.cli.test_app import toml
from tests.ordered.order_statistics.test_joint import scores
from tests.study.person_cases import STUDY, K, loaded, paid, parsed, priced, write_rows

ROWS = [("p", 0.0, 0.0, "no"), ("p", 1.0, 2.0, "yes"), ("q", 1.0, 0.0, "yes"), ("", 0.0, 0.0, "no")]
"""A person, two cells, of which 2.0 is clipped, and a label; the last is nobody's."""
ADD = Adjacency.ADD_OR_REMOVE_ONE
SEARCH = {"space": {"learning_rate": {"law": "log_uniform", "low": 0.1, "high": 1.0}}}
LAW = {"repetitions": {"law": "fixed", "count": 2}}


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch, state):
    monkeypatch.chdir(tmp_path)


def some_rows(persons=60, each=4):
    drawn = keyed_source("visits").uniform((persons * each, 2)).round(3)
    rows = [(f"c{n // each}", a, b, "yes" if a > 0.5 else "no") for n, (a, b) in enumerate(drawn.tolist())]
    write_rows(rows)
    return rows


def tables(largest):
    """All tables with both classes, so that none is refused."""
    for size in range(largest + 1):
        for table in product(ROWS, repeat=size):
            yield [*table, ("r", 0.5, 0.5, "no"), ("s", 0.5, 0.5, "yes")]


def contents(rows):
    return Counter((*each, label) for each, label in zip(map(tuple, rows.features.tolist()), rows.labels, strict=True))


@pytest.mark.full
@pytest.mark.theorem("docs/theory/persons.md, Theorem 2", exact=True, sharp=True)
@pytest.mark.parametrize("most", [1, 2])
def test_all_that_is_released_is_as_private_for_a_person_as_is_said(most):
    """Every neighbour by one person of every small table, through the sums and their exact distributions."""
    study = parsed(privacy={"rows_per_person": most})
    metric, target = METRICS["accuracy"](study.data.target), study.data.target
    noise = ScoreNoise(0.5, ADD).of_rows(most)
    step, gaussian = noise.a_step(metric.reach(ADD).total), ScoreNoise(None, ADD, 2.0).of_rows(most)
    counted = replace(priced(privacy={"rows_per_person": most}).price.cells, deviation=50.0)
    choice = the_choice(agreement(target), 0.7, ADD, rows=most)
    worst = dict.fromkeys(("rows", "laplace", "gaussian", "cells", "choice"), 0.0)

    def told(table):
        rows = loaded(table, study, most=most)
        cells = [metric.cells(Always(n), rows.features, rows.labels) for n in range(2)]
        sums = [agreement(target).cells(Always(n), rows.features, rows.labels)[0] for n in range(2)]
        return rows, cells[0], rows.cells, chances(sums, choice)

    for table in tables(3):
        whole, less = (told(each) for each in (table, [row for row in table if row[0] != "p"]))
        gone = contents(whole[0]) - contents(less[0])
        assert not contents(less[0]) - contents(whole[0])
        moved = np.abs(whole[1] - less[1]).sum()
        logs = np.log(whole[3]) - np.log(less[3])
        found = {
            "rows": sum(gone.values()) / most,
            "laplace": float(step * int(moved) / Fraction(1, 2)),
            "gaussian": 2.0 * np.linalg.norm(whole[1] - less[1]) / gaussian.deviation(metric.reach(ADD).squares),
            "cells": np.linalg.norm(whole[2] - less[2]) / counted.deviation / counted.guarantee.gaussian_mu,
            "choice": (logs.max() - logs.min()) / 0.7,
        }
        assert max(found.values()) <= 1.0 + 1e-9, found
        worst = {name: max(found[name], largest) for name, largest in worst.items()}
    assert min(worst.values()) >= 1.0 - 1e-9, worst  # each is attained: none has more noise than it needs


@pytest.mark.parametrize("most", [1, 2, 3])
def test_private_bounds_move_within_epsilon_for_a_person(most):
    """Logarithms of the probabilities that bounds are drawn with, over all small columns and all rows of a person."""
    bought = Purchase(("a",), 0.6, None, ADD, 100.0, most)
    run, worst = bought.mechanism, 0.0
    qs = tuple(Fraction(str(q)) for q in run.qs)
    rate = joint_rate(qs, Fraction(run.epsilon), ADD)
    for rows in chain.from_iterable(combinations_with_replacement(range(3), n) for n in range(7)):
        before = scores(rows, qs, 3)
        for own in combinations_with_replacement(range(3), most):
            after = scores(sorted((*rows, *own)), qs, 3)
            moved = [rate * (after[z] - before[z]) for z in before]
            worst = max(worst, float(max(moved) - min(moved)))
    assert 0.7 * 0.6 <= worst <= 0.6  # the more rows, the nearer
    assert bought.guarantee.pure_epsilon == 0.6


class Always:
    """A model with one answer."""

    def __init__(self, place):
        self.place = place

    def predict(self, X):
        return np.full(len(X), self.place)

    def predict_proba(self, X):
        return np.eye(2)[self.predict(X)]


def chances(sums, choice: ExponentialMechanism):
    """The exact probabilities of a monotonic exponential mechanism."""
    weights = np.exp(choice.epsilon * np.array(sums, dtype=float) / choice.sensitivity)
    return weights / weights.sum()


@pytest.mark.parametrize("counted", [True, False])
def test_a_person_with_a_thousand_rows_is_in_no_more_of_them_than_one_may(counted):
    """No matter what they hold, how the id is written, and where they stand."""
    others, drawn = some_rows(), keyed_source("many").uniform((1000, 2))
    hostile = [
        (("7", " 7", "7.0", "7e0")[n % 4], round(3 * a - 1, 3), "none" if b > 0.9 else b, "yes" if n % 2 else "else")
        for n, (a, b) in enumerate(drawn.tolist())
    ]
    cells = {name: {"bounds": [0, 1], "missing": "indicator"} for name in "ab"}
    made = priced(validation={"fraction": 0.3}, data={"count_cells": counted, "columns": cells})
    found = []
    for rows in (others, [*hostile[:500], *others, *hostile[500:]]):
        write_rows(rows)
        opened = open_rows(made)
        run = split(opened)
        found.append((opened.rows, run.training, run.validation))
    (few, *before), (many, *after) = found
    assert not contents(few) - contents(many)
    assert sum((contents(many) - contents(few)).values()) == K
    changed = [len(b[1]) - len(a[1]) for a, b in zip(before, after, strict=True)]
    assert sorted(changed) == [0, K]  # all train, or all score
    if counted:
        assert np.abs(many.cells - few.cells).sum(axis=1).max() <= K
        assert many.cells.sum(axis=1).tolist() == [len(many.labels)] * 3


def test_the_other_rows_keep_their_parts():
    rows = some_rows()
    made = priced(validation={"fraction": 0.3})
    parts = {}
    for left_out in (None, "c5"):
        write_rows([row for row in rows if row[0] != left_out])
        found = open_rows(made).rows
        mask = validation_mask(found.digests, fraction=0.3, adjacency=ADD, salt="visits")
        parts[left_out] = dict(zip(zip(found.digests, map(bytes, found.features), strict=True), mask, strict=True))
    of_persons = {}
    for (person, _), held_out in parts[None].items():
        of_persons.setdefault(person, set()).add(bool(held_out))
    assert all(len(each) == 1 for each in of_persons.values())
    assert set(map(len, of_persons.values())) == {1}
    assert parts["c5"].items() < parts[None].items()
    assert len(parts[None]) - len(parts["c5"]) == K


DESIGNS = {
    "one-run": {"validation": {"fraction": 0.2}},
    "bounds": {"data": {"columns": {"a": {"bounds": "private"}, "b": {"bounds": [0, 1]}}}},
    "sampled": {"learner": {"sampling_rate": 0.1, "steps": 10}, "data": {"count_cells": False}},
    "pure": {"learner": {"name": "output-perturbation"}, "privacy": {"delta": 0.0}, "validation": {"fraction": 0.3}},
    "portfolio": {
        "search": {"design": "portfolio"},
        "space": {"map": {"law": "categorical", "choices": ["cos4", "bins"]}},
        "privacy": {"nominal_rows": 40_000},
    },
    "one-stage": {**SEARCH, **LAW},
    "two-stage": {**SEARCH, **LAW, "search": {"design": "two-stage"}},
    "training": {**SEARCH, **LAW, "validation": {"data": "training"}},
}


def of_design(name):
    return priced(**DESIGNS[name])


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "one-run" else pytest.mark.full) for name in DESIGNS]
)
def test_a_person_pays_what_group_privacy_of_the_noise_says(name):
    """Also no less, so that no noise is wasted. Atoms of pure losses are rounded up by a thousandth."""
    found = of_design(name)
    whole = paid(found)
    assert 0.998 * found.price.epsilon <= whole <= found.price.epsilon * (1 + 1e-6) <= 3.0 * (1 + 1e-6)


def for_one_row(function):
    """As if each person had one row."""

    def mutant(study, *args, **options):
        privacy = study.privacy.model_copy(update={"rows_per_person": 1})
        return function(study.model_copy(update={"privacy": privacy}), *args, **options)

    return mutant


MUTANTS = {
    "training": (Recipe, "guarantee", lambda recipe, noise: recipe.estimator(noise, {}, None).guarantee(), "one-run"),
    "score": (ScoreNoise, "of_rows", lambda noise, rows: noise, "one-run"),
    "score that trains": (ScoreNoise, "of_rows", lambda noise, rows: noise, "training"),
    "counts": (price_module, "cell_price", for_one_row(cell_price), "one-run"),
    "bounds": (price_module, "purchase_of", for_one_row(purchase_of), "bounds"),
    "choice": (price_module, "the_choice", lambda *compared, rows, **to: the_choice(*compared, **to), "portfolio"),
}


@pytest.mark.full
@pytest.mark.parametrize("what", MUTANTS)
def test_noise_for_one_row_in_one_place_costs_a_person_more_than_is_said(what, monkeypatch):
    place, name, mutant, design = MUTANTS[what]
    monkeypatch.setattr(place, name, mutant)
    found = of_design(design)
    assert paid(found) > 1.001 * found.price.epsilon


def test_one_row_of_each_person_costs_what_rows_cost():
    rows = {"data": {"person": None}, "privacy": {"rows_per_person": None}, "validation": {"fraction": 0.2}}
    one, of_rows = priced(privacy={"rows_per_person": 1}, validation={"fraction": 0.2}), priced(**rows)
    assert one.price == of_rows.price
    assert one.score_noise == of_rows.score_noise


def test_gaussian_noise_is_as_many_times_larger_and_the_signals_as_many_times_smaller():
    """Of a learner whose noise is that of its whole run."""
    fixed = {"learner": {"name": "ridge"}, "data": {"count_cells": False}}
    one, many = (priced(privacy={"rows_per_person": k}, **fixed) for k in (1, K))
    assert many.price.noise == pytest.approx(K * one.price.noise, rel=1e-3)
    assert many.settled.signals == pytest.approx(one.settled.signals / K)


@pytest.mark.full
def test_a_study_of_persons_end_to_end():
    """Also with a person that no one may be, which makes nothing fail, and without anyone at all."""
    rows = some_rows()
    study = parsed(validation={"fraction": 0.3}, privacy={"nominal_rows": 180})
    found = run_study(study, base_folder=Path(), random=keyed_source(1)).release
    assert found["data"]["person"] == {"column": "who", "rows": K}
    assert found["guarantee"]["unit"] == "person"
    assert found["guarantee"]["theorem"] == check_study(study, base_folder=Path(), folder=Path("other"))["theorem"]
    assert 2.99 < found["guarantee"]["epsilon"] <= 3.0
    assert [*load_model(Path("out/model.npz")).columns] == ["a", "b"]
    assert json.loads(Path("out/facts.json").read_text())["rows"] == {}
    figure = found["validation"]
    assert figure["confidence"] == 0.95
    assert all(0.0 <= one["low"] <= one["value"] <= one["high"] <= 1.0 for one in figure["figures"])
    card, page = (Path("out", name).read_text() for name in ("model-card.md", "report.html"))
    for text in (card, page):
        assert f"Of each person, by the column who, at most {K} rows took part" in text
        assert "Every person of rows.csv is protected" in text
        assert "On the rows of new persons like these it is between" in text
        assert "single row" not in text
        assert "person with several rows is protected less" not in text
    odd = ["1e999999999", "nan", "-inf", "\x00", "\u0301" * 300, "", "NULL"]
    for name, persons in (("odd", odd), ("nobody", [""])):
        write_rows([(persons[n % len(persons)], *row[1:]) for n, row in enumerate(rows)])
        released = run_study(study, base_folder=Path(), folder=Path(name), random=keyed_source(1)).release
        assert released["found"]


@pytest.mark.full
@pytest.mark.parametrize("name", ["bounds", "one-stage", "two-stage", "portfolio", "pure"])
def test_every_design_runs_on_persons_and_with_no_one(name, no_page):
    rows = some_rows()
    for folder, persons in (("out", rows), ("nobody", [("", *row[1:]) for row in rows])):
        write_rows(persons)
        asked = {table: dict(keys) for table, keys in DESIGNS[name].items()}
        found = run_study(parsed(**asked), base_folder=Path(), folder=Path(folder), random=keyed_source(2)).release
        assert found["guarantee"]["epsilon"] <= 3.0


@pytest.mark.full
def test_a_forecast_is_for_the_signals_of_a_row():
    write_rows(some_rows())
    rows = {"data": {"person": None}, "privacy": {"rows_per_person": None}}
    one, many = (forecast_study(parsed(**tables), base_folder=Path()) for tables in (rows, {}))
    assert many["signals"] == pytest.approx(one["signals"] / K)
    assert [each["person"] for each in (one, many)] == [None, {"column": "who", "rows": K}]


def test_a_figure_of_several_rows_of_each_person_has_a_longer_interval():
    write_rows([])
    asked = {"validation": {"fraction": 0.2}}
    one, many = (
        check_study(parsed(privacy={"rows_per_person": k}, **asked), base_folder=Path())["expected_figure"]
        for k in (1, K)
    )
    assert many["low"] < one["low"] < one["value"] == many["value"] < one["high"] < many["high"]
    assert many["high"] - many["low"] > 1.7 * (one["high"] - one["low"])


def test_the_command_line_says_who_is_protected():
    write_rows([])
    Path("study.toml").write_text(toml({**STUDY, "validation": {"fraction": 0.2}}))
    shown = CliRunner().invoke(app, ["tune", "--check", "study.toml"])
    assert f"protected: each person in column 'who', of whom at most {K} rows take part\n" in shown.stdout
    assert "expected of about 800 held-out rows: accuracy 0.8, say, would be shown as" in shown.stdout


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"privacy": {"rows_per_person": None}}, "data.person: give privacy.rows_per_person too"),
        ({"data": {"person": None}}, "privacy.rows_per_person: give data.person too"),
        ({"data": {"person": "y"}}, "data.person: the column of persons must be neither the label nor a feature"),
        ({"data": {"person": "a"}}, "data.person: the column of persons must be neither the label nor a feature"),
        ({"data": {"row_key": "key"}}, "data.row_key: leave it out: with person"),
        ({"privacy": {"adjacency": "replace_one"}}, "privacy.adjacency: rows_per_person needs add_or_remove_one"),
        ({"privacy": {"rows_per_person": 0}}, "privacy.rows_per_person: must be greater than or equal to 1"),
        ({"privacy": {"rows_per_person": 10_001}}, "privacy.rows_per_person: must be less than or equal to 10000"),
    ],
)
def test_what_does_not_go_together_is_refused_by_name(tables, said):
    with pytest.raises(StudyError) as error:
        parsed(**tables)
    assert said in str(error.value)


def test_a_column_of_persons_that_is_not_there_is_named():
    with pytest.raises(StudyError, match=r"data\.person: .*'whom'"):
        priced(data={"person": "whom"})


def test_a_search_is_not_resumed_with_other_persons_or_another_number_of_rows():
    """A search that names none keeps the mark that it had before there were persons."""
    rows = {"data": {"person": None}, "privacy": {"rows_per_person": None}}
    marks = [_fingerprint(priced(**tables).settled) for tables in ({}, {"privacy": {"rows_per_person": 2}}, rows)]
    assert marks[0] | {"privacy.rows_per_person": "2"} == marks[1]
    assert not {"data.person", "privacy.rows_per_person"} & set(marks[2])
