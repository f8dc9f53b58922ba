"""`[data]` of a study file, and what all of its tables have in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from dpselect.study.columns.cells import CellKeys
from dpselect.study.columns.column import Column, differ
from dpselect.study.target import Target
from dpselect.tables import Written
from dpselect.tables.kinds.declared import Scalar
from dpselect.tables.numbers import restated

__all__ = ["CLASHES", "KEYS_ALONE", "Clashes", "Data", "StudyTable"]

KEYS_ALONE: Final = {"clashes": False}
"""As the context of a validation: what goes together is not looked at."""
CLASHES: Final = "clashes"
"""The type of an error of several keys of one table; its context lists them, `of`."""
Clashes = Iterator[tuple[str, str]]


class StudyTable(BaseModel):
    """A table of a study file: unknown keys and keys that do not go together are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True, use_attribute_docstrings=True)

    @model_validator(mode="after")
    def _consistent(self, info: ValidationInfo) -> Self:
        clashes = [] if info.context == KEYS_ALONE else list(self._clashes())
        if clashes:
            lines = "; ".join(what for _, what in clashes)
            raise PydanticCustomError(CLASHES, "{lines}", {"lines": lines, "of": clashes})
        return self

    def _clashes(self) -> Clashes:
        """What does not go together: (the key, what is wrong with it)."""
        return iter(())


def _bounds(ends: tuple[float, float]) -> tuple[float, float]:
    Column(bounds=ends)
    return ends


class Data(StudyTable):
    """`[data]`: where the rows are, which column is the label, and public facts about the columns."""

    source: str
    """A .csv, .tsv, .parquet, .feather, .jsonl, .xlsx or .npz file, or a folder of Parquet files, relative to the study
    file; the URL of a database (`sqlite:///FILE`, `duckdb:///FILE`, `postgresql://...`), with `table`; or
    `sklearn:NAME` (`sklearn:NAME/train` and `sklearn:NAME/test`: its parts)."""
    table: str | None = None
    """The table of a database, or a view."""
    sheet: str | None = None
    """The sheet of a workbook; by default the first."""
    delimiter: str | None = None
    """Of a CSV file; by default a comma."""
    encoding: str | None = None
    """Of a CSV file; by default UTF-8."""
    decimal: str | None = None
    """Of numbers in a CSV file: "." (the default) or ","."""
    thousands: str | None = None
    """Between groups of three digits in a CSV file: ",", ".", " " or "'"; by default nothing."""
    skip_rows: int | None = None
    """So many lines stand before the header of a CSV file."""
    label: str = "target"
    """The label column."""
    label_cells: CellKeys | None = None
    """How the label's cells are read, by the keys of a column: { kind = "boolean", true_values = ["J"], ... }."""
    task: Literal["classification", "regression"] = "classification"
    """Whether the label is one of some classes, or a number."""
    classes: Annotated[tuple[Scalar, ...], Field(min_length=2)] | None = None
    """The classes of the label of a classification, public."""
    class_shares: dict[str, Annotated[float, Field(ge=0, le=1)]] | None = None
    """How large a part of the rows the classes have, where that is public: --check and the report then say what is
    reached by a constant prediction."""
    label_bounds: tuple[float, float] | None = None
    """The bounds of the label of a regression, public; labels beyond are clipped."""
    bounds: Annotated[tuple[float, float], AfterValidator(_bounds)] | None = None
    """Bounds of every feature without an entry in `columns`, public."""
    columns: dict[str, Column] = Field(default_factory=dict)
    """What is public about single features. Without `bounds`, other columns are left out."""
    row_key: str | None = None
    """A column that tells rows apart; by default their content does."""
    person: str | None = None
    """The column that says whose row it is, with privacy.rows_per_person. It is no feature."""
    count_cells: bool = True
    """Count, with noise and within the total, the cells of each column that are clipped, missing or unreadable. Needs
    privacy.epsilon."""
    most_unreadable: Annotated[float, Field(ge=0, le=1)] = 0.2
    """If the counts show that a larger share of a column cannot be read, nothing is trained."""
    like: str | None = None
    """A public sample of the table, of the kinds that `source` may be. It is read before anything is charged, and
    refused if one of its columns cannot be read as declared."""

    @property
    def form(self) -> Written:
        """How the source is to be read."""
        return Written(**self.model_dump(include={part.name for part in fields(Written)}))

    @property
    def target(self) -> Target:
        """What is public about the label."""
        cells = None if self.label_cells is None else self.label_cells.declared
        if cells is not None and cells.kind == "number" and self.task == "classification":
            cells = replace(cells, kind="category")
        return Target(self.classes or (), self.label_bounds, cells)

    def _clashes(self) -> Clashes:
        if self.bounds is None and not self.columns:
            yield (
                "bounds",
                (
                    "give bounds (for every feature) or a [data.columns] table: they must be public. Write "
                    "bounds = [0, 100]"
                ),
            )
        if self.label in self.columns:
            yield "label", "the label must not be among the feature columns"
        if self.person is not None and self.person in (self.label, *self.columns):
            yield "person", "the column of persons must be neither the label nor a feature"
        if self.person is not None and self.row_key is not None:
            yield "row_key", "leave it out: with person all rows of a person are in one part"
        if self.classes is not None and not differ(self.classes):
            yield "classes", "classes must differ; 1, 1.0, '1' and true are the same"
        yield from self._label_clashes()
        yield from self._written_clashes()

    def _written_clashes(self) -> Clashes:
        """Declared texts that are numbers by the separators of the file: cells are compared with a decimal point."""
        missing = None if self.label_cells is None else self.label_cells.missing_values
        declared = {"classes": self.classes, "label_cells.missing_values": missing}
        for name, column in self.columns.items():
            declared[f"columns.{name}.categories"] = column.categories
            declared[f"columns.{name}.missing_values"] = column.missing_values
        for key, values in declared.items():
            texts = [value for value in values or () if isinstance(value, str)]
            plain = restated(texts, self.decimal or ".", self.thousands or "", strict=False)
            for text, number in zip(texts, plain, strict=True):
                if text != number:
                    yield key, f"{text!r} is the number {number} by data.decimal and data.thousands: write {number}"

    def _label_clashes(self) -> Clashes:
        if self.label_cells is None:
            return
        kind = self.label_cells.kind
        kinds = ("number", "integer", "duration") if self.task == "regression" else ("number", "category", "boolean")
        if kind not in kinds:
            yield "label_cells", f"the kind of a label for {self.task} must be {', '.join(kinds)}"
        if kind == "boolean" and sorted(self.label_cells.declared.read(self.classes or ())) != [0.0, 1.0]:
            yield "classes", "of a boolean label must be its two values, such as [false, true]"
