"""From a study file to a `Study`: everything that is wrong with it is said at once."""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError

from dpselect.cures import near_file
from dpselect.decoding.files import read_content
from dpselect.decoding.limits import STUDY
from dpselect.decoding.toml_text import toml_of
from dpselect.errors import ContentError, StudyError
from dpselect.study.columns.column import Column
from dpselect.study.cures import instead, needed, of_a_kind
from dpselect.study.schema import FILL_IN, Study
from dpselect.study.schema_data import CLASHES, KEYS_ALONE
from dpselect.study.task import design_clashes, task_clashes

__all__ = ["load_study", "parse_study"]

Where = tuple[str, ...]
"""Of a key: its tables and its name."""
_SHOWN: Final = 100
"""Wrong keys that are named; more are too many to read."""
_STAND_IN: Final = {"bounds": [0, 1]}
"""For a column of which nothing can be used."""

_WORDS: Final = {
    r"^Value error, ": "",
    r"^Input should be a valid (dictionary|mapping).*": "must be a table",
    r"^Input should be a valid (tuple|list)": "must be a list",
    r"^Input should be ": "must be ",
    r"^Tuple should have (at \w+ \d+) items? after validation, not \d+": r"must hold \1",
    r"^Field required$": "must hold more",
}
"""What the schema's library says, in words of study files."""


def parse_study(document: dict[str, Any]) -> Study:
    """Check a study given as nested tables.

    Args:
        document: the tables of a study file, as `tomllib` reads them.

    Returns:
        The `Study`.

    Raises:
        StudyError: if anything is wrong. It names every wrong key.
    """
    read = _Reading.of(document)
    if read.wrong:
        raise _invalid(read.lines)
    return read.study


def load_study(path: Path, *, folder: Path | None = None, resume: bool = False) -> Study:
    """Read and check a study file (TOML).

    Args:
        path: the study file.
        folder: the output folder to check in place of the study's own. By default the study's.
        resume: check the output folder for a search that is continued.

    Returns:
        The `Study`.

    Raises:
        StudyError: for a file that cannot be read, or wrong keys, all of them named. If a key is wrong, it also names
            what `check_study` would refuse of the other keys (files, columns, distributions and the output folder), but
            for the price.
    """
    try:
        document = toml_of(read_content(path, STUDY), f"the study {str(path)!r}", limits=STUDY)
    except OSError as error:
        raise StudyError(f"cannot read the study {str(path)!r}: {error.strerror}{near_file(path)}") from None
    except ContentError as error:
        near = near_file(path.with_name("study.toml")) if path.suffix != ".toml" else ""
        raise StudyError(f"{error}{near}") from None
    _warn_of_old_names(document)
    read = _Reading.of(document)
    if not read.wrong:
        return read.study
    from dpselect.study.validate import StudyPaths, problems  # loads learners and ledgers, which keys do not need

    place = StudyPaths.of(read.study, path.resolve().parent, folder, resume=resume)
    raise _invalid([*read.lines, *problems(read.study, place, tuple(read.wrong))])


def _warn_of_old_names(document: Mapping[str, Any]) -> None:
    space = document.get("space")
    drawn = list(space.values()) if isinstance(space, Mapping) else []
    if any(isinstance(table, Mapping) and "law" in table for table in (*drawn, document.get("repetitions"))):
        text = 'law is the old name of distribution in [space] and [repetitions]. Write distribution = "harmonic"'
        warnings.warn(text, FutureWarning, stacklevel=3)


def _invalid(lines: Sequence[str]) -> StudyError:
    left = len(lines) - _SHOWN
    shown = [*lines[:_SHOWN], f"and {left} more"] if left > 0 else lines
    return StudyError("the study is not valid:\n  " + "\n  ".join(shown))


@dataclass(frozen=True)
class _Reading:
    """A study without its wrong keys, and what is wrong with each of those."""

    study: Study
    wrong: Mapping[str, str]

    @property
    def lines(self) -> list[str]:
        return [f"{where}: {what}" for where, what in self.wrong.items()]

    @classmethod
    def of(cls, document: dict[str, Any]) -> _Reading:
        """Validate again and again, each time without what was wrong, until nothing is."""
        wrong = _Wrong()
        for blank in _blanks(document):
            wrong.add(blank, "still to be filled in")
        study, rest, before = None, copy.deepcopy(document), None
        while rest != before:
            before = copy.deepcopy(rest)
            try:
                study = Study.model_validate(rest)
            except ValidationError as error:
                for place, found in groupby(error.errors(include_url=False), partial(_place, before)):
                    problem, *others = found
                    for where, what in _said(place, problem, others):
                        if not wrong.explains(where, what if problem["type"] in (CLASHES, "value_error") else ""):
                            wrong.add(where, what)
                    _mend(rest, place, problem)
        study = study or Study.model_validate(rest, context=KEYS_ALONE)
        clashes = (*task_clashes(study), *design_clashes(study))
        return cls(study, wrong.said | {where: what for where, what in clashes if not wrong.explains(where, what)})


class _Wrong:
    """The wrong keys so far, found by themselves, by their tables and by the tables above them."""

    def __init__(self) -> None:
        self.said: dict[str, str] = {}
        self._names: dict[str, set[str]] = {}
        self._above: set[str] = set()

    def add(self, where: str, what: str) -> None:
        self.said[where] = what
        table, _, name = where.rpartition(".")
        self._names.setdefault(table, set()).add(name)
        self._above.update(_tables(where))

    def explains(self, where: str, what: str) -> bool:
        """Whether one of them is this key or a table of it, or is of the same table and spoken of."""
        above = where in self.said or any(table in self.said for table in _tables(where))
        if where.startswith("data.columns.") and "exactly one of bounds and categories" in what:
            above |= where in self._above  # one of them is probably misspelt
        named = self._names.get(where.rpartition(".")[0], set())
        return above or not named.isdisjoint(re.findall(r"[\w-]+", what))


def _tables(where: str) -> Iterator[str]:
    """The tables that a key is in."""
    while "." in where:
        where = where.rpartition(".")[0]
        yield where


def _said(place: Where, problem: Any, others: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """The keys that an error of the schema is about, each with what is wrong with it.

    `others` are at the same place: of a value that is of no kind that it may be, one for each further kind.
    """
    if problem["type"] == CLASHES:
        yield from ((".".join((*place, key)), what) for key, what in problem["ctx"]["of"])
        return
    kinds = [problem, *others]
    if any(len(each["loc"]) > len(place) + 1 for each in kinds):
        kinds = [problem]  # of a part of the value
    what = ", or ".join(dict.fromkeys(_in_words(each["msg"]) for each in kinds)).replace(", or must be ", ", or ")
    if _is_missing(place, problem):
        facts = _table(place[:-1]).model_fields[place[-1]].description or ""
        what = f"needed: {facts[:1].lower()}{facts[1:].rstrip('.')}{needed(place[-1])}"
    elif place and problem["type"] not in ("value_error", "extra_forbidden"):
        what += of_a_kind(place[-1], problem["input"], what)
    if problem["type"] == "extra_forbidden":
        what = instead(place[-1], problem["input"], _table(place[:-1]).model_fields)
        if _table(place[:-1]) is Column and isinstance(problem["input"], Mapping):
            what = f"a name with a dot is one name in quotation marks: {'.'.join(place[2:])!r}".replace("'", '"')
    yield ".".join(place) or "study", what


def _in_words(said: str) -> str:
    for pattern, words in _WORDS.items():
        said = re.sub(pattern, words, said)
    return said


def _is_missing(place: Where, problem: Any) -> bool:
    """Whether a key is missing, and not a part of its value."""
    return problem["type"] == "missing" and problem["loc"][-1] == place[-1]


def _place(document: Any, problem: Any) -> Where:
    """Where in the document an error is: the schema's own parts of a place, such as the kinds of a union, left out."""
    place: list[str] = []
    last = len(problem["loc"]) - 1
    for number, part in enumerate(problem["loc"]):
        new = number == last and problem["type"] == "missing"
        if not isinstance(document, dict) or (part not in document and not new):
            break
        place.append(part)
        document = document.get(part)
    return tuple(place)


def _mend(document: dict[str, Any], place: Where, problem: Any) -> None:
    """Take out what is wrong, and put in what must be there."""
    if problem["type"] == CLASHES or not place:
        return
    table = document
    for part in place[:-1]:
        table = table.get(part, {})
    if _is_missing(place, problem):
        kind = _table(place[:-1]).model_fields[place[-1]].annotation
        table[place[-1]] = "" if kind is str else {}
    elif place[:2] != ("data", "columns") or len(place) < 3:
        table.pop(place[-1], None)
    elif problem["type"] != "extra_forbidden":
        document["data"]["columns"][place[2]] = dict(_STAND_IN)
    elif isinstance(problem["input"], Mapping):
        document["data"]["columns"].pop(place[2], None)  # the begin of a name with a dot
    else:
        table.pop(place[-1], None)


def _table(place: Iterable[str]) -> type[BaseModel]:
    """The schema of the table at this place."""
    table: type[BaseModel] = Study
    for part in place:
        if part in table.model_fields and table is not Column:  # whose name may be that of one of its keys
            kind = table.model_fields[part].annotation
            table = next(one for one in (kind, *get_args(kind)) if isinstance(one, type) and issubclass(one, BaseModel))
    return table


def _blanks(part: Any, where: str = "") -> Iterator[str]:
    """Where a draft has a blank; lists are named as a whole, and so is a column."""
    if isinstance(part, dict) and not re.fullmatch(r"data\.columns\..*", where):
        for key, value in part.items():
            yield from _blanks(value, f"{where}.{key}" if where else key)
    elif FILL_IN in str(part):
        yield where
