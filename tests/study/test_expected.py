"""The interval that a figure can be expected to have, and the refusal of figures that would be noise."""

from pathlib import Path

import pytest

from dpselect.errors import StudyError
from dpselect.study import check_study, parse_study
from dpselect.study.expected import expected_figure, metric_with_intervals
from dpselect.study.metrics import METRICS, ScoreNoise
from dpselect.study.metrics.metric import metrics_for
from tests.study.metrics.metrics_cases import ADD, NUMBER, TWO
from tests.study.schema_cases import STUDY


def study(metric=None, rows=569, epsilon=3.0, regression=False, **validation):
    label = {"task": "regression", "label_bounds": [0, 400]} if regression else {"classes": [0, 1]}
    source = "sklearn:diabetes" if regression else "sklearn:breast_cancer"
    found = {"data": "private", **({} if metric is None else {"metric": metric}), **validation}
    return parse_study(
        {
            "data": {"source": source, "label": "target", "bounds": [-1, 5000], **label},
            "privacy": {"epsilon": epsilon, "delta": 1e-6, "nominal_rows": rows},
            "validation": found,
            "output": STUDY["output"],
        }
    )


def checked(tmp_path, *args, **kwargs):
    return check_study(study(*args, **kwargs), base_folder=Path(), folder=tmp_path / "out")


@pytest.mark.full
def test_a_check_says_how_wide_the_interval_will_be(tmp_path):
    few, many = (checked(tmp_path, rows=rows)["expected_figure"] for rows in (1000, 100_000))
    assert (few["metric"], few["rows"], few["confidence"]) == ("accuracy", 200, 0.95)
    assert few["low"] < many["low"] < many["value"] < many["high"] < few["high"]
    assert checked(tmp_path, rows=1000, release_score=False)["expected_figure"] is None
    assert checked(tmp_path, rows=5000, regression=True)["expected_figure"]["metric"] == "median-error"


@pytest.mark.parametrize("metric", ["r2", "squared-error"])
def test_a_metric_that_would_be_noise_is_refused_with_one_that_does(tmp_path, metric):
    with pytest.raises(
        StudyError, match=rf"validation.metric: {metric} of about 88 held-out rows would be noise"
    ) as seen:
        checked(tmp_path, metric, rows=442, regression=True)
    assert "take validation.metric = 'median-error'" in str(seen.value)
    assert checked(tmp_path, metric, rows=200_000, regression=True)["expected_figure"]["metric"] == metric
    assert checked(tmp_path, metric, rows=442, regression=True, release_score=False)


def test_rows_of_one_key_or_of_one_person_are_not_independent():
    plain = study("accuracy", rows=1000)
    keyed = plain.model_copy(update={"data": plain.data.model_copy(update={"row_key": "patient"})})
    persons = plain.model_copy(update={"privacy": plain.privacy.model_copy(update={"rows_per_person": 2})})
    uncounted = persons.model_copy(update={"privacy": persons.privacy.model_copy(update={"nominal_rows": None})})
    metric, noise = METRICS["accuracy"](TWO), ScoreNoise(None, ADD, 1.0)
    assert metric_with_intervals(plain, metric) is metric
    assert metric_with_intervals(persons, metric).sample == (2, 200.0)
    assert metric_with_intervals(keyed, metric) is metric_with_intervals(uncounted, metric) is None
    assert metric_with_intervals(persons, METRICS["auc"](TWO)) is None
    one, many = (expected_figure(each, metric, noise, 1.0) for each in (plain, persons))
    assert many["low"] < one["low"] < one["high"] < many["high"]
    assert expected_figure(keyed, metric, noise, 1.0) is None


@pytest.mark.parametrize("target", [TWO, NUMBER])
def test_every_metric_says_what_is_typical(target):
    for name, metric in metrics_for(target).items():
        for noise in (ScoreNoise(None, ADD, 1.0), ScoreNoise(1.0, ADD)):
            cells = metric.typical(100_000.0, noise)
            found = metric.estimate(cells, noise=noise, failure=0.05)
            assert found.low < found.value < found.high, name
            assert found.high - found.low < metric.span, name
    assert METRICS["accuracy"](TWO).typical(100.0, None).tolist() == [[40, 40, 0], [10, 10, 0]]
