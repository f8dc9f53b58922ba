"""The errors that the page of questions quotes are those of the library."""

import re
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

from dpselect.accounting import best_of
from dpselect.cli.app import app
from dpselect.integrations.sklearn import PrivateSearchCV
from dpselect.learners import DPSGDClassifier
from dpselect.ledger import Ledger
from dpselect.privacy import compose, dp_sgd, gaussian, pure_dp
from dpselect.repetitions import Harmonic
from dpselect.tuning import LogUniform, tune
from tests.documentation import ROOT

TEXT = (ROOT / "docs/how-to/faq.md").read_text(encoding="utf-8")
QUOTED = re.findall(r"^### (`.*)$", TEXT, flags=re.M)
QUESTIONS = re.findall(r"^### ([^`\n]*\?)$", TEXT, flags=re.M)
ROWS = np.random.default_rng(1).uniform(0, 50, (40, 2))
LABELS = (ROWS[:, 0] > 25).astype(int)


def search(estimator=None, **options):
    estimator = DPSGDClassifier(steps=2) if estimator is None else estimator
    return PrivateSearchCV(estimator, {}, design="one-run", epsilon=3.0, **options)


def tuned(**options):
    return tune(lambda params, random: (0, 0), space={"a": LogUniform(1.0, 2.0)}, base=pure_dp(epsilon=1), **options)


def forest():
    from sklearn.ensemble import RandomForestClassifier

    return search(RandomForestClassifier(), delta=1e-5, nominal_rows=40, classes=[0, 1])


def spent_twice():
    with Ledger.open("a.db") as ledger:
        budget = ledger.create_budget("a", epsilon=9, delta=1e-6)
        for _ in range(2):
            with budget.reserve(gaussian(noise_multiplier=8), label="x") as charge:
                charge.settle(None)


def too_large():
    with Ledger.open("b.db") as ledger:
        ledger.create_budget("b", epsilon=1).reserve(pure_dp(epsilon=2), label="x")


def made_twice():
    with Ledger.open("c.db") as ledger:
        for _ in range(2):
            ledger.create_budget("a", epsilon=1)


def command(line):
    result = CliRunner().invoke(app, line.split())
    raise SystemExit(f"{result.output} {result.exception}")


def draft():
    with open("people.csv", "w") as file:
        file.write("age,outcome\n30,left\n")
    CliRunner().invoke(app, ["init", "people.csv", "--label", "outcome", "--to", "study.toml"])
    command("tune --check study.toml")


def semicolons():
    with open("semi.csv", "w") as file:
        file.write("age;outcome\n30;left\n")
    command("quantile semi.csv --column age --q 0.5 --epsilon 1 --lower 0 --upper 120")


def unreadable():
    with open("bad.csv", "w") as file:
        file.write("age\n" + "30\nthirty\n" * 2000)
    command("quantile bad.csv --column age --q 0.5 --epsilon 1 --lower 0 --upper 120")


def fitted(**options):
    search(delta=1e-5, **options).fit(ROWS, LABELS)


RAISED = {
    "repetitions must be": lambda: tuned(repetitions=10),
    "has no argument n_trials": lambda: tuned(n_trials=10),
    "give delta=": lambda: search(nominal_rows=40, classes=[0, 1]).guarantee(),
    "nominal_rows must be given": lambda: search(DPSGDClassifier(), delta=1e-5, classes=[0, 1]).guarantee(),
    "nothing scales": lambda: fitted(classes=[0, 1], nominal_rows=40),
    "classes was not given": lambda: fitted(nominal_rows=40),
    "has no guarantee": lambda: forest().fit(ROWS, LABELS),
    "has no argument epochs": lambda: dp_sgd(noise_multiplier=1, sampling_rate=0.01, epochs=3),
    "noise is set by": lambda: DPSGDClassifier(epsilon=3),
    "base must be": lambda: best_of(1.0, Harmonic(limit=3)),
    "guarantees with different": lambda: compose(pure_dp(epsilon=1), pure_dp(epsilon=1, adjacency="replace_one")),
    "Delta is used up": spent_twice,
    "remains; nothing": too_large,
    "there is a budget": made_twice,
    "there is no ledger": lambda: Ledger.open("none.db").budget("a"),
    "still to be": draft,
    "one column alone": semicolons,
    "withheld": unreadable,
}
ELSEWHERE = {
    "a worker process ended": "src/dpselect/tuning",
    "already holds a release": "src/dpselect/study",
}
"""Errors that take other processes or a whole training: the source has their words."""


def test_there_are_ten_questions_and_twenty_errors():
    assert len(QUESTIONS) == 10
    assert len(QUOTED) == 20
    assert all(sum(f"`{start}" in line for start in (*RAISED, *ELSEWHERE)) == 1 for line in QUOTED)


@pytest.mark.full
@pytest.mark.parametrize("start", RAISED)
def test_an_error_says_what_the_page_quotes(start, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (quoted,) = [line.split("`")[1] for line in QUOTED if line.startswith(f"`{start}")]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            RAISED[start]()
            said = ""
        except (Exception, SystemExit) as error:
            said = str(error)
    assert quoted in said + " ".join(str(one.message) for one in warned)


@pytest.mark.parametrize("start", ELSEWHERE)
def test_the_source_has_the_words_of_the_others(start):
    files = sorted((ROOT / ELSEWHERE[start]).rglob("*.py"))
    (quoted,) = [line.split("`")[1] for line in QUOTED if line.startswith(f"`{start}")]
    assert any(quoted in file.read_text(encoding="utf-8") for file in files)
