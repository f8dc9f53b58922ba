"""Data dictionaries fill the draft of a study."""

import tomllib

import pytest

from dpselect.errors import ArgumentError
from dpselect.study.columns.column import Column
from tests.cli.init_cases import init

SECRET = "s3cr3t"
HEADER = 'zip,Customer ID,created_at,"odd "" word",stay_duration,income'
ROWS = f"{SECRET},{SECRET},{SECRET},{SECRET},1,{SECRET}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(f"{HEADER}\n{ROWS}")
    return tmp_path


DICTIONARY = """Name,Kind,Description,Low,High,Categories
zip,string,,,,
created_at,date,When the row was made,2019-01-01,2024-12-31,
"odd "" word",factor,,,,a|b
stay_duration,,Nights,0,60,
Customer ID,int,A counter,0,9,
income,numeric,"Euros a
year",0,100000,
gone,number,,0,1,
"""


def test_a_data_dictionary_fills_the_draft(folder):
    (folder / "codebook.csv").write_text(DICTIONARY)
    result = init("people.csv", "--label", "income", "--dictionary", "codebook.csv")
    assert result.exit_code == 0, result.stderr
    document = tomllib.loads(result.stdout)
    assert document["data"]["label_bounds"] == [0, 100000]
    assert document["data"]["task"] == "regression"
    columns = document["data"]["columns"]
    assert columns["created_at"] == {
        "kind": "date",
        "bounds": ["2019-01-01", "2024-12-31"],
        "missing": "indicator",
    }
    assert columns['odd " word'] == {"categories": ["a", "b"], "other": True}
    assert columns["stay_duration"] == {"bounds": [0, 60], "missing": "indicator"}
    assert columns["Customer ID"] == {"bounds": [0, 9], "missing": "indicator"}  # a dictionary knows more than a name
    assert "# When the row was made" in result.stdout
    assert "no such column: 'gone'" in result.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("variabel,kind\na,number\n", "needs a column name"),
        ("name,kind\na,colour\n", "row 'a': kind 'colour' is none of number"),
        ("name,low,high\na,1,\n", "row 'a': give both low and high"),
        ("name\na\na\n", "describes 'a' more than once"),
        (b"\xff\xfe", "not text in UTF-8"),
        (None, "cannot be read"),
    ],
)
def test_a_wrong_dictionary_is_named(folder, content, said):
    if content is not None:
        (folder / "codebook.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    result = init("people.csv", "--label", "income", "--dictionary", "codebook.csv")
    assert isinstance(result.exception, ArgumentError)
    assert said in str(result.exception)


@pytest.mark.parametrize("word", ["boolean", "logical"])
def test_a_dictionary_knows_booleans(folder, word):
    (folder / "codebook.csv").write_text(f"name,kind\nmember,{word}\n")
    (folder / "people.csv").write_text("member,y\n")
    result = init("people.csv", "--label", "y", "--dictionary", "codebook.csv")
    column = tomllib.loads(result.stdout)["data"]["columns"]["member"]
    assert column == {"kind": "boolean", "missing": "indicator"}
    assert Column(**column).kind == "boolean"
