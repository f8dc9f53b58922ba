"""A search in two stages: its price covers the exact law of what leaves; what it trains, releases and refuses."""

from pathlib import Path

import numpy as np
import pytest

from dpselect.accounting.planning.search_prices import SearchPrice
from dpselect.audit import FiniteSubject, exact_audit
from dpselect.errors import StudyError
from dpselect.privacy import compose
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed, Harmonic, Poisson
from dpselect.study import load_model, run_study
from dpselect.study.design import designed
from dpselect.study.second_stage import SecondStage
from dpselect.study.validate import StudyPaths, validate
from dpselect.testing.exact import best_of_masses, finite_guarantee
from tests.budgets import charges
from tests.study.portfolio_cases import parsed
from tests.study.second_stage_cases import SPACE, priced, two_stages


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch, state, no_page):
    monkeypatch.chdir(tmp_path)


# The price, on finite outputs: a run of the search shows a score and one of two settings, worst first


def run_law(tilt):
    """Scores 0 and 1, settings a and b: (0, a), (0, b), (1, a), (1, b)."""
    masses = np.exp(tilt * np.array([0.0, 0.2, 0.7, 1.0]))
    return masses / masses.sum()


def final_law(setting, tilt):
    """A training with three outputs, other ones for each setting, as private for both."""
    masses = np.exp(tilt * np.array([0.0, 0.3, 1.0]))
    return (masses if setting == "a" else masses[::-1]) / masses.sum()


def whole_law(tilt, law, settings="abab"):
    """The law of (the setting that won, the second stage's output); or of nothing."""
    best = best_of_masses(run_law(tilt), law)
    found = {"none": float(best[0])}
    for place, setting in enumerate(settings):
        for output, p in enumerate(final_law(setting, 2.5 * tilt)):
            key = (setting, output)
            found[key] = found.get(key, 0.0) + float(best[place + 1]) * float(p)
    return found


def refuted(law, claim):
    data, neighbour = (whole_law(tilt, law) for tilt in (0.0, 1.2))
    return exact_audit(FiniteSubject(name="two stages", data=data, neighbour=neighbour, claim=claim)).violated


def stages():
    search = finite_guarantee(run_law(0.0), run_law(1.2))
    finals = [finite_guarantee(final_law(setting, 0.0), final_law(setting, 3.0)) for setting in "ab"]
    return search, finals[0]  # the other has the same curves


@pytest.mark.cases(1)
@pytest.mark.theorem(
    "docs/theory/portfolio.md, Theorem 2", exact=True, loose="the score of the run that won is paid for"
)
@pytest.mark.parametrize("law", [Fixed(count=1), Harmonic(limit=4), Poisson(mean=2.0)])
def test_the_composition_covers_the_search_and_the_second_stage(law):
    search, final = stages()
    assert not refuted(law, SearchPrice((search,), law, final).guarantee)


@pytest.mark.full
@pytest.mark.parametrize("law", [Fixed(count=3), Poisson(mean=2.0)])
def test_a_price_without_one_of_the_stages_is_refuted(law):
    search, final = stages()
    assert refuted(law, final)
    assert refuted(law, SearchPrice((search,), law).guarantee)


# The price of a study


@pytest.mark.full
def test_the_price_is_the_composition_and_uses_the_total():
    found = priced().price
    search = SearchPrice(found.parts, validate(two_stages(), StudyPaths(Path(), Path("out"))).law)
    assert 0.999 * 3.0 <= found.epsilon <= 3.0
    assert search.epsilon(1e-6) == pytest.approx(0.9, rel=5e-3)
    mu = found.second.guarantee.gaussian_mu
    alone = compose(found.second.guarantee, found.parts[0])
    assert alone.epsilon(1e-6) < found.epsilon
    assert mu > 3.0 * found.parts[0].gaussian_mu


@pytest.mark.full
def test_a_share_of_ones_own_and_bounds_that_are_bought():
    columns = {"petal width (cm)": {"bounds": "private"}, "sepal length (cm)": {"bounds": [0, 8]}}
    data = {"source": "sklearn:iris", "classes": [0, 1, 2], "columns": columns}
    found = priced(data=data, refit={"share": 0.5}, repetitions={"law": "harmonic", "limit": 3}).price
    assert found.purchase is not None
    assert 0.999 * 3.0 <= found.epsilon <= 3.0
    most = max(part.epsilon(1e-6) for part in found.parts)
    assert most < 1.5


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"space": {}}, "space: needed for a search"),
        ({"refit": {"share": 1.0}}, "refit.share"),
        ({"refit": {"part": 0.5}}, "refit.part: unknown key; there are share"),
        ({"search": {"design": "one-stage"}}, "refit: goes with a search in two stages"),
        ({"search": {"design": "portfolio"}}, "refit: goes with a search in two stages"),
        ({"validation": {"release_score": True}}, "validation.release_score"),
        ({"validation": {"data": "none"}}, "validation.data: a search compares runs"),
        ({"privacy": {"noise_multiplier": 2.0, "delta": 1e-6, "nominal_rows": 150}}, "privacy.noise_multiplier"),
    ],
)
def test_what_does_not_go_with_two_stages_is_named(tables, said):
    with pytest.raises(StudyError, match=said):
        two_stages(**tables)


def test_a_study_names_two_stages_by_refit_or_by_the_design():
    for study in (two_stages(), parsed(search={"design": "two-stage"}, space=SPACE)):
        found = designed(study)
        assert found.search.design == "two-stage"
        assert found.repetitions == {"law": "zero-truncated-poisson", "mean": 5.0}
        assert designed(found) == found


@pytest.mark.full
def test_the_model_is_that_of_all_rows_and_of_its_key(tmp_path, monkeypatch):
    given = []
    original = SecondStage.trained
    monkeypatch.setattr(SecondStage, "trained", lambda *all_of: given.append(all_of) or original(*all_of))
    release = run_study(two_stages(), base_folder=tmp_path, random=keyed_source(3)).release
    ((stage, settings, (features, labels), key),) = given
    assert len(labels) == len(features) == 150
    assert len(key) == 32
    assert release["parameters"] == settings
    assert release["design"] == "two-stage"
    assert release["validation"] is None
    assert release["score"] is None
    model = load_model(tmp_path / "out" / "model.npz")
    again = stage.recipe.estimator(stage.noise, settings, keyed_source(key)).fit(features, labels)
    assert all(np.array_equal(a, b) for a, b in zip(model.estimator.weights_, again.weights_, strict=True))


@pytest.mark.full
def test_one_that_is_interrupted_in_either_stage_goes_on_and_is_charged_once(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    whole = run_study(two_stages(output={"folder": "whole"}), base_folder=tmp_path, random=keyed_source(7)).release
    for place in ("dpselect.study.split.StudyObjective.__call__", "dpselect.study.second_stage.SecondStage.trained"):
        with monkeypatch.context() as patch:
            patch.setattr(place, interrupted)
            resume = "Second" in place
            with pytest.raises(KeyboardInterrupt):
                run_study(
                    two_stages(),
                    base_folder=tmp_path,
                    resume=resume,
                    random=None if resume else keyed_source(7),
                )
    assert run_study(two_stages(), base_folder=tmp_path, resume=True).release == whole
    assert charges(tmp_path / "out" / "budget.db") == [True]
    models = [load_model(tmp_path / name / "model.npz").estimator.weights_ for name in ("out", "whole")]
    assert all(np.array_equal(a, b) for a, b in zip(*models, strict=True))
