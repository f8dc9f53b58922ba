"""`dpselect plan`: what the table prints can be used as it stands, and errors speak in flags."""

import sys

import pytest
from typer.testing import CliRunner

from dpselect.accounting import best_of
from dpselect.accounting.planning.plan import plan as weigh
from dpselect.cli import main
from dpselect.cli.app import app, in_flags
from dpselect.privacy import gaussian
from dpselect.repetitions.by_name import families

TOTAL, DELTA = 1.3, 1e-6


@pytest.mark.full
def test_the_noise_that_the_table_prints_keeps_the_total(monkeypatch):
    few = [family for family in families() if family.name in ("Poisson", "harmonic")]
    found = []

    def fewer(**arguments):
        found.append(weigh(**arguments, families=few))
        return found[-1]

    monkeypatch.setattr("dpselect.cli.plan.weigh", fewer)
    asked = ["plan", "--base", "gaussian", "--epsilon", str(TOTAL), "--delta", str(DELTA), "--mean-runs", "3"]
    printed = CliRunner().invoke(app, asked).stdout
    rows = {row.split()[0]: row.split()[1:3] for row in printed.splitlines()[1:-2]}
    assert set(rows) == {"Poisson", "harmonic"}
    for option in found[0].options:
        noise, epsilon = map(float, rows[option.family])
        assert noise >= option.noise
        assert epsilon >= option.epsilon
        assert best_of(gaussian(noise_multiplier=noise), option.law).epsilon(DELTA) <= TOTAL


FIXED = "gaussian:noise_multiplier=2"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--base gaussian", "--epsilon is needed when --base"),
        ("--base gaussian --epsilon 0", "--epsilon must be"),
        ("--base gaussian --success 3", "--success must be CHANCE:WANTED"),
        (
            f"--base {FIXED} --epsilon 1 --expected-quantile .9",
            "with --base and --epsilon fixed, leave --expected-quant",
        ),
    ],
)
def test_errors_name_flags(arguments, said, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["dpselect", "plan", "--delta", "1e-6", *arguments.split()])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err


def test_other_words_stay_as_they_are():
    message = "privacy.delta and 'epsilon', the delta and subsets at epsilon-delta; delta-curve. with --base"
    assert in_flags(message, ["plan"]) == message
    assert in_flags("epsilon", ["no such command"]) == "epsilon"
    message = "Failed to open it; there are 'keep;to', \"the table's label\" and 'a', 'table'"
    assert in_flags(f"table: {message}", ["predict"]) == f"--table: {message}"
    message = "more than one column 'age', or one column alone"
    assert in_flags(message, ["quantile"]) == message


def test_a_declaration_is_written_as_a_flag():
    said = in_flags("two_digit_years_from: such as two_digit_years_from = 1920", ["quantile"])
    assert said == "--two-digit-years-from: such as --two-digit-years-from 1920"
