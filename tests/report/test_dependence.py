"""Pictures of what a model learnt: their lines, names and ends, and that they escape what they show."""

import re

import pytest

from dpselect.report.dependence import dependence_pictures
from tests.report.pages import RELEASE, page


def release_of(parts, columns, classes=("no", "yes"), label_bounds=None):
    data = {**RELEASE["data"], "classes": classes, "label_bounds": label_bounds, "columns": columns}
    return {**RELEASE, "data": data, "dependence": parts}


AGE = {"column": "age", "values": [0.0, 50.0, 100.0], "answers": [[0.75, 0.25], [0.5, 0.5], [0.0, 1.0]]}
WARD = {"column": "<ward>", "values": [f"w{k}" for k in range(12)], "answers": [[1.0, 0.0]] * 11 + [[0.5, 0.5]]}
COLUMNS = {"age": {"bounds": [0, 100]}, "<ward>": {"categories": WARD["values"]}}


def test_of_two_classes_the_second_is_drawn_from_0_to_1():
    found = dependence_pictures(release_of([AGE], COLUMNS))
    assert found["lines"] == [("yes", "search")]
    (picture,) = found["pictures"]
    assert picture["caption"] == "age"
    points = re.findall(r'points="([^"]*)"', picture["svg"])
    assert points == ["44.0,77.5 170.0,55.0 296.0,10.0"]  # a quarter of 90 up, the half, the whole
    assert 'aria-label="age; yes: 0.25 at 0, 1 at 100"' in picture["svg"]


def test_categories_are_dots_by_name_and_at_most_ten():
    (picture,) = dependence_pictures(release_of([WARD], COLUMNS))["pictures"]
    assert picture["caption"] == "<ward>, and 2 more categories"
    assert picture["svg"].count("<circle") == 10
    assert "<ward>" not in picture["svg"]
    assert "&lt;ward&gt;" in picture["svg"]


def test_of_many_classes_those_that_move_most_are_drawn():
    answers = [[0.1, 0.2, 0.3, 0.1, 0.3], [0.1, 0.3, 0.1, 0.2, 0.3]]
    part = {"column": "age", "values": [0.0, 100.0], "answers": answers}
    found = dependence_pictures(release_of([part], COLUMNS, classes=list("abcde")))
    assert [name for name, _ in found["lines"]] == ["a", "b", "c", "d"]
    assert found["pictures"][0]["svg"].count("<polyline") == 4


def test_numbers_are_drawn_from_the_least_answer_to_the_largest_of_all_columns():
    parts = [
        {"column": "age", "values": [0.0, 100.0], "answers": [10.0, 20.0]},
        {"column": "<ward>", "values": ["a", "b"], "answers": [0.0, 15.0]},
    ]
    first, _ = dependence_pictures(release_of(parts, COLUMNS, None, [0, 100]))["pictures"]
    assert 'points="44.0,55.0 296.0,10.0"' in first["svg"]


def test_a_logarithmic_scale_is_named():
    (picture,) = dependence_pictures(release_of([AGE], {"age": {"bounds": [1, 100], "scale": "log"}}))["pictures"]
    assert picture["caption"] == "age, by its logarithm"


@pytest.mark.parametrize("parts", [None, []])
def test_without_any_the_page_has_no_section(parts):
    assert dependence_pictures({**RELEASE, "dependence": parts})["pictures"] == []
    assert "What it learnt" not in page()


def test_a_constant_model_is_a_flat_line_in_the_middle():
    part = {"column": "age", "values": [0.0, 100.0], "answers": [3.0, 3.0]}
    (picture,) = dependence_pictures(release_of([part], COLUMNS, None, [0, 100]))["pictures"]
    assert 'points="44.0,55.0 296.0,55.0"' in picture["svg"]
