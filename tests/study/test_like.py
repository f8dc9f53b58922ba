"""A public sample is read before anything is charged."""

import pytest

from dpselect.errors import StudyError
from dpselect.study import check_study, run_study
from tests.study.cell_counts_cases import ROW, base, study, written

pytestmark = pytest.mark.usefixtures("state", "no_page")


def test_a_public_sample_is_read_before_anything_is_charged(tmp_path):
    written(tmp_path, base() * 40)
    written(
        tmp_path, [ROW, ("unknown", "2021-05-06", "LOW", "no"), ("about 40", "2021-05-06", "low", "no")], "like.csv"
    )
    asked = study({"like": "like.csv"})
    with pytest.raises(StudyError, match=r"data.like 'like.csv': 2 of 3 cells of column 'age' .*row 2 has 'unknown'"):
        check_study(asked, base_folder=tmp_path, folder=tmp_path / "out")
    with pytest.raises(StudyError, match="1 of 3 cells of column 'grade'"):
        run_study(asked, base_folder=tmp_path, folder=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    written(tmp_path, base(), "like.csv")
    assert check_study(asked, base_folder=tmp_path)["cells"] is not None
    (tmp_path / "like.csv").write_text("age,day,y\n1,2,3\n")
    with pytest.raises(StudyError, match=r"data.like 'like.csv': no such column: 'grade'"):
        check_study(asked, base_folder=tmp_path)
