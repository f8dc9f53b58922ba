"""A first draft of a study, from the names of a table's columns and from the types that its schema states.

No cell is read: anything that a draft said of cells would be a release that no one paid for. `FILL_IN` marks the facts
that only a person can know, and a study is refused as long as it contains this mark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dpselect.study.schema import DEFAULT_FIGURES, FILL_IN
from dpselect.tables import Written

__all__ = ["DraftedColumn", "Facts", "draft_study", "guessed_columns"]

# whole words of names
_IDENTITY: Final = {
    "id",
    "pid",
    "uid",
    "uuid",
    "guid",
    "key",
    "name",
    "surname",
    "email",
    "mail",
    "phone",
    "ssn",
    "address",
    "url",
}
_PERSONS: Final = {"person", "user", "customer", "patient"}
"""Words before "id" in the name of a column that may say whose row it is."""
_DATE: Final = {"date", "timestamp", "datetime", "dob", "birthday", "born"}
_DATE_AT_THE_END: Final = {"at", "seen"}
"""As in created_at. A bare day or time is more often a number."""
_GUESS: Final = "a guess: its name has the word"
_DURATION: Final = {"duration", "elapsed", "interval"}
_TEXT: Final = {"text", "comment", "comments", "review", "message", "feedback", "remark", "remarks", "notes", "tweet"}


@dataclass(frozen=True)
class DraftedColumn:
    """A draft's facts of a column: its kind, and why.

    `kind` is number, boolean, date, duration, category, text or none, for a column that is left out. `bounds` and
    `categories` are words as someone typed them. If there are none, the draft has a blank.
    """

    name: str
    kind: str
    why: str = ""
    bounds: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether nothing of it is left to be said."""
        return bool(self.bounds or self.categories) or self.kind == "boolean"

    @property
    def facts(self) -> str:
        """The column's entry under `[data.columns]`."""
        if self.kind == "category":
            return f"{{ categories = {_list(self.categories)}, other = true }}"
        if self.kind == "text":
            return '{ kind = "text" }'
        if self.kind == "boolean":
            return '{ kind = "boolean", missing = "indicator" }'
        kind = "" if self.kind == "number" else f'kind = "{self.kind}", '
        return f'{{ {kind}bounds = {_list(self.bounds)}, missing = "indicator" }}'


@dataclass(frozen=True)
class Facts:
    """A person's facts of a table, in words as they were typed. If there are none, the draft has a blank."""

    epsilon: str = "3"
    classes: Sequence[str] = ()
    nominal_rows: str = ""
    task: str = ""
    label_bounds: Sequence[str] = ()


def guessed_columns(names: Sequence[str], types: Mapping[str, str]) -> list[DraftedColumn]:
    """A column for each name: by its type where the schema states one, else by its name."""
    return [_guess(name, types.get(name)) for name in names]


def _words(name: str) -> list[str]:
    parts = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return [word.lower() for word in re.split(r"[^A-Za-z0-9]+", parts) if word]


def _guess(name: str, kind: str | None) -> DraftedColumn:
    words = _words(name)
    if kind in (None, "category", "number") and (found := _first(words, _IDENTITY)):
        return DraftedColumn(name, "none", f"{_GUESS} {found!r}, which tells people apart")
    if kind in (None, "category") and (found := _first(words, _TEXT)):
        return DraftedColumn(name, "text", f"{_GUESS} {found!r}")
    if kind is not None:
        return DraftedColumn(name, kind, "by its type")
    if found := _first(words, _DATE) or _first(words[1:][-1:], _DATE_AT_THE_END):
        return DraftedColumn(name, "date", f"{_GUESS} {found!r}")
    if found := _first(words, _DURATION):
        return DraftedColumn(name, "duration", f"{_GUESS} {found!r}")
    return DraftedColumn(name, "number", "or: { categories = [...], other = true }")


def _first(words: Sequence[str], known: set[str]) -> str:
    """The first of the words that is known, or nothing."""
    return next((word for word in words if word in known), "")


def draft_study(source: str, label: str, columns: Sequence[DraftedColumn], facts: Facts, *, form: Written) -> str:
    """The study file (TOML), every key with what it means."""
    options = "".join(
        f"{key} = {_quoted(value) if isinstance(value, str) else value}\n"
        for key, value in vars(form).items()
        if value is not None
    )
    kept = [f"{_key(each.name)} = {each.facts}{_because(each)}" for each in columns if each.kind != "none"]
    left = [f"# {_key(each.name)}{_because(each)}" for each in columns if each.kind == "none"]
    return _TEMPLATE.format(
        name=_quoted(_called(source)),
        source=_quoted(source),
        options=options,
        label=_quoted(label),
        answers=_answers(facts),
        person=_person([each.name for each in columns]),
        metric=_quoted(DEFAULT_FIGURES["regression" if facts.task == "regression" else "classification"]),
        rare="." if facts.task == "regression" else _RARE,
        columns="\n".join(kept),
        left="\n".join(["# Left out:", *left, ""]) if left else "",
        epsilon=facts.epsilon,
        rows=_toml(facts.nominal_rows or FILL_IN),
        blank=FILL_IN,
    )


def _person(names: Sequence[str]) -> str:
    """A comment on the first column that is named like the id of a person. Nothing if none is."""
    known = [[who, "id"] for who in _PERSONS]
    named = next((name for name in names if _words(name) in known), None)
    return "" if named is None else _OF_PERSONS.format(name=_quoted(named))


def _called(source: str) -> str:
    """The name of the file or of the table in a database."""
    last = re.split(r"[/\\:#]", source)[-1]
    return last.partition(".")[0] or "study"


def _answers(facts: Facts) -> str:
    """The label's entry: its classes or its bounds, and if no one said which, how to write the other."""
    classes, bounds = f"classes = {_list(facts.classes)}", f"label_bounds = {_list(facts.label_bounds)}"
    if facts.task == "regression":
        bounds += "         # its least and its largest value, public"
        return f'task = "regression"                      # the label is a number\n{bounds}'
    classes += "             # every class that may occur, from the question that was asked"
    other = 'for a label that is a number, in place of classes: task = "regression" and label_bounds = [0, 100]'
    return classes if facts.task else f"{classes}\n# {other}"


def _list(words: Sequence[str]) -> str:
    return f"[{', '.join(map(_toml, words or (FILL_IN, FILL_IN)))}]"


def _toml(word: str) -> str:
    """Typed words as TOML: a number as it is, other words in quotation marks."""
    return word if re.fullmatch(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", word) else _quoted(word)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\u{ord(found[0]):04x}", escaped) + '"'


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _because(column: DraftedColumn) -> str:
    return f"  # {column.why}" if column.why else ""


_RARE: Final = """; where one class is rare, take
# metric = "balanced-accuracy", and give that class the weight of about one over its share of the rows, in a table
# [learner] with class_weights = { RARE = 10 }."""

_OF_PERSONS: Final = """\
# person = {name}  # whose row it is: a guess, by its name. If a person may have several rows, take the comment off,
# and put rows_per_person = 1 under [privacy], the most rows of a person that take part: persons are then protected.
"""

_TEMPLATE: Final = """\
# A draft, made from the names of the columns alone. No cell of the table was read.
#
# Nothing in this file may come from looking at the rows: not the bounds, not the categories, not the number of rows.
# Replace every "{blank}" by what is public without them: a questionnaire, a law, a standard, common sense.
# `dpselect tune --check THIS_FILE` names what is left, and says the price; nothing is read or spent.

name = {name}                          # what the report calls it

[data]
source = {source}
{options}label = {label}                          # what is to be predicted
{answers}
{person}
# For each feature its bounds (cells beyond them are clipped) or its categories. For dates and times put kind = "date"
# before the bounds, for spans of time kind = "duration". Free text is {{ kind = "text" }}, and yes or no is
# {{ kind = "boolean", true_values = ["yes"], false_values = ["no"] }}, without bounds. Delete the line of a column to
# take it out. missing = "indicator" adds a column that says where a cell was missing; missing = 40 puts 40 there.
# scale = "log" for amounts. Dates such as 31.12.2024, codes such as -99 and all else: see docs/how-to/data.md.
[data.columns]
{columns}
{left}
[privacy]
epsilon = {epsilon}                              # the total for all that is done, about every single row
delta = 1e-6                             # below one over the number of rows
adjacency = "add_or_remove_one"          # hides whether a row is in the table at all
nominal_rows = {rows}                    # about how many rows there are: a round public figure, not a count

# One model is trained on all rows, with settings by rule. To keep a fifth of the rows for a figure of how good it is,
# with noise and an interval, take the comment off{rare}
# [validation]
# metric = {metric}
# To search instead, say what for, as in docs/reference/study-file.md: [space] map = ...

# What the report and model-card.md say to people in your words; the source, the columns and who is protected they say
# by themselves. Take the comments off, and change the words.
# [card]
# purpose = "Tells ..., for ..."         # what the model is for, and for whom
# not_for = "Deciding about ..."         # what it must not be used for
# license = "cc-by-4.0"                  # under which licence it is given on

[output]
folder = "release"                       # the model, its report, its guarantee
"""
