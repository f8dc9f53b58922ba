"""A worker proves that it runs the tuner's code and reads the tuner's files, before its first trial.

A worker with another copy of dpselect, or without the data, would run trials anyway: with other noise than is charged
for, or with failures for scores. The expectations that a job has of its workers travel with it, as plain values that
every version can read. Each process compares before it loads the job.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import pickle
import platform
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache, partial
from importlib.resources import files
from itertools import islice
from pathlib import Path
from types import CodeType, MethodType
from typing import Any, Final

import numpy as np

from dpselect.errors import ArgumentError, StudyError
from dpselect.randomness import system_source
from dpselect.tuning.trial import Job
from dpselect.version import __version__

__all__ = ["ExecutorLostError", "Unequal", "UnequalWorkerError", "build_here", "expected_of", "packed", "unpacked"]

_SHOWN: Final = 12
_BLOCK: Final = 1 << 20
_LENGTH_BYTES: Final = 8


class ExecutorLostError(StudyError):
    """The place where trials run is gone. Nothing is lost with it: the search can be resumed, there or elsewhere."""


class UnequalWorkerError(ExecutorLostError):
    """A worker runs other code than the tuner, or reads other files. The search can be resumed without it."""


class Unequal(str):
    """The differences of a worker: names, versions and digests of code, nothing of the data."""

    __slots__ = ()


@lru_cache(maxsize=1)
def build_here() -> dict[str, str]:
    """The versions of this process, and a digest of the source of dpselect that it finds.

    >>> sorted(build_here())
    ['NumPy', 'Python', 'code of dpselect', 'dpselect']
    """
    digest = hashlib.sha256()
    for name, content in sorted(_sources(files("dpselect"), "")):
        digest.update(b"%s\0%d\0%s" % (name.encode(), len(content), content))
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return {"dpselect": __version__, "code of dpselect": digest.hexdigest(), "Python": python, "NumPy": np.__version__}


def expected_of(job: Job) -> dict[str, Any]:
    """A job's expectations of its workers, in plain values. Raises `ArgumentError` for `reads` that are not here."""
    key = system_source().bytes(32)
    module = _module_of(job.objective)
    try:
        named = None if job.reads is None else [(str(path), _content(str(path), key)) for path in job.reads]
    except OSError as error:
        raise ArgumentError(f"reads: {error.filename!r} cannot be read here ({error.strerror})") from None
    return {
        "build": build_here(),
        "objective": (module, _module_digest(module)),
        "key": key,
        "files": [(path, None) for path in sorted(_paths_in(job.objective))] if named is None else named,
    }


def packed(expected: dict[str, Any], pickled: bytes) -> bytes:
    """A pickled job with what it expects, as `unpacked` takes it."""
    head = pickle.dumps(expected)
    return b"".join((len(head).to_bytes(_LENGTH_BYTES, "big"), head, pickled))


def unpacked(shipped: bytes | memoryview, *, proven: bool = False) -> Job:
    """The job, in a worker. Raises `UnequalWorkerError` that says what differs here, and anything that loading raises.

    `proven`: this process has been compared with what this job expects.
    """
    view = memoryview(shipped)  # a job may hold much data: no copies
    start = _LENGTH_BYTES + int.from_bytes(view[:_LENGTH_BYTES], "big")
    expected, pickled = pickle.loads(view[_LENGTH_BYTES:start]), view[start:]
    if proven:
        known: Job = pickle.loads(pickled)
        return known
    _compared(_different_build(expected["build"]))
    job: Job = pickle.loads(pickled)
    module, digest = expected["objective"]
    if digest is not None and _module_digest(module) not in (None, digest):
        _compared([f"module {module!r} of the objective is another"])
    _compared([said for path, wanted in expected["files"] if (said := _different_file(path, wanted, expected["key"]))])
    return job


def _compared(found: list[str]) -> None:
    if found:
        raise UnequalWorkerError(
            f"a worker on {socket.gethostname()!r} is not equal to the tuner: {'; '.join(found)}. Put it right "
            "there, or leave that worker out. A search with a store can be resumed."
        )


def _different_build(expected: dict[str, str]) -> list[str]:
    here = build_here()
    return [
        f"{name} is {here.get(name, 'none')[:_SHOWN]} there, {wanted[:_SHOWN]} here"
        for name, wanted in expected.items()
        if here.get(name) != wanted
    ]


def _different_file(path: str, wanted: bytes | None, key: bytes) -> str:
    try:
        found = _content(path, key) if wanted is not None else os.stat(path) and None
    except OSError as error:
        off = "; Execution(reads=()) looks for no files" if wanted is None else ""
        return f"{path!r} cannot be read ({error.strerror}{off})"
    return "" if found == wanted else f"{path!r} holds other content"


def _content(path: str, key: bytes) -> bytes:
    """A digest, under a key, of a file or of all files below a folder."""
    digest = hmac.new(key, digestmod=hashlib.sha256)
    root = Path(path)
    for file in sorted(child for child in root.rglob("*") if child.is_file()) if root.is_dir() else [root]:
        digest.update(b"%s\0%d\0" % (os.fsencode(file.relative_to(root)), file.stat().st_size))
        with file.open("rb") as opened:
            while block := opened.read(_BLOCK):
                digest.update(block)
    return digest.digest()


def _sources(folder: Any, prefix: str) -> Iterator[tuple[str, bytes]]:
    for child in folder.iterdir():
        if child.name.endswith(".py"):
            yield prefix + child.name, child.read_bytes()
        elif child.is_dir() and child.name != "__pycache__":
            yield from _sources(child, f"{prefix}{child.name}/")


def _module_of(objective: Any) -> str:
    while isinstance(objective, partial):
        objective = objective.func
    return str(getattr(objective, "__module__", None) or type(objective).__module__)


def _module_digest(name: str) -> str | None:
    """Digest of the file of an imported module. None for the script, which workers have by value, and for no file."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if name in ("__main__", "__mp_main__") or file is None or not os.path.isfile(file):
        return None
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _paths_in(objective: Any) -> set[str]:
    """Files of this machine that an objective names: in its arguments, attributes, closure, constants and globals.

    Of a list or a dictionary only `pathlib.Path`s count: texts there may be data, which must decide nothing.
    """
    found: set[str] = set()
    with suppress(Exception):  # an object's own code may be anything
        for value in _values_in(objective, 3):  # settings, and code
            text = os.fspath(value) if isinstance(value, (str, os.PathLike)) else ""
            if isinstance(text, str) and ("." in text or os.sep in text) and os.path.isfile(text):
                found.add(text)
    return found


def _values_in(value: Any, depth: int) -> Iterator[Any]:
    yield value
    if depth == 0:
        return
    parts: list[Any] = []
    if isinstance(value, partial):
        parts = [value.func, *value.args, *value.keywords.values()]
    elif isinstance(value, CodeType):
        parts = list(value.co_consts)
    elif isinstance(value, (dict, list, tuple, set, frozenset)):
        first = islice(value.values() if isinstance(value, dict) else value, 1000)
        parts = [part for part in first if isinstance(part, Path)]
    elif isinstance(value, MethodType):
        parts = [value.__func__, value.__self__]
    elif isinstance(getattr(value, "__code__", None), CodeType):
        code, known = value.__code__, value.__globals__
        named = [known[name] for name in code.co_names if isinstance(known.get(name), (str, os.PathLike))]
        cells = [cell.cell_contents for cell in value.__closure__ or () if _filled(cell)]
        parts = [code, *named, *cells, *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    elif not isinstance(value, (type, str, bytes, os.PathLike, np.ndarray)):
        own = getattr(value, "__dict__", None)
        parts = list(own.values()) if isinstance(own, dict) and len(own) < 100 else []
        call = getattr(type(value), "__call__", None) if depth == 3 else None  # noqa: B004
        parts += [call] if isinstance(getattr(call, "__code__", None), CodeType) else []
    for part in parts:
        yield from _values_in(part, depth - 1)


def _filled(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True
