"""Reading study files: mistakes are all named at once, each with its key."""

import pytest

from dpselect.errors import StudyError
from dpselect.study import load_study, parse_study
from tests.study.schema_cases import changed


def test_files_that_are_no_studies(tmp_path):
    with pytest.raises(StudyError, match="cannot read"):
        load_study(tmp_path / "absent.toml")
    (tmp_path / "bad.toml").write_text("[data\n")
    with pytest.raises(StudyError, match="not valid TOML"):
        load_study(tmp_path / "bad.toml")
    (tmp_path / "latin.toml").write_bytes(b"name = '\xff'")
    with pytest.raises(StudyError, match="UTF-8"):
        load_study(tmp_path / "latin.toml")


def test_an_unknown_key_is_named_with_those_that_there_are():
    with pytest.raises(StudyError, match=r"""data.sources: unknown key. Write source = "x.csv\""""):
        parse_study(changed("data.sources", "x.csv"))
    columns = {"a": {"bound": (0, 1)}}
    with pytest.raises(StudyError, match=r"data.columns.a.bound: unknown key. Write bounds = "):
        parse_study(changed("data.columns", columns))
    with pytest.raises(StudyError, match=r"nane: unknown key. Write name = "):
        parse_study(changed("nane", "x"))


MISTAKES = """
nmae = "people"
[data]
source = "people.csv"
label = "mvoed"
classes = ["no", "yes"]
class_shares = { maybe = 0.5 }
[data.columns]
age = { bounds = [90, 17] }
job = { category = ["a", "b"] }
pay.gross = { bounds = [0, 1e6] }
wealth = { bounds = [0, 1], scale = "logarithmic" }
[privacy]
epsilon = 3.0
noise_multiplier = 2.0
delta = 1e-3
nominal_rows = 20000
ledger = "none.db"
budget = "people"
[validation]
metric = "acuracy"
data = "public"
source = "test.csv"
[learner]
name = "dp-sgd"
steps = 0
momentum = 2.0
sampling_rates = 0.1
class_weights = { perhaps = 2.0 }
[space]
learning_rate = { distribution = "log_uniform", low = 0.0, high = 1.0 }
hidden_units = { distribution = "categorical", choices = [0, -3] }
map = { distribution = "categorical", choices = ["cos4", "cosines"] }
rate = { distribution = "uniform", low = 0, high = 1 }
[repetitions]
distribution = "harmonical"
limit = 10
[runs]
executor = "loky"
workers = 1
[output]
folder = "out"
key_variable = "DPSELECT_KEY_THAT_IS_ABSENT"
"""
SAID = (
    "nmae: unknown key. Write name = ",
    "data.class_shares: 'maybe' is none of data.classes",
    "data.label: no such column: 'mvoed'; there are 'age', 'job', 'pay.gross', 'wealth', 'moved'",
    "data.columns.age: bounds must be two finite numbers, the lower one first",
    "data.columns.job.category: unknown key. Write categories = ",
    'data.columns.pay.gross: a name with a dot is one name in quotation marks: "pay.gross"',
    "data.columns.wealth: unknown scale 'logarithmic'; one of bins, linear, log",
    "privacy.epsilon: give exactly one of epsilon (for the whole search) and noise_multiplier",
    "privacy.delta: must be below one over nominal_rows",
    "none.db",
    "validation.metric: unknown metric 'acuracy'; one of absolute-error, accuracy, ",
    "cannot read validation.source 'test.csv'",
    "learner.steps: must be an integer at least 1",
    "learner.momentum: must be a finite number at least 0 and below 1",
    "learner.sampling_rates: unknown key for dp-sgd. Write sampling_rate = 0.1",
    "learner.class_weights: 'perhaps' is none of data.classes, 'no', 'yes'",
    "space.learning_rate: low must be above 0",
    "space.hidden_units: must be an integer at least 0",
    "space.map: no such map; one of bins, ",
    "space.rate: unknown key for dp-sgd; there are ",
    "repetitions: unknown distribution 'harmonical'; one of ",
    "runs.workers: executor = 'loky' needs at least 2 workers",
    "already holds a release",
    "output.key_variable: the environment variable DPSELECT_KEY_THAT_IS_ABSENT must hold the key",
)


def test_mistakes_of_all_kinds_are_said_in_one_round(tmp_path, monkeypatch):
    """Of keys, values, classes, columns, laws, files, the ledger, the folder: each once, with what would do."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("age,job,pay.gross,wealth,moved\n40,a,1,1,no\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "release.json").write_text("{}")
    (tmp_path / "study.toml").write_text(MISTAKES)
    with pytest.raises(StudyError) as caught:
        load_study(tmp_path / "study.toml")
    said = str(caught.value)
    assert [line for line in SAID if said.count(line) != 1] == []
    assert len(said.splitlines()) - 1 == len(SAID), "nothing is said that follows from another mistake"


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("data.columns", {"a": {"bounds": "privat"}}, "data.columns.a.bounds: must be a list, or 'private'"),
        ("data.columns", {"a": {"bounds": ["1"]}}, "data.columns.a.bounds: must hold more"),
        (
            "data.columns",
            {"a": {"bounds": [0, 1], "missing": []}},
            "data.columns.a.missing: must be a valid string, or ",
        ),
        ("data.classes", [[1], 2], "data.classes: must be a valid string"),
        ("data.bounds", ["a", "b"], "data.bounds: must be a valid number"),
        ("refit", {"share": "most"}, "refit.share: must be 'auto', or a valid number"),
    ],
)
def test_a_value_of_no_kind_is_told_all_that_it_may_be_and_no_table_is_blamed(key, value, said):
    with pytest.raises(StudyError) as caught:
        parse_study(changed(key, value))
    lines = [line.strip() for line in str(caught.value).splitlines()[1:]]
    assert [line for line in lines if line.startswith(said)]
    assert not [line for line in lines if line.startswith(("study:", "data:", "data.columns.a:", "refit:"))]


def test_a_mistake_hides_no_other_mistake_of_its_table():
    document = changed("privacy.nominal_rows", "many")
    document["data"] = {"source": 3, "classes": [1, True], "label": "a", "columns": {"a": {"bounds": [0, 1]}}}
    document["output"] = "out"
    document["privacy"]["ledger"] = "money.db"
    with pytest.raises(StudyError) as caught:
        parse_study(document)
    places = {line.split(":")[0].strip() for line in str(caught.value).splitlines()[1:]}
    wrong = {"data.source", "privacy.nominal_rows", "output", "data.label", "data.classes", "privacy.ledger"}
    assert places == wrong


def test_a_misspelt_key_of_a_column_is_said_once_whatever_the_column_is_called():
    document = changed("data.columns", {"left? (min)": {"catgories": ["no", "yes"]}})
    with pytest.raises(StudyError) as caught:
        parse_study(document)
    assert [line.split(":")[0] for line in str(caught.value).splitlines()[1:]] == [
        "  data.columns.left? (min).catgories"
    ]


DRAWN = """\
[data]
source = "people.csv"
label = "moved"
classes = ["no", "yes"]
bounds = [0, 1]
[privacy]
epsilon = 3.0
delta = 1e-5
nominal_rows = 1000
[space]
learning_rate = { distribution = "log_uniform", low = 0.1, high = 1.0 }
[repetitions]
distribution = "harmonic"
limit = 3
[output]
folder = "out"
"""


def test_the_old_name_of_distribution_is_read_with_a_warning(tmp_path, recwarn):
    path = tmp_path / "study.toml"
    path.write_text(DRAWN)
    new = load_study(path)
    assert not recwarn
    path.write_text(DRAWN.replace("distribution", "law"))
    with pytest.warns(FutureWarning, match="Write distribution"):
        assert load_study(path) == new
    path.write_text(DRAWN.replace("limit = 3", 'limit = 3\nlaw = "harmonic"'))
    with pytest.warns(FutureWarning), pytest.raises(StudyError, match=r"repetitions: .*give distribution alone"):
        load_study(path)
