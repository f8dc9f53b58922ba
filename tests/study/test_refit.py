"""The model that a search stands for: the last run on all rows."""

import itertools
import math

import numpy as np
import pytest

from dpselect.randomness import keyed_source
from dpselect.study import refit, run_study
from tests.study.second_stage_cases import two_stages


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch, state, no_page):
    monkeypatch.chdir(tmp_path)


@pytest.mark.full
def test_a_second_stage_that_fails_looks_like_nothing_found(tmp_path, monkeypatch):
    monkeypatch.setattr("dpselect.study.second_stage.SecondStage.trained", lambda *_: None)
    release = run_study(two_stages(), base_folder=tmp_path, random=keyed_source(3)).release
    assert not release["found"]
    assert release["parameters"] is None
    assert not (tmp_path / "out" / "model.npz").exists()


@pytest.mark.full
def test_the_winning_model_of_the_search_does_not_leave(tmp_path, monkeypatch):
    values = []
    original = refit._last_run

    def noting(opened, params, value):
        values.append(value)
        return original(opened, params, value)

    monkeypatch.setattr(refit, "_last_run", noting)
    asked = two_stages()
    asked = asked.model_copy(update={"data": asked.data.model_copy(update={"count_cells": False})})
    run_study(asked, base_folder=tmp_path, random=keyed_source(3))
    assert [[each.dtype for each in value] for value in values] == [[np.dtype(np.uint8)]]
    assert math.prod(itertools.chain.from_iterable(each.shape for each in values[0])) == 32
