"""Runs from rows, and the fits of a cross-validated search."""

import pytest

from dpselect.errors import ContentError
from dpselect.integrations.sweeps.rows import status_of, sweep_of_rows


@pytest.mark.parametrize(
    ("word", "status"),
    [
        *(("FINISHED", "finished"), ("COMPLETE", "finished"), ("TERMINATED", "finished"), ("crashed", "failed")),
        *(("FAIL", "failed"), ("PRUNED", "pruned"), ("running", "running"), ("PENDING", "waiting"), ("x", "unknown")),
    ],
)
def test_words_of_the_tools(word, status):
    assert status_of(word) == status


def test_names_and_states_are_found_by_their_columns():
    sweep = sweep_of_rows("csv", "f", [{"Name": "a", "State": "crashed", "x": 1}, {"Name": None, "State": None}])
    assert [(run.name, run.status) for run in sweep.runs] == [("a", "failed"), ("row 2", "unknown")]


def test_a_table_without_rows():
    with pytest.raises(ContentError, match="no rows"):
        sweep_of_rows("csv", "f", [])


def test_every_candidate_counts_once_for_each_split_and_the_best_once_more():
    rows = [
        {"param_clf__steps": 1, "split0_test_score": 0.1, "split1_test_score": 0.2, "rank_test_score": rank}
        for rank in (2, 1, "1")
    ]
    sweep = sweep_of_rows("csv", "f", rows)
    assert [run.times for run in sweep.runs] == [2, 2, 2, 1, 1]
    assert [run.name for run in sweep.runs[3:]] == ["refit of candidate 1", "refit of candidate 2"]
    assert any("2 splits" in line for line in sweep.rests_on)


def test_without_ranks_every_candidate_may_be_the_best():
    sweep = sweep_of_rows("csv", "f", [{"split0_test_score": 1}, {"split0_test_score": 2}])
    assert sum(run.times for run in sweep.runs) == 4


def test_a_search_without_its_splits_is_refused():
    with pytest.raises(ContentError, match="split0_test_score"):
        sweep_of_rows("csv", "f", [{"mean_test_score": 1, "param_a": 1}])
