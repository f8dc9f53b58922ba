"""`dpselect tune` around the search: the check, the schema, what is shown meanwhile and what is logged."""

import io
import json
import logging
import re
import sys
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dpselect.study.price
import dpselect.study.write
from dpselect.cli.app import app, main
from dpselect.ledger import Ledger
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Harmonic
from dpselect.study import check_study, parse_study, run_study
from dpselect.tuning import LogUniform, tune
from tests.cli.test_app import toml
from tests.study.schema_cases import STUDY, changed


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture(autouse=True)
def price_once(monkeypatch):
    original = dpselect.study.price.price_study

    def remembered(study, recipe, law, purchase):
        elsewhere = {"output": True, "runs": True, "privacy": {"ledger", "budget"}}
        facts = study.model_dump_json(exclude=elsewhere)
        if facts not in PRICES:
            PRICES[facts] = original(study, recipe, law, purchase)
        return PRICES[facts]

    facts_of = dpselect.study.write.search_facts

    def remembered_facts(*, search, **public):
        if id(search) not in FACTS:
            FACTS[id(search)] = facts_of(search=search, **public)
        return FACTS[id(search)]

    monkeypatch.setattr("dpselect.study.price.price_study", remembered)
    monkeypatch.setattr("dpselect.study.write.search_facts", remembered_facts)


PRICES = {}
FACTS = {}


def dpselect_command(monkeypatch, capsys, *arguments):
    """Run as a shell would: exit status, standard output, standard error."""
    monkeypatch.setattr(sys, "argv", ["dpselect", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    out, err = capsys.readouterr()
    return stopped.value.code or 0, out, err


def written(document=STUDY, name="toy.toml"):
    Path(name).write_text(toml({**document, "runs": {"executor": "inline"}}))
    return name


def refuse(*_, **__):
    pytest.fail("a row was read, or a search began")


@pytest.fixture
def nothing_runs(monkeypatch):
    """No rows, no number of runs, no charge."""
    monkeypatch.setattr("dpselect.study.load.load", refuse)
    monkeypatch.setattr("dpselect.study.search.tune", refuse)
    monkeypatch.setattr("dpselect.study.search._spender", refuse)
    monkeypatch.setattr(Harmonic, "sample", refuse)
    monkeypatch.setattr("dpselect.ledger.budget.Budget.reserve", refuse)


@pytest.mark.full
def test_a_check_says_the_price_and_leaves_nothing(monkeypatch, capsys, nothing_runs):
    status, out, err = dpselect_command(monkeypatch, capsys, "tune", "--check", written(), "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert 2.99 < found["epsilon"] <= 3.0
    assert found["delta"] == 1e-5
    assert found["max_runs"] == 3
    assert found["noise"]["noise_multiplier"] > 0
    assert [path.name for path in Path().iterdir()] == ["toy.toml"]
    status, out, _ = dpselect_command(monkeypatch, capsys, "tune", "--check", "toy.toml")
    assert status == 0
    assert "will cost epsilon 3 at delta 1e-05" in out
    assert "1.64 runs on average, at most 3" in out


@pytest.mark.full
def test_the_price_of_a_check_is_the_price_of_the_search():
    study = parse_study({**STUDY, "runs": {"executor": "inline"}})
    checked = check_study(study, base_folder=Path())
    assert run_study(study, base_folder=Path()).release["guarantee"]["epsilon"] == checked["epsilon"]


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("privacy.epsilon", -1.0, "privacy.epsilon"),
        ("data.source", "absent.csv", "absent.csv"),
        ("data", {"source": "sklearn:iris", "classes": [0, 1], "columns": {"height": {"bounds": [0, 1]}}}, "height"),
        ("data.label", "kind", "kind"),
        ("learner.stepps", 5, "learner.stepps"),
        ("space.learning_rate", {"law": "log_uniform", "low": 1.0, "high": 0.1}, "learning_rate"),
        ("repetitions", {"law": "harmony", "limit": 3}, "harmony"),
        ("validation", {"data": "public", "source": "absent.npz"}, "absent.npz"),
        ("output", {"folder": "toy.toml"}, "not writable"),
        ("output", {"folder": "out", "key_variable": "DPSELECT_ABSENT"}, "DPSELECT_ABSENT"),
    ],
)
def test_a_check_finds_what_is_wrong(monkeypatch, capsys, nothing_runs, path, value, said):
    status, out, err = dpselect_command(monkeypatch, capsys, "tune", "--check", written(changed(path, value)))
    assert status == 2, err
    assert said in err
    assert out == ""
    assert "Traceback" not in err
    assert [path.name for path in Path().iterdir()] == ["toy.toml"]


def test_keys_of_a_study_are_not_taken_for_flags(monkeypatch, capsys, nothing_runs):
    name = written({key: value for key, value in STUDY.items() if key != "output"} | {"nam": "x"})
    status, _, err = dpselect_command(monkeypatch, capsys, "tune", "--check", name)
    assert status == 2
    assert "\n  output: needed" in err
    assert "--output" not in err


@pytest.mark.full
def test_a_check_asks_the_budget_and_takes_nothing_from_it(monkeypatch, capsys, nothing_runs):
    with Ledger.open("budget.db") as ledger:
        ledger.create_budget("small", epsilon=1, delta=1e-4)
        ledger.create_budget("large", epsilon=4, delta=1e-4)
        before = ledger.head()
    privacy = {**STUDY["privacy"], "ledger": "budget.db"}
    for budget, expected in (("large", 0), ("small", 3), ("absent", 2)):
        name = written(changed("privacy", {**privacy, "budget": budget}))
        status, _, err = dpselect_command(monkeypatch, capsys, "tune", "--check", name)
        assert status == expected, err
    name = written(changed("privacy", {**privacy, "ledger": "other.db", "budget": "large"}))
    status, _, err = dpselect_command(monkeypatch, capsys, "tune", "--check", name)
    assert status in (1, 2)
    assert "other.db" in err
    assert not Path("other.db").exists()
    with Ledger.open("budget.db") as ledger:
        assert ledger.head() == before


@pytest.mark.full
def test_a_check_of_arrays_reads_their_headers_only(nothing_runs):
    """The values are cut away: anyone who read one would fail."""
    import numpy as np

    np.savez("rows.npz", X=np.zeros((50_000, 2)), target=np.zeros(50_000))
    data = {"source": "rows.npz", "classes": [0, 1], "bounds": [0, 1]}
    content = bytearray(Path("rows.npz").read_bytes())
    at = content.index(b"\x93NUMPY") + 4000
    content[at : at + 8] = b"\xff" * 8  # the checksum no longer fits: reading all of it raises
    Path("rows.npz").write_bytes(bytes(content))
    with pytest.raises(Exception, match="CRC"), np.load("rows.npz") as archive:
        archive["X"]
    document = {**STUDY, "data": data, "runs": {"executor": "inline"}}
    assert check_study(parse_study(document), base_folder=Path())["feature_columns"] == 2


def test_quiet_and_operator_progress_exclude_each_other(monkeypatch, capsys):
    status, _, err = dpselect_command(monkeypatch, capsys, "tune", written(), "--quiet", "--operator-progress")
    assert status == 2
    assert "exclude each other" in err


@pytest.mark.full
def test_an_operator_is_warned_once(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
    result = CliRunner().invoke(app, ["tune", written(), "--operator-progress"])
    assert result.exit_code == 0
    text = result.stderr + stream.getvalue()
    assert text.count("no privacy guarantee covers anyone who sees") == 1
    assert "operator only: 1 of " in text


@pytest.mark.full
def test_an_interrupted_search_says_how_to_go_on(monkeypatch, capsys):
    monkeypatch.setattr("dpselect.study.split.StudyObjective.__call__", interrupt)
    status, out, err = dpselect_command(monkeypatch, capsys, "tune", written())
    assert status == 130
    assert out == ""
    assert "--resume continues with this search" in err
    monkeypatch.undo()


def interrupt(*_):
    raise KeyboardInterrupt


def test_nothing_secret_is_logged(caplog, capfd, tmp_path):
    """All that any logger says at DEBUG, and all that is printed, for searches with 1 and 3 runs: the same words.

    Equal texts cannot tell K, a score or a key; those that this search had are looked for as well.
    """
    law = Harmonic(limit=3)
    keys = {law.sample(keyed_source(key)): key for key in range(60, -1, -1)}
    said = []
    caplog.set_level(logging.DEBUG)
    for count in (1, 3):
        caplog.clear()
        scores = []

        def objective(params, random, scores=scores):
            logging.getLogger("dpselect.mine").error("a trial speaks: %r", params)
            scores.append(float(random.laplace(1)[0]))
            return scores[-1], params["x"]

        tune(
            objective,
            space={"x": LogUniform(0.1, 1.0)},
            base=pure_dp(epsilon=1.0),
            repetitions=law,
            store=tmp_path / f"{count}.sealed",
            random=keyed_source(keys[count]),
            label="toy",
        )
        assert len(scores) == count
        printed = capfd.readouterr()
        text = caplog.text + printed.out + printed.err
        assert not any(repr(score)[:8] in text for score in scores)
        assert "speaks" not in text
        said.append([(record.name, record.levelname, record.getMessage()) for record in caplog.records])
        assert printed == ("", "")
    assert said[0] == said[1]
    assert any("sealed" in message for _, _, message in said[0])


@pytest.mark.full
def test_nothing_secret_is_logged_by_a_study(caplog, tmp_path):
    """The same for a study as the command line runs it; its log names the price and the stages."""
    caplog.set_level(logging.DEBUG)
    law = Harmonic(limit=3)
    keys = {law.sample(keyed_source(key)): key for key in range(60, -1, -1)}
    study = parse_study({**STUDY, "runs": {"executor": "inline"}})
    said = []
    for count in (1, 3):
        caplog.clear()
        run_study(study, base_folder=tmp_path, folder=tmp_path / f"k{count}", random=keyed_source(keys[count]))
        said.append([(record.name, record.getMessage()) for record in caplog.records if "dpselect" in record.name])
    assert said[0] == said[1]
    assert any(re.fullmatch(r"study 'toy' costs epsilon 2\.999\d* at delta 1e-05", words) for _, words in said[0])
    assert said[0][-1] == ("dpselect.study", "study 'toy': released")


def test_no_thread_is_left_behind():
    assert not [thread for thread in threading.enumerate() if thread.name == "dpselect-progress"]
