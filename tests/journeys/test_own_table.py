"""A table as people have it through `init`, an edited draft, `tune` and `predict`, with mistakes at each step."""

import io
from contextlib import redirect_stderr, redirect_stdout

import pytest

from dpselect.cli.app import main

COLUMNS = {
    "age": "{ bounds = [17, 90], missing = 40 }",
    "work": '{ categories = ["private", "state"], other = true, missing = "indicator" }',
    "pay.gross": '{ bounds = [0, 100000], scale = "log", missing = "indicator" }',
    "joined": '{ kind = "date", bounds = [2000-01-01, 2026-01-01] }',
}


def run(*arguments):
    """As a shell would: exit status and what was said."""
    out, err, status = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patched, redirect_stdout(out), redirect_stderr(err):
        patched.setattr("sys.argv", ["dpselect", *map(str, arguments)])
        try:
            main()
        except SystemExit as left:
            status = left.code or 0
    return status, out.getvalue() + err.getvalue()


def written(folder):
    """Cells that are missing, "?" among them, a name with a dot, dates, blanks behind commas."""
    rows = ["age, id, work, pay.gross, joined, moved"]
    for i in range(400):
        work, pay = ("private", "state", "?", "farm")[i % 4], "" if i % 7 == 0 else str(100 * i)
        age = "?" if i % 11 == 0 else str(20 + i % 60)
        rows.append(f"{age}, p{i}, {work}, {pay}, 20{10 + i % 10}-03-0{1 + i % 9}, {'yes' if i % 4 < 2 else 'no'}")
    (folder / "people.csv").write_text("\n".join(rows))


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    written(tmp_path)
    return tmp_path


def drafted():
    status, said = run("init", "people.csv", "--label", "moved", "--to", "study.toml")
    assert status == 0
    assert "id: left out" in said


def edited(table, columns=COLUMNS, **changes):
    """What a person makes of the draft in some minutes."""
    lines = []
    for line in (table / "study.toml").read_text().splitlines():
        name = line.split(" = ")[0].strip('"')
        quoted = line.split(" = ")[0]
        lines.append(f"{quoted} = {columns[name]}" if name in columns and "{" in line else line)
    text = "\n".join(lines).replace('["FILL IN", "FILL IN"]', '["no", "yes"]')
    text = text.replace('nominal_rows = "FILL IN"', "nominal_rows = 400").replace("# [validation]", "[validation]")
    text = text.replace("epsilon = 3.0", "epsilon = 8.0").replace("delta = 1e-6", "delta = 1e-5")
    for old, new in changes.values():
        assert old in text
        text = text.replace(old, new)
    (table / "edited.toml").write_text(text)
    return "edited.toml"


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """The folder of a model that was trained once, and what `tune` said."""
    folder = tmp_path_factory.mktemp("own")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        patched.setenv("XDG_STATE_HOME", str(folder / "state"))
        written(folder)
        drafted()
        status, said = run("tune", edited(folder), "-q")
        assert status == 0
    return folder, said


@pytest.fixture
def trained(released, monkeypatch):
    folder, _ = released
    monkeypatch.chdir(folder)
    (folder / "other.csv").write_text("work,pay.gross,joined\nstate,1,2020-01-01\n")
    (folder / "odd.csv").write_text("age,work,pay.gross,joined\n1,state,1,someday\n2,state,1,2020-01-01\n")
    return folder


def test_a_draft_has_a_blank_for_what_only_a_person_knows(table):
    drafted()
    status, said = run("tune", "study.toml", "--check")
    assert status == 2
    assert said.count("still to be filled in") == 6
    status, said = run("tune", edited(table), "--check")
    assert status == 0, said


def test_a_table_of_ones_own_becomes_a_model(released, trained):
    assert "accuracy on private rows, with noise: " in released[1]
    status, _ = run("predict", "release/model.npz", "people.csv", "--to", "found.csv", "--keep", "moved")
    assert status == 0
    pairs = [line.split(",") for line in (trained / "found.csv").read_text().splitlines()[1:]]
    assert len(pairs) == 400
    assert sum(label == found for label, found in pairs) > 300


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("peple.csv", "--label", "moved"), "cannot read DATA 'peple.csv': No such file"),
        (("people.csv", "--label", "Moved"), "--label: no such column: 'Moved'; there are 'age', 'id', 'work', "),
        (("people.csv", "--label", "moved", "--to", "people.csv"), "--to: 'people.csv' exists already"),
        (("people.doc", "--label", "moved"), "must be a path ending in .csv, .csv.gz, "),
        (("semicolons.csv", "--label", "moved"), "one column alone, so the delimiter may be ';'"),
    ],
)
def test_mistakes_of_a_draft(table, arguments, said):
    (table / "semicolons.csv").write_text("age;work;moved\n1;a;no\n")
    status, found = run("init", *arguments)
    assert status == 2
    assert said in found


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('["no", "yes"]', '["no"]'), "data.classes: "),
        (("nominal_rows = 400", 'nominal_rows = "many"'), "privacy.nominal_rows: must be a valid integer"),
        (
            ('categories = ["private", "state"]', 'categories = "private"'),
            "data.columns.work.categories: must be a list",
        ),
        (("[output]", "[ouput]"), "output: needed: where the release goes"),
        (('"pay.gross"', "pay.gross"), 'a name with a dot is one name in quotation marks: "pay.gross"'),
        (('metric = "accuracy"', 'metric = "f1"'), "one of absolute-error, accuracy, auc, balanced-accuracy"),
        (
            ("missing = 40", "missing = 100"),
            'data.columns.age: missing must be a number within the bounds, or "indicator"',
        ),
        (('joined = { kind = "date"', 'joned = { kind = "date"'), "no such column: 'joned'; there are 'age', 'id', "),
    ],
)
def test_mistakes_of_the_editing(table, change, said):
    drafted()
    edited(table)
    text = (table / "edited.toml").read_text().replace('# metric = "accuracy"', 'metric = "accuracy"')
    assert change[0] in text
    (table / "edited.toml").write_text(text.replace(*change))
    status, found = run("tune", "edited.toml", "--check")
    assert status == 2
    assert said in found


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('["no", "yes"]', '["No", "Yes"]'), "the declared classes, 'No', 'Yes': write them as it does"),
        ((", missing = 40 }", " }"), "'age' has a cell that is missing or no number, and the study declares nothing"),
        ((COLUMNS["work"], "{ bounds = [0, 1], missing = 0 }"), "'work' has no cell that can be read as a number"),
    ],
)
def test_mistakes_that_only_the_rows_show(table, change, said):
    """Nothing is drawn or written: not even the folder."""
    drafted()
    status, found = run("tune", edited(table, change=change), "-q")
    assert status in (1, 2)
    assert said in found
    assert not (table / "release").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("release", "people.csv"), "it is a folder; give the model.npz in it"),
        (("study.toml", "people.csv"), "give the model.npz of a release"),
        (("release/model.npz", "other.csv"), "no such column: 'age'; there are 'work', "),
        (("release/model.npz", "people.csv", "--keep", "Moved"), "no such column: 'Moved'; there are "),
        (
            ("release/model.npz", "odd.csv"),
            "'joined' has a cell that is missing or no date, and the study declares nothing",
        ),
    ],
)
def test_mistakes_of_a_prediction(trained, arguments, said):
    status, found = run("predict", *arguments)
    assert status in (1, 2)
    assert said in found
    assert "someday" not in found, "no cell is shown"
