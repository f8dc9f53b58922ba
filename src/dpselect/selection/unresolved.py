"""Names in a function's code that no call of it can resolve, found without running anything.

An objective that raises in every run costs the whole price and finds nothing, and whether a run failed is private. So a
misspelt name is looked for in advance. Only names that are certainly missing are reported. A name in a `try` block, or
one that some function of the module makes global, is not. Nor is anything in code that reads its own names
(`globals()`). A name that only an untaken branch asks for is reported too.
"""

from __future__ import annotations

import dis
import functools
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, Final

__all__ = ["Missing", "missing_key", "missing_name"]

_LOADS: Final = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_REFLECTION: Final = {"globals", "locals", "vars", "exec", "eval", "__builtins__"}
_SOMETIMES: Final = {  # asked for only where they are: in Python 2, on Windows, in notebooks, under a profiler
    *("unicode", "long", "xrange", "basestring", "raw_input", "unichr", "reload", "WindowsError"),
    *("get_ipython", "display", "__IPYTHON__", "profile", "reveal_type"),
}
_MOST_FUNCTIONS: Final = 500
_INSTALLED: Final = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


@dataclass(frozen=True)
class Missing:
    """A name that is defined nowhere, and where the code asks for it."""

    name: str
    file: str
    line: int | None

    def __str__(self) -> str:
        return f"{self.name!r} (line {self.line} of {self.file})" if self.line else repr(self.name)


@dataclass
class _Walk:
    """The functions still to look at, and those that were seen."""

    functions: list[FunctionType] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)

    def add(self, value: Any) -> None:
        function = _function_of(value)
        if function is not None and id(function) not in self.seen and len(self.seen) < _MOST_FUNCTIONS:
            self.seen.add(id(function))
            self.functions.append(function)


def missing_name(called: Callable[..., Any]) -> Missing | None:
    """The first name that code of `called`, or of a function of the same module that it names, cannot resolve.

    Functions that it closes over are searched as well, installed packages are not.

    >>> missing_name(lambda random: (undefined_score, None)).name
    'undefined_score'
    >>> missing_name(lambda random: (len("abc"), None)) is None
    True
    """
    walk = _Walk()
    walk.add(called)
    while walk.functions:
        function = walk.functions.pop()
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        for cell in cells.values():
            walk.add(_content(cell))
        if not function.__code__.co_filename.startswith(_INSTALLED):
            found = _missing_in(function, function.__code__, cells, walk)
            if found is not None:
                return found
    return None


def missing_key(called: Callable[..., Any], keys: Mapping[str, Any]) -> str | None:
    """The first constant that is no key and by which `called` certainly subscripts its first argument.

    Certainly: before anything that could branch, and before it uses that argument in any other way.

    >>> missing_key(lambda params, random: (params["rat"], None), {"rate": 1.0})
    'rat'
    """
    function = _function_of(called)
    if function is None or not function.__code__.co_argcount:
        return None
    own = function.__code__.co_varnames[: function.__code__.co_argcount]
    place = 0 if isinstance(called, FunctionType) else 1  # after self
    if len(own) <= place:
        return None
    asked: list[dis.Instruction] = []
    for instruction in dis.get_instructions(function.__code__):
        if instruction.opcode in _JUMPS or instruction.opname.startswith("RETURN_"):
            return None
        asked = [*asked[-2:], instruction]
        if len(asked) == 3 and _names(asked[0]) == (own[place],):
            by_text = asked[1].opname == "LOAD_CONST" and isinstance(asked[1].argval, str)
            if not (by_text and (asked[2].opname == "BINARY_SUBSCR" or asked[2].argrepr == "[]")):
                return None
            if asked[1].argval not in keys:
                return str(asked[1].argval)
        elif own[place] in _names(asked[0]):
            return None
    return None


_JUMPS: Final = frozenset((*dis.hasjrel, *dis.hasjabs))


def _names(instruction: dis.Instruction) -> tuple[Any, ...]:
    """The variables that an instruction names. Some name two."""
    named = instruction.argval if instruction.opcode in _VARIABLES else ()
    return named if isinstance(named, tuple) else (named,)


_VARIABLES: Final = frozenset((*dis.haslocal, *dis.hasfree))


def _function_of(called: Any) -> FunctionType | None:
    while isinstance(called, functools.partial):
        called = called.func
    if not isinstance(called, (FunctionType, MethodType)) and callable(called) and not isinstance(called, type):
        called = type(called).__call__
    function = called.__func__ if isinstance(called, MethodType) else called
    return function if isinstance(function, FunctionType) else None


def _missing_in(function: FunctionType, code: CodeType, cells: Mapping[str, CellType], walk: _Walk) -> Missing | None:
    """The first in this code and in the functions, comprehensions and classes that stand in it."""
    if _REFLECTION & set(code.co_names) or type(function.__globals__) is not dict or code.co_name == "__annotate__":
        return None
    for opname, name, line in _loads(code, code.co_linetable, code.co_exceptiontable):
        if opname in _LOADS:
            if name in function.__globals__:
                value = function.__globals__[name]
                if getattr(value, "__globals__", None) is function.__globals__:
                    walk.add(value)
            elif not _known(name, function):
                return Missing(name, code.co_filename, line)
        elif name in cells and _content(cells[name]) is _EMPTY:
            return Missing(name, code.co_filename, line)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            shared = {name: cells[name] for name in inner.co_freevars if name in cells and name not in code.co_cellvars}
            found = _missing_in(function, inner, shared, walk)
            if found is not None:
                return found
    return None


@functools.lru_cache(maxsize=1024)
def _loads(code: CodeType, *_: bytes) -> tuple[tuple[str, str, int], ...]:
    """The names that a code loads outside `try` blocks: how, which, and in what line.

    Codes that differ in their tables alone are equal in some versions of Python, so the tables are given too.
    """
    instructions = list(dis.get_instructions(code))
    stored = {each.argval for each in instructions if each.opname.startswith(("STORE_", "DELETE_"))}
    guarded = _guarded(code, instructions)
    found, line = [], code.co_firstlineno
    for each in instructions:
        line = each.positions.lineno or line if each.positions else line
        loads = each.opname in _LOADS or each.opname == "LOAD_DEREF"
        if loads and each.argval not in stored and not guarded(each.offset):
            found.append((each.opname, each.argval, line))
    return tuple(found)


_EMPTY: Final = object()


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _EMPTY


def _known(name: str, function: Any) -> bool:
    if name in _SOMETIMES or name in function.__builtins__:
        return True
    return any(name in _made_global(code) for code in _codes_of(function.__globals__))


def _made_global(code: CodeType) -> set[str]:
    return {each.argval for each in dis.get_instructions(code) if each.opname == "STORE_GLOBAL"}


def _codes_of(module: Mapping[str, Any]) -> Iterator[CodeType]:
    """The code of all functions and methods of a module."""
    left: list[Any] = []
    for value in list(module.values()):
        left += [value, *vars(value).values()] if isinstance(value, type) else [value]
    codes = [function.__code__ for function in map(_function_of, left) if function is not None]
    while codes:
        code = codes.pop()
        yield code
        codes += [inner for inner in code.co_consts if isinstance(inner, CodeType)]


def _guarded(code: CodeType, instructions: list[dis.Instruction]) -> Callable[[int], bool]:
    """Whether an exception at an offset may be caught: in a `try` block, or a `with` block that may suppress it."""
    at = {each.offset: place for place, each in enumerate(instructions)}

    def catches(target: int) -> bool:
        first = at[target]
        if instructions[first].opname != "PUSH_EXC_INFO":  # it tidies up and raises again
            return False
        return instructions[first + 1].opname != "WITH_EXCEPT_START" or "suppress" in code.co_names

    decoded: Any = dis.Bytecode(code)  # whose table of exceptions typeshed does not know
    ranges = [(each.start, each.end) for each in decoded.exception_entries if catches(each.target)]
    return lambda offset: any(start <= offset < end for start, end in ranges)
