"""The benchmark of releases below the best constant answer: what counts, and one table from end to end."""

import numpy as np
import pytest
from benchmarks.better_models import state_of_its_own, without_reports
from benchmarks.constant_answers import EXAMPLES, lines, noise_of, of_table, subjects
from benchmarks.model_tables import classes_of, numbers_of, table_of

from dpselect.report import page


def test_below_the_constant_by_more_than_the_noise_is_counted():
    gains = [(0.2, 0.05), (-0.03, 0.05), (-0.06, 0.05), (-0.01, None), (None, None)]
    found = [{"subject": "t", "key": k, "gain": gain, "noise": noise} for k, (gain, noise) in enumerate(gains)]
    assert list(lines(found))[-1] == "| t | 4 | 3 | 2 | -20 | -60 | 50 |"


def test_half_of_an_interval_is_noise_and_an_open_one_is_none():
    assert noise_of({"validation": {"low": 0.5, "high": 0.75}}) == 0.125
    for validation in (None, {"low": None, "high": 0.75}):
        assert noise_of({"validation": validation}) is None


def test_every_example_is_a_subject():
    names = [name for name, _ in subjects([1.0], [])]
    assert {path.name for path in EXAMPLES.glob("*.toml")} <= set(names)
    assert "iris, epsilon 1" in names


@pytest.mark.full
@pytest.mark.parametrize("numbers", [False, True])
def test_a_table_from_end_to_end(numbers):
    draw = np.random.default_rng(1)
    X = draw.uniform(-1.0, 1.0, (400, 2))
    y = X[:, 0] if numbers else (X[:, 0] > 0.2).astype(int)
    target = numbers_of(-1.0, 1.0) if numbers else classes_of(y)
    table = table_of("made", X, y, target, [(-1, 1)] * 2)
    with without_reports(), state_of_its_own():
        assert page.render_page({}, {}) == ""  # or each run draws its plots
        found = of_table(table, 3.0, 0)
    assert found["gain"] > 0.1
