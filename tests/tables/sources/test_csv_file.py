"""CSV files: undeclared separators, archives that end early, and blocks of bytes."""

import gzip

import numpy as np
import pytest

from dpselect.errors import ContentError
from dpselect.ordered import open_column
from dpselect.study.columns.column import Column
from dpselect.study.data import load
from dpselect.study.schema_data import Data
from dpselect.tables.table import open_table
from tests.tables.csv_text_cases import of_quantile, of_study


def test_an_archive_that_ends_early_is_said_to_be_truncated(tmp_path):
    whole = gzip.compress(b"id,x\n" + b"".join(b"a,%d\n" % k for k in range(100_000)), compresslevel=1)
    path = tmp_path / "t.csv.gz"
    path.write_bytes(whole[: len(whole) // 2])
    for door in (of_quantile, of_study):
        with pytest.raises(ContentError, match="truncated"):
            door(path)


@pytest.mark.parametrize("cells", [('"1,994"', "697"), ('"12,5"', "31"), ("1'994", "2"), ('"1.994,5"', "2")])
def test_separators_that_are_not_declared_are_not_lost_in_silence(cells, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,x\n" + "".join(f"a,{cell}\n" for cell in cells * 50))
    with (
        pytest.raises(ContentError, match=r"declare form\.decimal and form\.thousands"),
        open_column(str(path), "x", look=True),
    ):
        pass
    column = Column(bounds=(0, 1), missing="indicator")
    data = Data(source=path.name, label="id", classes=("a", "b"), columns={"x": column})
    with pytest.raises(ContentError, match=r"'x' holds numbers with other .*data\.decimal and data\.thousands"):
        load(data, open_table(path.name, tmp_path))
    path.write_text("id,x\n" + "".join(f"a,{cell}\n" for cell in (*["697"] * 60, cells[0])))
    with open_column(str(path), "x", look=True):
        pass  # a few are missing, as a person's "unknown" is
    path.write_text(path.read_text() + "b,1\n")
    assert load(data, open_table(path.name, tmp_path)).features[:, 1].sum() == 1


def test_a_mark_in_the_middle_is_a_part_of_its_cell_wherever_a_block_ends(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr("dpselect.tables.blocks._LARGE", 0)
    for before in range(6):
        (tmp_path / "t.csv").write_text("x,y\n" + "7,1\n" * before + "\ufeff5,2\n", encoding="utf-8")
        monkeypatch.setattr("dpselect.tables.blocks._CHARACTERS", 5)
        assert np.isnan(open_table("t.csv", tmp_path).read(["x"], ["x"])["x"][-1])
