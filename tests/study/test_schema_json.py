"""The published JSON schema accepts what the parser accepts."""

import json

import pytest
from typer.testing import CliRunner

from dpselect.cli.app import app
from dpselect.study.schema_json import study_schema
from tests.root import ROOT
from tests.study.schema_cases import changed


def test_the_published_schema_is_in_step():
    result = CliRunner().invoke(app, ["tune", "--schema"])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == study_schema()
    # made by: dpselect tune --schema > docs/study.schema.json
    assert (ROOT / "docs" / "study.schema.json").read_text() == result.stdout


def test_the_schema_takes_what_the_parser_takes():
    """By an independent validator: the example studies pass, studies with a wrong key or type do not."""
    jsonschema = pytest.importorskip("jsonschema")
    import tomllib

    schema = study_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for name in ("digits", "breast_cancer", "tumours"):
        validator.validate(tomllib.loads((ROOT / "examples" / f"{name}.toml").read_text()))
    for path, value in [
        ("privacy.epsilonn", 1.0),
        ("privacy.epsilon", 0.0),
        ("privacy.adjacency", "neighbours"),
        ("data.classes", [0]),
        ("data.bounds", [0]),
        ("learner.name", "deep"),
        ("space.learning_rate", {"law": "grid"}),
        ("repetitions.distribution", "grid"),
        ("runs", {"executor": "threads"}),
        ("extra", {}),
    ]:
        assert not validator.is_valid(changed(path, value)), path


def test_every_key_of_the_schema_is_described():
    schema = study_schema()
    tables = [schema, *(table for name, table in schema["$defs"].items() if name != "Adjacency")]
    for table in tables:
        for name, key in table["properties"].items():
            assert key.get("description"), (table["title"], name)
