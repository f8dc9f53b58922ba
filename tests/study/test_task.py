"""Keys that do not go with the task or the design of a study."""

import pytest

from dpselect.errors import StudyError
from tests.study.design_cases import parsed
from tests.study.schema_cases import STUDY


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch, state, no_page):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("tables", "named"),
    [
        ({"search": {"design": "one-run"}, "space": STUDY["space"]}, "space: goes with a search"),
        ({"search": {"design": "one-run"}, "repetitions": STUDY["repetitions"]}, "repetitions: goes with a search"),
        ({"search": {"design": "one-stage"}}, "space: needed for a search"),
        ({"repetitions": STUDY["repetitions"]}, "space: needed for a search"),
        ({"space": STUDY["space"], "validation": {"data": "none"}}, "validation.data: a search compares runs"),
        ({"search": {"design": "three-stage"}}, "search.design"),
    ],
)
def test_what_does_not_go_together_is_named(tables, named):
    with pytest.raises(StudyError) as refused:
        parsed(**tables)
    assert named in str(refused.value)
