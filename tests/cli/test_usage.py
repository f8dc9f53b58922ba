"""Wrong usage of the command line is one line that says what to type."""

import pytest

from dpselect.cli.app import main


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "account --noise-multiplier 4 --delta 1e-6",
            "there is no --noise-multiplier: write --base gaussian:noise_mul",
        ),
        ("account --target-delta 1", "did you mean --delta?"),
        ("account --seed 1", "leave it out: anyone who knows a seed knows the noise"),
        ("account --colour red", "there are --adjacency, --base, "),
        ("account", "--delta is missing. Write --delta 1e-6"),
        ("account --delta x", "--delta must be a valid number. Write --delta 1e-6"),
        ("tune", " is missing. Write as in `dpselect tune --check study.toml`"),
        ("tune --dry-run a.toml", "there is no --dry-run: write --check"),
        ("acount", "there is no command acount: did you mean account?"),
        ("gate submit a.csv", "there is no command submit of gate: did you mean ask?"),
        ("ledger zzz", "there is no command zzz of ledger: there are create"),
        ("predict a.npz b.csv --output c.csv", "did you mean --to?"),
        ("gate plan --tasks 9 --consultations 2 --alpha 0.1", "did you mean --failure-probability?"),
    ],
)
def test_what_to_type(line, said, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["dpselect", *line.split()])
    with pytest.raises(SystemExit) as stopped:
        main()
    written = capsys.readouterr()
    assert (stopped.value.code, written.out) == (2, "")
    assert written.err.startswith("dpselect: ")
    assert written.err.count("\n") == 1
    assert said in written.err


@pytest.mark.parametrize(("line", "status"), [("", 2), ("ledger", 2), ("--version", 0), ("account --help", 0)])
def test_help_and_version_end_as_before(line, status, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["dpselect", *line.split()])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == status
    assert "dpselect" in "".join(capsys.readouterr())
