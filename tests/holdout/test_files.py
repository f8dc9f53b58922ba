"""Labels and predictions read from columns of text."""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.errors import ContentError
from dpselect.holdout.files import (
    aligned,
    class_names,
    numbers,
    predicted_classes,
    read_cells,
    read_columns,
    submitted,
    texts,
    unique_ids,
)


def test_texts_that_python_reads_as_numbers_stay_apart():
    names = ["10", "1_0", "1e400", "inf", "nan", str(2**60), str(2**60 + 1), "e", "é", "true", "\ud800"]
    assert len(set(class_names(names))) == len(names)
    assert class_names(["-0", "0.0", "False", " 0 "]) == ["0.0"] * 4


def test_class_names_of_the_first_version():
    """It read True and False only when they are spelled so, and letters with accents as they were typed."""
    names = ["True", "TRUE", "1", "é", "cat"]
    assert class_names(names, naming=1) == ["1.0", "TRUE", "1.0", "é", "cat"]
    assert class_names(names) == ["1.0", "1.0", "1.0", "é", "cat"]


def test_values_that_are_missing_are_empty_texts():
    assert texts([1, "1", None, float("nan"), np.datetime64("NaT"), True]) == ["1", "1", "", "", "", "True"]
    assert texts(np.array([1.5, np.nan])) == ["1.5", ""]


def test_ids_are_there_once_each():
    places = unique_ids(["a", "b"], "id")
    assert places == {"a": 0, "b": 1}
    assert aligned(places, ["b", "a"], ["x", "y"], "id") == ["y", "x"]
    given = ["x", "y"]
    same = aligned(places, ["a", "b"], given, "id")
    assert same == given
    assert same is not given
    for ids, said in (
        (["a", ""], "without an id"),
        (["a", "a"], "more than once"),
        (["a", "c"], "does not have"),
        (["a"], "lacks"),
    ):
        with pytest.raises(ContentError, match=said):
            aligned(places, ids, ["x"] * len(ids), "id")
    with pytest.raises(ContentError, match="differ in length"):
        aligned(places, ["a", "b"], ["x"], "id")


@pytest.mark.parametrize("missing", ["", "nan", "NaN", "-nan", "+NAN"])
def test_a_prediction_that_is_missing_is_refused(missing):
    assert predicted_classes(["1", "cat"], "p") == ["1.0", "cat"]
    with pytest.raises(ContentError, match="without a prediction"):
        predicted_classes(["1", missing], "p")


def test_numbers_are_finite_and_have_no_negative_zero():
    found = numbers(["-0", "1.5"], "p")
    assert found.tolist() == [0.0, 1.5]
    assert not np.signbit(found).any()
    for wrong in ("inf", "nan", "x", ""):
        with pytest.raises(ContentError, match="finite numbers only"):
            numbers(["1", wrong], "p")


def test_columns_are_read_without_blanks(tmp_path):
    path = tmp_path / "rows"
    path.write_text("id,x\n a ,TRUE\n")
    assert read_columns(path, ["x", "id"]) == [["TRUE"], ["a"]]
    assert read_cells(path, ["id", "x"]) == [["a"], ["TRUE"]]
    with pytest.raises(ContentError, match="missing"):
        read_cells(path, ["id", "missing"])
    path.write_text("id,x\n")
    with pytest.raises(ContentError, match="rows has no rows"):
        read_cells(path, ["id"])


def test_a_submission_takes_memory_by_its_rows():
    assert (submitted(10).entries, submitted(10).decoded) == (10, (16 << 20) + 10_240)
