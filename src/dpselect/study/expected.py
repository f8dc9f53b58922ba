"""The interval that a study's figure can be expected to have, from public facts alone, and the refusal of noise."""

from __future__ import annotations

from typing import Any, Final

from dpselect.errors import StudyError
from dpselect.study.metrics import Metric, ScoreNoise
from dpselect.study.metrics.metric import Estimate, metrics_for
from dpselect.study.metrics.person_sample import PersonSample
from dpselect.study.schema import DEFAULT_FIGURES, Study

__all__ = ["check_figure", "expected_figure", "figure_warning", "metric_with_intervals"]

FAILURE: Final = 0.05


def metric_with_intervals(study: Study, metric: Metric) -> Metric | None:
    """The metric with intervals that hold for the rows that validate. None if nothing is proved.

    The rows of one person depend on each other. Their largest number is declared, and with a public number of all rows
    many metrics have an interval. Any number of rows may have one `row_key`, so nothing is proved then.
    """
    each, rows = study.privacy.per_person, _rows(study)
    if study.data.row_key is not None:
        return None
    if each == 1:
        return metric
    return None if rows is None else metric.of_persons(PersonSample(each, rows))


def expected_figure(study: Study, metric: Metric, noise: ScoreNoise | None, runs: float) -> dict[str, Any] | None:
    """Return the interval of the metric for a model in the middle, JSON-able. None if no public fact tells.

    Neither is there one if nothing is proved for such rows, as `figures` says.
    `runs` is the average number of runs. Each has an interval, and all must hold.
    """
    rows, counting = _rows(study), metric_with_intervals(study, metric)
    if noise is None or rows is None or counting is None:
        return None
    found = _expected(counting, rows, noise, runs)
    if found is None:
        return None
    return {
        "metric": study.metric,
        "rows": round(rows),
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "confidence": 1.0 - FAILURE,
    }


def check_figure(study: Study, metric: Metric, noise: ScoreNoise | None, runs: float) -> None:
    """Raise `StudyError` if public facts show that the figure to be released would be noise."""
    said = figure_warning(study, metric, noise, runs)
    if said is not None:
        raise StudyError(f"validation.metric: {said}")


def figure_warning(study: Study, metric: Metric, noise: ScoreNoise | None, runs: float) -> str | None:
    """Say that the figure would be noise, and what would do, if public facts show it. Else None."""
    rows = _rows(study)
    if noise is None or rows is None:
        return None
    found = _expected(metric, rows, noise, runs)
    if found is None or not _is_noise(metric, found):
        return None
    others = metrics_for(study.data.target)
    useful = [
        name
        for name in (DEFAULT_FIGURES[study.data.task], *others)
        if name != study.metric
        and (of_other := _expected(others[name], rows, noise, runs)) is not None
        and not _is_noise(others[name], of_other)
    ]
    instead = f"take validation.metric = {useful[0]!r}, or " if useful else ""
    return (
        f"{study.metric} of about {rows:.0f} held-out rows would be noise at this epsilon: for a "
        f"middling model {_between(found)}. To release a figure, {instead}raise validation.fraction or "
        "privacy.epsilon. To release none, give validation.release_score = false, or leave [validation] out"
    )


def _rows(study: Study) -> float | None:
    nominal = study.privacy.nominal_rows
    return None if nominal is None else nominal * study.validation.fraction


def _expected(metric: Metric, rows: float, noise: ScoreNoise, runs: float) -> Estimate | None:
    cells = metric.typical(rows, noise)
    return None if cells is None else metric.estimate(cells, noise=noise, failure=FAILURE / max(1.0, runs))


def _is_noise(metric: Metric, found: Estimate) -> bool:
    return found.low is None or found.high is None or found.high - found.low >= metric.span


def _between(found: Estimate) -> str:
    if found.low is None or found.high is None:
        missing = " or ".join(name for name, end in (("lower", found.low), ("upper", found.high)) if end is None)
        return f"the interval is expected to have no {missing} end"
    return f"the interval is expected to be {found.low:.3g} to {found.high:.3g}"
