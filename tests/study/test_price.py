"""The price of a study: every part that a row pays for is in it."""

from pathlib import Path

import pytest

from dpselect.accounting.planning.search_prices import SearchPrice
from dpselect.errors import BudgetError, StudyError
from dpselect.mechanisms import NoisyCount
from dpselect.privacy import Adjacency, compose
from dpselect.study import parse_study
from dpselect.study.price import _fingerprint
from dpselect.study.validate import StudyPaths, validate
from tests.study.portfolio_cases import MANY
from tests.study.schema_cases import changed
from tests.study.training_scores_cases import priced, searched
from tests.study.write_cases import study_of

# The price of a study


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch, state, no_page):
    monkeypatch.chdir(tmp_path)


@pytest.mark.full
def test_every_row_pays_for_training_and_scores():
    found = priced().price
    settled = validate(searched(), StudyPaths(Path(), Path("out")))
    score = NoisyCount(epsilon=found.score_epsilon, adjacency=Adjacency.ADD_OR_REMOVE_ONE).guarantee
    assert len(found.parts) == 1
    both = compose(settled.recipe.guarantee(found.noise), score)
    assert found.parts[0].epsilon(1e-6) == both.epsilon(1e-6) > settled.recipe.guarantee(found.noise).epsilon(1e-6)
    runs = SearchPrice(found.parts, settled.law).guarantee
    assert found.search.epsilon(1e-6) == compose(runs, found.cells.guarantee).epsilon(1e-6)
    assert 0.999 * MANY["epsilon"] <= found.epsilon <= MANY["epsilon"]
    alone = SearchPrice((score,), settled.law).epsilon(1e-6)
    assert 0.99 * 0.1 * MANY["epsilon"] <= alone <= 0.1 * MANY["epsilon"]


@pytest.mark.full
def test_a_score_epsilon_of_ones_own_and_with_a_noise_multiplier():
    told = {"data": "training", "score_epsilon": 0.02}
    assert priced(validation=told).price.score_epsilon == 0.02
    noisy = {"noise_multiplier": 8.0, "delta": 1e-6, "nominal_rows": 150}
    found = priced(validation=told, privacy=noisy).price
    aside = priced(validation={"score_epsilon": 0.02}, privacy=noisy).price
    assert found.epsilon > aside.epsilon
    with pytest.raises(StudyError, match=r"validation.score_epsilon: needed where \[privacy\]"):
        priced(privacy=noisy)


@pytest.mark.full
def test_with_a_second_stage_the_whole_uses_the_total():
    found = priced(search={"design": "two-stage"})
    stage = found.price.second
    assert stage is not None
    both = compose(stage.searched.guarantee(stage.first), NoisyCount(epsilon=found.price.score_epsilon).guarantee)
    assert [part.epsilon(1e-6) for part in found.price.parts] == [both.epsilon(1e-6)]
    assert 0.999 * MANY["epsilon"] <= found.price.epsilon <= MANY["epsilon"]


@pytest.mark.parametrize("design", ["one-stage", "two-stage"])
def test_scores_that_leave_nothing_for_training_are_refused_by_name(design):
    with pytest.raises(BudgetError, match=r"validation\.score_epsilon: scores alone cost epsilon"):
        priced(search={"design": design}, validation={"data": "training", "score_epsilon": 50.0})


def test_other_words_do_not_stop_a_resume(tmp_path):
    """They are no part of what is searched; another total is."""
    marks = [
        _fingerprint(validate(study, StudyPaths(tmp_path, tmp_path / "out")))
        for study in (study_of(), study_of(card={"purpose": "Another."}), parse_study(changed("privacy.epsilon", 2.5)))
    ]
    assert marks[0] == marks[1]
    assert {name for name in marks[0] if marks[0][name] != marks[2][name]} == {"privacy.epsilon"}
