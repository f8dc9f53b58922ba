"""The files about a release agree with each other, with the project's own metadata, and with what a release may do."""

import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import tomllib

import pytest

from tests.root import ROOT

yaml = pytest.importorskip("yaml")

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
REQUIREMENTS = ROOT / ".ci" / "requirements"
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def read(path):
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def jobs(path):
    return read(path)["jobs"].items()


def commands(job):
    return [step["run"] for step in job["steps"] if "run" in step]


def pins(name):
    """The version of each requirement in a file made by uv."""
    text = (REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8")
    blocks = re.findall(r"^([\w.-]+)==(\S+)(.*\\\n(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", text, flags=re.M)
    assert len(blocks) == len(re.findall(r"^\w", text, flags=re.M)), f"{name}.txt has a line without hashes"
    return {found: version for found, version, _ in blocks}


def names(requirements):
    return {re.match(r"[\w.-]+", line)[0] for line in requirements}


def test_the_citation_names_the_version_and_the_licence():
    citation = read("CITATION.cff")
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]


def test_workflows_run_the_projects_own_commands():
    flows = {path.stem: read(path) for path in WORKFLOWS}
    ran = {name: [each for job in flow["jobs"].values() for each in commands(job)] for name, flow in flows.items()}
    assert ".ci/run" in ran["tests"]
    assert ".ci/run" in ran["release"]
    assert "pytest" in ran["tests"]
    mutated = flows["slow"]["jobs"]["mutations"]["strategy"]["matrix"]["package"]
    assert all(
        (ROOT / "src/dpselect" / name).is_dir() or (ROOT / f"src/dpselect/{name}.py").is_file() for name in mutated
    )
    assert any("tests/decoding/test_fuzz.py" in command for command in ran["slow"])


def test_every_python_from_the_first_on_is_tested():
    tested = read(".github/workflows/tests.yml")["jobs"]["default-tier"]["strategy"]["matrix"]["python"]
    assert f">={tested[0]}" == PROJECT["requires-python"]
    assert tested == [f"3.{minor}" for minor in range(11, 11 + len(tested))]
    assert tested[-1] >= "3.14"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_uses_actions_by_their_commit_and_may_only_read(path):
    text = path.read_text(encoding="utf-8")
    used = re.findall(r"uses:\s*(.*)", text)
    assert used
    assert [each for each in used if not PINNED.fullmatch(each)] == []
    assert "pull_request_target" not in text
    assert read(path)["permissions"] == {"contents": "read"}
    for name, job in jobs(path):
        may_write = "write" in job.get("permissions", {}).values()
        assert not (may_write and any("pip install" in each for each in commands(job))), name
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@") and not may_write:
                assert step["with"]["persist-credentials"] is False, name


def test_one_action_has_one_commit():
    text = "".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)
    found = set(re.findall(r"uses:\s*([\w.-]+/[\w.-]+)\S*@(\S+ # \S+)", text))
    assert len(found) == len({action for action, _ in found})


def test_a_release_signs_and_publishes_in_jobs_that_run_no_command():
    release = dict(jobs(".github/workflows/release.yml"))
    trusted = {name for name, job in release.items() if "permissions" in job}
    assert trusted == {"sign", "publish"}
    for name in trusted:
        assert release[name]["permissions"]["id-token"] == "write"
        assert commands(release[name]) == []
    assert release["publish"]["needs"] == "sign"
    assert set(release["sign"]["needs"]) == set(release) - trusted
    for name in set(release) - trusted:
        installs = [each for each in commands(release[name]) if each.startswith("pip install")]
        assert all("--require-hashes" in each for each in installs), name


@pytest.mark.parametrize("name", ["build", "audit"])
def test_pinned_tools_cover_what_is_asked_for(name):
    asked = (REQUIREMENTS / f"{name}.in").read_text(encoding="utf-8").split()
    assert names(asked) <= set(pins(name))
    if name == "build":
        assert set(PYPROJECT["build-system"]["requires"]) <= set(asked)


def test_dependabot_watches_actions_and_pinned_tools():
    watched = {each["package-ecosystem"]: each["directory"] for each in read(".github/dependabot.yml")["updates"]}
    assert watched == {"github-actions": "/", "pip": f"/{REQUIREMENTS.relative_to(ROOT)}"}


@pytest.mark.full
@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("build", "hatchling", "hatch_fancy_pypi_readme")),
    reason="needs .ci/requirements/build.txt",
)
def test_two_builds_have_the_same_bytes(tmp_path):
    """From this folder, and from the sdist with other rights of files."""
    environment = os.environ | {"SOURCE_DATE_EPOCH": "1790000000"}
    environment["PATH"] = f"{os.path.dirname(sys.executable)}:{environment['PATH']}"
    built = [tmp_path / "first", tmp_path / "second"]

    def build(folder, into, umask):
        run = [f"{folder}/.ci/build", str(into)]
        subprocess.run(run, check=True, capture_output=True, timeout=300, env=environment, umask=umask)

    build(ROOT, built[0], 0o022)
    with tarfile.open(next(built[0].glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = next(path for path in tmp_path.iterdir() if path.name.startswith("dpselect-"))
    (unpacked / "PKG-INFO").unlink()  # each sdist gets one
    for path in unpacked.rglob("*"):
        path.chmod(path.stat().st_mode & 0o700)
    build(unpacked, built[1], 0o077)
    first, second = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in built)
    assert sorted(first) == sorted(second)
    assert [name for name in first if first[name] != second[name]] == []
