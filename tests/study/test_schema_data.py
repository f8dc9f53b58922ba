"""`[data]` of a study file: public facts of the table, checked before a row of it is read."""

import pytest

from dpselect.errors import StudyError
from dpselect.study import parse_study
from dpselect.study.schema_data import KEYS_ALONE, Data
from tests.study.schema_cases import changed


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("data.source", None, "data.source"),
        ("data.classes", [0], "data.classes"),
        ("data.classes", [0, 0], "classes must differ"),
        ("data.bounds", [1, 0], "bounds"),
        ("data.bounds", None, "bounds"),
        ("data.columns", {"a": {}}, "data.columns.a"),
        ("data.columns", {"target": {"bounds": [0, 1]}}, "label"),
        ("data.row_key", 3, "data.row_key"),
    ],
)
def test_a_wrong_key_is_named(path, value, named):
    with pytest.raises(StudyError, match=named):
        parse_study(changed(path, value))


def test_the_form_of_a_source_is_declared_beside_it():
    data = Data(source="a.csv", bounds=(0, 1), delimiter=";", decimal=",", skip_rows=2)
    assert (data.form.delimiter, data.form.decimal, data.form.skip_rows) == (";", ",", 2)


def test_keys_alone_are_checked_where_tables_are_read_apart():
    assert Data.model_validate({"source": "a.csv"}, context=KEYS_ALONE).bounds is None
    with pytest.raises(ValueError, match="give bounds"):
        Data.model_validate({"source": "a.csv"})
