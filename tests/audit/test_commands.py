"""Commands as subjects: all that they print and write, and how they end."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from dpselect.audit import audit, command_subject
from dpselect.cli.app import app
from dpselect.errors import ArgumentError
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source


class TestCommands:
    SCRIPT = (
        "import sys; rows = open(sys.argv[1]).read().split(); print('ok'); "
        "open('out.txt', 'w').write('many' if len(rows) > 2 else 'few')"
    )

    @pytest.fixture
    def files(self, tmp_path):
        (tmp_path / "data.csv").write_text("1 2 3")
        (tmp_path / "other.csv").write_text("1 2")
        return {"data": tmp_path / "data.csv", "neighbour": tmp_path / "other.csv"}

    def test_files_that_it_writes_count(self, files):
        found = audit(
            command_subject("cp {data} here", claim=pure_dp(epsilon=0.1), **files), draws=60, random=keyed_source(1)
        )
        assert found.violated

    @pytest.mark.full
    @pytest.mark.parametrize(
        "command",
        [
            "test {data} -ef nothing",
            "cat {data}",
            "sh -c 'exit $(wc -w < {data})'",
            "sh -c 'cat {data} >&2'",
            "sh -c 'mkdir -p $(wc -w < {data})'",
        ],
    )
    def test_all_that_it_shows_counts(self, files, command):
        found = audit(command_subject(command, claim=pure_dp(epsilon=0.1), **files), draws=24, random=keyed_source(1))
        assert found.violated == ("nothing" not in command)

    def test_paths_are_no_part_of_it(self, files):
        drawn = command_subject("echo {data}", claim=pure_dp(epsilon=1.0), **files).draw(False, 2, keyed_source(1))
        assert drawn[0].value == drawn[1].value
        assert drawn[0].value.printed == "{folder}/data.csv\n"

    def test_refusals(self, files):
        claim = pure_dp(epsilon=1.0)
        with pytest.raises(ArgumentError, match="command must name"):
            command_subject("cat", claim=claim, **files)
        with pytest.raises(ArgumentError, match=r"data: .* cannot be read"):
            command_subject("cat {data}", claim=claim, data="none", neighbour="none")
        with pytest.raises(ArgumentError, match="does not start"):
            audit(command_subject("not-a-program {data}", claim=claim, **files), draws=8)

    def test_a_run_that_takes_too_long(self, files):
        late = command_subject(
            ["sh", "-c", "echo begun; sleep 5 # {data}"], claim=pure_dp(epsilon=1.0), timeout=0.2, **files
        )
        shown = late.draw(False, 1, keyed_source(1))[0].value
        assert (shown.status, shown.printed) == (None, "begun\n")

    def test_on_the_command_line(self, files):
        paths = ["--data", str(files["data"]), "--neighbour", str(files["neighbour"])]
        common = ["audit", "--command", "cat {data}", "--draws", "100"]
        found = CliRunner().invoke(app, [*common, *paths, "--claim-epsilon", "1"])
        assert found.exit_code == 1, found.output
        assert "VIOLATED" in found.stdout
        missing = CliRunner().invoke(app, [*common, *paths])
        assert missing.exit_code != 0

    @pytest.mark.full
    def test_python_programs(self, files):
        program = command_subject([sys.executable, "-c", self.SCRIPT, "{data}"], claim=pure_dp(epsilon=0.5), **files)
        assert audit(program, draws=40).violated
        assert subprocess.run([sys.executable, "-c", "pass"], check=True).returncode == 0
