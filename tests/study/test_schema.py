"""The study file: everything public is checked before a row of data is read."""

import pytest

from dpselect.errors import StudyError
from dpselect.study import parse_study
from tests.study.schema_cases import STUDY, changed


def test_a_valid_study_parses():
    study = parse_study(STUDY)
    assert study.privacy.adjacency.value == "add_or_remove_one"
    assert study.validation.data == "private"


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("privacy.epsilon", 0.0, "privacy.epsilon"),
        ("privacy.epsilon", -1.0, "privacy.epsilon"),
        ("privacy.epsilon", float("nan"), "privacy.epsilon"),
        ("privacy.epsilon", None, "privacy"),
        ("privacy.noise_multiplier", 1.0, "privacy"),
        ("privacy.delta", 1.0, "privacy.delta"),
        ("privacy.delta", 1 / 150, "nominal_rows"),
        ("privacy.adjacency", "neighbours", "privacy.adjacency"),
        ("privacy.nominal_rows", None, "nominal_rows"),
        ("privacy.nominal_rows", 0, "nominal_rows"),
        ("privacy.epsilonn", 1.0, "privacy.epsilonn"),
        ("learner.name", "deep", "learner.name"),
        ("validation", {"data": "public"}, "source"),
        ("validation", {"fraction": 1.0}, "validation.fraction"),
        ("runs", {"workers": 0}, "runs.workers"),
        ("extra", {}, "extra"),
        ("output.folder", None, "output.folder"),
    ],
)
def test_a_wrong_key_is_named(path, value, named):
    with pytest.raises(StudyError, match=named):
        parse_study(changed(path, value))
