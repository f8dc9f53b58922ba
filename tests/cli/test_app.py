"""The command line as a user meets it: output, JSON and exit statuses."""

import json

import pytest

from tests.cli.app_cases import dpselect
from tests.study.schema_cases import STUDY


def toml(document):
    """Enough of TOML to write a study of one or two levels."""
    lines, tables = [], []
    for key, value in document.items():
        (tables if isinstance(value, dict) else lines).append((key, value))
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in lines)
    for key, table in tables:
        text += f"[{key}]\n" + "".join(f'"{k}" = {inline(v)}\n' for k, v in table.items())
    return text


def inline(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {inline(v)}" for k, v in value.items()) + "}"
    return json.dumps(value)


@pytest.mark.full
def test_plan_meets_its_total():
    done = dpselect(
        "plan",
        "--base",
        "gaussian",
        "--repetitions",
        "harmonic:limit=20",
        "--epsilon",
        "2",
        "--delta",
        "1e-6",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    check = dpselect(
        "account", "--base", f"gaussian:noise_multiplier={result['noise_multiplier']!r}",
        "--repetitions", "harmonic:limit=20", "--delta", "1e-6", "--json",
    )  # fmt: skip
    assert 1.99 < json.loads(check.stdout)["epsilon"] <= 2.0


@pytest.mark.full
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["account"], "--delta is missing. Write --delta 1e-6"),
        (["account", "--base", "gauss", "--repetitions", "harmonic:limit=3", "--delta", "1e-6"], "gauss"),
        (["account", "--base", "pure:epsilon=-1", "--repetitions", "harmonic:limit=3", "--delta", "0"], "epsilon"),
        (["account", "--base", "pure:epsilon=1", "--repetitions", "harmonic:limit=3", "--delta", "2"], "delta"),
        (["tune", "absent.toml"], "absent.toml"),
        (["nonsense"], "nonsense"),
    ],
)
def test_wrong_usage_exits_2(arguments, said, tmp_path):
    done = dpselect(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.full
def test_tune_end_to_end(tmp_path):
    (tmp_path / "toy.toml").write_text(toml(STUDY))
    done = dpselect("tune", "toy.toml", "--json", cwd=tmp_path, state=tmp_path / "state")
    assert done.returncode == 0, done.stderr
    assert all(line.startswith("note: ") for line in done.stderr.splitlines())
    assert json.loads(done.stdout)["guarantee"]["epsilon"] <= 3.0
    assert (tmp_path / "out" / "report.html").exists()
    again = dpselect("tune", "toy.toml", cwd=tmp_path, state=tmp_path / "state")
    assert again.returncode == 2
    assert "already holds a release" in again.stderr


@pytest.mark.full
def test_an_impossible_budget_exits_3_and_bad_content_1(tmp_path):
    (tmp_path / "toy.toml").write_text(toml({**STUDY, "privacy": {**STUDY["privacy"], "delta": 0.0}}))
    done = dpselect("tune", "toy.toml", cwd=tmp_path, state=tmp_path / "state")
    assert done.returncode == 3
    (tmp_path / "d.csv").write_text("a,target\nx,0\n1,1\n")
    document = {**STUDY, "data": {"source": "d.csv", "classes": [0, 1], "bounds": [0, 1]}}
    (tmp_path / "toy.toml").write_text(toml(document))
    done = dpselect("tune", "toy.toml", cwd=tmp_path, state=tmp_path / "state")
    assert done.returncode == 1
    assert "'a' has a cell that is missing or no number" in done.stderr


@pytest.mark.full
def test_plan_weighs_alternatives_and_draws(tmp_path):
    done = dpselect(
        "plan", "--base", "pure:epsilon=1", "--delta", "0", "--expected-quantile", "0.7", "--max-runs", "40",
        "--plot", "plan.svg", "--json", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    options = json.loads(done.stdout)["options"]
    assert len(options) > 3
    assert [option["epsilon"] for option in options] == sorted(option["epsilon"] for option in options)
    assert all(option["max_runs"] <= 40 for option in options)
    assert "<svg" in (tmp_path / "plan.svg").read_text()
    table = dpselect("plan", "--base", "pure:epsilon=1", "--delta", "0", "--expected-quantile", "0.7")
    assert table.stdout.splitlines()[0].split() == [
        "distribution",
        "epsilon",
        "quantile",
        "like",
        "fixed",
        "K",
        "=",
        "1",
        "mean",
        "99",
        "%",
        "limit",
    ]
