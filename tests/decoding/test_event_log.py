"""Event logs: their blocks, their records and messages, and what is beyond the limits."""

import pytest

from dpselect.decoding.event_log import event_records, message_of
from dpselect.decoding.limits import DOCUMENT, DecodingLimits, LimitError
from dpselect.errors import ContentError
from tests.integrations.sweeps.tool_records import event_log, field

RECORDS = [b"a", b"", bytes(range(256)) * 300, b"b" * 32_700, b"c"]


def written(tmp_path, content):
    path = tmp_path / "run-a.wandb"
    path.write_bytes(content)
    return path


def test_records_of_several_blocks(tmp_path):
    assert list(event_records(written(tmp_path, event_log(RECORDS)), DOCUMENT)) == RECORDS


@pytest.mark.parametrize("rest", [*range(9), 32_000])
def test_a_block_that_ends_beside_a_record(tmp_path, rest):
    records = [bytes(32_768 - 7 - 7 - rest), b"next"]
    assert list(event_records(written(tmp_path, event_log(records)), DOCUMENT)) == records


def test_a_last_record_that_was_not_finished_is_left_out(tmp_path):
    whole = event_log([b"a", b"bcd"])
    for cut in range(1, 10):
        assert list(event_records(written(tmp_path, whole[:-cut]), DOCUMENT)) == [b"a"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not the log"),
        (b":W&B", "not the log"),
        (event_log([b"a"])[:-1] + b"b", "checksum"),
        (event_log([b"a"]) + bytes(7), "checksum"),
        (event_log([bytes(40_000)])[:32_768] + event_log([b"a"])[7:], "out of order"),
    ],
)
def test_what_is_damaged(tmp_path, content, message):
    with pytest.raises(ContentError, match=message):
        list(event_records(written(tmp_path, content), DOCUMENT))


def test_limits(tmp_path):
    path = written(tmp_path, event_log([b"a"] * 5))
    assert len(list(event_records(path, DecodingLimits(size=1000, entries=5)))) == 5
    with pytest.raises(LimitError, match="more than 3 records"):
        list(event_records(path, DecodingLimits(size=1000, entries=3)))
    with pytest.raises(LimitError, match="larger"):
        list(event_records(path, DecodingLimits(size=10)))
    with pytest.raises(LimitError, match="more than 2 fields"):
        message_of(field(1, 1) * 3, DecodingLimits(size=10, entries=2), "it")


def test_the_wire_types():
    content = field(1, 300) + field(2, b"hi") + b"\x19" + bytes(8) + b"\x25" + bytes(4) + field(1, 2)
    assert message_of(content, DOCUMENT, "it") == {1: [300, 2], 2: [b"hi"], 3: [bytes(8)], 4: [bytes(4)]}


@pytest.mark.parametrize("content", [b"\x08", b"\x08\x80", b"\x12\x05a", b"\x0b", b"\x19\0", b"\x08" + b"\x80" * 11])
def test_what_is_no_message(content):
    with pytest.raises(ContentError, match="it is"):
        message_of(content, DOCUMENT, "it")
