"""The files about a release agree with each other and with the project's own metadata."""

import tomllib

import pytest

from tests.root import ROOT

yaml = pytest.importorskip("yaml")

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read(path):
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def test_the_citation_names_the_version_and_the_licence():
    citation = read("CITATION.cff")
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]


def test_workflows_run_the_projects_own_commands_with_few_rights():
    workflows = {path.stem: read(path) for path in (ROOT / ".github" / "workflows").glob("*.yml")}
    commands = {
        name: [step.get("run", "") for job in flow["jobs"].values() for step in job["steps"]]
        for name, flow in workflows.items()
    }
    assert ".ci/run" in commands["tests"]
    assert ".ci/run" in commands["release"]
    assert "pytest" in commands["tests"]
    assert all(flow["permissions"] == {"contents": "read"} for flow in workflows.values())
    mutated = workflows["slow"]["jobs"]["mutations"]["strategy"]["matrix"]["package"]
    assert all(
        (ROOT / "src/dpselect" / name).is_dir() or (ROOT / f"src/dpselect/{name}.py").is_file() for name in mutated
    )
    assert any("tests/decoding/test_fuzz.py" in command for command in commands["slow"])
    tested = workflows["tests"]["jobs"]["default-tier"]["strategy"]["matrix"]["python"]
    assert f">={tested[0]}" == PROJECT["requires-python"]
