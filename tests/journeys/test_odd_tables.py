"""Tables as people have them: names that are keys of studies, quotation marks, time zones, blanks, decimal commas."""

import csv
import random

import numpy as np
import pytest
from typer.testing import CliRunner

from dpselect import load_model
from dpselect.cli.app import app
from dpselect.errors import ContentError, StudyError
from dpselect.study import load_study
from dpselect.tables.table import open_table

NAMES = ['town "old"', "größe in m².x", "since", "pet", "bounds", "verdict"]
FILLED = """
[data.columns]
"town \\"old\\"" = { categories = ["Köln", "a;b", "St. \\"X\\""], other = true }
"größe in m².x" = { bounds = [20, 200], missing = "indicator" }
since = { kind = "date", bounds = ["2010-01-01", "2025-01-01"], missing = "indicator" }
pet = { categories = ["yes", "no"], other = true }
bounds = { bounds = [0, 1200], missing = 0 }
"""
WRITTEN = ("--delimiter", ";", "--decimal", ",", "--encoding", "latin-1")


def run(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments])


def table():
    found, drawn = [], random.Random(3)
    for _ in range(400):
        size = drawn.uniform(20, 200)
        day = f"20{drawn.randint(10, 24)}-06-{drawn.randint(1, 28):02}T23:15:00{drawn.choice(['+02:00', 'Z', ''])}"
        amount = f"{size:.1f}".replace(".", ",")
        cells = [drawn.choice(["Köln", "a;b", 'St. "X"', ""]), amount, day, drawn.choice(["yes", "no ", ""])]
        found.append([*cells, drawn.choice([f"{4 * size:.2f}".replace(".", ","), ""]), "ja " if size > 90 else "nein"])
    return found


def write(path, names, rows):
    with path.open("w", newline="", encoding="latin-1") as file:
        csv.writer(file, delimiter=";").writerows([names, *rows])


@pytest.mark.full
def test_from_a_table_with_odd_names_to_predictions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    rows = table()
    write(tmp_path / "homes.csv", NAMES, rows)
    assert run("init", "homes.csv", "--label", "verdict", *WRITTEN, "--to", "study.toml").exit_code == 0
    text = (tmp_path / "study.toml").read_text()
    head, rest = text.split("[data.columns]")[0], "[privacy]" + text.split("[privacy]")[1]
    filled = head.replace('["FILL IN", "FILL IN"]', '["ja", "nein"]') + FILLED + rest.replace('"FILL IN"', "400")
    (tmp_path / "study.toml").write_text(filled + '[learner]\nname = "ridge"\n')
    said = run("tune", "study.toml", "--quiet")
    assert said.exit_code == 0, said.exception

    model = tmp_path / "release" / "model.npz"
    assert run("predict", model, "homes.csv", *WRITTEN, "--probabilities", "--to", "all.csv").exit_code == 0
    written = list(csv.reader((tmp_path / "all.csv").open(encoding="utf-8")))
    columns = {name: [row[place] for row in rows] for place, name in enumerate(NAMES)}
    for name in ("größe in m².x", "bounds"):
        columns[name] = [cell.replace(",", ".") for cell in columns[name]]
    loaded = load_model(model)
    assert [row[0] for row in written[1:]] == loaded.predict(columns).tolist()
    assert np.array_equal(np.array(written[1:])[:, 1:].astype(float), loaded.predict_proba(columns))
    truth = [row[-1].strip() for row in rows]
    assert np.mean([row[0] == right for row, right in zip(written[1:], truth, strict=True)]) > 0.7

    order = [4, 2, 0, 3, 1]
    write(
        tmp_path / "turned.csv", ["new", *(NAMES[k] for k in order)], [["?", *(row[k] for k in order)] for row in rows]
    )
    run("predict", model, "turned.csv", *WRITTEN, "--probabilities", "--to", "turned-out.csv")
    assert (tmp_path / "turned-out.csv").read_bytes() == (tmp_path / "all.csv").read_bytes()
    write(tmp_path / "one.csv", NAMES, [["Köln", "", "", "", "?", ""]])
    assert run("predict", model, "one.csv", *WRITTEN).stdout.splitlines()[1] in ("ja", "nein")
    write(tmp_path / "none.csv", NAMES, [])
    assert run("predict", model, "none.csv", *WRITTEN).stdout == "prediction\n"

    write(tmp_path / "renamed.csv", [name.title() for name in NAMES], rows)
    said = run("predict", model, "renamed.csv", *WRITTEN)
    assert said.exit_code == 1
    assert "no such column" in str(said.exception)
    assert "'Since'" in str(said.exception)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "t.csv is empty: the first line must hold the names of the columns"),
        ("a,a,y\n1,2,3\n", "more than one column 'a': give each its own name"),
        ("a;b;y\n1;2;3\n", "one column alone, so the delimiter may be ';'"),
    ],
)
def test_a_table_that_is_none_is_refused_with_what_would_do(content, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(content)
    refused = run("init", "t.csv", "--label", "y")
    assert refused.exit_code == 1
    assert said in str(refused.exception)


def test_a_list_that_is_too_short_is_said_in_words(tmp_path):
    (tmp_path / "s.toml").write_text(
        '[data]\nsource = "t.csv"\nclasses = ["a"]\ncolumns = { a = { bounds = [0, 1] } }\n'
        '[privacy]\nepsilon = 1.0\nnominal_rows = 9\n[output]\nfolder = "out"\n'
    )
    with pytest.raises(StudyError, match=r"data\.classes: must hold at least 2"):
        load_study(tmp_path / "s.toml")


def test_a_text_file_is_read_in_parts_that_do_not_show(tmp_path, monkeypatch):
    lines = ['a,b\n1,"two\nlines"\n\n 3 ,é\n', "".join(f"{k}.5,{'x' * k}\n" for k in range(40)), ",last"]
    (tmp_path / "t.csv").write_text("".join(lines), encoding="utf-8")
    table = open_table("t.csv", tmp_path)
    whole = {name: cells.tolist() for name, cells in table.read(["b", "a"]).items()}
    assert whole["a"][:3] == ["1", "3", "0.5"]
    assert whole["b"] == ["two\nlines", "é", *("x" * k for k in range(40)), "last"]
    for size in (1, 4, 41, 84, 86):
        monkeypatch.setattr("dpselect.tables.blocks._CHARACTERS", size)
        monkeypatch.setattr("dpselect.tables.blocks._ROWS", size)
        assert {name: cells.tolist() for name, cells in table.read(["b", "a"]).items()} == whole
    assert table.read([]) == {}
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n5,6,7\n")
    with pytest.raises(ContentError, match="a row whose length differs"):
        open_table("t.csv", tmp_path).read(["a"])
    (tmp_path / "t.csv").write_text("a,b\n")
    assert open_table("t.csv", tmp_path).read(["a"])["a"].shape == (0,)
