"""Entry points of audits: `module:attribute` names a subject."""

from __future__ import annotations

import importlib
import traceback
from typing import Any

from dpselect.audit.callables import function_subject
from dpselect.audit.one_run import OneRunAudit
from dpselect.audit.result import Audit
from dpselect.audit.subject import FiniteSubject, Subject
from dpselect.errors import ArgumentError
from dpselect.privacy import Guarantee

__all__ = ["resolve_entry", "subject_of", "where_it_failed"]

Auditable = Subject | FiniteSubject | OneRunAudit | Audit

_WANTED = (
    "a Subject, a FiniteSubject, a OneRunAudit, an object with audit_subject(), or a function without arguments that "
    "gives one"
)
_OF_DATA = "a function of data needs --data, --neighbour and a claim"


def resolve_entry(entry: str) -> Any:
    """Return what `module:attribute` names. Attributes of attributes have dots between them.

    Imports the module, which runs its code. Raises `ArgumentError` naming the part that is not there.

    >>> resolve_entry("math:tau")
    6.283185307179586
    """
    module, colon, path = entry.partition(":")
    if not colon or not module or not path:
        raise ArgumentError(f"the entry point must be MODULE:NAME, got {entry!r}")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        within = "" if module.split(".")[0] == error.name or module == error.name else f" while importing {module}"
        raise ArgumentError(f"entry point {entry!r}: there is no module {error.name}{within}") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a module that ends the program says nothing about a claim
        raise ArgumentError(f"entry point {entry!r}: importing {module} failed: {where_it_failed(error)}") from error
    for place, name in enumerate(path.split(".")):
        try:
            found = getattr(found, name)
        except AttributeError:
            holder = ":".join(filter(None, (module, ".".join(path.split(".")[:place]))))
            raise ArgumentError(f"entry point {entry!r}: {holder} has no attribute {name!r}") from None
    return found


def subject_of(found: Any, *, name: str) -> Auditable:
    """The subject that an entry point stands for. An `Audit` that is already done passes.

    Raises `ArgumentError` for anything else.
    """
    for calls_left in (2, 1, 0):  # a function that gives an object that gives a subject, and no further
        if isinstance(found, (Subject, FiniteSubject, OneRunAudit, Audit)):
            return found
        give = getattr(found, "audit_subject", None) or (found if callable(found) else None)
        if give is None or not calls_left:
            break
        found = _called(give, name)
    raise ArgumentError(f"entry point {name!r}: got {type(found).__name__}, wanted {_WANTED}; {_OF_DATA}")


def _called(give: Any, name: str) -> Any:
    try:
        return give()
    except (ArgumentError, KeyboardInterrupt):
        raise
    except BaseException as error:
        trace = error.__traceback__
        if isinstance(error, TypeError) and trace is not None and trace.tb_next is None:  # the call itself
            raise ArgumentError(f"entry point {name!r} cannot be called without arguments; {_OF_DATA}") from None
        raise ArgumentError(f"entry point {name!r} failed: {where_it_failed(error)}") from error


def function_of_data(found: Any, *, data: Any, neighbour: Any, claim: Guarantee, name: str) -> Subject:
    """A function of one data set, on two of them."""
    if not callable(found):
        raise ArgumentError(f"entry point {name!r}: --data goes with a function, got {type(found).__name__}")
    return function_subject(found, data=data, neighbour=neighbour, claim=claim, name=name)


def where_it_failed(error: BaseException) -> str:
    """The type of an exception and the line it came from. Not its message, which may hold data."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__} at {frames[-1].filename}:{frames[-1].lineno}" if frames else type(error).__name__
