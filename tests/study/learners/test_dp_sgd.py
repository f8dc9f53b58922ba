"""DP-SGD in a study: a rate that was searched follows the rule when the noise changes."""

import pytest

from tests.study.second_stage_cases import priced

# What is trained and released


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch, state, no_page):
    monkeypatch.chdir(tmp_path)


@pytest.mark.full
def test_a_rate_that_was_searched_changes_as_the_rule_does_and_nothing_else():
    stage = priced().price.second
    drawn = {"learning_rate": 2.0, "map": "cos4"}
    found = stage.carried(drawn)
    before, after = stage.searched.estimator(stage.first, {}, None), stage.recipe.estimator(stage.noise, {}, None)
    rates = [one._schedule(1.0).learning_rate for one in (before, after)]
    assert found == {"learning_rate": pytest.approx(2.0 * rates[1] / rates[0]), "map": "cos4"}
    assert stage.carried({"map": "cos4"}) == {"map": "cos4"}
