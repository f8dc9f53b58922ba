"""Code of the user's own that a study names, such as `module = "my_models:build"`: found, imported and told apart.

It is imported from the folder of the study file or from Python's search path, and only because the study file names
it. A model file that names code runs nothing: see `load_model(module=)`.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from operator import attrgetter
from pathlib import Path
from typing import Any

from dpselect.errors import ArgumentError

__all__ = ["code_digest", "function_of", "importable", "named_modules", "refuse_ambiguous"]


def function_of(module: Any) -> Callable[..., Any]:
    """Return the function that `module` names, which is imported, or `module` itself if it is a function.

    Args:
        module: a text such as "my_models:build", or a function.

    Returns:
        The function.

    Raises:
        ArgumentError: for another text, a module that cannot be imported, and a name that is no function in it.

    >>> function_of("math:hypot")(3, 4)
    5.0
    """
    if callable(module):
        return module
    if not isinstance(module, str) or not re.fullmatch(r"[^\W\d][\w.]*:[^\W\d][\w.]*", module):
        raise ArgumentError(f'module must name a function, such as "my_models:build", got {module!r}')
    place, _, name = module.partition(":")
    importlib.invalidate_caches()
    try:
        found: Any = importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{place}.".startswith(f"{error.name}."):
            raise ArgumentError(
                f"module: there is no Python module {place!r} in the study file's folder or on Python's search path"
            ) from None
        raise ArgumentError(f"module: {place!r} cannot be imported: {error}") from error
    except Exception as error:
        raise ArgumentError(f"module: {place!r} cannot be imported: {type(error).__name__}: {error}") from error
    try:
        found = attrgetter(name)(found)
    except AttributeError:
        found = None
    if not callable(found):
        raise ArgumentError(f"module: {place!r} has no function {name!r}")
    function: Callable[..., Any] = found
    return function


@contextmanager
def importable(folder: Path) -> Iterator[None]:
    """Let modules in this folder be imported, after all others, here and in processes that start meanwhile."""
    place = str(folder.resolve())
    if place in sys.path:
        yield
        return
    sys.path.append(place)
    try:
        yield
    finally:
        with suppress(ValueError):  # the user's code may have changed it
            sys.path.remove(place)


def named_modules(learner: Mapping[str, Any], space: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The texts under `module` in a learner's table, and among the choices of a space."""
    choices = space.get("module", {}).get("choices")
    found = [learner.get("module"), *(choices if isinstance(choices, list) else ())]
    return [name for name in found if isinstance(name, str)]


def refuse_ambiguous(module: str, folder: Path) -> None:
    """Raise `ArgumentError` if the folder has a module of this name and Python finds another one first."""
    top = module.partition(":")[0].partition(".")[0]
    own = [folder / f"{top}.py", folder / top / "__init__.py"]
    if not top.isidentifier() or not any(each.is_file() for each in own):
        return
    importlib.invalidate_caches()
    try:
        found = importlib.util.find_spec(top)
    except (ImportError, ValueError):  # a module without a place, such as the script
        origin: str | None = None
    else:
        if found is None:
            return  # the folder is not on the search path yet
        origin = found.origin
    if origin is None or Path(origin).resolve() not in [each.resolve() for each in own]:
        raise ArgumentError(
            f"module: {top!r} in the study file's folder has the name of another module, found first. Rename it"
        )


def code_digest(module: str) -> str:
    """A digest of the file of the module that is named, or "" if it has none: a search continues with the same code."""
    found = getattr(sys.modules.get(module.partition(":")[0]), "__file__", None)
    with suppress(OSError, TypeError):
        return hashlib.sha256(Path(found or "").read_bytes()).hexdigest()
    return ""
