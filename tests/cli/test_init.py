"""`dpselect init`: a draft from names and types, never from cells."""

import sqlite3
import tomllib

import pytest

from dpselect.errors import ContentError, StudyError
from dpselect.study import load_study, parse_study
from dpselect.study.schema import Card
from dpselect.tables.table import open_table
from tests.cli.init_cases import init

SECRET = "s3cr3t"
HEADER = 'zip,Customer ID,created_at,"odd "" word",stay_duration,income'
ROWS = f"{SECRET},{SECRET},{SECRET},{SECRET},1,{SECRET}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(f"{HEADER}\n{ROWS}")
    return tmp_path


def test_a_draft_of_a_text_file_guesses_by_names_and_says_so(folder):
    result = init("people.csv", "--label", "income", "--epsilon", "2.5")
    assert result.exit_code == 0
    document = tomllib.loads(result.stdout)
    assert (document["name"], document["data"]["source"]) == ("people", "people.csv")
    assert document["privacy"]["epsilon"] == 2.5
    kinds = {name: facts.get("kind", "number") for name, facts in document["data"]["columns"].items()}
    assert kinds == {"zip": "number", "created_at": "date", 'odd " word': "number", "stay_duration": "duration"}
    assert "Customer ID: left out, a guess: its name has the word 'id', which tells people apart" in result.stderr
    assert "created_at: taken for a date, a guess: its name has the word 'at'" in result.stderr
    assert SECRET not in result.output


def test_no_row_is_read(folder):
    """The same names over other rows, or over none, give the same draft."""
    drafts = set()
    for rows in (ROWS, "", "1,2,3,4,5,6\n" * 9):
        (folder / "people.csv").write_text(f"{HEADER}\n{rows}")
        drafts.add(init("people.csv", "--label", "income").stdout)
    assert len(drafts) == 1


def test_every_blank_is_named_and_a_filled_draft_is_a_study(folder):
    result = init("people.csv", "--label", "income", "--to", "study.toml")
    assert (result.exit_code, result.stdout) == (0, "wrote study.toml\n")
    with pytest.raises(StudyError) as caught:
        load_study(folder / "study.toml")
    lines = str(caught.value).splitlines()[1:]
    assert "  data.classes: still to be filled in" in lines
    assert "  data.columns.zip: still to be filled in" in lines
    assert "  privacy.nominal_rows: still to be filled in" in lines
    assert all(line.endswith("still to be filled in") for line in lines)
    text = (folder / "study.toml").read_text()
    text = text.replace('classes = ["FILL IN", "FILL IN"]', "classes = [0, 1]").replace(
        'rows = "FILL IN"', "rows = 900"
    )
    text = text.replace('"date", bounds = ["FILL IN", "FILL IN"]', '"date", bounds = [2000-01-01, 2020-01-01]')
    study = parse_study(tomllib.loads(text.replace('["FILL IN", "FILL IN"]', "[0, 1]")))
    assert study.data.columns["created_at"].limits[0] == 946684800.0


def test_the_card_of_a_draft_is_one_as_soon_as_its_comments_are_off(folder):
    draft = init("people.csv", "--label", "income").stdout
    assert "card" not in tomllib.loads(draft)
    first = draft.index("# [card]")
    whole, rest = draft[first:].split("\n\n", 1)
    card = tomllib.loads(draft[:first] + whole.replace("# ", "", 1).replace("\n# ", "\n") + "\n\n" + rest)["card"]
    assert set(card) == set(Card.model_fields)
    assert Card(**card)


def test_a_table_in_another_encoding_names_the_flag_and_the_key(folder):
    (folder / "latin.csv").write_bytes("größe,income\n1,2\n".encode("latin-1"))
    refused = init("latin.csv", "--label", "income")
    assert refused.exit_code == 1
    assert "is not text in UTF-8; save it in that encoding, or declare its own by --encoding" in str(refused.exception)
    drafted = init("latin.csv", "--label", "income", "--encoding", "latin-1", "--to", "s.toml")
    assert drafted.exit_code == 0
    assert tomllib.loads((folder / "s.toml").read_text())["data"]["encoding"] == "latin-1"
    with pytest.raises(ContentError, match=r"declare its own by data.encoding: it reads as latin-1"):
        open_table("latin.csv", folder)


def test_columns_without_a_name_are_left_out(folder):
    (folder / "sheet.csv").write_text(",age,income,,\n1,2,3,,\n")
    drafted = init("sheet.csv", "--label", "income")
    assert drafted.exit_code == 0
    assert list(tomllib.loads(drafted.stdout)["data"]["columns"]) == ["age"]
    assert "left out: 3 without a name in the header" in drafted.stderr


def test_blanks_are_named_beside_other_mistakes(folder):
    init("people.csv", "--label", "income", "--to", "study.toml")
    document = tomllib.loads((folder / "study.toml").read_text())
    document["privacy"]["epsilon"] = -1
    with pytest.raises(StudyError, match=r"(?s)data.classes: still to be filled in.*privacy.epsilon: "):
        parse_study(document)


def test_types_of_a_schema_are_taken(folder):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    columns = {
        "day": pa.array([], pa.date32()),
        "at": pa.array([], pa.int8()),
        "span": pa.array([], pa.duration("s")),
        "job": pa.array([], pa.string()),
        "tags": pa.array([], pa.list_(pa.string())),
        "id": pa.array([], pa.int64()),
        "y": pa.array([], pa.bool_()),
    }
    pyarrow.parquet.write_table(pa.table(columns), folder / "t.parquet")
    connection = sqlite3.connect(folder / "t.db")
    connection.execute("CREATE TABLE t (day DATE, at INT(3), span INTERVAL, job VARCHAR(9), tags BLOB, id INT, y INT)")
    connection.close()
    for source in (["t.parquet"], ["sqlite:///t.db", "--table", "t"]):
        result = init(*source, "--label", "y")
        found = tomllib.loads(result.stdout)["data"]["columns"]
        assert list(found) == ["day", "at", "span", "job"]
        assert [found[name].get("kind", "number") for name in ("day", "at", "span")] == ["date", "number", "duration"]
        assert found["job"]["other"] is True
        assert "tags: left out" in result.stderr
        assert "id: left out, a guess: its name has the word 'id'" in result.stderr


def test_in_a_terminal_it_asks(folder, monkeypatch):
    monkeypatch.setattr("dpselect.cli.init._in_terminal", lambda: True)
    (folder / "people.csv").write_text("age,job,income\n")
    answers = ["about 900", "<=50K, >50K", "number", "17, 90", "category", "nurse, 3, other job"]
    result = init("people.csv", "--label", "income", "--to", "s.toml", input="900\n" + "\n".join(answers[1:]) + "\n")
    assert result.exit_code == 0, result.output
    study = load_study(folder / "s.toml")
    assert study.data.classes == ("<=50K", ">50K")
    assert study.privacy.nominal_rows == 900
    assert study.data.columns["age"].bounds == (17, 90)
    assert study.data.columns["job"].categories == ("nurse", 3, "other job")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("people.csv", "--label", "pay"), "--label: no such column: 'pay'; there are 'zip', 'Customer ID'"),
        (("none.csv", "--label", "pay"), "cannot read DATA 'none.csv'"),
        (("people.csv", "--label", "income", "--to", "people.csv"), "--to: 'people.csv' exists already"),
        (("people.csv", "--label", "income", "--to", "none/s.toml"), "--to: 'none/s.toml' cannot be written"),
        (("people.csv", "--label", "income", "--epsilon", "0"), "--epsilon"),
        (("people.csv", "--label", "income", "--table", "t"), "--table: goes with"),
    ],
)
def test_wrong_input_names_its_argument(folder, arguments, said):
    error = init(*arguments).exception
    assert said in str(error)
    assert (folder / "people.csv").read_text() == f"{HEADER}\n{ROWS}"


def test_columns_named_like_free_text_are_drafted_as_text(folder):
    (folder / "people.csv").write_text("review,context,y\n")
    result = init("people.csv", "--label", "y")
    columns = tomllib.loads(result.stdout)["data"]["columns"]
    assert columns["review"] == {"kind": "text"}
    assert columns["context"]["bounds"]
    assert "review: taken for a text, a guess: its name has the word 'review'" in result.stderr
