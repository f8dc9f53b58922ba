"""Every public callable, called as its documentation calls it and then with one argument that is odd.

A new public name is tried here if a docstring has an example that calls it (`tests/project/public_calls.py`); else it
needs a sample or a reason in `tests/project/public_samples.py`. What is asserted:

- a public parameter gives a result or an error of this library, `TypeError` or `ValueError` that names a parameter, in
  little time; never NaN, and never an error of Python's arithmetic or of a missing attribute;
- a data parameter never raises because of what one of its entries is, and no error shows that entry;
- what is returned is equal after copying and pickling, or is refused if it is a session.
"""

from __future__ import annotations

import copy
import functools
import inspect
import math
import pickle
import re
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import dpselect.errors
from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.privacy import Guarantee, OutputGuarantee, pure_dp
from dpselect.randomness import RandomSource
from dpselect.randomness.session import Unrepeatable
from tests.project.public_calls import ValidCall, from_examples, from_source, public
from tests.project.public_samples import DATA, DEAR, EXEMPT, LONG, PUBLIC_HERE, SAMPLES

NAMES = {one.name: one for one in public()}
TOP = [name for name, one in NAMES.items() if not one.is_method]


def makes_nothing(value: Any) -> bool:
    """Exceptions, protocols and abstract classes have no call of their own."""
    if not inspect.isclass(value):
        return False
    return issubclass(value, BaseException) or inspect.isabstract(value) or getattr(value, "_is_protocol", False)


@functools.cache
def valid(name: str) -> ValidCall | None:
    one = NAMES[name]
    if name in EXEMPT or makes_nothing(one.value):
        return None
    return from_source(SAMPLES[name], one) if name in SAMPLES else from_examples(one)


TRIED = [name for name in NAMES if name not in EXEMPT and not makes_nothing(NAMES[name].value) and valid(name)]


def each(names: list[str]) -> Any:
    def marks(name: str) -> list[pytest.MarkDecorator]:
        return [pytest.mark.slow] if name in DEAR else [pytest.mark.full] if name in LONG else []

    return pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in names])


def test_every_public_name_is_tried_or_has_a_reason() -> None:
    untried = [
        name for name in TOP if name not in TRIED and name not in EXEMPT and not makes_nothing(NAMES[name].value)
    ]
    assert not untried, "give its docstring an example, or tests/project/public_samples.py a sample or a reason"
    assert not (EXEMPT.keys() | SAMPLES.keys() | DEAR | LONG) - NAMES.keys()
    assert not {one.rpartition(":")[0] for one in PUBLIC_HERE} - NAMES.keys()


class Hangs(BaseException):
    """Took more processor time than any of these calls may."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise Hangs

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


OURS = tuple(one for one in vars(dpselect.errors).values() if inspect.isclass(one) and issubclass(one, Exception))
NUMBERS: list[Any] = [math.nan, math.inf, -math.inf, -0.0, 5e-324, -1, 2**64, 10**400, None, True, "1", "\ud800", "\0"]
NUMBERS += [
    b"1",
    np.int64(3),
    np.float32(0.5),
    np.array([]),
    Fraction(1, 3),
    Decimal("0.3"),
    Decimal("sNaN"),
    [],
    [1.0],
]
FEW_NUMBERS: list[Any] = [math.nan, -0.0, 10**400, None, Decimal("sNaN"), np.float32(0.5)]
PRICE = OutputGuarantee(cell=bool, epsilons={True: 1.0, False: 0.25}).observed(False)
OBJECTS: list[Any] = [math.nan, None, "text", 10**400, object(), [None], np.array([None, 1], dtype=object), {}, PRICE]


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Fraction, Decimal, np.number)) and not isinstance(value, bool)


def kind_of(name: str, parameter: inspect.Parameter, given: dict[str, Any]) -> str:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return "many"
    if parameter.name in DATA and f"{name}:{parameter.name}" not in PUBLIC_HERE:
        return "data"
    value = given.get(parameter.name, parameter.default)
    annotated = str(parameter.annotation)
    numeric = annotated in ("int", "float") or annotated.startswith(("SupportsFloat", "SupportsIndex"))
    return "number" if is_number(value) or numeric else "object"


def seconds(name: str) -> float:
    """What a call may take; some take seconds with ordinary arguments."""
    return 20.0 if name in DEAR else 5.0


def wrong_with(call: Callable[[], Any], names: list[str], *, named: bool, within: float = 5.0) -> str | None:
    """What is wrong with what a call does; None if nothing is."""
    try:
        with limited(within), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = call()
    except (*OURS, TypeError, ValueError) as error:
        text = str(error)
        if named and not any(one in text for one in names):
            return f"names no argument: {type(error).__name__}: {text[:150]}"
        return None
    except (Exception, Hangs) as error:
        return f"{type(error).__name__}: {str(error)[:150]}"
    if isinstance(result, float) and math.isnan(result):
        return "is NaN"
    return None


def findings(name: str, kind: str, odd: list[Any]) -> list[str]:
    found = []
    made = valid(name)
    assert made is not None
    _, given = made.fresh()
    parameters = [*made.signature.parameters.values()]
    parameters += [  # those of `**domain`
        inspect.Parameter(one, inspect.Parameter.KEYWORD_ONLY) for one in given if one not in made.signature.parameters
    ]
    for parameter in parameters:
        if kind_of(name, parameter, given) != kind:
            continue
        for value in odd:
            wrong = wrong_with(
                lambda value=value, parameter=parameter: made.call(**{parameter.name: value}),
                [one.name for one in parameters],
                named=kind == "number",
                within=seconds(name),
            )
            if wrong is not None:
                found.append(f"{parameter.name}={str(type(value))[:40]} {str(value)[:20]!r}: {wrong}")
    return found


@pytest.mark.cases(28)
@each(TRIED)
def test_an_odd_number_is_taken_or_refused_by_name(name: str) -> None:
    assert not findings(name, "number", FEW_NUMBERS)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in TRIED if name not in DEAR])
def test_every_odd_number_is_taken_or_refused_by_name(name: str) -> None:
    assert not findings(name, "number", NUMBERS)


@pytest.mark.cases(32)
@each(TRIED)
def test_an_odd_object_is_taken_or_refused(name: str) -> None:
    assert not findings(name, "object", OBJECTS)


ENTRIES: list[Any] = [
    math.nan,
    math.inf,
    -math.inf,
    -0.0,
    5e-324,
    2**64,
    -(2**64),
    10**400,
    None,
    True,
    np.float32(0.5),
]
ENTRIES += [np.int64(3), Fraction(1, 3), Decimal("0.3"), Decimal("sNaN")]


def with_entry(data: Any, entry: Any) -> Iterator[Any]:
    """The data with one entry that is another, as the types that could hold it."""
    if is_number(data):
        yield entry
    elif isinstance(data, (list, tuple)) and data and is_number(data[0]):
        yield [*data[:-1], entry]
    elif isinstance(data, np.ndarray) and data.dtype.kind == "f" and data.size:
        changed = data.copy()
        with np.errstate(all="ignore"):
            changed.reshape(-1)[-1] = math.nan if entry is None else dpselect.errors.secret_number("entry", entry)
        yield changed


@pytest.mark.cases(44)
@each(TRIED)
def test_one_entry_of_the_data_never_raises(name: str) -> None:
    made, found = valid(name), []
    assert made is not None
    _, given = made.fresh()
    for parameter in made.signature.parameters.values():
        if kind_of(name, parameter, given) != "data":
            continue
        for entry in ENTRIES:
            for changed in with_entry(given.get(parameter.name), entry):
                try:
                    with limited(seconds(name)), warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        made.call(**{parameter.name: changed})
                except (Exception, Hangs) as error:
                    found.append(f"{parameter.name} with {str(entry)[:20]}: {type(error).__name__}: {str(error)[:100]}")
    assert not found


def same(one: Any, other: Any) -> bool:
    """Whether a copy is equal, for what may be returned."""
    if isinstance(one, np.ndarray):
        return bool(np.array_equal(one, other, equal_nan=one.dtype.kind == "f"))
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, BaseEstimator):  # whose source and ledger do not come along
        return type(one) is type(other)
    if isinstance(one, Guarantee):
        return repr(one) == repr(other) and one.adjacency is other.adjacency
    try:
        if bool(one == other):
            return True
    except (TypeError, ValueError):
        pass
    return type(one) is type(other) and re.sub(r"0x\w+", "", repr(one)) == re.sub(r"0x\w+", "", repr(other))


def is_local(value: Any) -> bool:
    """Holds a function without a name, which no pickle can find again, or what ends with its process."""
    return callable(value) and not inspect.isclass(value) and not hasattr(value, "__dataclass_fields__")


@pytest.mark.cases(46)
@each(TRIED)
def test_what_is_returned_is_copied_whole_or_not_at_all(name: str) -> None:
    made = valid(name)
    assert made is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = made.call()
    if isinstance(result, Unrepeatable):
        for duplicate in (copy.copy, pickle.dumps):
            with pytest.raises(TypeError):
                duplicate(result)
        if not isinstance(result, RandomSource):  # which clones share
            with pytest.raises(TypeError):
                copy.deepcopy(result)
        return
    if is_local(result):
        return
    for duplicate in (copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))):
        try:
            twin = duplicate(result)
        except (TypeError, AttributeError, pickle.PicklingError, NotImplementedError) as refused:
            text = str(refused)  # in Python's words, for what holds a function without a name
        else:
            assert same(result, twin)
            continue
        assert re.search(r"pickle|copied|lambda|local|generator", text)


def several_guarantees() -> Iterator[tuple[str, str]]:
    """Where several guarantees are put together: (name, parameter)."""
    for name in TRIED:
        for parameter in inspect.signature(NAMES[name].value).parameters.values():
            annotation = str(parameter.annotation)
            if "Sequence[Guarantee" in annotation or (
                parameter.kind is parameter.VAR_POSITIONAL and annotation == "Guarantee"
            ):
                yield name, parameter.name


@pytest.mark.parametrize(("name", "parameter"), list(several_guarantees()))
def test_two_adjacencies_are_not_mixed(name: str, parameter: str) -> None:
    made = valid(name)
    assert made is not None
    mixed = (pure_dp(epsilon=0.1), pure_dp(epsilon=0.1, adjacency="replace_one"))
    with pytest.raises((AdjacencyError, ArgumentError)):
        made.call(**{parameter: mixed})


def test_most_of_the_library_is_tried() -> None:
    assert len(TRIED) > 250
