"""What a study tells its card: facts that it declares, names without places."""

import json

import pytest

from dpselect.errors import StudyError
from dpselect.study import parse_study
from dpselect.study.validate import StudyPaths, validate
from dpselect.study.write import described
from tests.study.schema_cases import STUDY
from tests.study.write_cases import study_of


def test_the_words_of_the_study_come_first():
    said = {"purpose": "Whom to call again.", "not_for": "Treatment.", "license": "cc-by-4.0"}
    assert described(study_of(card=said), {})["card"] == said
    assert described(study_of(), {})["card"] == dict.fromkeys(said)


@pytest.mark.parametrize("words", ["", "two\nlines", "x" * 1001, 3])
def test_words_are_one_printable_line(words):
    with pytest.raises(StudyError, match=r"card.purpose"):
        study_of(card={"purpose": words})


def test_nobody_learns_where_the_rows_are():
    source = "postgresql://me:secret@host.example/people"
    data = {**STUDY["data"], "source": source, "table": "visits"}
    found = json.dumps(described(study_of(data=data), {}))
    assert "table visits of people (postgresql)" in found
    assert not any(word in found for word in ("secret", "host.example", "me:"))


def test_public_facts_of_columns_are_json(tmp_path):
    study = parse_study(STUDY)
    columns = validate(study, StudyPaths(tmp_path, tmp_path / "out")).columns
    found = described(study, columns)
    assert json.loads(json.dumps(found)) == found
    assert list(found["data"]["columns"]) == list(columns)
    assert found["data"]["nominal_rows"] == study.privacy.nominal_rows
