"""The rows of persons: at most a declared number of each person's rows take part, and all of them have one part.

The proof is in docs/theory/persons.md. To everyone who does not know the salt the choice is a random subset of a
person's rows, with the same distribution for every order of the rows. The proof does not need that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.tables.categories import category
from dpselect.tables.row_digests import Digests, keyed_words, numbered, row_digest

__all__ = ["PersonRows", "rows_of_persons"]

_NOBODY: Final = -1
_EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


@dataclass(frozen=True, repr=False)
class PersonRows:
    """The rows that take part: their places in the table, in order, and a digest of each one's person."""

    places: NDArray[np.intp]
    persons: Digests


def rows_of_persons(persons: Iterable[Any], contents: Sequence[bytes], *, most: int, salt: str) -> PersonRows:
    """Choose at most `most` rows of each person.

    Args:
        persons: the person of each row. Two are the same if they are one category: 7, 7.0 and "7" are, and so are
            texts that differ by outer blanks. A row with a missing one takes no part.
        contents: a digest of each row's content, from that row alone.
        most: the largest number of rows of a person that take part, public.
        salt: public, the name of the search. Another salt chooses other rows.

    Claim: tables that differ by all rows of one person give rows that differ by at most `most`, all that person's.
    Source: docs/theory/persons.md, Theorem 1.
    """
    known: dict[str | Decimal, int] = {"": _NOBODY}
    codes = np.array([known.setdefault(category(each), len(known) - 1) for each in persons], dtype=np.int64)
    names = [_digest(person) for person in list(known)[1:]]
    before: Counter[bytes] = Counter()
    digests = []
    for code, content in zip(codes.tolist(), contents, strict=True):
        digest = content if code == _NOBODY else row_digest(names[code], content)
        digests.append(numbered(digest, before[digest]))
        before[digest] += 1
    words = keyed_words(digests, len(digests), salt=f"{salt} rows of persons")
    order = np.lexsort((words, codes))
    inorder = codes[order]
    rank = np.arange(len(codes)) - np.searchsorted(inorder, inorder)
    places = np.sort(order[(inorder != _NOBODY) & (rank < most)])
    return PersonRows(places, Digests(b"".join(names[code] for code in codes[places].tolist())))


def _digest(person: str | Decimal) -> bytes:
    kind, text = ("number", _shortest(person)) if isinstance(person, Decimal) else ("text", person)
    return row_digest(f"{kind} ".encode(), text.encode("utf-8", "surrogatepass"))


def _shortest(number: Decimal) -> str:
    """A text of exactly this number, the same for equal ones. The default context rounds, and raises for 1e1000000."""
    return "0" if number.is_zero() else str(number.normalize(_EXACT))
