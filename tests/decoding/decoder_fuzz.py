"""Changed documents without end, and what a decoder must keep on each of them.

A document is made of parts (the members of an archive, the content of a packed file, the text itself). Valid parts are
changed by mutations that know brackets, digits and the words of the format, and are packed again, so that a change
reaches what is inside of an archive. A document whose answer is new becomes one of those that are changed.

Kept on every document: nothing but declared errors is raised; memory is at most 8 times the document and 64 MB; it
takes at most a second of processor time a megabyte; what is read is what the plain library reads.
"""

from __future__ import annotations

import faulthandler
import os
import random
import re
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from dpselect.errors import ArgumentError, ContentError

SECONDS: Final = float(os.environ.get("DPSELECT_FUZZ_SECONDS", "600"))
"""How long each decoder and each command is fuzzed in the slow tier."""
MIB: Final = 1 << 20
HANGS: Final = 120.0
"""Seconds after which a document is said to hang, with the place."""
LONGEST_KEPT: Final = 4096
"""Bytes of a document that is changed further: longer ones come of these, and take their time."""
DECLARED: Final = (ContentError, ArgumentError)
BRACKETS: Final = ((b"[", b"]"), (b"{", b"}"), (b'{"a":', b"}"), (b"{a=", b"}"), (b'"', b'"'), (b"(", b")"))
Parts = tuple[bytes, ...]
NOTHING: Final = object()
"""What a plain library reads of a document that it refuses."""


def first(parts: Parts, _: random.Random) -> bytes:
    """A document of one part."""
    return parts[0]


@dataclass(frozen=True)
class Decoder:
    """What is fuzzed: valid parts, words of the format, what reads a document, and what the plain library reads.

    `read` raises declared errors; `plain` returns NOTHING for what that library refuses. Both give comparable values.
    """

    seeds: Sequence[Parts]
    words: Sequence[bytes]
    read: Callable[[bytes], Any]
    plain: Callable[[bytes], Any]
    pack: Callable[[Parts, random.Random], bytes] = first


@dataclass
class Fuzzed:
    """How many documents there were, what became of them, and the shortest one of each kind of failure."""

    cases: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    found: dict[str, bytes] = field(default_factory=dict)

    def __str__(self) -> str:
        accepted = sum(count for answer, count in self.answers.items() if answer.startswith("read"))
        return f"{self.cases} cases, {accepted} read, {len(self.answers)} kinds of answer, {len(self.found)} failures"


def fuzz(decoder: Decoder, seed: int, *, seconds: float = float("inf"), cases: float = float("inf")) -> Fuzzed:
    """Change documents for so many seconds, or so many times."""
    draw, result, kept = random.Random(seed), Fuzzed(), list(decoder.seeds)
    end = time.monotonic() + seconds
    tracemalloc.start()
    try:
        while time.monotonic() < end and result.cases < cases:
            parts = mutated(draw.choice(kept), draw, decoder.words, kept)
            document = decoder.pack(parts, draw)
            if draw.random() < 0.1:
                document = changed(document, draw, decoder.words)
            answer, failure = judged(decoder, document)
            result.cases += 1
            if failure and len(document) < len(result.found.get(failure, document + b" ")):
                result.found[failure] = shrunk(decoder, document, failure)
            if not result.answers[answer] and sum(map(len, parts)) < LONGEST_KEPT:
                kept.append(parts)
            result.answers[answer] += 1
    finally:
        tracemalloc.stop()
        faulthandler.cancel_dump_traceback_later()
    return result


def judged(decoder: Decoder, document: bytes) -> tuple[str, str]:
    """The kind of answer, and what is wrong with it; empty if nothing is."""
    faulthandler.dump_traceback_later(HANGS, exit=True)
    answer, failure, found = "", "", NOTHING
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    begun = time.process_time()
    try:
        found = decoder.read(document)
    except DECLARED as error:
        answer = f"{type(error).__name__} {re.split('[:0-9]|got', str(error))[0][:80]}"
    except BaseException as error:
        failure = f"raised {type(error).__name__}"
    taken = time.process_time() - begun
    peak = tracemalloc.get_traced_memory()[1] - held
    if peak > 7 * len(document) + 64 * MIB:  # the document is held already
        failure = failure or "memory"
    if taken > _allowed(document) and _seconds(decoder, document) > _allowed(document):
        failure = failure or "time"
    if found is not NOTHING:
        answer = f"read {len(str(found)[:10_000]).bit_length()}"
        expected = decoder.plain(document)
        if expected is not NOTHING and repr(found) != repr(expected):
            failure = failure or "another value"
    return answer, failure


def _allowed(document: bytes) -> float:
    return 0.25 + len(document) / MIB


def _seconds(decoder: Decoder, document: bytes) -> float:
    """Without the tracing of memory, which takes most of it; the least of three."""
    least = float("inf")
    for _ in range(3):
        begun = time.process_time()
        tracemalloc.stop()
        with suppress(*DECLARED):
            decoder.read(document)
        tracemalloc.start()
        least = min(least, time.process_time() - begun)
    return least


def shrunk(decoder: Decoder, document: bytes, failure: str) -> bytes:
    """A shorter document with the same failure, within ten seconds."""
    end, step = time.monotonic() + 10.0, len(document) // 2
    while step and time.monotonic() < end:
        for at in range(0, len(document), step):
            shorter = document[:at] + document[at + step :]
            if time.monotonic() < end and judged(decoder, shorter)[1] == failure:
                document = shorter
        step //= 2
    return document


# ---- mutations -------------------------------------------------------------------------------------------------------


def mutated(parts: Parts, draw: random.Random, words: Sequence[bytes], kept: Sequence[Parts]) -> Parts:
    """Some parts changed a few times; rarely a part dropped, doubled or put beside one of another document."""
    several = list(parts)
    for _ in range(draw.choice((0, 1, 1, 1, 2, 3, 6))):
        at = draw.randrange(len(several))
        several[at] = changed(several[at], draw, words)
    if draw.random() < 0.1:
        several.append(draw.choice(draw.choice(kept)))
    if draw.random() < 0.05 and len(several) > 1:
        del several[draw.randrange(len(several))]
    return tuple(several)


def changed(content: bytes, draw: random.Random, words: Sequence[bytes]) -> bytes:
    """One change."""
    at = draw.randint(0, len(content))
    to = min(len(content), at + draw.choice((0, 0, 1, 2, 4, 9, 40)))
    span = content[at:to]
    match draw.randrange(9):
        case 0 | 1:
            new = draw.choice(words)
        case 2:
            new = draw.randbytes(draw.randint(1, 4))
        case 3:
            new = b""
        case 4:
            new = (span or draw.choice(words)) * _times(draw, len(span))
        case 5:
            opens, closes = draw.choice(BRACKETS)
            times = _times(draw, len(opens + closes))
            new = opens * times + span + closes * draw.choice((times, times, times - 1, 0))
        case 6:
            new = bytes([span[0] ^ 1 << draw.randrange(8)]) + span[1:] if span else b"\0"
        case 7:
            new = draw.choice((b"9", b"0", b"1_", b"f")) * _times(draw, 1)
        case _:
            return content[:at] if draw.random() < 0.3 else content[at:] + content[:at]
    return content[:at] + new + content[to:]


def _times(draw: random.Random, size: int) -> int:
    """Mostly a few; sometimes around a limit; rarely so often that a megabyte comes of it."""
    most = max(2, MIB // max(1, size))
    few = draw.choice((2, 2, 3, 5, 9, 17, 33, 65, 301))
    return min(most, few if draw.random() < 0.97 else draw.choice((4301, 5000, 20_000, MIB)))
