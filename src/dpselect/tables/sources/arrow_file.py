"""Parquet files and folders, and Feather files: a batch of rows at a time, in the types that they are stored in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from dpselect.errors import ArgumentError, ContentError, missing_extra
from dpselect.numerics.moments import FIRST, LAST
from dpselect.tables.number_blocks import block_of
from dpselect.tables.table import SOURCES, Origin, Table

__all__ = ["open_feather", "open_parquet"]

_ROWS = 1 << 17


@SOURCES.register(".parquet")
def open_parquet(origin: Origin) -> Table:
    """A Parquet file, or a folder of them. Needs pyarrow.

    The first file of a folder has the columns. A column of numbers whose files have several types is one of float64, or
    of integers if all are. Time stamps of 96 bits, as Spark and Impala write them, are in microseconds.
    """
    try:
        import pyarrow as pa
        from pyarrow import dataset, parquet
    except ImportError:
        raise missing_extra("parquet", "reading Parquet") from None
    files, schema = None, None
    origin.path.stat()  # for an error that names it
    with suppress(pa.ArrowException, OSError, UnicodeDecodeError):
        files = dataset.dataset(str(origin.path), format=_format("us"))
        schema = _common(_said(files.schema), [_said(each.physical_schema) for each in files.get_fragments()])
    if files is None or schema is None:
        with suppress(pa.ArrowException, OSError, UnicodeDecodeError):  # two columns of one name are no data set
            names = parquet.read_schema(origin.path).names
            Table(tuple(names), lambda *_: iter([]), where=str(origin)).check(names)
        raise _unreadable(origin.path, "Parquet file", b"PAR1")

    def batches(wanted: Sequence[str]) -> Iterator[Any]:
        for fragment in files.get_fragments():
            yield from _of_fragment(fragment, list(wanted))

    return _table(origin, schema, batches)


@SOURCES.register(".feather")
def open_feather(origin: Origin) -> Table:
    """A Feather file (version 2, the file format of Arrow). Needs pyarrow."""
    try:
        import pyarrow as pa
    except ImportError:
        raise missing_extra("parquet", "reading Feather") from None
    schema: Any = None
    with suppress(pa.ArrowException, UnicodeDecodeError), pa.OSFile(str(origin.path)) as file:
        schema = _said(pa.ipc.open_file(file).schema)
    if schema is None:
        raise _unreadable(origin.path, "Feather file (version 2)", b"ARROW1")

    def batches(wanted: Sequence[str]) -> Iterator[Any]:
        places = [schema.names.index(name) for name in wanted]
        options = pa.ipc.IpcReadOptions(included_fields=places, use_threads=False)
        with pa.OSFile(str(origin.path)) as file:
            reader = pa.ipc.open_file(file, options=options)
            for place in range(reader.num_record_batches):
                batch = reader.get_batch(place)
                for column in batch.columns:
                    _check(column)
                yield batch

    return _table(origin, schema, batches)


def _said(schema: Any) -> Any:
    """A schema whose names are text. Raises `UnicodeDecodeError` for a damaged one."""
    _ = schema.names, list(map(str, schema.types))
    return schema


def _common(first: Any, schemas: Sequence[Any]) -> Any:
    """The first schema, with a type of each column of numbers in which the numbers of all files are."""
    import pyarrow as pa
    import pyarrow.types as of

    for place, field in enumerate(first):
        kinds = {each.field(field.name).type for each in schemas if each.names.count(field.name) == 1} - {pa.null()}
        if _kind(field.type) == "number" and len(kinds) > 1:
            whole = all(of.is_integer(kind) or of.is_boolean(kind) for kind in kinds)
            first = first.set(place, field.with_type(pa.int64() if whole else pa.float64()))
    return first


def _check(column: Any) -> None:
    """Raise `ArrowInvalid` for a damaged column: Arrow would follow its offsets out of the memory that it has.

    No cell of a sound one makes it raise: text is checked as bytes, which may be none in UTF-8.
    """
    import pyarrow as pa
    import pyarrow.types as of

    kind = column.type
    if of.is_dictionary(kind):
        _check(column.dictionary)
        pa.DictionaryArray.from_arrays(column.indices, column.dictionary, safe=True)
    elif of.is_string(kind) or of.is_binary(kind):
        column.view(pa.binary()).validate(full=True)
    elif of.is_large_string(kind) or of.is_large_binary(kind):
        column.view(pa.large_binary()).validate(full=True)
    elif of.is_string_view(kind) or of.is_binary_view(kind):
        column.view(pa.binary_view()).validate(full=True)
    else:
        column.validate()


def _unreadable(path: Path, what: str, mark: bytes) -> ContentError:
    """A file of this kind has its mark at both ends."""
    if path.is_file():
        with path.open("rb") as file:
            if file.read(len(mark)) == mark:
                return ContentError(f"{path.name} is truncated or damaged: it begins as a {what} does; copy it again")
    name = path.resolve().name
    if path.is_dir():
        return ContentError(f"{name} is a folder and must hold the Parquet files of one table")
    return ContentError(f"{name} is not a readable {what}")


def _table(origin: Origin, schema: Any, batches: Callable[[Sequence[str]], Iterator[Any]]) -> Table:
    import pyarrow as pa

    def empty(name: str) -> Any:
        kind = schema.field(name).type
        if _kind(kind) == "nested":
            raise ArgumentError(f"column: {name!r} of {origin} holds {kind}: store its parts as columns of their own")
        return pa.array([], kind)

    def chunks(wanted: Sequence[str], numbers: Collection[str]) -> Iterator[dict[str, Any]]:  # noqa: ARG001
        yield {name: empty(name) for name in wanted}
        with suppress(pa.ArrowException, OSError):  # whose message may quote the data
            for batch in batches(wanted):
                yield {name: batch.column(name) for name in wanted}
            return
        raise ContentError(f"the columns of {origin.path.name} cannot be read: it is truncated or damaged")

    types = {column.name: _kind(column.type).replace("nested", "none") for column in schema}
    return Table(tuple(schema.names), chunks, types, empty)


def _format(unit: str) -> Any:
    """Arrow's reader of Parquet, with this unit for time stamps of 96 bits; it would wrap in nanoseconds."""
    from pyarrow import dataset

    return dataset.ParquetFileFormat(read_options=dataset.ParquetReadOptions(coerce_int96_timestamp_unit=unit))


def _of_fragment(fragment: Any, wanted: list[str]) -> Iterator[Any]:
    """One file, in its own types: Arrow's conversion to another file's fails for some values.

    Time stamps of 96 bits are read in milliseconds too, which hold all of them, where microseconds have wrapped around.
    """
    import pyarrow as pa

    coarse = _format("ms").make_fragment(fragment.path, fragment.filesystem)
    fine, plain = fragment.physical_schema, coarse.physical_schema
    there = [name for name in wanted if name in fine.names]
    wrapped = [name for name in there if fine.field(name).type != plain.field(name).type]
    guards: Any = _batches(coarse, wrapped) if wrapped else repeat(None)
    for batch, guard in zip(_batches(fragment, there), guards, strict=False):
        columns = {name: batch.column(name) for name in there}
        columns |= {name: _cut_off(columns[name], guard.column(name)) for name in wrapped}
        columns |= {name: pa.nulls(batch.num_rows) for name in wanted if name not in columns}
        yield pa.record_batch([columns[name] for name in wanted], names=wanted)


def _batches(fragment: Any, columns: list[str]) -> Iterator[Any]:
    from pyarrow import dataset

    # buffered: by default a whole column of a row group is held, and files may be one row group
    buffered = dataset.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
    yield from fragment.to_batches(columns=columns, batch_size=_ROWS, batch_readahead=1, fragment_scan_options=buffered)


def _cut_off(fine: Any, coarse: Any) -> Any:
    """Microseconds, with the ends of their range for what is beyond it in milliseconds."""
    import pyarrow as pa

    (ticks, present), (guard, _) = block_of(fine), block_of(coarse)
    ticks, guard, reach = ticks.view(np.int64), guard.view(np.int64), LAST // 1000
    found = np.where(guard >= reach, LAST, np.where(guard <= -reach, FIRST, ticks))
    return pa.array(found, pa.int64(), mask=None if present is None else ~present).view(fine.type)


def _kind(kind: Any) -> str:
    """What a type holds; "none" for one whose cells are not numbers, dates or texts, "nested" for one with parts."""
    import pyarrow.types as of

    kinds = {
        "number": (of.is_integer, of.is_floating, of.is_decimal, of.is_boolean),
        "date": (of.is_date, of.is_timestamp),
        "duration": (of.is_duration,),
        "nested": (of.is_nested,),
        "category": (of.is_string, of.is_large_string, of.is_dictionary),
    }
    return next((name for name, tests in kinds.items() if any(test(kind) for test in tests)), "none")
