"""Labels and predictions read from columns of text."""

from __future__ import annotations

from dpselect.holdout.files import class_names


def test_texts_that_python_reads_as_numbers_stay_apart():
    names = ["10", "1_0", "1e400", "inf", "nan", str(2**60), str(2**60 + 1), "e", "é", "true", "\ud800"]
    assert len(set(class_names(names))) == len(names)
    assert class_names(["-0", "0.0", "False", " 0 "]) == ["0.0"] * 4
