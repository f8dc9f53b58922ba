"""Flags that several commands share."""

from __future__ import annotations

import pytest

from dpselect.cli.options import number_in, print_result, stake_of
from dpselect.errors import ArgumentError
from tests.cli.quantile_cases import run


@pytest.mark.parametrize("typed", [r"\t", "\t"])
def test_a_tab_may_be_typed_as_shells_pass_it(tmp_path, typed):
    path = tmp_path / "rows.csv"
    path.write_text("id\tx\n" + "".join(f"{row}\t{row % 10}\n" for row in range(1000)))
    asked = ("--column", "x", "--lower", "0", "--upper", "9", "--granularity", "1", "--epsilon", "9", "--q", "0.5")
    assert "q 0.5: " in run(str(path), *asked, "--delimiter", typed)


def test_a_number_is_an_integer_if_it_can_be():
    assert [number_in("3"), type(number_in("3")), number_in("3.0"), number_in("1e3")] == [3, int, 3.0, 1000.0]
    with pytest.raises(ValueError, match="x"):
        number_in("x")


def test_a_stake_is_a_number_or_all():
    assert [stake_of(None), stake_of("all"), stake_of("0.25")] == [None, "all", 0.25]
    with pytest.raises(ArgumentError, match="--stake must be a number or \"all\", got 'half'"):
        stake_of("half")


def test_a_result_is_one_object_or_lines(capsys):
    print_result({"a": 1}, True, "line")
    assert capsys.readouterr().out == '{"a": 1}\n'
    print_result({"a": 1}, False, "line", "other")
    assert capsys.readouterr().out == "line\nother\n"
