"""model-card.md: what machines read on top, and Markdown that names cannot break."""

import json
import re

import pytest

from dpselect.report.model_card import render_model_card
from dpselect.study.write import remake_report
from tests.report.pages import FACTS, released, toy_release

HOSTILE = "a: \"b\" 'c' #d {e} [f]\\ | <b>*g*</b> é 😀 `h` $i$ - 1e5 \u2028\x7f\x85"


def text(**changes):
    return render_model_card(released(**changes), FACTS)


def head(card):
    """The lines between the two lines of dashes, and what comes after."""
    start, lines, body = card.split("---\n", 2)
    assert start == ""
    return lines, body


def read(card):
    return pytest.importorskip("yaml").safe_load(head(card)[0])


def test_the_head_says_what_machines_ask():
    found = read(text())
    assert found["library_name"] == "dpselect"
    assert found["pipeline_tag"] == "tabular-classification"
    assert found["tags"] == ["dpselect", "differential-privacy", "tabular-classification"]
    assert found["metrics"] == ["accuracy", "balanced_accuracy", "log_loss", "roc_auc"]
    assert "license" not in found
    (index,) = found["model-index"]
    assert index["name"] == "toy"
    private, public = index["results"]
    assert private["dataset"] == {"name": "held-out rows of people.csv", "type": "tabular"}
    assert private["metrics"] == [{"type": "accuracy", "name": "accuracy, with noise", "value": 0.71}]
    assert public["dataset"]["name"] == "test.csv"
    assert {each["type"]: each["value"] for each in public["metrics"]}["roc_auc"] == 0.8


def test_the_head_by_hand():
    """Without a library: every line is a key with a value or an item, and nothing else."""
    lines, _ = head(text(validation=None, test=None, score=None))
    assert lines == (
        "library_name: dpselect\npipeline_tag: tabular-classification\ntags:\n- dpselect\n- differential-privacy\n"
        "- tabular-classification\n"
    )
    lines, _ = head(text())
    for line in lines.splitlines():
        assert re.fullmatch(r' *(- )?([a-z-]+|[a-z_-]+: ?("[^"]*"|[\w.-]*)|[\w-]+)', line), line


def test_a_licence_stands_there_where_it_is_declared():
    assert read(text(card={"license": "cc-by-4.0"}))["license"] == "cc-by-4.0"


@pytest.mark.parametrize("value", [1e-05, 123456789.0, 0.0, -0.25, 1e22, 3.0])
def test_figures_are_numbers_for_every_reader(value):
    """YAML 1.1 takes 1e-05 for text."""
    found = read(text(validation={"value": value}))["model-index"][0]["results"][0]["metrics"][0]["value"]
    assert isinstance(found, int | float)
    assert found == pytest.approx(value, rel=1e-3)


def test_a_regression_has_its_own_task_and_names():
    number = {"label": "days", "classes": None, "label_bounds": [0.0, 60.0]}
    figure = {"metric": "absolute-error", "value": 3.5, "less_is_better": True, "constant": None}
    found = read(text(task="regression", data=number, validation=figure, test=None))
    assert found["pipeline_tag"] == "tabular-regression"
    assert found["metrics"] == ["mae"]


def test_names_break_neither_the_head_nor_a_table():
    columns = {HOSTILE: {"categories": [HOSTILE, "x\ny"]}}
    card = text(
        study=HOSTILE, card={"license": HOSTILE, "purpose": HOSTILE}, data={"source": HOSTILE, "columns": columns}
    )
    found = read(card)
    assert found["license"] == found["model-index"][0]["name"] == HOSTILE
    body = head(card)[1]
    rows = [line for line in body.splitlines() if line.startswith("| a:")]
    assert [len(re.findall(r"(?<!\\)\|", row)) for row in rows] == [5]
    assert "<b>" not in body.replace("\\<b\\>", "")


def test_the_body_says_what_the_page_says():
    card = text()
    for said in (
        "## Evaluation",
        "## Privacy",
        "## Training data",
        "## Limits",
        "| age | number | 17 to 90 | counts as 40 |",
    ):
        assert said in card
    assert "\n\n\n" not in card
    assert "dpselect predict model.npz new.csv --to predictions.csv" in card
    nothing = text(found=False, parameters=None, model=None, validation=None, test=None, score=None)
    assert "Nothing was found" in nothing
    assert "How to use it" not in nothing


@pytest.mark.full
def test_it_is_made_again_with_the_page(tmp_path):
    folder = toy_release(tmp_path)
    remake_report(folder, tmp_path / "elsewhere.html")
    assert not (folder / "model-card.md").exists()
    remake_report(folder)
    release, facts = (json.loads((folder / f"{name}.json").read_text()) for name in ("release", "facts"))
    assert (folder / "model-card.md").read_text() == render_model_card(release, facts)
