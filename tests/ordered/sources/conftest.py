"""The command for quantiles on a budget."""

from __future__ import annotations

import sys

import pytest

from dpselect.cli import main
from dpselect.ledger import Ledger


@pytest.fixture
def pay(tmp_path, monkeypatch, capsys):
    """Runs `dpselect quantile` on a budget: the exit status, what was said, and what is left of epsilon 3."""
    where = str(tmp_path / "budget.db")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with Ledger.open(where, create=True) as ledger:
        ledger.create_budget("census", epsilon=3)

    def run(*arguments):
        usual = ("--column", "x", "--q", "0.5", "--epsilon", "1", "--ledger", where, "--budget", "census")
        monkeypatch.setattr(sys, "argv", ["dpselect", "quantile", *map(str, arguments), *usual])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        with Ledger.open(where, create=False) as ledger:
            return end.value.code or 0, out + err, float(ledger.budget("census").remaining().epsilon)

    return run
