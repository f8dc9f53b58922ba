"""Public names: what was public until 0.2 still loads, with a warning, and each name has its place in the reference."""

import importlib
import re
import warnings
from pathlib import Path

import pytest

import dpselect
from dpselect import tuning

SOURCE = Path(dpselect.__file__).parent
REFERENCE = Path(__file__).parent.parent / "docs" / "api"


@pytest.mark.parametrize(
    ("package", "name", "module"),
    [
        ("adaptive", "BlockPlan", "adaptive.block_plan"),
        ("numerics", "rounded_up", "numerics.digits"),
        ("ordered", "QuantileRelease", "ordered.order_statistics.one"),
        ("ordered", "EachRow", "ordered.slices"),
        ("tables", "open_table", "tables.table"),
    ],
)
def test_a_former_public_name_loads_with_a_warning(package, name, module):
    room = importlib.import_module(f"dpselect.{package}")
    assert name not in room.__all__
    with pytest.warns(DeprecationWarning, match=f"import it from dpselect.{module}"):
        found = getattr(room, name)
    assert found is getattr(importlib.import_module(f"dpselect.{module}"), name)


def test_a_renamed_public_name_loads_with_a_warning_that_names_the_new_one():
    with pytest.warns(DeprecationWarning, match=r"type dpselect\.tuning\.SharedRelease"):
        found = tuning.Preparation
    assert found is tuning.SharedRelease
    assert "Preparation" not in tuning.__all__


@pytest.mark.parametrize(
    ("package", "name"), [("tuning", "no_such_name"), ("tuning", "_json"), ("tuning", "machine"), ("", "tune")]
)
def test_another_name_is_no_attribute(package, name):
    """`machine` is a module, which the import system loads. The root never had the names of its packages."""
    room = importlib.import_module(f"dpselect.{package}".rstrip("."))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(AttributeError):
            room.__getattr__(name)


def test_each_public_name_is_in_the_reference():
    shown = {
        found for page in REFERENCE.glob("*.md") for found in re.findall(r"automodule:: ([\w.]+)", page.read_text())
    }
    faces = [path.parent for path in SOURCE.rglob("*/__init__.pyi") if "import" in path.read_text()]
    assert len(faces) > 20
    assert not {".".join(("dpselect", *face.relative_to(SOURCE).parts)) for face in faces} - shown


def test_there_are_at_most_three_hundred_public_names():
    assert sum(path.read_text().count(" as ") for path in SOURCE.rglob("__init__.pyi")) <= 300
