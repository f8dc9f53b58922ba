"""Studies of persons with several rows, and what a person pays for one by the noise that it really has."""

import copy
import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from dpselect.accounting.planning.search_prices import SearchPrice
from dpselect.privacy import compose, gaussian, pure_dp
from dpselect.study import parse_study
from dpselect.study.data import load
from dpselect.study.price import price
from dpselect.study.validate import StudyPaths, validate
from dpselect.tables import Table

K = 3
DATA = {
    "source": "rows.csv",
    "person": "who",
    "label": "y",
    "classes": ["no", "yes"],
    "columns": {"a": {"bounds": [0, 1]}, "b": {"bounds": [0, 1]}},
}
STUDY = {
    "name": "visits",
    "data": DATA,
    "privacy": {"epsilon": 3.0, "delta": 1e-6, "nominal_rows": 4000, "rows_per_person": K},
    "learner": {"name": "dp-sgd"},
    "runs": {"executor": "inline"},
    "output": {"folder": "out"},
}


def parsed(**tables):
    """The study with further tables, or with further keys in these."""
    document = copy.deepcopy(STUDY)
    for name, table in tables.items():
        document[name] = {**document.get(name, {}), **table}
    return parse_study(document)


def priced(**tables):
    """Its price, which follows from the header alone."""
    if not Path("rows.csv").exists():
        write_rows([])
    return price(validate(parsed(**tables), StudyPaths(Path(), Path("out"))))


def write_rows(rows):
    """A file with these rows: (person, a, b, label)."""
    lines = [",".join(map(str, row)) for row in rows]
    Path("rows.csv").write_text("\n".join(["who,a,b,y", *lines]) + "\n")


def table_of(rows):
    """The same in memory."""
    columns = dict(zip(("who", "a", "b", "y"), map(list, zip(*rows, strict=True)), strict=True))

    def chunks(wanted, numbers):
        yield {n: np.array(columns[n], dtype=float if n in numbers else object) for n in wanted}

    return Table(("who", "a", "b", "y"), chunks)


def loaded(rows, study, *, most):
    return load(study.data, table_of(rows), most=most, salt=study.name, counted=True)


def paid(found, k=K):
    """Epsilon of a person with so many rows: group privacy of each mechanism as it is run, put together by hand."""
    settled, made = found.settled, found.price
    beside, delta = [], made.delta
    if made.cells is not None:
        columns, deviation = len(made.cells.columns), made.cells.deviation
        counts = gaussian(noise_multiplier=deviation / math.sqrt(columns))
        if made.cells.pure:
            counts = pure_dp(epsilon=columns / deviation)
        beside.append(counts.of_rows(k))
    if made.purchase is not None:
        run = made.purchase.mechanism
        beside += [replace(run, epsilon=k * run.epsilon).guarantee] * len(made.purchase.columns)
    if made.second is not None:
        second = made.second
        beside.append(one_run(second.recipe, second.noise).of_rows(k))
    if made.portfolio is None:
        training = one_run(settled.recipe, made.noise).of_rows(k)
    else:
        trials, noises = made.portfolio.trials, made.portfolio.noises
        runs = [one_run(each.recipe, noise) for each, noise in zip(settled.candidates, trials, strict=True)]
        last = [one_run(each.recipe, noise) for each, noise in zip(settled.candidates, noises, strict=True)]
        runs.append(max(last, key=lambda guarantee: guarantee.gaussian_mu))
        choice = made.portfolio.choice  # of right answers: a row moves a sum by 1
        chosen = replace(choice, epsilon=k * choice.epsilon / choice.sensitivity, sensitivity=float(k)).guarantee
        training = compose(compose(*[run.of_rows(k) for run in runs]), chosen)
    score = score_paid(found, k)
    if settled.study.validation.data == "training":
        parts = (compose(training, score),)
    else:
        parts = (training,) if score is None else (training, score)
    return SearchPrice(parts, settled.law, compose(*beside) if beside else None).epsilon(delta)


def one_run(recipe, noise):
    """The guarantee of one run for one row."""
    return recipe.estimator(noise, {}, None).guarantee()


def score_paid(found, k):
    noise = found.score_noise
    if noise is None:
        return None
    if noise.multiplier is not None:
        return gaussian(noise_multiplier=noise.multiplier).of_rows(k)
    return pure_dp(epsilon=float(noise.epsilon)).of_rows(k)
