"""The decoders of sweeps' records that are fuzzed: YAML, event logs and their messages."""

from __future__ import annotations

import importlib.util
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory

from dpselect.decoding.event_log import event_records, message_of
from dpselect.decoding.limits import DOCUMENT, STUDY, DecodingLimits
from dpselect.decoding.yaml_text import yaml_of
from dpselect.errors import ContentError
from tests.decoding.decoder_fuzz import MIB, NOTHING, Decoder
from tests.integrations.sweeps.tool_records import RUNS, config_record, event_log, field

FOLDER = TemporaryDirectory(prefix="dpselect-fuzz-")
SMALL = DecodingLimits(size=2 * MIB, depth=6, entries=60)
_NULLS = ("~", "null", "Null", "NULL", "", None)


def limited(document, usual):
    """The usual limits, or narrow ones; the same for the same document."""
    return SMALL if zlib.crc32(document) % 4 == 0 else usual


# ---- YAML ------------------------------------------------------------------------------------------------------------

YAML_TEXTS = [
    b"artifact_uri: file:///a\nexperiment_id: '692'\nstatus: 3\ntags: []\nname: 'a: b # c'\nnone: null\n",
    b"dp:\n  noise: 1.0\n  betas:\n  - 0.9\n  - [1, {a: b}]\ntext: 'One line.\n\n  Another.'\nlong: |\n  a\n  b\n",
    b'- a=1\n- "b\\n"\n- ? x\n  : y\n',
]
YAML_WORDS = rb": - ? | > & * ! % @ ` # ' { } [ ] , --- ... null ~ <<: !!python/object:a.b &a *a !t".split()
YAML_WORDS += [b'"', b"\n", b"\n  ", b"\r\n", b"\t", b"\0", b"\xff", b"\xef\xbb\xbf", b" ", b"? "]


def without_nulls(value):
    """The value with one text for everything that is empty."""
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [without_nulls(inner) for inner in value]
    return "" if value in _NULLS else value


def read_yaml(document):
    return without_nulls(yaml_of(document, "it", limits=limited(document, STUDY)))


def plain_yaml(document):
    """By PyYAML's loader of texts. An alias is something else there, and so is a key that is given twice."""
    import yaml

    try:
        text = document.decode("utf-8-sig")
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.CSafeLoader)):
            return NOTHING
        return without_nulls(yaml.load(text, Loader=yaml.CBaseLoader))
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return NOTHING


YAML = Decoder([(text,) for text in YAML_TEXTS], YAML_WORDS, read_yaml, plain_yaml)


# ---- event logs ------------------------------------------------------------------------------------------------------

RECORDS = (field(17, field(4, config_record(RUNS[0]))), field(18, b""), field(2, b"x" * 33_000))
LOG_WORDS = [b"\x0a", b"\x80", b"\xff" * 10, b"\x08\x01", b"\x7a\x00", b"\x05abcd", b"\x09abcdefgh", b":W&B"]


def read_log(document):
    path = Path(FOLDER.name) / "run-a.wandb"
    path.write_bytes(document)
    limits = limited(document, DOCUMENT)
    records = list(event_records(path, limits))
    for record in records:
        try:
            message_of(record, limits, "a record")
        except ContentError:
            continue
    return records


def plain_log(document):
    """The records of blocks whose sums fit, without limits and without order."""
    found, at = [b""], 7
    while at + 7 <= len(document):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
        size, kind = int.from_bytes(document[at + 4 : at + 6], "little"), document[at + 6 : at + 7]
        part = document[at + 7 : at + 7 + size]
        if not kind or len(part) < size:
            break
        found[-1] += part
        found += [b""] if kind in (b"\x01", b"\x04") else []
        at += 7 + size
    return found[:-1]


LOG = Decoder([RECORDS, RECORDS[:2]], LOG_WORDS, read_log, plain_log, lambda parts, _: event_log(parts))

SWEEP_RECORDS = {
    **({"yaml": YAML} if importlib.util.find_spec("yaml") else {}),
    "event log": LOG,
}
