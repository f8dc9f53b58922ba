"""Help, version and completion: every command has examples, and every example runs."""

import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec

import pytest
from typer.testing import CliRunner

import dpselect
from dpselect.cli.app import app
from dpselect.cli.commands import EXAMPLES
from dpselect.cli.described import BASE_HELP, LAW_HELP, base_of, law_of, parse_settings
from dpselect.errors import ArgumentError
from dpselect.privacy.bases import base_named, base_usage
from dpselect.repetitions.by_name import law_named, law_usage
from tests.cli.test_app import toml
from tests.study.schema_cases import STUDY


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that the examples name."""
    made = tmp_path_factory.mktemp("examples")
    (made / "study.toml").write_text(toml({**STUDY, "runs": {"executor": "inline"}}))
    (made / "people.csv").write_text("income\n" + "".join(f"{1000 * i}\n" for i in range(500)))
    ids = range(200)
    measures = [f"{part} {side} (cm)" for part in ("sepal", "petal") for side in ("length", "width")]
    (made / "new.csv").write_text(
        ",".join(["species", *measures]) + "\n" + "".join(f"{i},5,3,{i % 6},1\n" for i in ids)
    )
    (made / "mechanism.py").write_text(
        "from dpselect.randomness import RandomSource\n\n\n"
        "def noisy_count(people: int, random: RandomSource) -> int:\n"
        "    return people + round(2 * float(random.laplace(1)[0]))\n"
    )
    (made / "labels.csv").write_text("id,label\n" + "".join(f"{i},{i % 2}\n" for i in ids))
    (made / "guesses.csv").write_text("id,prediction\n" + "".join(f"{i},{i % 2 if i % 10 else 0}\n" for i in ids))
    (made / "incumbent.csv").write_text("id,outcome\n" + "".join(f"{i},{i % 2}\n" for i in ids))
    (made / "candidate.csv").write_text("id,outcome\n" + "".join(f"{i},{int(i % 9 > 0)}\n" for i in ids))
    (made / "model.bin").write_bytes(b"the second model")
    runs = [f"{noise},0.01,1000,1.0,{noise / 2}\n" for noise in (1.0, 1.0, 1.5)]
    (made / "sweep.csv").write_text("noise_multiplier,sampling_rate,steps,max_grad_norm,score\n" + "".join(runs))
    return made


ELSEWHERE = {
    "holdout serve": "tests/holdout/server/test_app.py",
    "holdout submit": "tests/holdout/server/test_app.py",
}
"""Commands whose examples do not run here, and why or where they do."""
QUICK = [(words, example) for words, shown in EXAMPLES.items() if words not in ELSEWHERE for example in shown]


@pytest.mark.full
def test_every_example_runs(folder, monkeypatch):
    """In the order of the help: later ones use what earlier ones made."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    for _, example in QUICK:
        if example.endswith(".onnx") and find_spec("onnx") is None:
            continue
        result = CliRunner().invoke(app, shlex.split(example)[1:])
        assert result.exit_code == 0, (example, result.output, result.exception)
        assert result.stdout.strip() or "export" in example
    assert {"found", "budget.db", "record.jsonl", "copy.db", "pets.holdout"} <= {path.name for path in folder.iterdir()}


def test_version():
    assert CliRunner().invoke(app, ["--version"]).stdout == f"dpselect {dpselect.__version__}\n"


class Interrupted:
    """Ctrl-C at the first import of the command line."""

    def find_spec(self, name, _path=None, _target=None):
        if name == "dpselect.cli.app":
            raise KeyboardInterrupt


def test_ctrl_c_during_the_imports_is_an_exit_like_any_other(monkeypatch):
    monkeypatch.delitem(sys.modules, "dpselect.cli.app")
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    with pytest.raises(SystemExit) as stopped:
        dpselect.cli.main()
    assert stopped.value.code == 130


def run(environment, *arguments):
    code = "import sys; sys.argv[0] = 'dpselect'; from dpselect.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.full
def test_completion_knows_commands_and_options():
    """The script that `--install-completion` installs, and what it asks for when the tab key is pressed."""
    script = run({"_DPSELECT_COMPLETE": "source_bash"}).stdout
    assert "_DPSELECT_COMPLETE=complete_bash" in script
    words = {"_DPSELECT_COMPLETE": "complete_bash", "COMP_CWORD": "1", "COMP_WORDS": "dpselect re"}
    assert run(words).stdout.split() == ["report"]


def test_an_unknown_law_or_base_is_answered_with_the_list_that_the_help_has():
    with pytest.raises(ArgumentError, match="unknown distribution 'foo'; one of") as law:
        law_of("foo:mean=3")
    with pytest.raises(ArgumentError, match="unknown base 'foo'; one of") as base:
        base_of("foo:mean=3", adjacency="replace_one")
    for error, text in ((law, LAW_HELP), (base, BASE_HELP)):
        listed = str(error.value).partition("one of ")[2].split(", ")
        assert listed == sorted(re.findall(r"([a-z-]+):", text.partition(": ")[2]))
    for usage, text in ((law_usage(), LAW_HELP), (base_usage(), BASE_HELP)):
        assert ", ".join(f"{name}:{takes}" for name, takes in usage.items()) in text


def test_settings_parse():
    assert parse_settings("gaussian:noise-multiplier=4") == ("gaussian", {"noise_multiplier": 4})
    assert parse_settings("harmonic") == ("harmonic", {})
    for text in ("a:b", "a:b=", "a:b=c", "a:b=1,b=2", "a:=1"):
        with pytest.raises(ArgumentError):
            parse_settings(text)


@pytest.mark.parametrize(
    ("text", "mean"),
    [
        ("negative-binomial:eta=0,mean=10", 10),
        ("negative-binomial:eta=1,gamma=0.1", 10),
        ("geometric:gamma=0.1", 10),
        ("geometric:mean=10", 10),
        ("logarithmic:mean=10", 10),
        ("poisson:mean=10", 10),
        ("binomial:trials=20,probability=0.5", 10),
        ("uniform:limit=20", 10),
        ("fixed:count=10", 10),
        ("beta-binomial:trials=20,shape=1", 10),
        ("harmonic:limit=3", 3 / (1 + 1 / 2 + 1 / 3)),
    ],
)
def test_laws_by_name(text, mean):
    assert law_named(*parse_settings(text)).mean == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize(
    "text",
    ["grid:count=10", "nonsense", "geometric", "geometric:gamma=0.1,mean=10", "poisson:mu=3", "poisson:mean=-1"],
)
def test_wrong_laws_are_refused(text):
    with pytest.raises((ArgumentError, TypeError)):
        law_named(*parse_settings(text))


def test_a_hard_limit_conditions_the_law():
    law = law_named(*parse_settings("geometric:mean=10,at_most=20"))
    assert law.limit == 20
    assert law.mean < 10


def test_bases_by_name():
    base = base_named(*parse_settings("laplace:scale=2"), adjacency="replace_one")
    assert base.epsilon(0) == 0.5
    assert base.adjacency.value == "replace_one"
    for text in ("gauss:noise_multiplier=1", "gaussian", "gaussian:sigma=1"):
        with pytest.raises(ArgumentError, match="base"):
            base_named(*parse_settings(text), adjacency="add_or_remove_one")
