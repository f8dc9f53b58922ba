"""Sound mechanisms with structured outputs: nothing in them but a noisy count depends on the data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import numpy as np

from dpselect.randomness import RandomSource
from tests.audits.structured_parts import START, Answer, Mechanism, below, coin, count, noise

__all__ = ["SOUND"]


def sound_label(data: Sequence[str], random: RandomSource) -> Any:
    """A label by a coin."""
    return count(data, random), "x" if coin(random) else "y"


def sound_histogram(data: Sequence[str], random: RandomSource) -> Any:
    """A fixed domain, noise for each name."""
    return {name: data.count(name) + noise(random) for name in "abc"}


def sound_order(data: Sequence[str], random: RandomSource) -> Any:
    """Sorted by the noisy counts."""
    noisy = {name: data.count(name) + noise(random) for name in "abc"}
    return dict(sorted(noisy.items(), key=lambda pair: -pair[1]))


def sound_text(data: Sequence[str], random: RandomSource) -> Any:
    """A printed count."""
    return f"count {count(data, random):.4f} of run {below(random, 10**6):06d}"


def sound_json(data: Sequence[str], random: RandomSource) -> Any:
    """The same as JSON, with a fixed precision."""
    return json.dumps({"count": round(count(data, random), 3), "run": below(random, 100), "ok": coin(random)})


def sound_rounding(data: Sequence[str], random: RandomSource) -> Any:
    """An integer with its type: an `int` where the noisy count is positive."""
    counted = count(data, random)
    return int(counted) if counted > 0 else counted


def sound_failure(data: Sequence[str], random: RandomSource) -> Any:
    """It raises where the noisy count is small."""
    counted = count(data, random)
    if counted < 1.0:
        raise ValueError("too few")
    return {"count": counted}


def sound_list(data: Sequence[str], random: RandomSource) -> Any:
    """As long as the noisy count says."""
    return [noise(random) for _ in range(max(0, min(8, round(count(data, random)))))]


def sound_set(data: Sequence[str], random: RandomSource) -> Any:
    """Names with a noisy count above a half."""
    return {name for name in "abc" if data.count(name) + noise(random) > 0.5}


def sound_array(data: Sequence[str], random: RandomSource) -> Any:
    """An array of noise, its first element the noisy count."""
    return np.array([count(data, random), noise(random), noise(random)])


def sound_dataclass(data: Sequence[str], random: RandomSource) -> Any:
    """A mark that the noisy count decides."""
    counted = count(data, random)
    return Answer(counted, "many" if counted > 2.0 else None)


def sound_log(data: Sequence[str], random: RandomSource) -> Any:
    """Lines about nothing, then the count."""
    lines = [f"step {step} took {below(random, 10**5)} ms" for step in range(below(random, 4))]
    return "\n".join([*lines, f"count {count(data, random):.2f}"])


def sound_bytes(data: Sequence[str], random: RandomSource) -> Any:
    """A record with the rounded noisy count in its header."""
    return bytes([min(255, max(0, round(count(data, random)))), *(below(random, 256) for _ in range(6))])


def sound_time(data: Sequence[str], random: RandomSource) -> Any:
    """A time at random beside the count."""
    return START + timedelta(microseconds=below(random, 10**9)), count(data, random)


SOUND: Final[tuple[Mechanism, ...]] = (
    sound_label,
    sound_histogram,
    sound_order,
    sound_text,
    sound_json,
    sound_rounding,
    sound_failure,
    sound_list,
    sound_set,
    sound_array,
    sound_dataclass,
    sound_log,
    sound_bytes,
    sound_time,
)
