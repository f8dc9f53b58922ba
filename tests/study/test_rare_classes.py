"""Tables with few positives, on which accuracy misleads: what a study says of it, and what finds them."""

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from typer.testing import CliRunner

import dpselect
from dpselect.cli.app import app
from dpselect.randomness import keyed_source
from dpselect.report.page import render_page
from dpselect.study import check_study, parse_study, run_study
from dpselect.testing.learner_contract import unpriced
from tests.cli.test_app import toml
from tests.report.pages import FACTS, RELEASE

ROWS = 6000


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def table(tmp_path):
    """2 % of the rows are ill, by a score of two of four features."""
    random = np.random.default_rng(1)
    X = random.uniform(-1.0, 1.0, (ROWS, 4))
    hidden = X[:, 0] + X[:, 1] + 0.3 * random.normal(size=ROWS)
    y = hidden > np.quantile(hidden, 0.98)
    states = np.where(y, "ill", "well")
    lines = ["a,b,c,d,state", *(",".join([*map(str, row), k]) for row, k in zip(X, states, strict=True))]
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
    return X, y


def document(metric=None, *, shares=None, weights=None):
    data = {"source": "table.csv", "label": "state", "classes": ["well", "ill"], "bounds": [-1, 1]}
    return {
        "data": data | ({"class_shares": shares} if shares else {}),
        "privacy": {"epsilon": 8.0, "delta": 1e-5, "nominal_rows": ROWS},
        "validation": {"release_score": True} | ({"metric": metric} if metric else {}),
        "learner": {"name": "ridge"} | ({"class_weights": weights} if weights else {}),
        "space": {"row_norm": {"law": "uniform", "low": 1.0, "high": 1.2}},
        "repetitions": {"law": "fixed", "count": 2},
        "runs": {"executor": "inline"},
        "output": {"folder": "out"},
    }


def run(tmp_path, study, folder):
    with unpriced():
        return run_study(
            parse_study(study), base_folder=tmp_path, folder=tmp_path / folder, random=keyed_source(3)
        ).release


def page(release):
    """Its page, with the price of another search."""
    return render_page(release | {"guarantee": RELEASE["guarantee"]}, FACTS)


@pytest.mark.parametrize("shares", [{"ill": 0.02}, {"well": 0.98}, {"ill": 0.02, "well": 0.98}])
def test_the_check_says_that_accuracy_misleads(tmp_path, table, shares):
    with unpriced():
        found = check_study(parse_study(document(shares=shares)), base_folder=tmp_path, folder=tmp_path / "out")
    note = found["notes"][0]
    assert note == (
        "always predicting 'well' is right for about 0.98 of the rows: accuracy says little of the rarest class, take "
        "validation.metric = balanced-accuracy or auc"
    )
    (tmp_path / "study.toml").write_text(toml(document(shares=shares)))
    with unpriced():
        result = CliRunner().invoke(app, ["tune", "study.toml", "--check", "--quiet"])
    assert f"note: {note}" in result.stdout


@pytest.mark.parametrize("shares", [None, {"ill": 0.4}])
def test_without_a_public_share_or_with_common_classes_nothing_is_said(tmp_path, table, shares):
    with unpriced():
        found = check_study(parse_study(document(shares=shares)), base_folder=tmp_path, folder=tmp_path / "out")
    assert not [note for note in found["notes"] if "accuracy" in note]


@pytest.mark.parametrize(
    ("metric", "shares", "weights", "said"),
    [
        ("balanced-accuracy", None, None, True),
        ("balanced-accuracy", {"ill": 0.02}, None, False),
        ("balanced-accuracy", {"ill": 0.4}, None, False),
        ("balanced-accuracy", None, {"ill": 40.0}, False),
        ("auc", None, None, False),
        ("accuracy", None, None, False),
    ],
)
def test_a_metric_that_counts_classes_asks_for_weights(tmp_path, table, metric, shares, weights, said):
    study = parse_study(document(metric, weights=weights, shares=shares))
    with unpriced():
        notes = check_study(study, base_folder=tmp_path, folder=tmp_path / "out")["notes"]
    assert any("class_weights = { RARE = 10 } under [learner]" in note for note in notes) == said


@pytest.mark.full
def test_the_card_says_that_the_model_is_no_better_than_one_answer(tmp_path, table):
    """Accuracy 0.98 with 2 % of positives, as public shares tell: on top, in a warning and beside the figure."""
    release = run(tmp_path, document(shares={"ill": 0.02}), "out")
    assert release["validation"]["value"] > 0.95
    assert release["validation"]["constant"] == {"value": 0.98, "answer": "well", "from": "declared"}
    text = page(release)
    assert "constant prediction</dt><dd>0.98 <small>the model is not shown to be better<" in text
    assert "Always predicting &#39;well&#39; is right for about 0.98 of the rows: accuracy says little" in text
    assert "By its scores the model is no better than always predicting well, with accuracy 0.98." in text


@pytest.mark.full
def test_weights_and_a_metric_that_counts_classes_find_the_positives(tmp_path, table):
    X, y = table
    plain = run(tmp_path, document(), "plain")
    assert plain["notes"] == []  # nothing public says it, and accuracy does not pay for it
    assert plain["validation"]["constant"] is None
    assert "Where one class is rare, a constant prediction may do as well" in page(plain)
    chosen = run(tmp_path, document("balanced-accuracy", weights={"ill": 40.0}), "chosen")
    counted = chosen["validation"]["rows_by_class"]
    assert counted[1] < 60 < 1000 < counted[0]
    share = chosen["validation"]["shares"][0]["value"]
    assert 0.97 < share < 0.99
    assert chosen["notes"][0].startswith(f"always predicting 'well' is right for about {share:.3g} of the rows: ")
    models = [dpselect.load_model(tmp_path / folder / "model.npz") for folder in ("plain", "chosen")]
    answers = [model.predict(X) == "ill" for model in models]
    assert chosen["validation"]["constant"] == {"value": 0.5, "answer": None, "from": "metric"}
    assert "The interval does not exclude" not in page(chosen)
    assert balanced_accuracy_score(y, answers[0]) < 0.6
    assert balanced_accuracy_score(y, answers[1]) > 0.8
    low, high = chosen["validation"]["low"], chosen["validation"]["high"]
    assert low <= balanced_accuracy_score(y, answers[1]) <= high
    ranked = run(tmp_path, document("auc", weights={"ill": 40.0}), "ranked")
    area = roc_auc_score(y, dpselect.load_model(tmp_path / "ranked" / "model.npz").predict_proba(X)[:, 1])
    assert area > 0.9
    assert ranked["validation"]["low"] <= area <= ranked["validation"]["high"]
