"""One trial: its key, its parameters, its run, and how a failure is handled. A pure function of the trial's key."""

from __future__ import annotations

import hashlib
import hmac
import io
import operator
import os
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple

from dpselect.privacy import Guarantee
from dpselect.privacy.boundary import run_confined
from dpselect.privacy.promises import hold_promises
from dpselect.randomness import RandomSource, keyed_source
from dpselect.tuning.limits import Limits, counting
from dpselect.tuning.machine import Candidate
from dpselect.tuning.other_draws import seeded_draws
from dpselect.tuning.space import Space

if TYPE_CHECKING:  # a type checker has it, whether it is installed or not
    from typing_extensions import TypeVar

    T = TypeVar("T", default=Any)
else:
    from typing import TypeVar

    T = TypeVar("T")

__all__ = [
    "Job",
    "Objective",
    "SharedRelease",
    "TrialOutput",
    "TwoStageObjective",
    "ValuePickler",
    "attempt",
    "decode_value",
    "encode_value",
    "pool_settings",
    "preparation_key",
    "trial_key",
    "trial_params",
]

_RAW: Final = b"b"
_PICKLED: Final = b"p"
TAG_BYTES: Final = 16
_KEY_BYTES: Final = 32


class TrialOutput(NamedTuple, Generic[T]):
    """The output of one run: its private score (larger is better) and the value that is released if it wins."""

    score: float
    value: T


Objective = Callable[[dict[str, Any], RandomSource], tuple[float, T]]
"""One run of a search, whose value is a `T`."""


@dataclass(frozen=True, repr=False)
class SharedRelease(Generic[T]):
    """A private release that all runs of a search share, such as bounds, with the objective that uses it.

    It takes the place of an objective. `tune` calls it once the whole price is reserved and the search's key is sealed,
    and it draws from a key that derives from that one. So a search that is resumed has the same release again, which is
    drawn and charged once.

    Args:
        objective: `objective(random)` draws the release, from `random` only, and returns the objective of the runs. Any
            part of it that is to be released with the winner must be in the runs' values. If it raises an exception,
            every run fails.
        guarantee: what the release guarantees to every row. It is composed with the price of the search.

    Raises:
        PromiseError: (an `ArgumentError` and a `TypeError`) if `guarantee` is not a `Guarantee`.

    >>> from dpselect.privacy import pure_dp
    >>> from dpselect.repetitions import Fixed
    >>> from dpselect.tuning import Categorical, tune
    >>> noisy_sum = SharedRelease(
    ...     lambda random: lambda params, _, total=3 + random.laplace(1)[0]: (0.0, total), pure_dp(epsilon=1.0)
    ... )
    >>> run = {"space": {"x": Categorical([1])}, "base": pure_dp(epsilon=0.5), "repetitions": Fixed(count=1)}
    >>> round(tune(noisy_sum, **run).guarantee.epsilon(delta=0), 9)
    1.5
    """

    objective: Callable[[RandomSource], Objective[T]]
    guarantee: Guarantee

    def __post_init__(self) -> None:
        hold_promises(self, "guarantee")


@dataclass(frozen=True, repr=False)
class TwoStageObjective(Generic[T]):
    """An objective, and one more run with its winner: `last(params, value)` is released in place of the value.

    The last run is made before the reservation is settled, and it is sealed, so a later resume writes the same release
    again. Its `guarantee` is composed with the price of the search, unless None: then it is part of the price already.
    If the last run raises an exception, nothing is found.
    """

    objective: Objective[Any] | SharedRelease[Any]
    last: Callable[[Mapping[str, Any], Any], T]
    guarantee: Guarantee | None = None


@dataclass(frozen=True, repr=False)
class Job:
    """The parts that every trial of a search shares. `reads`: see `Execution`."""

    objective: Objective
    space: Space
    payload_bytes: int
    limits: Limits | None = None
    reads: Sequence[str | os.PathLike[str]] | None = None


def trial_key(master: bytes, index: int) -> bytes:
    """The key of one trial, derived from the master key and the trial's index."""
    return hmac.new(master, b"dpselect trial %d" % index, hashlib.sha256).digest()


def preparation_key(master: bytes) -> bytes:
    """The key of what is drawn before the trials."""
    return hmac.new(master, b"dpselect preparation", hashlib.sha256).digest()


def trial_params(space: Space, key: bytes) -> dict[str, Any]:
    """The parameters of the trial with this key. Four more bytes are the index in the trial's pool."""
    return _params(space, keyed_source(key[:_KEY_BYTES]), key)


def _params(space: Space, source: RandomSource, key: bytes) -> dict[str, Any]:
    return _settings(space, source, 1 + int.from_bytes(key[_KEY_BYTES:], "big"))[-1]


def pool_settings(space: Space, key: bytes, count: int) -> list[dict[str, Any]]:
    """The first settings of a trial's pool: independent draws from the space."""
    return _settings(space, keyed_source(key), count)


def _settings(space: Space, source: RandomSource, count: int) -> list[dict[str, Any]]:
    drawn = source.spawn("space")
    return [space.sample(drawn) for _ in range(count)]


def attempt(job: Job, index: int, key: bytes) -> Candidate | None:
    """Run one trial in this process. None is a failed run: the worst outcome, below every score.

    A run fails if the objective raises, or if its output is not a pair of a number and a value. It also fails if the
    value does not survive pickling or is larger than `payload_bytes`. Exceptions go no further, because whether a run
    failed is part of its private output (see `dpselect.privacy.boundary`). `KeyboardInterrupt` passes.
    """
    source = keyed_source(key[:_KEY_BYTES])
    params = _params(job.space, source, key)
    tag = source.spawn("tie").bytes(TAG_BYTES)

    def run() -> Candidate | None:
        with counting(job.limits), seeded_draws(source):
            score, value = job.objective(params, source.spawn("objective"))
        if isinstance(score, (str, bytes, bytearray)):
            return None
        payload = encode_value(value)
        if len(payload) > job.payload_bytes:
            return None
        decode_value(payload)
        return Candidate(index=index, score=float(score), tag=tag, payload=payload)

    return run_confined(run, None, quiet=False)  # the executor silences it


def encode_value(value: Any) -> bytes:
    """The bytes that stand for a value in the store: a mark and the bytes themselves, or a mark and a pickle.

    `len(encode_value(value))` is what a study's `payload_bytes` must allow for.

    >>> len(encode_value(b"model"))
    6
    """
    if type(value) is bytes:
        return _RAW + value
    buffer = io.BytesIO()
    ValuePickler(buffer, protocol=5).dump(value)
    return _PICKLED + buffer.getvalue()


class ValuePickler(pickle.Pickler):
    """Takes classes and functions of the script (or notebook) by name, as `pickle` does, in any process.

    A worker that does not run the script has them by value, with the objective, and `pickle` does not find them there.
    """

    def reducer_override(self, obj: Any) -> Any:
        """The name of what the script defines at its top."""
        if isinstance(obj, (type, FunctionType)) and obj.__module__ in _SCRIPT and "<" not in obj.__qualname__:
            _named_here[obj.__qualname__] = obj
            return _of_the_script, (obj.__qualname__,)
        return NotImplemented


_SCRIPT: Final = ("__main__", "__mp_main__")
_named_here: Final[dict[str, Any]] = {}


def _of_the_script(name: str) -> Any:
    try:
        return operator.attrgetter(name)(sys.modules["__main__"])
    except AttributeError:
        return _named_here[name]  # a worker that reads back what it has written


def decode_value(payload: bytes) -> Any:
    """The value that `encode_value` encoded."""
    return payload[1:] if payload[:1] == _RAW else pickle.loads(payload[1:])
