"""The contract of learners: its tables, and what it compares."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dpselect.study.price
from dpselect.learners import DPSGDClassifier
from dpselect.testing import learner_contract
from dpselect.testing.learner_contract import narrow, numeric, unpriced, wide


def test_tables_declare_each_column_and_hold_90_rows():
    for table in (narrow(), wide(), wide(6, numbers_only=True), numeric()):
        assert {len(cells) for cells in table.cells.values()} == {90}
        assert set(table.features) == set(table.columns) == set(table.cells) - {"label"}
        assert list(table.features) != sorted(table.features)


def test_a_class_does_not_occur_and_categories_are_unknown():
    table = narrow()
    assert set(table.cells["label"]) == {"yes", "no"}
    assert table.classes == ("yes", "unclear", "no")
    assert set(table.cells["Label"]) - set(map(str, table.columns["Label"]["categories"])) == {""}
    assert table.facts["classes"] == ["yes", "unclear", "no"]
    assert table.task == table.facts["task"] == "classification"


def test_names_of_a_wide_table_are_in_no_order():
    table = wide()
    assert len(table.features) == 21
    assert list(table.columns) == sorted(table.columns)
    assert sum("categories" in facts for facts in table.columns.values()) == 7
    assert set(wide(numbers_only=True).columns["z0"]) == {"bounds"}


def test_numbers_are_beyond_their_bounds_in_places():
    table = numeric()
    labels = np.array(table.cells["label"])
    assert (table.task, table.facts["label_bounds"]) == ("regression", (-15.0, 25.0))
    assert (labels < -15.0).any()
    assert (labels > 25.0).any()
    of_true = np.array(table.cells["Alpha beta"])
    assert labels - 20.0 * np.array(table.cells["zeta"]) == pytest.approx(5.0 * of_true)


def test_the_winner_is_the_one_trained_model_with_the_released_parameters():
    models = [DPSGDClassifier(row_norm=norm) for norm in (1.0, 2.0, 2.0)]
    for model in models[:2]:
        model.weights_ = ()
    assert learner_contract._winner(models, {"row_norm": 2.0}) is models[1]
    with pytest.raises(ValueError, match="unpack"):
        learner_contract._winner(models, {"row_norm": 3.0})


def test_what_is_expected_is_kept_in_a_folder(tmp_path):
    learner_contract._note(tmp_path, {"a": [1.0]}, ["yes"])
    assert json.loads((tmp_path / "rows.json").read_text()) == {"a": [1.0]}
    with np.load(tmp_path / "expected.npz") as archive:
        assert archive.files == ["labels"]
        assert archive["labels"].tolist() == ["yes"]


def test_prices_are_made_up_only_while_it_lasts():
    real = dpselect.study.price.price_study
    with unpriced():
        assert dpselect.study.price.price_study is not real
    assert dpselect.study.price.price_study is real
