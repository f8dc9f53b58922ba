"""A study from file to release: what is written, that it says nothing of K, and what stops it before it starts."""

import json
import os
import re
import stat

import numpy as np
import pytest

import dpselect
import dpselect.study.price
import dpselect.study.write
from dpselect.errors import BudgetError, StudyError
from dpselect.randomness import keyed_source
from dpselect.report.card import shown
from dpselect.study import parse_study, run_study
from dpselect.study.validate import law_of
from tests.study.run_cases import inline, run
from tests.study.schema_cases import STUDY, changed


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture(autouse=True)
def price_once(monkeypatch):
    """Prices are functions of public facts; building loss distributions again for every test would take minutes."""
    original = dpselect.study.price.price_study

    def remembered(study, recipe, law, purchase):
        facts = study.model_dump_json(include={"privacy", "validation", "learner", "repetitions", "data"})
        if facts not in PRICES:
            PRICES[facts] = original(study, recipe, law, purchase)
        return PRICES[facts]

    facts_of = dpselect.study.write.search_facts

    def remembered_facts(*, search, **public):
        if id(search) not in FACTS or public["budget"] is not None:
            FACTS[id(search)] = facts_of(search=search, **public)
        return FACTS[id(search)]

    monkeypatch.setattr("dpselect.study.price.price_study", remembered)
    monkeypatch.setattr("dpselect.study.write.search_facts", remembered_facts)


PRICES = {}
FACTS = {}
KEPT = changed("validation", {"release_score": False})


@pytest.mark.full
def test_a_release_has_model_page_and_json(tmp_path):
    finished = run(tmp_path)
    release = json.loads((tmp_path / "out" / "release.json").read_text())
    assert release == finished.release
    assert release["found"] is True
    assert release["guarantee"]["epsilon"] <= 3.0
    assert release["guarantee"]["delta"] == 1e-5
    assert release["guarantee"]["adjacency"] == "add_or_remove_one"
    assert release["validation"]["low"] <= release["validation"]["value"] <= release["validation"]["high"]
    assert set(release["parameters"]) == {"learning_rate"}
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count("<svg") == 8  # four of the price and the validation, and one for each column
    facts = json.loads((tmp_path / "out" / "facts.json").read_text())
    assert facts["epsilon"] == release["guarantee"]["epsilon"]
    assert facts["budget"] is None
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "src=" not in page
    assert "<script" not in page


@pytest.mark.full
def test_the_model_loads_and_predicts_raw_rows(tmp_path):
    run(tmp_path)
    from sklearn.datasets import load_iris

    X = load_iris().data
    model = dpselect.load_model(tmp_path / "out" / "model.npz")
    labels = model.predict(X)
    assert set(np.unique(labels)) <= {0, 1, 2}
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert np.array_equal(model.predict_proba(X).argmax(axis=1), labels)


def test_a_file_that_is_no_model_is_refused(tmp_path):
    (tmp_path / "x.npz").write_bytes(b"no")
    with pytest.raises(StudyError, match="not a released model"):
        dpselect.load_model(tmp_path / "x.npz")


@pytest.mark.full
def test_the_score_is_released_unless_the_study_says_no(tmp_path):
    """Its noise is part of the price in any case: the price is the same to the last digit."""
    shown, kept = run(tmp_path), run(tmp_path, KEPT, folder="kept")
    assert isinstance(shown.release["score"], float)
    assert kept.release["score"] is None
    assert kept.release["validation"] is None
    for part in ("guarantee", "parameters"):
        assert shown.release[part] == kept.release[part]


def files_of(folder):
    return {path.name: (path.stat().st_size, stat.S_IMODE(path.stat().st_mode)) for path in sorted(folder.iterdir())}


@pytest.mark.full
def test_what_is_written_does_not_depend_on_the_number_of_runs(tmp_path):
    """Two keys that draw the smallest and the largest K: same files, same sizes, and pages that differ only in the
    winner's parameters and in what its model learnt, if the study keeps the score and counts no cells."""
    asked = {**KEPT, "data": {**KEPT["data"], "count_cells": False}}
    law = law_of(parse_study(STUDY))
    keys = {law.sample(keyed_source(key)): key for key in range(60, -1, -1)}
    assert set(keys) == {1, 2, 3}
    seen = []
    for count in (1, 3):
        FACTS.clear()  # so that both searches compute what they show
        folder = tmp_path / f"k{count}"
        release = run(tmp_path, asked, folder=folder.name, key=keys[count]).release
        rate = release["parameters"]["learning_rate"]
        page = (folder / "report.html").read_text().replace(shown(rate), "RATE")
        page = re.sub('<section aria-labelledby="learnt">.*?</section>', "", page, flags=re.DOTALL)
        written = json.loads((folder / "release.json").read_text())
        assert len(written.pop("dependence")) == 4
        text = json.dumps(written).replace(str(rate), "RATE")
        sizes = {name: size for name, size in files_of(folder).items() if name not in ("report.html", "release.json")}
        for name in ("model.npz", "model-card.md"):  # which hold the winner's parameters as text
            sizes[name] = (0, sizes[name][1])
        seen.append((page, text, sizes))
    assert seen[0] == seen[1]


@pytest.mark.full
def test_the_sealed_store_and_key_are_private_and_the_key_is_gone_afterwards(tmp_path):
    run(tmp_path)
    store = tmp_path / "out" / "search.sealed"
    assert stat.S_IMODE(store.stat().st_mode) == 0o600
    assert not [path for path in (tmp_path / "state" / "dpselect" / "keys").iterdir() if path.is_file()]


@pytest.mark.full
def test_the_same_key_gives_the_same_release(tmp_path):
    first, second = run(tmp_path, folder="a").release, run(tmp_path, folder="b").release
    assert first == second
    assert first["replayable"] is True
    assert (tmp_path / "a" / "model.npz").read_bytes() == (tmp_path / "b" / "model.npz").read_bytes()


@pytest.mark.full
def test_a_folder_that_holds_a_release_is_refused(tmp_path):
    run(tmp_path)
    with pytest.raises(StudyError, match=r"already holds a release: .* --resume"):
        run(tmp_path)


@pytest.mark.full
def test_resuming_a_finished_search_says_so(tmp_path):
    run(tmp_path)
    with pytest.raises(StudyError, match="done"):
        run(tmp_path, resume=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_folder_is_refused(tmp_path):
    (tmp_path / "out").mkdir(mode=0o500)
    with pytest.raises(StudyError, match="not writable"):
        run(tmp_path)


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(StudyError, match="not writable"):
        run(tmp_path)


def test_an_impossible_budget_is_refused_before_a_row_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("dpselect.study.load.load", lambda *_: pytest.fail("a row was read"))
    with pytest.raises(BudgetError):
        run(tmp_path, changed("privacy", {"epsilon": 3.0, "delta": 0.0, "nominal_rows": 150}))


@pytest.mark.full
def test_every_run_failing_looks_like_no_run(tmp_path, monkeypatch):
    """ "None" is written in full, with the full price and no reason."""
    monkeypatch.setattr("dpselect.study.split.StudyObjective.__call__", lambda *_: 1 / 0)
    failed = run(tmp_path, folder="failed").release
    assert failed["found"] is False
    assert failed["parameters"] is None
    assert failed["guarantee"]["epsilon"] == run_price(tmp_path)
    assert "Nothing was found" in (tmp_path / "failed" / "report.html").read_text()


def run_price(tmp_path):
    from dpselect.study.learners.recipe import recipe_of
    from dpselect.study.price import price_study

    study = inline(STUDY)
    priced = price_study(study, recipe_of(study, nominal_rows=120.0), law_of(study), None)
    return priced.search.statement(delta=1e-5).epsilon


@pytest.mark.full
def test_public_validation_costs_nothing_and_scores_exactly(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["a,b,target"] + [f"{x},{y},{int(x > y)}" for x, y in rng.random((60, 2))]
    (tmp_path / "public.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "private.csv").write_text("\n".join(lines) + "\n")
    document = changed("validation", {"data": "public", "source": "public.csv", "release_score": True})
    document["data"] = {"source": "private.csv", "classes": [0, 1], "bounds": [0, 1]}
    release = run(tmp_path, document).release
    assert release["score"] * 60 == pytest.approx(round(release["score"] * 60), abs=1e-9)


@pytest.mark.full
def test_a_changed_study_is_found_before_a_row_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("dpselect.study.run.write", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(tmp_path)
    monkeypatch.setattr("dpselect.study.load.load", lambda *_: pytest.fail("a row was read"))
    with pytest.raises(StudyError, match=r"the study has changed .* was begun: learner.steps; it"):
        run(tmp_path, changed("learner.steps", 21), resume=True)
    with pytest.raises(StudyError, match="by --resume"):
        run(tmp_path)


@pytest.mark.full
def test_a_noise_multiplier_in_place_of_a_total(tmp_path):
    document = changed("privacy", {"noise_multiplier": 4.0, "delta": 1e-5, "nominal_rows": 150})
    guarantee = run(tmp_path, document).release["guarantee"]
    from dpselect.accounting import best_of
    from dpselect.privacy import dp_sgd
    from dpselect.repetitions import Harmonic

    training = best_of(dp_sgd(noise_multiplier=4.0, sampling_rate=0.2, steps=20), Harmonic(limit=3))
    # the score is calibrated to what training costs, so the larger of the two is training's
    assert guarantee["epsilon"] == pytest.approx(training.epsilon(1e-5), rel=1e-9)
    parts = [part["base"]["mechanism"] for part in guarantee["terms"]["worst_of"]]
    assert parts == ["dp-sgd", "gaussian"]


@pytest.mark.full
def test_the_key_in_an_environment_variable(tmp_path, monkeypatch):
    import base64

    document = changed("output", {"folder": "out", "key_variable": "DPSELECT_TEST_KEY"})
    with pytest.raises(StudyError, match="DPSELECT_TEST_KEY"):
        run(tmp_path, document)
    monkeypatch.setenv("DPSELECT_TEST_KEY", base64.b64encode(bytes(range(32))).decode())
    finished = run(tmp_path, document, folder="other")
    assert finished.key_variable == "DPSELECT_TEST_KEY"
    assert not (tmp_path / "state").exists() or not list((tmp_path / "state").rglob("*.key"))


@pytest.mark.full
def test_constant_runs_release_the_same(tmp_path):
    study = inline(STUDY, constant=True)
    finished = run_study(study, base_folder=tmp_path, folder=tmp_path / "constant", random=keyed_source(1))
    assert finished.release["parameters"] == run(tmp_path).release["parameters"]


def test_ledger_and_budget_go_together():
    with pytest.raises(StudyError, match="go together"):
        parse_study(changed("privacy", {**STUDY["privacy"], "ledger": "budget.db"}))
