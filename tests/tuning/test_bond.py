"""The bond of a search: commitments that depend on every draw, and a key of its own for other rows."""

from dataclasses import replace

import pytest

from dpselect.errors import StudyError
from dpselect.tuning import bond
from dpselect.tuning.machine import Bond, Candidate, Search

MASTER, OTHER = b"m" * 32, b"o" * 32


def binding(monkeypatch, **changes):
    class Fixed:
        def bytes(self, count):
            return b"r" * count

    monkeypatch.setattr(bond, "system_source", Fixed)
    given = {"identifier": "id", "counted": 3, "executed": 5, "master": MASTER, "rows": b"rows", **changes}
    return bond.bond_of(given.pop("identifier"), **given).binding


def test_the_binding_depends_on_every_draw(monkeypatch):
    changes = [{}, {"identifier": "di"}, {"counted": 4}, {"executed": 6}, {"master": OTHER}, {"rows": b"other"}]
    found = [binding(monkeypatch, **change) for change in changes]
    assert len(set(found)) == len(changes)
    assert binding(monkeypatch) == found[0]


def test_a_bond_is_blinded_by_fresh_bytes():
    made = [bond.bond_of("id", counted=1, executed=1, master=MASTER, rows=None) for _ in range(2)]
    assert made[0].blinding != made[1].blinding
    assert made[0].binding != made[1].binding
    assert made[0].claim != made[1].claim
    assert made[0].rows == bytes(32)


def test_other_rows_get_another_key_and_the_same_rows_keep_theirs():
    search = Search(2, master=MASTER, bond=Bond(rows=bond.rows_digest(MASTER, b"rows")))
    assert bond.new_master(search, b"rows") is None
    master, digest = bond.new_master(search, b"other rows")
    assert master != MASTER
    assert digest == bond.rows_digest(master, b"other rows")
    assert bond.new_master(search, b"third rows")[0] != master
    with pytest.raises(StudyError, match="was begun with one"):
        bond.new_master(search, None)
    assert bond.new_master(Search(2, master=MASTER), None) is None


def test_the_hash_of_a_release_depends_on_all_that_it_follows_from():
    best = Candidate(index=1, score=0.5, tag=bytes(16), payload=b"model")
    search = Search(2, master=MASTER, best=best, history=b"h")
    others = [
        replace(search, master=OTHER),
        replace(search, history=b"i"),
        replace(search, best=None),
        replace(search, best=replace(best, index=0)),
        replace(search, best=replace(best, score=0.51)),
        replace(search, best=replace(best, payload=b"models")),
        replace(search, bond=Bond(blinding=b"b" * 32)),
    ]
    hashes = {bond.release_hash(each) for each in (search, *others)}
    assert len(hashes) == 1 + len(others)
    assert bond.release_hash(search) == bond.release_hash(replace(search))
