"""Errors that name what is wrong, never a data value and never a secret."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from types import FrameType
from typing import Literal, Protocol, SupportsFloat, SupportsIndex, runtime_checkable

import numpy as np

__all__ = [
    "AdjacencyError",
    "ArgumentError",
    "BoundUnavailableError",
    "BracketError",
    "BudgetError",
    "ClaimError",
    "ContentError",
    "ForkedSourceError",
    "MissingExtraError",
    "NothingFoundWarning",
    "PromiseError",
    "SessionError",
    "StartingProcessError",
    "StudyError",
    "UnwitnessedSearchWarning",
    "expect",
    "flag",
    "integer",
    "levels_to_the_caller",
    "missing_extra",
    "number",
    "public_text",
    "rational",
    "secret_number",
]


# float() reads all of these, and none of them is a number that a caller meant
_NOT_NUMBERS = (bool, np.bool_, str, bytes, bytearray)
_TINY = 1e-30
"""A lower limit below this is one of arithmetic: to a caller it is 0."""


class ArgumentError(ValueError):
    """A public argument has a value that the call cannot take."""


class AdjacencyError(ArgumentError):
    """Two guarantees with different adjacencies were put together."""


class PromiseError(ArgumentError, TypeError):
    """A guarantee was asked for, and something else was given, such as the price of an output that was released."""


class BoundUnavailableError(ArgumentError):
    """The named bound does not exist for these inputs. The message lists those that do."""


class BracketError(RuntimeError):
    """A lower end came out above an upper one, so one of them is wrong: a fault of this library, to be reported."""


class BudgetError(RuntimeError):
    """The budget does not allow what was asked. The command line exits with status 3."""


class ClaimError(BudgetError):
    """A reservation pays for one release of one search, and this is another one, or another copy of it.

    Whether copies were resumed and which was the last decides, never what any of them found.
    """


class StudyError(ArgumentError):
    """A study file, a schema or a folder is not as it must be, which is found before a row of data is read."""


class ContentError(ValueError):
    """The data cannot be used. Names a column at most, never a value, a row or a count."""


class MissingExtraError(ArgumentError, ImportError):
    """Something was asked that needs an optional extra which is not installed. The message names it."""


class ForkedSourceError(RuntimeError):
    """A keyed random source or a session was used in a forked child, where it would repeat what its parent does."""


class SessionError(RuntimeError):
    """A session was asked while it gives an answer, or is not one that its constructor made."""


class NothingFoundWarning(UserWarning):
    """A release holds nothing: no run met what was asked, every run failed, or there was none."""


class UnwitnessedSearchWarning(UserWarning):
    """The per-user state folder cannot be written, so that a copy of a search's store would not be found."""


class StartingProcessError(RuntimeError):
    """Something that charges, draws or searches was called in a child process while it was being started.

    Such a child runs the parent's script from the top. Put what the script does below `if __name__ == "__main__":`.
    """


def number(
    name: str,
    value: SupportsFloat,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    finite: bool = True,
    rounding: Literal["up", "down"] | None = None,
) -> float:
    """Parse a public number at the boundary: `1`, `1.0` and `Fraction(1)` mean the same thing.

    An exact number that is no double (`Fraction(1, 3)`) becomes the nearest, or with `rounding` the next one up
    or down: "up" for what is charged, "down" for the noise that a price is computed from.

    Raises `TypeError` when the value is not a number, and `ArgumentError` (a `ValueError`) when it is out of range.

    >>> number("epsilon", 1, above=0)
    1.0
    """
    ends = (above, at_least, below, at_most)
    if type(value) is not float and isinstance(value, _NOT_NUMBERS):
        raise TypeError(f"{name} must be a number, got {value!r}{_cure(name, value, ends)}")
    try:
        parsed = float(value)
    except OverflowError as error:
        raise ArgumentError(f"{name} is beyond the range of a double") from error
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be a number, got {value!r}{_cure(name, value, ends)}") from error
    if rounding is not None and math.isfinite(parsed):
        parsed = _directed(value, parsed, up=rounding == "up")
    wrong = (
        math.isnan(parsed)
        or (finite and math.isinf(parsed))
        or (above is not None and not parsed > above)
        or (at_least is not None and not parsed >= at_least)
        or (below is not None and not parsed < below)
        or (at_most is not None and not parsed <= at_most)
    )
    if wrong and at_least is not None and 0.0 < at_least < _TINY and parsed <= 0.0:
        raise ArgumentError(
            f"{name} must be greater than 0, got {value!r}{_cure(name, value, (0.0, None, None, None))}"
        )
    if wrong:
        limits = [
            f"{word} {limit:g}"
            for word, limit in (("above", above), ("at least", at_least), ("below", below), ("at most", at_most))
            if limit is not None
        ]
        kind = "a finite number" if finite else "a number"
        wanted = " ".join([kind, " and ".join(limits)]).strip()
        raise ArgumentError(f"{name} must be {wanted}, got {value!r}{_cure(name, value, ends)}")
    return parsed


@runtime_checkable
class _ExactRatio(Protocol):
    """A number that is exactly a ratio of two integers."""

    def as_integer_ratio(self) -> tuple[int, int]: ...


def _cure(name: str, value: object, ends: Sequence[float | None], *, whole: bool = False) -> str:
    """The cure for a number, from the ends that exclude and include: above, at least, below, at most."""
    from dpselect.cures import write_number  # loads what few need

    above, at_least, below, at_most = ends
    lowest = (
        (above, True) if at_least is None and above is not None else at_least if at_least is None else (at_least, False)
    )
    highest = (
        (below, True) if at_most is None and below is not None else at_most if at_most is None else (at_most, False)
    )
    return write_number(name, value, whole=whole, lowest=lowest, highest=highest)


def _directed(value: SupportsFloat, nearest: float, *, up: bool) -> float:
    """The float64 next to an exact number from one side. A number without a ratio is taken as the nearest."""
    if isinstance(value, float) or not isinstance(value, _ExactRatio):
        return nearest
    exact = Fraction(*value.as_integer_ratio())
    if up:
        return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)
    return nearest if Fraction(nearest) <= exact else math.nextafter(nearest, -math.inf)


def integer(name: str, value: SupportsIndex | float, *, at_least: int | None = None, at_most: int | None = None) -> int:
    """Parse a public integer. `3.0` is accepted, `3.5` and `True` are not.

    >>> integer("count", 3.0, at_least=1)
    3
    """
    ends = (None, at_least, None, at_most)
    if type(value) is not int and isinstance(value, _NOT_NUMBERS):
        raise TypeError(f"{name} must be an integer, got {value!r}{_cure(name, value, ends, whole=True)}")
    try:
        whole = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        parsed = number(name, value)  # type: ignore[arg-type]
        if parsed != math.floor(parsed):
            said = f"{name} must be an integer, got {value!r}{_cure(name, value, ends, whole=True)}"
            raise ArgumentError(said) from None
        whole = int(parsed)
    if (at_least is not None and whole < at_least) or (at_most is not None and whole > at_most):
        limits = [f"{w} {_shown(v)}" for w, v in (("at least", at_least), ("at most", at_most)) if v is not None]
        got = _shown(value) if isinstance(value, int) else repr(value)
        cure = _cure(name, value, ends, whole=True)
        raise ArgumentError(f"{name} must be an integer {' and '.join(limits)}, got {got}{cure}")
    return whole


def _shown(whole: int) -> str:
    """Without hundreds of digits: Python refuses to write more than 4,300."""
    return str(whole) if whole.bit_length() < 200 else f"{'-' if whole < 0 else ''}2**{whole.bit_length() - 1} or more"


def flag(name: str, value: object) -> bool:
    """Parse a yes or no, and nothing else, because any text counts as true.

    >>> flag("refit", np.False_)
    False
    """
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentError(f"{name} must be True or False, got {value!r}. Write {name}=True")
    return bool(value)


def public_text(name: str, value: str, *, longest: int = 200) -> str:
    """Parse a public name, label or identifier: printable text that is not empty and not too long.

    Raises `TypeError` when it is no text, and `ArgumentError` for control characters, halves of surrogate pairs and
    other characters that cannot be printed or stored.

    >>> public_text("label", "counts of visits, März")
    'counts of visits, März'
    """
    if not isinstance(value, str):
        from dpselect.cures import write_text  # loads what few need

        raise TypeError(f"{name} must be text, got {type(value).__name__}{write_text(name)}")
    if not value or len(value) > longest or not value.isprintable():
        shown = ascii(value[:40]) + ("..." if len(value) > 40 else "")
        raise ArgumentError(
            f"{name} must be 1 to {longest} printable characters on one line, got {shown} ({len(value)} characters)"
        )
    return str(value)


def rational(name: str, value: SupportsFloat) -> Fraction:
    """A public number that `number` has let pass, exactly. NumPy's numbers become the Python numbers that they equal.

    >>> rational("scale", 0.5), rational("scale", Fraction(1, 3))
    (Fraction(1, 2), Fraction(1, 3))
    """
    if isinstance(value, np.integer):
        value = int(value)
    return Fraction(value if isinstance(value, (int, float, Fraction, Decimal)) else number(name, value))


def expect(name: str, value: object, *kinds: type) -> None:
    """Raise `TypeError`, naming the argument, unless the value is of one of these kinds.

    >>> expect("plan", 3, int)
    """
    if not isinstance(value, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        from dpselect.cures import write_instance  # loads what few need

        raise TypeError(f"{name} must be of type {wanted}, got {type(value).__name__}{write_instance(name, *kinds)}")


def secret_number(name: str, value: SupportsFloat | None) -> float:
    """Parse a number that comes from the data: NaN and infinities pass, and the error does not show it.

    A missing value (None) is NaN, as a signalling NaN is, and a number beyond the range of a float64 is clipped to an
    infinity. Raises `TypeError` for anything but a number.

    >>> secret_number("score", 10**400)
    inf
    """
    if type(value) is float:
        return value
    if value is None or (isinstance(value, Decimal) and value.is_nan()):
        return math.nan
    if not isinstance(value, (str, bytes, bytearray)):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf  # type: ignore[operator]
        except (TypeError, ValueError):
            pass
    # outside the handler, so that no traceback shows the value either
    raise TypeError(f"{name} must be a number")


def missing_extra(extra: str, what: str) -> MissingExtraError:
    """The error for `what` (a noun phrase) when the packages of an extra are not installed.

    >>> print(missing_extra("parquet", "reading Parquet"))
    reading Parquet needs an optional extra: pip install "dpselect[parquet]"
    """
    return MissingExtraError(f'{what} needs an optional extra: pip install "dpselect[{extra}]"')


def levels_to_the_caller() -> int:
    """How far up the first frame outside of this package is, as a call of `warnings.warn` beside this one counts."""
    level = 1
    outer: FrameType | None = sys._getframe(1)
    while outer is not None and str(outer.f_globals.get("__name__")).partition(".")[0] == "dpselect":
        level, outer = level + 1, outer.f_back
    return level
