"""Flags of `dpselect quantile` that do not go together, and answers for persons by the command line."""

from __future__ import annotations

import json
import sys

import pytest

from dpselect.cli import main
from dpselect.cli.quantile_flags import check_domain_flags, check_numbers, check_person_flags, for_whom
from dpselect.errors import ArgumentError


def test_numbers_are_in_range():
    check_numbers(1.0, [0.0, 0.5, 1.0], 2.0, count=True)
    for wrong in ((0.0, [0.5], None), (1.0, [1.5], None), (1.0, [0.5], 0.0), (2.0**-27, [0.5], None)):
        with pytest.raises(ArgumentError):
            check_numbers(*wrong, count=True)
    check_numbers(2.0**-27, [0.5], None, count=False)


def test_a_domain_is_given_in_one_way():
    check_domain_flags("0", "1", None, None, None, None)
    check_domain_flags(None, None, None, ["a"], None, None)
    check_domain_flags(None, None, 1.0, None, None, None)
    wrong = [
        ("0", None, None, None, None, None),
        (None, None, None, None, None, None),
        ("0", "1", 1.0, None, None, None),
        ("0", "1", None, ["a"], None, None),
        (None, None, None, ["a"], None, "number"),
    ]
    for flags in wrong:
        with pytest.raises(ArgumentError):
            check_domain_flags(*flags)


def test_persons_need_their_number_and_go_without_groups_and_ranges():
    check_person_flags(None, None, {"--by": "x"})
    check_person_flags("who", 2, {"--by": None})
    with pytest.raises(ArgumentError, match="Write --rows-per-person 1"):
        check_person_flags("who", None, {})
    with pytest.raises(ArgumentError, match="Write --person patient_id"):
        check_person_flags(None, 2, {})
    with pytest.raises(ArgumentError, match="--range-epsilon: not with --person"):
        check_person_flags("who", 2, {"--by": None, "--range-epsilon": 1.0})


def test_a_price_says_whom_it_is_for():
    assert for_whom(None) == ""
    assert for_whom(1).endswith("at most 1 row of theirs")
    assert for_whom(2).endswith("at most 2 rows of theirs")


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["dpselect", "quantile", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        main()
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return end.value.code or 0, out, err


def test_quantiles_of_persons_by_the_command_line(tmp_path, monkeypatch, capsys):
    where = tmp_path / "visits.csv"
    where.write_text("who,x\n" + "".join(f"p{i % 100},{i % 50}\n" for i in range(10_000)), encoding="utf-8")
    usual = (where, "--column", "x", "--q", "0.5", "--lower", "0", "--upper", "50", "--epsilon", "5")
    code, out, _ = run(monkeypatch, capsys, *usual, "--person", "who", "--rows-per-person", "2", "--json")
    found = json.loads(out)
    assert (code, found["rows_per_person"], found["epsilon"]) == (0, 2, 5.0)
    assert abs(found["cells"]["inside"] - 200) < 700  # of 10,000 rows, with noise of scale 42
    assert [part["rows_per_person"] for part in found["terms"]["composition"]] == [2, 2]
    code, out, _ = run(monkeypatch, capsys, *usual, "--person", "who", "--rows-per-person", "1")
    assert "epsilon 5, delta 0 for each person, with at most 1 row of theirs" in out
    code, _, err = run(monkeypatch, capsys, *usual, "--person", "whom", "--rows-per-person", "1")
    assert code
    assert "no such column: 'whom'" in err
