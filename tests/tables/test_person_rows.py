"""Which rows of persons take part: exhaustively on small tables, against the theorem."""

from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest

from dpselect.tables.person_rows import rows_of_persons
from dpselect.tables.row_digests import row_digest

ROWS = [("a", 0), ("a", 1), ("b", 0), ("b", 1), (None, 0)]
"""A person and a content, or a content without a person."""


def kept(table, most, salt="study"):
    """The rows that take part, and their persons' digests, as collections without an order."""
    contents = [row_digest(bytes([content]), b"") for _, content in table]
    found = rows_of_persons([person for person, _ in table], contents, most=most, salt=salt)
    assert found.places.tolist() == sorted(found.places.tolist())
    return Counter(table[place] for place in found.places), [*found.persons]


@pytest.mark.theorem("docs/theory/persons.md, Theorem 1", exact=True, sharp=True)
@pytest.mark.parametrize("most", [1, 2])
def test_without_a_person_at_most_so_many_rows_are_gone_and_all_of_them_that_persons(most):
    largest = 0
    for size in range(5):
        for table in product(ROWS, repeat=size):
            whole, _ = kept(table, most)
            less, _ = kept([row for row in table if row[0] != "a"], most)
            gone = whole - less
            assert not less - whole
            assert {person for person, _ in gone} <= {"a"}
            assert sum(gone.values()) == min(most, sum(person == "a" for person, _ in table)) <= most
            assert not any(person is None for person, _ in whole)
            largest = max(largest, sum(gone.values()))
    assert largest == most  # one row fewer would not do


@pytest.mark.parametrize("most", [1, 2, 3])
def test_the_rows_do_not_depend_on_their_order(most):
    for table in (ROWS, [("a", 0), ("a", 0), ("a", 1), ("a", 2), ("b", 0)]):
        assert len({frozenset(kept(order, most)[0].items()) for order in permutations(table)}) == 1


def test_equal_rows_of_another_person_do_not_change_the_choice():
    """Numbering equal rows across persons would: then one person would decide which rows of another take part."""
    own = [("a", content) for content in (0, 0, 1, 1, 2, 2)]
    for salt in map(str, range(200)):
        alone, _ = kept(own, 3, salt)
        among, _ = kept([("b", 0), ("b", 1), ("b", 2), *own], 3, salt)
        assert Counter({row: n for row, n in among.items() if row[0] == "a"}) == alone


def test_each_subset_is_about_as_likely():
    """Over 3,000 salts each of the 6 pairs of 4 rows: a standard deviation is 20."""
    table = [("a", content) for content in range(4)]
    counts = Counter(frozenset(kept(table, 2, str(salt))[0]) for salt in range(3000))
    assert len(counts) == 6
    assert max(abs(count - 500) for count in counts.values()) < 100


def test_persons_are_the_same_by_value_and_rows_of_one_have_one_digest():
    persons = [7, 7.0, " 7 ", np.int64(7), "x", "x ", float("nan"), None, ""]
    contents = [bytes([place]) for place in range(len(persons))]
    found = rows_of_persons(persons, contents, most=9, salt="s")
    assert found.places.tolist() == [0, 1, 2, 3, 4, 5]
    assert len({*found.persons[:4]}) == len({*found.persons[4:]}) == 1
    assert found.persons[0] != found.persons[5]
    assert rows_of_persons([], [], most=1, salt="s").places.tolist() == []
    assert rows_of_persons([None], [b""], most=1, salt="s").places.tolist() == []


def test_no_number_that_names_a_person_makes_it_fail_or_is_rounded():
    near = "1" + "0" * 40
    persons = ["1e999999999", "-1e-999999999", "10e999999998", "1" * 5000, near + "1", near + "2", "-0.0", "0"]
    found = rows_of_persons(persons, [bytes([place]) for place in range(len(persons))], most=1, salt="s")
    assert found.places.tolist() in ([0, 1, 3, 4, 5, 6], [0, 1, 3, 4, 5, 7], [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 7])
    assert len({*found.persons}) == 6

    def digest(person):
        return [*rows_of_persons([person], [b""], most=1, salt="s").persons]

    assert digest("-0.0") == digest("0") == digest(0.0)
    assert digest("7.00") == digest(7)
