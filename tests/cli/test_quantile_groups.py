"""`dpselect quantile --by`: a table of groups, paid for once."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from dpselect.cli.app import app
from dpselect.errors import ArgumentError, BudgetError
from dpselect.ledger import Ledger

GROUPS = ("--by", "region", "--group", "north", "--group", "south")
ASKED = ("--column", "income", "--q", "0.5", "--q", "0.9", "--epsilon", "1", "--lower", "0", "--upper", "1000")


@pytest.fixture(name="people")
def file_of_people(tmp_path):
    rows = np.arange(8000)
    regions = np.array(["north", "south", "east", "south"])[rows % 4]
    lines = [f"{(v % 100) + (500 if r == 'north' else 0)},{r},{r[0]}" for v, r in zip(rows, regions, strict=True)]
    (tmp_path / "people.csv").write_text("\n".join(["income,region,word", *lines]) + "\n")
    return str(tmp_path / "people.csv")


def run(*arguments):
    result = CliRunner().invoke(app, ["quantile", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_json_has_each_group_and_one_price(people):
    result = json.loads(run(people, *ASKED, *GROUPS, "--json", "--granularity", "1").stdout)
    assert (result["epsilon"], result["delta"], result["withheld"]) == (1.0, 0.0, False)
    north, south = result["groups"]
    assert [north["group"], south["group"]] == ["north", "south"]
    assert [row["q"] for row in north["quantiles"]] == [0.5, 0.9]
    assert north["quantiles"][0]["value"] == pytest.approx(549, abs=15)
    assert south["quantiles"][0]["value"] == pytest.approx(49, abs=15)
    assert south["cells"]["inside"] == pytest.approx(4000, abs=200)
    assert "receipt" not in result


def test_the_table_has_a_line_for_each_group_in_the_order_asked_for(people):
    lines = run(people, *ASKED, "--by", "region", "--group", "south", "--group", "north").stdout.splitlines()
    assert lines[0].split()[0] == "region"
    assert [line.split()[0] for line in lines[1:3]] == ["south", "north"]
    assert lines[-1].startswith("epsilon 1, delta 0")
    bare = run(people, *ASKED, *GROUPS, "--no-count", "--adjacency", "replace_one").stdout
    assert "inside" not in bare
    assert "--no-count has not counted the cells" in bare


def test_the_ledger_is_charged_once(people, tmp_path):
    where = str(tmp_path / "ledger.db")
    with Ledger.open(where) as ledger:
        ledger.create_budget("b", epsilon=1.5)
    paid = json.loads(run(people, *ASKED, *GROUPS, "--ledger", where, "--budget", "b", "--json").stdout)
    assert paid["receipt"]["identifier"]
    with Ledger.open(where) as ledger:
        assert ledger.budget("b").remaining().epsilon == pytest.approx(0.5)
    with pytest.raises(BudgetError):
        run(people, *ASKED, *GROUPS, "--ledger", where, "--budget", "b")
    with Ledger.open(where) as ledger:
        assert ledger.budget("b").remaining().epsilon == pytest.approx(0.5)


def test_a_group_whose_cells_cannot_be_read_has_no_answer(people):
    asked = ("--column", "word", "--epsilon", "4", "--q", "0.5", "--category", "s", "--category", "e")
    result = run(people, *asked, *GROUPS, "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 5
    assert [group["withheld"] for group in found["groups"]] == [True, False]
    assert found["groups"][0]["quantiles"] == []
    assert found["groups"][1]["quantiles"][0]["value"] == "s"
    assert "withheld" in run(people, *asked, *GROUPS).stdout


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--by", "region"), "--by and --group"),
        (("--group", "north"), "--by and --group"),
        ((*GROUPS, "--plot", "x.png"), "--plot: not with --by"),
        (("--by", "nowhere", "--group", "north"), "by:"),
        ((*GROUPS, "--group", "north"), "different groups"),
        ((*GROUPS, "--method", "slice", "--delta", "1e-6", "--adjacency", "replace_one"), "'slice' has no price"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(people, flags, message):
    with pytest.raises(ArgumentError, match=message):
        run(people, *ASKED, *flags)
