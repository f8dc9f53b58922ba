"""`dpselect audit`, as its user meets it."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

from dpselect.audit import FiniteSubject, Subject
from dpselect.audit.entry import resolve_entry, subject_of
from dpselect.audit.result import Audit
from dpselect.cli.app import app, main
from dpselect.errors import ArgumentError

MECHANISMS = '''
import sys, time
from fractions import Fraction
import numpy as np
from dpselect.audit import FiniteSubject, Subject, exact_audit
from dpselect.audit.result import Audit
from dpselect.privacy import pure_dp

def told(yes, random):
    """Randomised response with a ratio of 3."""
    print("on the way")
    return random.bernoulli(0.75 if yes else 0.25, 1)[0]

def says(yes):
    return yes

def fails(yes):
    if yes:
        raise RuntimeError("secret 17")
    sys.exit(0)

def slow(yes):
    open("began", "w").close()
    time.sleep(0.01)
    return 0

def two(one, other):
    return 0

def draw(neighbour, count, random):
    return random.bernoulli(0.25 if neighbour else 0.75, count)

def broken_draw(neighbour, count, random):
    raise RuntimeError("secret 17")

def exits(neighbour, count, random):
    sys.exit(0)

def nameless(yes):
    return object()

class Unusual(BaseException):
    pass

def unusual(yes):
    if yes:
        raise Unusual("secret 17")

exiting = Subject(name="exiting", draw=exits, claim=pure_dp(epsilon=1.2))
texts = FiniteSubject(name="texts", data={1: "1"}, neighbour={1: 1}, claim=pure_dp(epsilon=1))
short = FiniteSubject(name="short", data={1: 0.9}, neighbour={1: 1.0}, claim=pure_dp(epsilon=1))
subject = Subject(name="response", draw=draw, claim=pure_dp(epsilon=1.2))
cannot = Subject(name="cannot", draw=broken_draw, claim=pure_dp(epsilon=1.2))
three = {1: Fraction(3, 4), 2: Fraction(1, 4)}
one = {1: Fraction(1, 4), 2: Fraction(3, 4)}
laws = FiniteSubject(name="laws", data=three, neighbour=one, claim=pure_dp(epsilon=1))

class Holder:
    def audit_subject(self):
        return laws
    kept = subject

holder = Holder()
def give(): return holder
def done(): return exact_audit(laws)
def number(): return 3
def wrong(): return [][0]
def wrong_type(): return len(3)
'''
TOLD = ["mechanisms_of_test:told", "--data", "1", "--neighbour", "0", "--draws", "400", "--key", "k"]
SAYS = ["mechanisms_of_test:says", "--data", "1", "--neighbour", "0", "--draws", "400"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "mechanisms_of_test.py").write_text(MECHANISMS)
    (tmp_path / "breaks_on_import.py").write_text("raise ValueError('secret 17')\n")
    (tmp_path / "exits_on_import.py").write_text("import sys\nsys.exit(0)\n")
    (tmp_path / "imports_nothing.py").write_text("import not_there_at_all\n")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in ("mechanisms_of_test", "breaks_on_import", "exits_on_import", "imports_nothing"):
        sys.modules.pop(name, None)


def run(*arguments):
    return CliRunner().invoke(app, ["audit", *map(str, arguments)])


class TestVerdicts:
    @pytest.mark.parametrize(
        ("arguments", "status"),
        [
            ((*TOLD, "--claim-epsilon", "1.1"), 4),
            ((*SAYS, "--claim-epsilon", "1"), 1),
            ((*SAYS, "--claim", "pure:epsilon=1"), 1),
            ((*SAYS, "--claim-epsilon", "1", "--claim-delta", "0.5"), 1),
            (("mechanisms_of_test:fails", *SAYS[1:], "--claim-epsilon", "1"), 1),
            (("mechanisms_of_test:unusual", *SAYS[1:], "--claim-epsilon", "1"), 1),
            (("mechanisms_of_test:subject", "--quick"), 0),
            (("mechanisms_of_test:subject", "--quick", "--claim-epsilon", "0.5"), 1),
            (("mechanisms_of_test:holder.kept", "--draws", "100"), 4),
            (("mechanisms_of_test:holder.kept", "--draws", "8000"), 0),
            (("mechanisms_of_test:laws",), 1),
            (("mechanisms_of_test:laws", "--draws", "2000", "--claim-epsilon", "0.5", "--key", "k"), 1),
            (("mechanisms_of_test:laws", "--claim-epsilon", "1.1"), 0),
            (("mechanisms_of_test:holder",), 1),
            (("mechanisms_of_test:give",), 1),
            (("mechanisms_of_test:done",), 1),
        ],
    )
    def test_exit_status(self, folder, arguments, status):
        result = run(*arguments)
        assert result.exit_code == status, result.output
        assert ("VIOLATED" in result.stdout) == (status == 1)
        assert ("CANNOT TELL" in result.stdout) == (status == 4)
        assert ("not violated" in result.stdout) == (status == 0)
        assert "An audit finds faults; it never proves privacy." in result.stdout
        assert "secret" not in result.output

    def test_json_is_alone_on_standard_output(self, folder):
        """Anything that the mechanism prints."""
        result = run(*TOLD, "--claim-epsilon", "1.1", "--json")
        described = json.loads(result.stdout)
        assert described["violated"] is False
        assert described["draws"] == 400
        assert described["claimed_epsilon"] == 1.1
        assert described == json.loads(run(*TOLD, "--claim-epsilon", "1.1", "--json").stdout)

    def test_outputs_drawn_elsewhere(self, folder):
        np.save("a.npy", np.arange(500) % 2)
        np.save("b.npy", np.full(300, "failed"))
        np.save("many.npy", np.arange(20_000) % 2)
        assert run("--outputs", "many.npy", "many.npy", "--claim-epsilon", "1").exit_code == 0
        assert run("--outputs", "a.npy", "a.npy", "--claim-epsilon", "1").exit_code == 4
        assert run("--outputs", "a.npy", "b.npy", "--claim-epsilon", "3").exit_code == 1

    def test_low_bits(self, folder):
        (folder / "careless_of_test.py").write_text(
            "def noisy(value, random):\n    return value + float(random.laplace(1)[0])\n"
        )
        arguments = [
            "careless_of_test:noisy",
            "--data",
            1,
            "--neighbour",
            0,
            "--claim",
            "laplace:scale=1",
            "--key",
            "k",
        ]
        assert run(*arguments, "--draws", 2000).exit_code == 1
        assert run(*arguments, "--draws", 8000, "--ignore-low-bits").exit_code == 0

    def test_the_import_path_is_left_as_it_was(self, folder):
        before = list(sys.path)
        run("mechanisms_of_test:laws")
        assert sys.path == before

    def test_data_from_a_file(self, folder):
        (folder / "data.json").write_text("1")
        assert run("mechanisms_of_test:says", "--data", "@data.json", *SAYS[3:], "--claim-epsilon", "1").exit_code == 1


@pytest.mark.cases(21)
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "give either an entry point"),
        (("mechanisms_of_test",), "MODULE:NAME"),
        (("mechanisms_of_test:",), "MODULE:NAME"),
        (("not_there_at_all:x",), "there is no module not_there_at_all"),
        (("imports_nothing:x",), "there is no module not_there_at_all while importing imports_nothing"),
        (("breaks_on_import:x",), "importing breaks_on_import failed: ValueError at"),
        (("exits_on_import:x",), "importing exits_on_import failed: SystemExit at"),
        (("mechanisms_of_test:exiting",), "drawing failed: SystemExit at"),
        (("mechanisms_of_test:nameless", *SAYS[1:], "--claim-epsilon", 1), "type object have no repr of their own"),
        (("mechanisms_of_test:texts",), "data: probabilities must be numbers"),
        (("mechanisms_of_test:short",), "data: probabilities must sum to 1"),
        (("mechanisms_of_test:absent",), "mechanisms_of_test has no attribute 'absent'"),
        (("mechanisms_of_test:holder.absent",), "mechanisms_of_test:holder has no attribute 'absent'"),
        (("mechanisms_of_test:number",), "got int, wanted a Subject"),
        (("mechanisms_of_test:wrong",), "failed: IndexError at"),
        (("mechanisms_of_test:wrong_type",), "failed: TypeError at"),
        (("mechanisms_of_test:says",), "a function of data needs --data"),
        (("mechanisms_of_test:two", *SAYS[1:], "--claim-epsilon", 1), "called with the data alone"),
        (
            ("mechanisms_of_test:laws", "--data", 1, "--neighbour", 0, "--claim-epsilon", 1),
            "--data goes with a function",
        ),
        (("mechanisms_of_test:cannot",), "drawing failed: RuntimeError at"),
        (("mechanisms_of_test:done", "--claim-epsilon", 1), "takes no claim"),
        (SAYS, "makes no claim"),
        ((*SAYS, "--quick", "--claim-epsilon", 1), "--quick or --draws"),
        ((*SAYS, "--claim-epsilon", 1, "--claim", "pure:epsilon=1"), "--claim or --claim-epsilon"),
        ((*SAYS, "--claim-delta", 0.1), "--claim-delta goes with"),
        ((*SAYS, "--claim", "puer:epsilon=1"), "unknown base 'puer'"),
        ((*SAYS, "--claim-epsilon", -1), "--claim-epsilon must be"),
        ((*SAYS[:3], "--claim-epsilon", 1), "--data and --neighbour"),
        (("mechanisms_of_test:says", "--data", "[17", "--neighbour", 0, "--claim-epsilon", 1), "--data is not JSON"),
        (("mechanisms_of_test:says", "--data", "@none", "--neighbour", 0, "--claim-epsilon", 1), "none cannot be read"),
        (("mechanisms_of_test:subject", "--confidence", 1), "--confidence must be"),
        (("mechanisms_of_test:subject", "--delta", 1), "--delta must be"),
        (("mechanisms_of_test:subject", "--draws", 7), "draws must be"),
        (("--outputs", "none.npy", "none.npy", "--claim-epsilon", 1), "--outputs: none.npy is not an array"),
        (("--outputs", "none.npy", "none.npy"), "--outputs needs a claim"),
    ],
)
def test_wrong_usage(folder, capsys, monkeypatch, arguments, says):
    """Status 2 and one line that names what is wrong, without the message of what was raised."""
    monkeypatch.setattr(sys, "argv", ["dpselect", "audit", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    shown = capsys.readouterr()
    assert stopped.value.code == 2, shown
    assert says in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""
    assert "secret" not in shown.err
    assert "[17" not in shown.err


NOISY = """
import os
os.system("echo from a child")
parent = os.getpid()

def mechanism(yes):
    os.write(1, b"from below")
    if os.fork() == 0:
        return "the child goes on"
    os.wait()
    return yes
"""


@pytest.mark.full
def test_only_the_verdict_is_on_standard_output(folder):
    """Not what children and C code write; and a child that comes back from the mechanism ends there."""
    (folder / "noisy_of_test.py").write_text(NOISY)
    arguments = [
        "audit",
        "noisy_of_test:mechanism",
        "--data",
        "1",
        "--neighbour",
        "0",
        "--claim-epsilon",
        "1",
        "--json",
    ]
    command = [sys.executable, "-c", "from dpselect.cli.app import main; main()", *arguments, "--draws", "100"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["violated"] is True
    assert "from a child" in done.stderr


@pytest.mark.full
def test_an_interrupted_run(folder):
    """Ctrl-C while the mechanism runs: no verdict, and the status that shells give."""
    arguments = ["audit", "mechanisms_of_test:slow", *SAYS[1:5], "--claim-epsilon", "1", "--json"]
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "  # ignored in the background
    command = [sys.executable, "-c", heeding + "from dpselect.cli.app import main; main()", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        try:
            limit = time.monotonic() + 60.0
            while not (folder / "began").exists() and time.monotonic() < limit:
                time.sleep(0.05)
            started.send_signal(signal.SIGINT)
            out, err = started.communicate(timeout=60)
        finally:
            started.kill()
    assert (started.returncode, out) == (130, "")
    assert "interrupted; nothing is said about the claim" in err


class TestEntries:
    def test_what_an_entry_point_may_be(self, folder, monkeypatch):
        monkeypatch.syspath_prepend(str(folder))
        kinds = {
            "subject": Subject,
            "laws": FiniteSubject,
            "holder": FiniteSubject,
            "give": FiniteSubject,
            "done": Audit,
        }
        for name, kind in kinds.items():
            entry = f"mechanisms_of_test:{name}"
            assert isinstance(subject_of(resolve_entry(entry), name=entry), kind)
        with pytest.raises(ArgumentError, match="got module"):
            subject_of(sys, name="sys")
