"""Mistakes that users make, by door: no message is Python's own, and nearly nine of ten hold a line that works."""

import shutil
from importlib.util import find_spec

import pytest

from tests.project.mistakes import commands, newcomers, python_names, python_values, studies
from tests.project.mistakes.judge import HERE, heals, in_python, in_shell, in_study, is_raw
from tests.project.mistakes.without_line import WITHOUT_LINE
from tests.project.mistakes.worlds import make_files, run_command, run_python, run_study

PYTHON = [*python_names.NAMES, *python_names.ORDER, *python_values.VALUES, *python_values.DATA, *newcomers.PYTHON]
COMMANDS = [*commands.ACCOUNT, *commands.QUANTILE, *commands.OTHERS, *newcomers.COMMANDS]
STARTS = ("LAW, n_jobs=2)", "executor='processes')", "executor=4)")
"""Lines whose cure starts worker processes."""
NEEDS = {"frame": "pandas", "PrivateTraining": "torch"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Files, a ledger and a gate, with the state that knows them."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        patch.chdir(folder)
        make_files(folder)
    return folder


@pytest.fixture
def fresh(made, tmp_path, monkeypatch):
    """Run a line in a copy of them, made anew each time."""

    def with_copy(run):
        def once(line):
            place = tmp_path / "now"
            monkeypatch.chdir(tmp_path)
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(made, place)
            monkeypatch.chdir(place)
            monkeypatch.setenv("XDG_STATE_HOME", str(place / "state"))
            return run(line)

        return once

    return with_copy


def judge(line, shown, run, attempts):
    error, message = run(line)
    assert error is not None or message.strip(), f"{shown}: nothing is said"
    assert not is_raw(error, message), f"{shown}: {message}"

    def works(other):
        again, said = run(other)
        return again is None and (error is not None or not said.strip())

    healed = shown not in WITHOUT_LINE and heals(message, attempts, works)
    assert healed or shown in WITHOUT_LINE, f"{shown}: no line of {message!r} works"


@pytest.mark.cases(60)
@pytest.mark.parametrize(("line", "wrong"), [each for each in PYTHON if not each[0].endswith(STARTS)])
def test_python(line, wrong, fresh):
    check_python(line, wrong, fresh)


@pytest.mark.full
@pytest.mark.parametrize(("line", "wrong"), [each for each in PYTHON if each[0].endswith(STARTS)])
def test_python_whose_cure_starts_processes(line, wrong, fresh):
    check_python(line, wrong, fresh)


def check_python(line, wrong, fresh):
    for name, package in NEEDS.items():
        if name in line and find_spec(package) is None:
            pytest.skip(f"needs {package}")
    judge(line, line, fresh(run_python), lambda piece: in_python(line, wrong, piece))


@pytest.mark.cases(20)
@pytest.mark.parametrize(("line", "wrong"), COMMANDS)
def test_the_command_line(line, wrong, fresh):
    judge(line, line, fresh(run_command), lambda piece: in_shell(line, wrong, piece))


@pytest.mark.cases(6)
@pytest.mark.parametrize(("piece", "written", "wrong"), [(a, b, (*c, b)[0]) for a, b, *c in studies.STUDIES])
def test_study_files(piece, written, wrong, fresh):
    text = studies.STUDY.replace(piece, written, 1)
    hole = text.replace(wrong, HERE, 1) if wrong else studies.STUDY.replace(piece, HERE, 1)
    judge(text, written or f"without {piece}", fresh(run_study), lambda found: in_study(hole, wrong, found))


def test_how_many_there_are():
    shown = [line for line, _ in [*PYTHON, *COMMANDS]]
    shown += [written or f"without {piece}" for piece, written, *_ in studies.STUDIES]
    assert len(shown) == len(set(shown)) >= 200
    assert set(shown) >= WITHOUT_LINE
    assert len(WITHOUT_LINE) <= 0.13 * len(shown)
