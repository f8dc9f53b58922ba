"""The harness of figures: what it counts as covered and as wide, and what it reads from a release."""

import json

import numpy as np
import pytest
from benchmarks.model_tables import classes_of, table_of

from benchmarks import figures_believed as harness


def record(figure, low, high, truth, plain=None):
    known = {"table": "some", "metric": "accuracy", "figure": figure, "seed": 0}
    return {**known, "low": low, "high": high, "truth": truth, "plain": plain}


def test_a_row_has_coverage_and_the_width_beside_the_plain_one():
    found = [record("accuracy", 0.5, 0.7, 0.6, plain=0.1), record("accuracy", 0.6, 0.8, 0.9)]
    found += [record("r2", None, 0.5, 0.4, plain=0.1), record("r2", None, 0.3, 0.4)]
    assert list(harness.lines(found))[2:] == [
        "| some | accuracy | accuracy | 0.500 | 0.2 | 2.00 | 2 |",
        "| some | accuracy | r2 | 0.500 | inf | inf | 2 |",
    ]


def test_figures_are_one_or_several():
    one = {"metric": "r2", "value": 0.5, "low": None, "high": 0.6, "confidence": 0.95}
    (found,) = harness.figures_of({"validation": one})
    assert found == {"name": "r2", "value": 0.5, "low": None, "high": 0.6}
    several = [{"name": name, "value": 0.5, "low": 0.4, "high": 0.6} for name in ("accuracy", "balanced-accuracy")]
    assert harness.figures_of({"validation": {**one, "figures": several}}) == several


def test_scores_are_those_of_their_definitions():
    answers, found = np.array([0.0, 2.0, 4.0, 10.0]), np.array([0.0, 1.0, 6.0, 4.0])
    scores = {name: score(answers, found) for name, score in harness.SCORES.items() if "accuracy" not in name}
    assert scores == {
        "absolute-error": 2.25,
        "squared-error": 10.25,
        "r2": pytest.approx(1 - 10.25 / 14),
        "median-error": 1.0,
        "90%-error": 6.0,
    }
    answers, found = np.array(["a", "a", "a", "b"]), np.array(["a", "a", "b", "a"])
    assert harness.SCORES["accuracy"](answers, found) == 0.5
    assert harness.SCORES["balanced-accuracy"](answers, found) == pytest.approx(1 / 3)


def test_the_plain_width_of_an_accuracy_is_that_of_a_binomial():
    answers = np.array(["a", "b"] * 500)
    width = harness.plain_width(harness.SCORES["accuracy"], answers, np.full(1000, "a"), np.random.default_rng(3))
    assert width == pytest.approx(2 * 1.96 * 0.5 / harness.KEPT**0.5, rel=0.15)


@pytest.mark.full
def test_a_release_is_measured_once_and_its_truth_is_that_of_the_whole_table(tmp_path, monkeypatch, capsys):
    X = np.random.default_rng(4).uniform(-1, 1, (3000, 2))
    y = np.where(X[:, 0] > 0, "up", "down")
    table = table_of("titanic", X, y, classes_of(y), [(-1, 1)] * 2)
    monkeypatch.setattr(harness, "real_tables", lambda only: iter([table]))
    asked = ["--redraws", "2", "--json", str(tmp_path / "found.json")]
    found = harness.main(asked)
    assert {each["figure"] for each in found} >= {"accuracy", "balanced-accuracy"}
    assert all(each["truth"] > 0.9 for each in found)
    assert all(each["low"] <= each["truth"] <= each["high"] for each in found)
    assert harness.main(asked) == found == json.loads((tmp_path / "found.json").read_text())
    assert "| titanic | accuracy | accuracy | 1.000 |" in capsys.readouterr().out
