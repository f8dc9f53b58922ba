"""Heads of chains: only a later one replaces another, and a torn write leaves the earlier one."""

from __future__ import annotations

import pytest

from dpselect.storage.heads import HeadFile, KeptHead

SLOTS = (0, 4096)
SLOT = 1024


def head(sequence, place="ledger.db"):
    return KeptHead("chain", sequence, f"{sequence:064x}", place)


@pytest.fixture
def file(tmp_path):
    return HeadFile(tmp_path / "state" / "chain.head")


def tear(file, slot):
    content = bytearray(file.path.read_bytes())
    content[SLOTS[slot] + 70] ^= 1
    file.path.write_bytes(content)


def test_a_later_head_alone_is_kept(file):
    assert file.read() is None
    for sequence, kept in ((5, 5), (4, 5), (5, 5), (6, 6)):
        file.advance(head(sequence))
        assert file.read() == head(kept)
    file.advance(KeptHead("chain", 6, "f" * 64, "a copy"))  # of the same number, the first stays
    assert file.read() == head(6)


def test_slots_take_turns_and_have_their_room_from_the_start(file):
    file.advance(head(1))
    content = file.path.read_bytes()
    assert len(content) == SLOTS[1] + SLOT
    assert content[SLOTS[0] : SLOTS[0] + SLOT].strip()
    assert not content[SLOTS[1] :].strip(b"\0")
    file.advance(head(2))
    assert file.path.read_bytes()[: SLOTS[1]] == content[: SLOTS[1]]
    file.advance(head(3))
    assert file.read() == head(3)


def test_a_torn_slot_leaves_the_other(file):
    for sequence in (1, 2, 3):
        file.advance(head(sequence))
    tear(file, 0)  # that of 3 and 1
    assert file.read() == head(2)
    file.advance(head(4))
    assert file.read() == head(4)
    tear(file, 0)
    assert file.read() == head(2)


def test_two_torn_slots_are_damage_and_an_unfinished_first_one_is_none(file):
    file.advance(head(1))
    tear(file, 0)
    assert file.read() is None
    file.advance(head(1))
    file.advance(head(2))
    tear(file, 0)
    tear(file, 1)
    with pytest.raises(ValueError, match="both of its slots are damaged"):
        file.read()
    with pytest.raises(ValueError, match="both"):
        file.advance(head(9))


def test_a_change_may_keep_what_is_there(file):
    file.advance(head(7))
    seen = []
    file.change(lambda known: seen.append(known))
    assert seen == [head(7)]
    file.change(lambda known: head(known.sequence - 3))  # the caller may go back
    assert file.path.exists()


def test_long_names_of_records_are_cut_or_left_out(file):
    file.advance(head(1, "a" * 500))
    assert file.read() == head(1, "a" * 400)
    file.advance(head(2, "\U0001f4d2" * 400))  # twelve characters each in ASCII
    assert file.read() == head(2, "")
