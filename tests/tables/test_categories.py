"""Categories: equal texts and numbers, whichever way they are written."""

import datetime
import random
import unicodedata
from fractions import Fraction
from time import process_time
from zoneinfo import ZoneInfo

import numpy as np

from dpselect.holdout.files import class_names
from dpselect.tables.categories import category, composed, positions
from tests.tables.object_columns import objects


def test_letters_with_accents_are_one_category_however_they_were_typed():
    assert category("caf\u00e9") == category("cafe\u0301") != category("cafe")
    assert class_names(["caf\u00e9"]) == class_names(["cafe\u0301"])


def test_numbers_that_are_equal_and_written_otherwise_are_no_category_of_another_cell():
    cells = np.array([complex(-0.0, 0.0), 0j])
    assert positions(cells, ("0j",)).tolist() == [-1, 0]


def test_a_megabyte_of_accents_on_one_letter_takes_no_minutes():
    begun = process_time()
    for text in ("a" + "\u0301" * 40_000 + "\u0316" * 40_000, "a" + "\u0301\u0316" * 40_000):
        category(text)
    assert process_time() - begun < 4.0


def test_a_text_is_composed_as_unicode_has_it():
    letters = "ae o\u0301\u0316\u0308\u0344\u00e9\u212b\u1100\u1161\u11a8\uac00\u0958"
    draw = random.Random(5)
    for _ in range(3000):
        text = "".join(draw.choice(letters) for _ in range(draw.randrange(12)))
        assert composed(text) == unicodedata.normalize("NFC", text)


BERLIN = "Europe/Berlin"


def test_equal_cells_that_are_written_in_two_ways_do_not_decide_for_each_other():
    noon = datetime.datetime(2024, 7, 1, 10, tzinfo=datetime.UTC)
    for one, other in (
        (Fraction(1, 2), 0.5),
        (noon, noon.astimezone(ZoneInfo(BERLIN))),
        (np.datetime64("2024-07-01"), np.datetime64("2024-07-01T00:00")),
    ):
        assert one == other
        options = (str(one), str(other))
        assert positions(objects([one, other]), options).tolist() == [0, 1]
        assert positions(objects([other, one]), options).tolist() == [1, 0]
