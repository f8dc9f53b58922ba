"""The study file: everything public is checked before a row of data is read."""

import copy
from pathlib import Path

import pytest

from dpselect.cli.described import parse_settings
from dpselect.errors import ArgumentError, StudyError
from dpselect.ledger import Ledger
from dpselect.privacy.bases import base_named
from dpselect.repetitions.by_name import law_named
from dpselect.study import check_study, load_study, parse_study
from dpselect.study.learners.recipe import recipe_of

STUDY = {
    "name": "toy",
    "data": {"source": "sklearn:iris", "classes": [0, 1, 2], "bounds": [0, 8]},
    "privacy": {"epsilon": 3.0, "delta": 1e-5, "nominal_rows": 150},
    "learner": {"name": "dp-sgd", "sampling_rate": 0.2, "steps": 20},
    "space": {"learning_rate": {"law": "log_uniform", "low": 0.1, "high": 1.0}},
    "repetitions": {"law": "harmonic", "limit": 3},
    "output": {"folder": "out"},
}


def changed(path, value):
    document = copy.deepcopy(STUDY)
    *tables, key = path.split(".")
    place = document
    for table in tables:
        place = place.setdefault(table, {})
    if value is None:
        place.pop(key)
    else:
        place[key] = value
    return document


def test_a_valid_study_parses():
    study = parse_study(STUDY)
    assert study.privacy.adjacency.value == "add_or_remove_one"
    assert study.validation.data == "private"


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("privacy.epsilon", 0.0, "privacy.epsilon"),
        ("privacy.epsilon", -1.0, "privacy.epsilon"),
        ("privacy.epsilon", float("nan"), "privacy.epsilon"),
        ("privacy.epsilon", None, "privacy"),
        ("privacy.noise_multiplier", 1.0, "privacy"),
        ("privacy.delta", 1.0, "privacy.delta"),
        ("privacy.delta", 1 / 150, "nominal_rows"),
        ("privacy.adjacency", "neighbours", "privacy.adjacency"),
        ("privacy.nominal_rows", None, "nominal_rows"),
        ("privacy.nominal_rows", 0, "nominal_rows"),
        ("privacy.epsilonn", 1.0, "privacy.epsilonn"),
        ("data.source", None, "data.source"),
        ("data.classes", [0], "data.classes"),
        ("data.classes", [0, 0], "classes must differ"),
        ("data.bounds", [1, 0], "bounds"),
        ("data.bounds", None, "bounds"),
        ("data.columns", {"a": {}}, "data.columns.a"),
        ("data.columns", {"target": {"bounds": [0, 1]}}, "label"),
        ("learner.name", "deep", "learner.name"),
        ("validation", {"data": "public"}, "source"),
        ("validation", {"fraction": 1.0}, "validation.fraction"),
        ("runs", {"workers": 0}, "runs.workers"),
        ("extra", {}, "extra"),
        ("output.folder", None, "output.folder"),
    ],
)
def test_a_wrong_key_is_named(path, value, named):
    with pytest.raises(StudyError, match=named):
        parse_study(changed(path, value))


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("learner.stepps", 5, "learner.stepps"),
        ("learner.steps", 0, "steps"),
        ("learner.classes", [1], "learner.classes"),
        ("learner.noise_multiplier", 1.0, "learner.noise_multiplier"),
        ("space.steps", {"law": "categorical", "choices": [1, 2]}, "space.steps"),
        ("space.momentums", {"law": "categorical", "choices": [1, 2]}, "space.momentums"),
        ("space.map", {"law": "uniform", "low": 0, "high": 1}, "space.map: no such map"),
        ("privacy.adjacency", "replace_one", "replace_one"),
    ],
)
def test_learner_and_space_are_checked_against_the_learner(path, value, named):
    study = parse_study(changed(path, value))
    with pytest.raises(StudyError, match=named):
        recipe_of(study, nominal_rows=150.0)


@pytest.mark.parametrize(
    ("law", "said"),
    [
        ({"law": "log_uniform", "low": 1}, "missing a required argument: 'high'"),
        ({"law": "log_uniform", "low": 1, "high": 2, "hi": 3}, "got an unexpected keyword argument 'hi'"),
        ({"law": "categorial", "choices": ["cos4"]}, "law must be one of categorical, "),
    ],
)
def test_a_law_with_wrong_settings_names_them_and_nothing_else(tmp_path, law, said):
    with pytest.raises(StudyError, match=f"map.*: {said}") as caught:
        check_study(parse_study(changed("space.map", law)), base_folder=tmp_path, folder=tmp_path / "out")
    assert "__init__" not in str(caught.value)
    assert law["law"] != "categorial" or "no such map" not in str(caught.value)


def test_files_that_are_no_studies(tmp_path):
    with pytest.raises(StudyError, match="cannot read"):
        load_study(tmp_path / "absent.toml")
    (tmp_path / "bad.toml").write_text("[data\n")
    with pytest.raises(StudyError, match="not valid TOML"):
        load_study(tmp_path / "bad.toml")
    (tmp_path / "latin.toml").write_bytes(b"name = '\xff'")
    with pytest.raises(StudyError, match="UTF-8"):
        load_study(tmp_path / "latin.toml")


def test_settings_parse():
    assert parse_settings("gaussian:noise-multiplier=4") == ("gaussian", {"noise_multiplier": 4})
    assert parse_settings("harmonic") == ("harmonic", {})
    for text in ("a:b", "a:b=", "a:b=c", "a:b=1,b=2", "a:=1"):
        with pytest.raises(ArgumentError):
            parse_settings(text)


@pytest.mark.parametrize(
    ("text", "mean"),
    [
        ("negative-binomial:eta=0,mean=10", 10),
        ("negative-binomial:eta=1,gamma=0.1", 10),
        ("geometric:gamma=0.1", 10),
        ("geometric:mean=10", 10),
        ("logarithmic:mean=10", 10),
        ("poisson:mean=10", 10),
        ("binomial:trials=20,probability=0.5", 10),
        ("uniform:limit=20", 10),
        ("fixed:count=10", 10),
        ("beta-binomial:trials=20,shape=1", 10),
        ("harmonic:limit=3", 3 / (1 + 1 / 2 + 1 / 3)),
    ],
)
def test_laws_by_name(text, mean):
    assert law_named(*parse_settings(text)).mean == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize(
    "text",
    ["grid:count=10", "nonsense", "geometric", "geometric:gamma=0.1,mean=10", "poisson:mu=3", "poisson:mean=-1"],
)
def test_wrong_laws_are_refused(text):
    with pytest.raises((ArgumentError, TypeError)):
        law_named(*parse_settings(text))


def test_a_hard_limit_conditions_the_law():
    law = law_named(*parse_settings("geometric:mean=10,at_most=20"))
    assert law.limit == 20
    assert law.mean < 10


def test_bases_by_name():
    base = base_named(*parse_settings("laplace:scale=2"), adjacency="replace_one")
    assert base.epsilon(0) == 0.5
    assert base.adjacency.value == "replace_one"
    for text in ("gauss:noise_multiplier=1", "gaussian", "gaussian:sigma=1"):
        with pytest.raises(ArgumentError, match="base"):
            base_named(*parse_settings(text), adjacency="add_or_remove_one")


def test_an_unknown_key_is_named_with_those_that_there_are():
    with pytest.raises(StudyError, match=r"data.sources: unknown key; there are bounds, class_shares, .*source, table"):
        parse_study(changed("data.sources", "x.csv"))
    columns = {"a": {"bound": (0, 1)}}
    with pytest.raises(
        StudyError, match=r"data.columns.a.bound: unknown key; there are analyzer, bounds, categories, "
    ):
        parse_study(changed("data.columns", columns))
    with pytest.raises(StudyError, match=r"nane: unknown key; there are card, data, learner, name, "):
        parse_study(changed("nane", "x"))


def test_all_that_is_wrong_before_a_price_is_said_at_once(tmp_path):
    """Keys of the learner and of the space, the source, the folder, the law: one message."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "release.json").write_text("{}")
    document = changed("learner.step", 3)
    document["space"]["rate"] = {"law": "uniform", "low": 0, "high": 1}
    document["space"]["noise_multiplier"] = {"law": "uniform", "low": 0, "high": 1}
    document["space"]["steps"] = {"law": "integer_uniform", "low": 1, "high": 9}
    document["data"]["source"] = "none.csv"
    document["repetitions"] = {"law": "harmonic", "limits": 3}
    with pytest.raises(StudyError) as caught:
        check_study(parse_study(document), base_folder=tmp_path, folder=tmp_path / "out")
    for said in (
        "already holds a release",
        "learner.step: unknown key for dp-sgd; there are ",
        "space.rate: unknown key for dp-sgd; there are ",
        "space.noise_multiplier: the noise follows",
        "space.steps: enters the guarantee",
        "cannot read data.source 'none.csv'",
        "repetitions: ",
    ):
        assert said in str(caught.value)


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
learning_rate = { law = "log_uniform", low = 0.0, high = 1.0 }
hidden_units = { law = "categorical", choices = [0, -3] }
map = { law = "categorical", choices = ["cos4", "cosines"] }
rate = { law = "uniform", low = 0, high = 1 }
[repetitions]
law = "harmonical"
limit = 10
[runs]
executor = "loky"
workers = 1
[output]
folder = "out"
key_variable = "DPSELECT_KEY_THAT_IS_ABSENT"
"""

SAID = (
    "nmae: unknown key; there are card, data, learner, name, ",
    "data.class_shares: 'maybe' is none of data.classes",
    "data.label: no such column: 'mvoed'; there are 'age', 'job', 'pay.gross', 'wealth', 'moved'",
    "data.columns.age: bounds must be two finite numbers, the lower one first",
    "data.columns.job.category: unknown key; there are analyzer, bounds, categories, ",
    'data.columns.pay.gross: a name with a dot is one name in quotation marks: "pay.gross"',
    "data.columns.wealth: unknown scale 'logarithmic'; one of bins, linear, log",
    "privacy.epsilon: give exactly one of epsilon (for the whole search) and noise_multiplier",
    "privacy.delta: must be below one over nominal_rows",
    "none.db",
    "validation.metric: unknown metric 'acuracy'; one of absolute-error, accuracy, ",
    "cannot read validation.source 'test.csv'",
    "learner.steps: must be an integer at least 1",
    "learner.momentum: must be a finite number at least 0 and below 1",
    "learner.sampling_rates: unknown key for dp-sgd; there are activation, ",
    "learner.class_weights: 'perhaps' is none of data.classes, 'no', 'yes'",
    "space.learning_rate: low must be a finite number above 0",
    "space.hidden_units: must be an integer at least 0",
    "space.map: no such map; one of bins, ",
    "space.rate: unknown key for dp-sgd; there are ",
    "repetitions: unknown law 'harmonical'; one of ",
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


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no such file system here")
def test_a_folder_that_cannot_be_made_is_found_beforehand(tmp_path):
    """Root may write everywhere, by the permissions; no one makes folders in /proc."""
    with pytest.raises(StudyError, match=r"output.folder '/proc/x' is not writable: nothing can be made in '/proc'"):
        check_study(parse_study(changed("output.folder", "/proc/x")), base_folder=tmp_path)


def test_a_budget_of_another_adjacency_is_refused_before_a_store_is_made(tmp_path):
    with Ledger.open(tmp_path / "money.db") as ledger:
        ledger.create_budget("b", epsilon=9, delta=1e-3, adjacency="replace_one")
    document = changed("output.folder", str(tmp_path / "out"))
    document["privacy"] |= {"ledger": "money.db", "budget": "b"}
    with pytest.raises(StudyError, match=r"privacy.adjacency: add_or_remove_one here, but budget 'b' is under replace"):
        check_study(parse_study(document), base_folder=tmp_path)
    assert not (tmp_path / "out").exists()


def test_an_adjacency_that_a_learner_does_not_know_is_said_with_its_key(tmp_path):
    document = changed("privacy.adjacency", "replace_one")
    with pytest.raises(
        StudyError, match=r"^privacy.adjacency: .* replace_one; take the other one, or another learner.name"
    ):
        check_study(parse_study(document), base_folder=tmp_path)


def test_a_misspelt_key_of_a_column_is_said_once_whatever_the_column_is_called():
    document = changed("data.columns", {"left? (min)": {"catgories": ["no", "yes"]}})
    with pytest.raises(StudyError) as caught:
        parse_study(document)
    assert [line.split(":")[0] for line in str(caught.value).splitlines()[1:]] == [
        "  data.columns.left? (min).catgories"
    ]
