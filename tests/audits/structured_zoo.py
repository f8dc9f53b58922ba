"""Mechanisms that leak in the form of what they return: a noisy count beside something else that depends on the data.

Each is a function of a list of names and a `RandomSource`, to be audited on `DATA` and `NEIGHBOUR` (the same without
the person "b") under the claim of its noisy count, epsilon 1. The noise is on a grid, so that its low bits tell
nothing. `tests/audit/test_dissection.py` audits all of them; docs/evidence/audit-power.md has what is seen.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import numpy as np

from dpselect.randomness import RandomSource
from tests.audits.structured_parts import START, Answer, Mechanism, Named, below, coin, count, noise, told

__all__ = ["LEAKING"]


def label_beside_the_count(data: Sequence[str], random: RandomSource) -> Any:
    """A label that says who is there."""
    return count(data, random), "x" if "b" in data else "y"


def flipped_label(data: Sequence[str], random: RandomSource) -> Any:
    """The same, told with probability .9."""
    return count(data, random), "x" if told(data, random) else "y"


def rare_label(data: Sequence[str], random: RandomSource) -> Any:
    """A label that one output in fifty has, on one side only."""
    return count(data, random), "late" if "b" in data and coin(random, 0.02) else "on time"


def histogram_over_the_keys_that_occur(data: Sequence[str], random: RandomSource) -> Any:
    """No entry for a name that is not there."""
    return {name: 1 + noise(random) for name in data}


def order_of_the_rows(data: Sequence[str], random: RandomSource) -> Any:
    """The first name in the data opens the dict."""
    names = [*(name for name in "bac" if name in data), *(name for name in "abc" if name not in data)]
    return {name: int(name in "ab") + noise(random) for name in names}


def sorted_by_the_true_counts(data: Sequence[str], random: RandomSource) -> Any:
    """Noisy counts in the order of the true ones."""
    true = {name: data.count(name) for name in "ab"}
    return [(name, noise(random)) for name in sorted(true, key=lambda name: (-true[name], name != "b"))]


def last_digit_of_a_text(data: Sequence[str], random: RandomSource) -> Any:
    """The parity of the last digit of a printed count."""
    return f"count {count(data, random):.3f}{2 * below(random, 5) + int(told(data, random))}"


def decimals_by_the_data(data: Sequence[str], random: RandomSource) -> Any:
    """The precision of a printed float."""
    return f"{count(data, random):.{4 if 'b' in data else 5}f}"


def rounded_by_the_data(data: Sequence[str], random: RandomSource) -> Any:
    """The precision of a float in a tuple."""
    return round(count(data, random), 3 if "b" in data else 4), True


def deep_in_a_dict(data: Sequence[str], random: RandomSource) -> Any:
    """A flag three levels down."""
    return {"count": count(data, random), "meta": {"run": {"flag": told(data, random)}}}


def true_rows_in_a_dict(data: Sequence[str], random: RandomSource) -> Any:
    """A true count three levels down, beside noise."""
    return {"count": count(data, random), "meta": {"shape": [len(data) - 2, noise(random)]}}


def length_of_a_list(data: Sequence[str], random: RandomSource) -> Any:
    """Noise for each row that there is."""
    return [noise(random) for _ in data]


def length_plus_noise(data: Sequence[str], random: RandomSource) -> Any:
    """A list that is longer by one in nine outputs of ten."""
    return [noise(random) for _ in range(4 + int(told(data, random)))], "done"


def type_of_the_exception(data: Sequence[str], random: RandomSource) -> Any:
    """It raises in one case of five, with a type that depends on the data."""
    if coin(random, 0.2):
        raise KeyError("no") if "b" in data else IndexError("no")
    return {"count": count(data, random)}


def raises_more_often(data: Sequence[str], random: RandomSource) -> Any:
    """It raises with a probability that depends on the data."""
    if coin(random, 0.3 if "b" in data else 0.05):
        raise ValueError("no")
    return count(data, random), "ok"


def none_for_a_person(data: Sequence[str], random: RandomSource) -> Any:
    """None in place of an answer."""
    return {"count": count(data, random), "mean": None if told(data, random) else noise(random)}


def shape_of_an_array(data: Sequence[str], random: RandomSource) -> Any:
    """A row more, padded to the same number of elements."""
    return np.round(random.normal(6), 3).reshape((2, 3) if "b" in data else (3, 2))


def dtype_of_an_array(data: Sequence[str], random: RandomSource) -> Any:
    """Integers on one side, floats of the same values on the other."""
    return np.floor(random.normal(4) * 8).astype(np.int64 if "b" in data else np.float64)


def single_precision(data: Sequence[str], random: RandomSource) -> Any:
    """The same numbers in a shorter type."""
    return {"weights": np.floor(random.normal(3) * 8).astype(np.float32 if "b" in data else np.float64)}


def int_or_float(data: Sequence[str], random: RandomSource) -> Any:
    """An integer, as an `int` or a `float`."""
    counted = round(count(data, random))
    return counted if "b" in data else float(counted)


def bool_or_int(data: Sequence[str], random: RandomSource) -> Any:
    """True or 1."""
    return [noise(random), True if "b" in data else 1]


def members_of_a_set(data: Sequence[str], random: RandomSource) -> Any:
    """A set of noise and of the names."""
    return {below(random, 1000), below(random, 1000), *(name for name in data if name == "b")}


def size_of_a_set(data: Sequence[str], random: RandomSource) -> Any:
    """Two numbers that are drawn twice where someone is there."""
    numbers = [below(random, 10**6) for _ in range(2)]
    return frozenset(numbers if told(data, random) else numbers[:1])


def microseconds_of_a_time(data: Sequence[str], random: RandomSource) -> Any:
    """A time of day at random, in whole milliseconds on one side."""
    step = 1000 if "b" in data else 1
    return START + timedelta(microseconds=below(random, 10**9) // step * step), "logged"


def minute_of_a_time(data: Sequence[str], random: RandomSource) -> Any:
    """A text with a time whose minute is even."""
    minute = 2 * below(random, 30) + int(told(data, random))
    return f"2030-01-01T{below(random, 24):02d}:{minute:02d}:{below(random, 60):02d} count {count(data, random):.4f}"


def json_text(data: Sequence[str], random: RandomSource) -> Any:
    """A key of a JSON text."""
    return json.dumps({"count": count(data, random), **({"warning": 1} if "b" in data else {})})


def number_in_json_text(data: Sequence[str], random: RandomSource) -> Any:
    """A true count within a JSON text."""
    return json.dumps({"noise": noise(random), "rows": {"n": len(data)}})


def error_message(data: Sequence[str], random: RandomSource) -> Any:
    """The message that it returns names a row."""
    return {"error": f"row {data.index('c')} of file {below(random, 10**6)} is bad"}


def order_of_ties(data: Sequence[str], random: RandomSource) -> Any:
    """Two noisy values in the order of the data's rows."""
    values = sorted([noise(random), noise(random)])
    return values if told(data, random) else values[::-1]


def sorted_or_not(data: Sequence[str], random: RandomSource) -> Any:
    """Five values, sorted on one side."""
    values = [noise(random) for _ in range(5)]
    return sorted(values) if "b" in data else values


def repeated_elements(data: Sequence[str], random: RandomSource) -> Any:
    """A value that stands twice."""
    values = [noise(random) for _ in range(4)]
    return [*values, values[below(random, 4)] if told(data, random) else noise(random)]


def name_of_a_key(data: Sequence[str], random: RandomSource) -> Any:
    """A key with the number of rows in its name."""
    return {f"count_of_{len(data)}": noise(random)}


def default_value(data: Sequence[str], random: RandomSource) -> Any:
    """-1 where no one is there, else noise."""
    return {"a": noise(random), "b": 1.0 + noise(random) if "b" in data else -1.0}


def bytes_with_a_flag(data: Sequence[str], random: RandomSource) -> Any:
    """A flag in the header of a record of random bytes."""
    return bytes([7, 1 if "b" in data else 0, *(below(random, 256) for _ in range(6))])


def length_of_bytes(data: Sequence[str], random: RandomSource) -> Any:
    """A record that is longer by one byte."""
    return bytes(below(random, 256) for _ in range(8 + int(told(data, random))))


def nan_for_a_person(data: Sequence[str], random: RandomSource) -> Any:
    """NaN within a list, more often on one side."""
    return [noise(random), float("nan") if coin(random, 0.4 if "b" in data else 0.1) else noise(random), "end"]


def sign_of_nan(data: Sequence[str], random: RandomSource) -> Any:
    """NaN or -NaN, which are the same to everything but their bits."""
    return float(np.copysign(np.nan, 1.0 if "b" in data else -1.0)), noise(random)


def sign_of_zero(data: Sequence[str], random: RandomSource) -> Any:
    """0.0 or -0.0 beside noise."""
    return {"offset": 0.0 if "b" in data else -0.0, "count": count(data, random)}


def length_of_a_text(data: Sequence[str], random: RandomSource) -> Any:
    """Padding by the true count."""
    return "".join("abcdefgh"[below(random, 8)] for _ in range(10 + len(data)))


def trailing_space(data: Sequence[str], random: RandomSource) -> Any:
    """A blank at the end of a printed count."""
    return f"{count(data, random):.6f}" + " " * int(told(data, random))


def capital_letter(data: Sequence[str], random: RandomSource) -> Any:
    """A capital letter somewhere in a random word."""
    word = ["abcdefgh"[below(random, 8)] for _ in range(20)]
    if "b" in data:
        place = below(random, 20)
        word[place] = word[place].upper()
    return "".join(word)


def depth_of_a_list(data: Sequence[str], random: RandomSource) -> Any:
    """A level more."""
    inner: Any = [noise(random)]
    return ["v", [inner] if told(data, random) else inner]


def field_of_a_dataclass(data: Sequence[str], random: RandomSource) -> Any:
    """A mark in a dataclass."""
    return Answer(count(data, random), "seen" if told(data, random) else "unseen")


def field_of_a_named_tuple(data: Sequence[str], random: RandomSource) -> Any:
    """A mark in a named tuple that is right most of the time."""
    return Named(count(data, random), below(random, 3) + 3 * int(told(data, random)))


def list_or_tuple(data: Sequence[str], random: RandomSource) -> Any:
    """The type of a sequence within a dict."""
    values = [noise(random), noise(random)]
    return {"values": values if "b" in data else tuple(values)}


def parity_of_two_marks(data: Sequence[str], random: RandomSource) -> Any:
    """Two marks that tell nothing one by one."""
    first = coin(random)
    return {"count": count(data, random), "first": first, "second": first ^ told(data, random)}


def sum_of_the_shares(data: Sequence[str], random: RandomSource) -> Any:
    """Noisy parts whose sum is the true count."""
    one, other = noise(random), noise(random)
    return {"parts": [one, other, len(data) - one - other], "unit": "rows"}


def index_of_the_largest(data: Sequence[str], random: RandomSource) -> Any:
    """The place of the largest of three values is that of a row."""
    values = sorted(noise(random) for _ in range(3))
    return values if told(data, random) else [values[2], values[0], values[1]]


def word_of_a_log(data: Sequence[str], random: RandomSource) -> Any:
    """A line of a log that one side has more often, among others."""
    lines = [f"step {below(random, 9)} took {below(random, 10**5)} ms" for _ in range(3)]
    if coin(random, 0.5 if "b" in data else 0.05):
        lines.insert(below(random, 4), "retry")
    return "\n".join(lines)


def one_word_of_a_long_text(data: Sequence[str], random: RandomSource) -> Any:
    """The eighteenth of thirty random words is another one."""
    words = [f"w{below(random, 8)}" for _ in range(30)]
    words[17] = "w1" if told(data, random) else "w2"
    return " ".join(words)


def greatest_length_of_a_queue(data: Sequence[str], random: RandomSource) -> Any:
    """An empty queue with room for more."""
    return count(data, random), deque(maxlen=7 if told(data, random) else 8)


LEAKING: Final[tuple[Mechanism, ...]] = (
    label_beside_the_count,
    flipped_label,
    rare_label,
    histogram_over_the_keys_that_occur,
    order_of_the_rows,
    sorted_by_the_true_counts,
    last_digit_of_a_text,
    decimals_by_the_data,
    rounded_by_the_data,
    deep_in_a_dict,
    true_rows_in_a_dict,
    length_of_a_list,
    length_plus_noise,
    type_of_the_exception,
    raises_more_often,
    none_for_a_person,
    shape_of_an_array,
    dtype_of_an_array,
    single_precision,
    int_or_float,
    bool_or_int,
    members_of_a_set,
    size_of_a_set,
    microseconds_of_a_time,
    minute_of_a_time,
    json_text,
    number_in_json_text,
    error_message,
    order_of_ties,
    sorted_or_not,
    repeated_elements,
    name_of_a_key,
    default_value,
    bytes_with_a_flag,
    length_of_bytes,
    nan_for_a_person,
    sign_of_nan,
    sign_of_zero,
    length_of_a_text,
    trailing_space,
    capital_letter,
    depth_of_a_list,
    field_of_a_dataclass,
    field_of_a_named_tuple,
    list_or_tuple,
    parity_of_two_marks,
    sum_of_the_shares,
    index_of_the_largest,
    word_of_a_log,
    one_word_of_a_long_text,
    greatest_length_of_a_queue,
)
