"""How many features a column of a database becomes."""

from dpselect.study.in_database.fields import NumberField


def test_a_number_is_one_feature_or_its_bins_and_one_more_if_missing_ones_are_shown():
    assert NumberField("x", (0.0, 1.0), 0.5).width == 1
    assert NumberField("x", (0.0, 1.0), 0.5, bins=4).width == 4
    assert NumberField("x", (0.0, 1.0), 0.5, bins=4, indicated=True).width == 5
