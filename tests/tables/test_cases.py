"""Tables after public reports (`tests/tables/table_cases`): one reading by every door, or a refusal by name."""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Any

import numpy as np
import pytest

from dpselect.errors import ArgumentError, ContentError, MissingExtraError, StudyError
from tests.tables.table_cases import CASES, Case
from tests.tables.table_cases.doors import DOORS, Door, is_text

REFUSALS = (ArgumentError, ContentError, StudyError, TypeError)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The file of a case, written once for all doors."""
    return cache(lambda case: case.write(tmp_path_factory.mktemp("case")))


def marks(case: Case, door: Door) -> list[Any]:
    found = [pytest.mark.xfail(strict=True, reason=case.known[door.name])] if door.name in case.known else []
    if case.file == "t.postgresql":
        found.append(pytest.mark.skipif("DPSELECT_TEST_POSTGRES" not in os.environ, reason="no server"))
    return found


def through_doors() -> list[Any]:
    return [
        pytest.param(
            case,
            door,
            id=f"{case.name}-{door.name}",
            marks=marks(case, door),
        )
        for case in CASES
        for door in DOORS
        if door.takes(case)
    ]


@pytest.mark.parametrize(("case", "door"), through_doors())
def test_every_door_reads_the_same(case: Case, door: Door, written, monkeypatch):
    try:
        given = case.make() if case.in_memory else written(case)
    except ModuleNotFoundError as error:
        pytest.skip(f"needs {error.name}")
    if not case.in_memory:
        monkeypatch.chdir(given.parent)
    refusal = case.refused.get(door.name, case.want if isinstance(case.want, str) else None)
    if refusal is not None:
        with pytest.raises(REFUSALS, match=refusal):
            read(door, case, given)
        return
    found = read(door, case, given)
    if found is not None:
        same(found, door.seen(case.want))


def read(door: Door, case: Case, given: Any) -> Any:
    try:
        return door.read(case, given)
    except (ModuleNotFoundError, MissingExtraError) as error:
        pytest.skip(str(error))


def same(found: Any, want: Any) -> None:
    """Equal doubles; the sign of zero counts."""
    found, want = np.asarray(found, dtype=np.float64), np.asarray(want, dtype=np.float64)
    np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(np.signbit(found[found == 0]), np.signbit(want[want == 0]))


def peers() -> list[Any]:
    cases = (case for case in CASES if is_text(case) and case.kind == "number" and case.pandas)
    return [pytest.param(case, id=case.name) for case in cases if isinstance(case.want, tuple) and not case.known]


@pytest.mark.filterwarnings("ignore:The 'float_precision'")  # of older versions the default is not exact
@pytest.mark.parametrize("case", peers())
def test_pandas_reads_the_same(case: Case, written):
    pd = pytest.importorskip("pandas")
    if case.file.endswith(".zst"):
        pytest.importorskip("zstandard", reason="pandas reads it with this alone")
    declared, path = case.declared, written(case)
    frame = pd.read_csv(
        path,
        sep=declared.delimiter or ("\t" if ".tsv" in case.file else ","),
        encoding=declared.encoding,
        decimal=declared.decimal or ".",
        thousands=declared.thousands or None,
        skiprows=declared.skip_rows or 0,
        skipinitialspace=True,
        float_precision="round_trip",
        index_col=False,
    )
    column = frame.rename(columns=str.strip)["x"]
    if not pd.api.types.is_numeric_dtype(column):
        column = pd.to_numeric(
            column.astype(object).map(lambda cell: cell.strip() if isinstance(cell, str) else cell), errors="coerce"
        )
    same(column.astype(float), case.want)


def test_cases_name_what_is_known_of_them():
    names = [case.name for case in CASES]
    assert len({(case.name, case.file, case.kind, case.in_memory) for case in CASES}) == len(names)
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", case.thread) for case in CASES if case.thread)
    assert sum(bool(case.thread) for case in CASES) >= 150
    doors = {door.name for door in DOORS}
    for case in CASES:
        assert {*case.refused, *case.known} <= doors, case.name
        assert all(door.takes(case) for door in DOORS if door.name in (*case.refused, *case.known)), case.name
