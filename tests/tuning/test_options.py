"""Options of a search: what they refuse, and what a result shows in a notebook."""

from pathlib import Path

import pytest

from dpselect.errors import ArgumentError
from dpselect.privacy import pure_dp
from dpselect.tuning import Execution, SearchStore, TuneResult


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"payload_bytes": 0}, ArgumentError, "payload_bytes"),
        ({"slots": 0}, ArgumentError, "slots"),
        ({"resume": 1}, ArgumentError, "resume"),
        ({"rows_digest": "text"}, TypeError, "rows_digest"),
    ],
)
def test_a_store_is_checked_at_once(wrong, error, words):
    with pytest.raises(error, match=words):
        SearchStore(**wrong)


def test_marks_are_texts_by_name():
    assert SearchStore(fingerprint="text").marks == {"fingerprint": "text"}
    assert SearchStore(fingerprint={"study": "a", "rows": "b"}).marks == {"study": "a", "rows": "b"}
    assert SearchStore.of("there").path == "there"
    store = SearchStore(slots=1)
    assert SearchStore.of(store) is store
    assert "secret" not in repr(SearchStore(rows_digest=b"secret"))


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"constant_runs": 1}, ArgumentError, "constant_runs"),
        ({"pad_seconds": 0}, ArgumentError, "pad_seconds"),
        ({"reads": "rows.csv"}, TypeError, "a list of paths"),
        ({"reads": Path("rows.csv")}, TypeError, "a list of paths"),
        ({"limits": 3}, TypeError, "limits"),
    ],
)
def test_an_execution_is_checked_at_once(wrong, error, words):
    with pytest.raises(error, match=words):
        Execution(**wrong)
    assert Execution(reads=[Path("a"), "b"]).reads == ("a", "b")


def test_a_notebook_shows_a_score_only_if_it_was_declared():
    release = {"value": None, "guarantee": pure_dp(epsilon=1.0), "replayable": False}
    kept = TuneResult(**release, params={"x": 1}).notebook_rows()
    assert kept[0] == ("parameters", {"x": 1})
    assert "score" not in dict(kept)
    assert dict(TuneResult(**release, params={"x": 1}, score=0.5).notebook_rows())["score"] == 0.5
    assert "parameters" not in dict(TuneResult(**release).notebook_rows())
