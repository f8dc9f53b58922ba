"""The mutation run: which mutants there are, how they are drawn, and that those which must die do."""

import random
import subprocess
import sys

import pytest

from tests.root import ROOT

pytest.importorskip("cosmic_ray")
pytest.importorskip("coverage")

from benchmarks.mutants import difference, mutants, mutated, quotas, statement

SOURCE = '''\
def area(width: int | 3, *, height: float = 1e200) -> "int":
    """One text, of 1 line."""
    if width < 0:
        raise ValueError(f"{width + 1}", 7)
    return (
        width
        * height
    )
'''


def test_one_change_of_one_place():
    found = mutants("room/module", SOURCE)
    assert {(mutant.line, mutant.operator) for mutant in found} == {
        (3, "NumberReplacer"),
        (3, "AddNot"),
        (3, "ReplaceComparisonOperator_Lt_LtE"),
        (7, "ReplaceBinaryOperator_Mul_Div"),
    }
    (product,) = (mutant for mutant in found if mutant.line == 7)
    assert mutated(SOURCE, product) == SOURCE.replace("* height", "/ height")
    assert difference(SOURCE, product) == "    - * height\n    + / height"
    assert str(product) == "room/module.py:7 ReplaceBinaryOperator_Mul_Div"


def test_the_lines_of_a_statement():
    assert [statement(SOURCE, line) for line in (3, 4, 7)] == [range(3, 4), range(4, 5), range(5, 9)]


def test_modules_have_their_share_by_lines():
    lines = {"a": 10, "b": 25, "c": 65}
    for seed in range(20):
        found = quotas(lines, 10, random.Random(seed))
        assert sum(found.values()) == 10
        assert all(abs(found[name] - lines[name] / 10) < 1 for name in lines)


def run(*asked):
    command = [sys.executable, "-m", "benchmarks.mutations", *asked]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def line(module, text):
    """The number of the line that has this text."""
    lines = (ROOT / f"src/dpselect/{module}.py").read_text(encoding="utf-8").splitlines()
    (number,) = (number for number, each in enumerate(lines, 1) if text in each)
    return f"{module}:{number}"


@pytest.mark.slow
def test_lethal_mutants_die():
    """Of the weights of a tilted law, and of the limit of a uniform one: draws and prices would show it."""
    for module, text, test in (
        ("repetitions/truncation", "tilted.append(weight * power)", "tests/repetitions/test_truncation.py"),
        ("repetitions/beta_binomial", "return 0.5 * self.limit", "tests/repetitions/test_beta_binomial.py"),
    ):
        out = run(line(module, text), "--tests", test)
        assert "survived: " not in out
        assert "killed: " in out


@pytest.mark.slow
def test_a_mutant_survives_tests_of_something_else():
    out = run(line("repetitions/truncation", "tilted.append(weight * power)"), "--tests", "tests/test_errors.py")
    assert "| 1 | 0 | 1 | 0 | 0.00" in out
    assert "    - tilted.append(weight * power)\n    + tilted.append(weight / power)" in out


@pytest.mark.slow
def test_a_drawn_sample():
    out = run("repetitions", "--sample", "5", "--seed", "3", "--tests", "tests/repetitions/test_distribution.py")
    assert sum(out.count(f"\n{outcome}: ") for outcome in ("killed", "survived", "timed out")) in (4, 5)
    assert "| repetitions | 5 |" in out
