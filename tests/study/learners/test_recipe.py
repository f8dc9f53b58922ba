"""Recipes: which keys a study may set or search, and with which errors."""

import pytest

from dpselect.errors import StudyError
from dpselect.study import parse_study
from dpselect.study.learners.recipe import recipe_of
from tests.study.schema_cases import changed


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("learner.stepps", 5, "learner.stepps"),
        ("learner.steps", 0, "steps"),
        ("learner.classes", [1], "learner.classes"),
        ("learner.noise_multiplier", 1.0, "learner.noise_multiplier"),
        ("space.steps", {"law": "categorical", "choices": [1, 2]}, "space.steps"),
        ("space.momentums", {"law": "categorical", "choices": [1, 2]}, "space.momentums"),
        ("space.map", {"law": "uniform", "low": 0, "high": 1}, "space.map: no such map"),
    ],
)
def test_learner_and_space_are_checked_against_the_learner(path, value, named):
    study = parse_study(changed(path, value))
    with pytest.raises(StudyError, match=named):
        recipe_of(study, nominal_rows=150.0)
