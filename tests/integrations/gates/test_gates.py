"""The gate and the holdout where people search: each example runs, is short, and says no more than the gate does."""

import ast
import asyncio
import importlib.metadata
import json
import runpy
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest

from dpselect.errors import BudgetError, StudyError
from dpselect.holdout import Gate, GateRules
from dpselect.integrations.gates import GateMetric, codabench_score, inspect_outcomes
from dpselect.integrations.gates.competitions import answer_file
from tests.holdout.server.serving import invited, make_gate, make_holdout, served
from tests.root import ROOT

EXAMPLES = ROOT / "examples" / "gate"
TASKS = [f"task {number}" for number in range(60)]


@pytest.fixture
def gate(tmp_path, state, monkeypatch):
    """A gate in the working folder whose incumbent solves no task."""
    monkeypatch.chdir(tmp_path)
    Gate.create("my.gate", dict.fromkeys(TASKS, 0), consultations=4, rules=GateRules(answer_seconds=0))
    return lambda: Gate.open("my.gate").status()["asked"]


def own_lines(path):
    """The user's statements: all but imports and docstrings."""
    tree = ast.parse(path.read_text())
    spans = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and not isinstance(node, ast.Import | ast.ImportFrom)
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for line in range(node.lineno, node.body[0].lineno if hasattr(node, "body") else (node.end_lineno or 0) + 1)
    }
    return len(spans)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_is_short_and_run_by_a_test(path):
    assert 1 <= own_lines(path) <= 10
    assert path.name in Path(__file__).read_text()


@pytest.mark.full
def test_a_server_of_the_model_context_protocol(gate, tmp_path):
    pytest.importorskip("mcp.server.mcpserver")
    from mcp import ClientSession, StdioServerParameters, stdio_client

    (tmp_path / "answers.json").write_text(json.dumps(dict.fromkeys(TASKS, 7)))
    right, wrong = json.dumps(dict.fromkeys(TASKS, 7)), json.dumps(dict.fromkeys(TASKS, 8))

    async def talk():
        import os

        server = StdioServerParameters(
            command=sys.executable, args=[str(EXAMPLES / "mcp_server.py")], env=dict(os.environ), cwd=str(tmp_path)
        )
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await session.initialize()
            found = [tool.name for tool in (await session.list_tools()).tools]
            for candidate in (right, right, wrong, "no JSON", "no JSON"):
                answer = await session.call_tool("ask", {"candidate": candidate})
                found.append(answer.content[0].text)
            found.append((await session.call_tool("purse", {})).content[0].text)
        return found

    assert asyncio.run(talk())[:7] == ["ask", "purse", "accepted", "accepted", "rejected", "rejected", "rejected"]
    assert gate() == 3, "the same candidate against the same incumbent is not charged again"


def log_of(letter, tasks=TASKS):
    score = types.SimpleNamespace(value=letter)
    return types.SimpleNamespace(samples=[types.SimpleNamespace(id=task, scores={"match": score}) for task in tasks])


def test_a_log_of_inspect(gate, monkeypatch, capsys):
    """`inspect_ai.log.read_eval_log` in its documented form: samples with an id and scores by the scorer's name."""
    logs = {"better.eval": log_of("C"), "broken off.eval": log_of("C", TASKS[:3])}
    for name in ("inspect_ai", "inspect_ai.log"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["inspect_ai.log"].read_eval_log = logs.__getitem__
    for name, said in (("better.eval", "accepted\n"), ("broken off.eval", "rejected\n")):
        monkeypatch.setattr(sys, "argv", ["inspect_log.py", name])
        runpy.run_path(str(EXAMPLES / "inspect_log.py"))
        assert capsys.readouterr().out == said
    assert gate() == 2, "what broke off is an answer too, and charged"


def test_values_of_inspect():
    Sample = types.SimpleNamespace
    samples = [
        Sample(id=1, scores={"a": Sample(value="P"), "b": Sample(value=0.25)}),
        Sample(id=1, scores={"a": Sample(value=True)}),
        Sample(id=2, scores=None),
        Sample(id=3, scores={"a": Sample(value={"x": "I"})}),
        Sample(id=4, scores={"a": Sample(value="no")}),
    ]
    log = Sample(samples=samples)
    assert inspect_outcomes(log) == {"1": [0.5, True], "2": [0.0], "3": [{"x": "I"}], "4": [0.0]}
    assert inspect_outcomes(log, scorer="b")["1"] == [0.25, 0.0]
    assert inspect_outcomes(log, field="x")["3"] == [0.0]
    assert inspect_outcomes(Sample(samples=None)) == {}


def test_a_program_of_dspy(gate, monkeypatch):
    """`dspy.Evaluate` in its documented form: it calls the program, then `metric(example, prediction)`, in threads."""
    shown = []

    class Evaluate:
        def __init__(self, *, devset, metric, display_progress):
            self.devset, self.metric = devset, metric

        def __call__(self, program):
            for example in self.devset:
                try:
                    shown.append(self.metric(example, program(example)))
                except RuntimeError:
                    shown.append(0.0)  # of a program that failed the metric does not hear

    monkeypatch.setitem(sys.modules, "dspy", types.SimpleNamespace(Evaluate=Evaluate))
    example = runpy.run_path(str(EXAMPLES / "dspy_program.py"))
    tasks = [types.SimpleNamespace(id=task, number=number) for number, task in enumerate(TASKS)]

    def metric(gold, pred, trace=None, pred_name=None, pred_trace=None):
        return types.SimpleNamespace(score=pred == 2 * gold.number, feedback="some")

    def failing(task):
        raise RuntimeError

    assert example["is_it_better"](lambda task: 2 * task.number, tasks, metric) is True
    assert example["is_it_better"](failing, tasks, metric) is False
    assert set(shown) == {0.0}, "the mean that is printed says nothing"
    assert gate() == 2


def test_a_metric_that_raises_is_a_failure(gate):
    held_out = GateMetric("my.gate", lambda example, answer: 1 / answer, key=str)
    assert [held_out(task, 0) for task in TASKS] == [0.0] * len(TASKS)
    assert held_out.ask() is False
    assert [held_out(task, 1, None, pred_name="x") for task in TASKS[:1]] == [0.0]
    assert held_out.ask() is False, "that was but one task, and the earlier ones are forgotten"
    assert gate() == 2


def test_platforms_of_competitions(tmp_path, state, monkeypatch):
    monkeypatch.chdir(tmp_path)
    guesses = make_holdout(tmp_path / "pets.holdout")
    folder = tmp_path / "input" / "res"
    folder.mkdir(parents=True)
    table = folder / "predictions.csv"
    table.write_text("id,prediction\n" + "".join(f"{name},{value}\n" for name, value in guesses.items()))
    evaluate = runpy.run_path(str(EXAMPLES / "evalai_main.py"))["evaluate"]
    found = evaluate("annotations.csv", str(table), "test", submission_metadata={})
    ((split, shown),) = found["result"][0].items()
    assert (split, found["submission_result"]) == ("test", shown)
    assert shown["low"] < 0.9 < shown["high"]
    monkeypatch.setattr(sys, "argv", ["scoring.py", str(tmp_path / "input"), str(tmp_path)])
    runpy.run_path(str(EXAMPLES / "codabench_scoring.py"))
    assert json.loads((tmp_path / "scores.json").read_text()) == shown
    better = make_gate(tmp_path / "my.gate")
    (folder / "outcomes.csv").write_text("id,outcome\n" + "".join(f"{name},1\n" for name in better))
    assert codabench_score("my.gate", "input", ".", file="outcomes.csv") == {"accepted": 1.0}
    with pytest.raises(StudyError):
        answer_file("none.gate", table)


@pytest.mark.full
def test_platforms_that_ask_a_server(tmp_path, state, monkeypatch):
    pytest.importorskip("uvicorn")
    better = make_gate(tmp_path / "my.gate")
    table = tmp_path / "outcomes.csv"
    table.write_text("id,outcome\n" + "".join(f"{name},1\n" for name in better))
    monkeypatch.setenv("DPSELECT_TOKEN", invited(tmp_path))
    with served(tmp_path, tmp_path) as server:
        assert answer_file(f"{server.url}/boards/my", table) == {"verdict": "accepted"}


PLUGIN = "dpselect.integrations.gates.pytest_plugin"
INSTALLED = any(point.value == PLUGIN for point in importlib.metadata.entry_points(group="pytest11"))
SUITE = """
import os, sys
import pytest

@pytest.mark.parametrize("number", range(40))
def test_number(number):
    print("capybara")
    assert number < int(os.environ["SOLVED"]), "capybara"
"""


@pytest.fixture
def suite(tmp_path, state, monkeypatch):
    """A suite of 40 tests; a function that runs it: exit status and what was printed."""
    (tmp_path / "test_suite.py").write_text(SUITE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def run(solved, *flags):
        monkeypatch.setenv("SOLVED", str(solved))
        listed = [] if INSTALLED else ["-p", PLUGIN]
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", *listed, *flags],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return ran.returncode, ran.stdout + ran.stderr

    assert run(10, "-q", "--gate-outcomes", "incumbent.csv")[0] == 1
    rows = (tmp_path / "incumbent.csv").read_text().splitlines()
    assert len(rows) == 41
    assert sum(row.endswith(",1") for row in rows) == 10
    outcomes = dict(row.rsplit(",", 1) for row in rows[1:])
    Gate.create("my.gate", outcomes, consultations=4, rules=GateRules(answer_seconds=0))
    shutil.rmtree(".pytest_cache")  # which says what failed: of the incumbent
    return run


@pytest.mark.full
def test_the_plug_in_of_pytest(suite):
    assert suite(40, "--gate", "my.gate") == (0, "gate: accepted\n")
    assert suite(40, "--gate", "my.gate", "-v", "-rA", "--durations=3") == (0, "gate: rejected\n")
    status, said = suite(1, "--gate", "none.gate")
    assert (status, "none.gate does not exist" in said) == (4, True)
    assert suite(1, "--gate", "my.gate", "-s")[0] == suite(1, "--gate", "my.gate", "--capture=tee-sys")[0] == 4
    assert suite(1, "--gate", "my.gate", "nowhere.py")[0] == 4
    assert Gate.open("my.gate").status()["asked"] == 2
    Path("test_suite.py").write_text("import nothing")
    assert suite(1, "--gate", "my.gate", "--gate-stake", "all") == (0, "gate: rejected\n")
    status, said = suite(1, "--gate", "my.gate")
    assert (status, "empty" in said, "capybara" in said) == (3, True, False)


@pytest.mark.full
def test_pytest_keeps_no_list_of_the_tests_that_failed(suite):
    assert suite(5, "--gate", "my.gate", "--stepwise") == (0, "gate: rejected\n")
    kept = [path for path in Path(".pytest_cache").rglob("*") if path.is_file()]
    assert "nodeids" in {path.name for path in kept}  # all of them, in their order
    assert {path.name for path in kept if "test_number" in path.read_text()} == {"nodeids"}


@pytest.mark.full
def test_the_plug_in_of_pytest_with_many_workers(suite):
    pytest.importorskip("xdist")
    assert suite(40, "--gate", "my.gate", "-n", "2") == (0, "gate: accepted\n")


@pytest.mark.full
def test_a_suite_that_ends_its_process_has_been_charged(suite):
    Path("test_suite.py").write_text("import os\ndef test_it():\n    os._exit(0)\n")
    assert suite(1, "--gate", "my.gate")[1] == ""
    assert Gate.open("my.gate").status()["asked"] == 1


def test_nothing_is_left_to_ask(gate):
    held_out = GateMetric("my.gate", lambda example: 0, key=str)
    held_out.ask("all")
    with pytest.raises(BudgetError):
        held_out.ask()
