"""The price of a study: every part that a row pays for is in it."""

from pathlib import Path

import pytest

from dpselect.accounting.planning.search_prices import SearchPrice
from dpselect.errors import BudgetError, StudyError
from dpselect.mechanisms import NoisyCount
from dpselect.privacy import Adjacency, compose, gaussian
from dpselect.study import parse_study
from dpselect.study.price import _fingerprint, price
from dpselect.study.validate import StudyPaths, validate
from tests.study.portfolio_cases import MANY, parsed
from tests.study.schema_cases import changed
from tests.study.training_scores_cases import priced, searched
from tests.study.write_cases import study_of

# The price of a study

RATES = {"learning_rate": {"law": "log_uniform", "low": 0.1, "high": 10.0}}


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


def told(**tables):
    privacy = {**MANY, "nominal_rows": 150}
    return price(validate(parsed(**{"privacy": privacy, **tables}), StudyPaths(Path(), Path("out"))))


def words(found):
    """The probability in the report's plain words: a guess about one row is right with it at most."""
    return (1.0 + found.price.search.delta(0.0)) / 2.0


@pytest.mark.parametrize("design", ["one-run", pytest.param("portfolio", marks=pytest.mark.full)])
def test_a_figure_leaves_the_protection_in_plain_words_as_it_is(design):
    maps = {} if design == "one-run" else {"map": {"law": "categorical", "choices": ["cos4", "joint"]}}
    space = {"space": maps, "repetitions": {}}
    alone = told(search={"design": design}, validation={"data": "none"}, **space)
    shown = told(search={"design": design}, validation={"data": "private"}, **space)
    assert alone.score_noise is None
    assert shown.score_noise.multiplier > 0.0
    assert words(shown) == pytest.approx(words(alone), abs=0.002)
    assert shown.price.epsilon <= MANY["epsilon"]
    much = {"data": "private", "score_epsilon": 0.8 * MANY["epsilon"]}
    pure = told(search={"design": design}, validation=much, **space)
    assert words(pure) > words(shown) + 0.1


@pytest.mark.full
@pytest.mark.cases(1)
def test_a_row_that_validates_pays_no_more_than_one_that_trains():
    """The noise of the figure, by the parameter of its Gaussian, is that of training, for one run and for a search."""
    one = {"search": {"design": "one-run"}, "space": {}}
    laws = (one, {"search": {"design": "one-stage"}, "space": RATES, "repetitions": {"law": "harmonic", "limit": 3}})
    for tables in laws:
        found = told(validation={"data": "private"}, **tables)
        training = found.settled.recipe.guarantee(found.price.noise)
        assert found.price.parts == (training,)
        assert 1.0 / found.price.score_multiplier <= training.gaussian_mu
        assert found.price.score_multiplier == pytest.approx(1.0 / training.gaussian_mu)
        score = gaussian(noise_multiplier=found.price.score_multiplier)
        assert SearchPrice((score,), found.settled.law).epsilon(1e-6) <= found.price.epsilon
    with_less = gaussian(noise_multiplier=0.9 * found.price.score_multiplier)
    assert SearchPrice((with_less,), found.settled.law, found.price.beside).epsilon(1e-6) > MANY["epsilon"]


@pytest.mark.full
def test_a_sampled_run_has_a_figure_that_is_priced_for_itself():
    learner = {"name": "dp-sgd", "sampling_rate": 0.2, "steps": 20}
    found = told(validation={"data": "private"}, learner=learner, search={"design": "one-run"}, space={}).price
    assert len(found.parts) == 2
    assert found.parts[1].gaussian_mu == pytest.approx(1.0 / found.score_multiplier)
    assert found.epsilon <= MANY["epsilon"]


@pytest.mark.full
def test_without_delta_a_figure_has_laplace_noise():
    privacy, one = {"epsilon": 3.0, "delta": 0.0, "nominal_rows": 150}, {"search": {"design": "one-run"}, "space": {}}
    found = told(privacy=privacy, learner={"name": "output-perturbation"}, validation={"data": "private"}, **one).price
    assert found.score_multiplier is None
    assert found.parts[1].pure_epsilon == pytest.approx(found.score_epsilon)
