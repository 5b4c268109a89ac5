"""Traces that are tables: Parquet and Arrow files, and tables in memory.

A table is read as delimited text whose first line names the columns. The rules for formats, units
and messages are therefore the same as for text; row ``n`` is line ``n + 1``.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import Any
from weakref import WeakValueDictionary

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from flashatlas._core import TABLE, InputError

ROWS = 65_536
"""Number of rows that are turned into text at a time."""

_HELD: WeakValueDictionary[str, pa.Table] = WeakValueDictionary()


def held(source: Any) -> pa.Table:
    """Return a table in memory as an Arrow table; a stream of batches is read to its end.

    Args:
        source: An Arrow table, a reader of batches, or an object that exports Arrow: a polars
            frame, a DuckDB relation.

    Raises:
        InputError: The source is of another type.

    """
    if isinstance(source, pa.Table):
        return source
    if not hasattr(source, "__arrow_c_stream__"):
        raise InputError(
            "a trace is a path, an Arrow table, or an object that exports Arrow; "
            f"this is of type {type(source).__name__}"
        )
    return pa.table(source)


def name_of(source: str | os.PathLike[str] | pa.Table) -> str:
    """Return the name of a trace for the core: a path, or the name of a table in memory.

    The name of a table is computed from its content, so that equal runs have equal records.
    """
    if not isinstance(source, pa.Table):
        return os.fspath(source)
    for name, table in _HELD.items():
        if table is source:
            return name
    state = hashlib.sha256(source.schema.serialize())
    for batch in source.to_batches():
        state.update(batch.serialize())
    name = f"{TABLE}{state.hexdigest()[:16]}"
    _HELD[name] = source
    return name


class Text:
    """A source of bytes that converts the batches of a table to delimited text."""

    def __init__(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        """Select the columns whose values are neither nested nor binary."""
        self._names = [field.name for field in schema if _is_plain(field.type)]
        self._batches = batches
        self._left = memoryview(("\t".join(_checked(name) for name in self._names) + "\n").encode())

    def __enter__(self) -> Text:
        return self

    def __exit__(self, *_: object) -> None:
        self._batches = iter(())

    def read(self, count: int) -> bytes:
        """Return the next bytes; empty at the end."""
        while not self._left:
            batch = next(self._batches, None)
            if batch is None:
                return b""
            self._left = memoryview(self._text(batch))
        piece, self._left = self._left[:count], self._left[count:]
        return bytes(piece)

    def _text(self, batch: pa.RecordBatch) -> bytes:
        table = pa.Table.from_batches([batch]).select(self._names)
        for at, field in enumerate(table.schema):
            column = table.column(at)
            if pa.types.is_dictionary(field.type):
                column = pa.chunked_array([_decoded(chunk) for chunk in column.chunks])
            if pa.types.is_string_view(column.type):
                column = column.cast(pa.string())
            table = table.set_column(at, field.name, column)
        sink = pa.BufferOutputStream()
        options = pa.csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
        pa.csv.write_csv(table, sink, options)
        return sink.getvalue().to_pybytes()


def of_text(columns: str) -> str:
    """Return a format ``columns:…``, completed for the text into which a table is converted."""
    own = {"delimiter": "tab", "header": "1"}
    given = {setting.partition("=")[0].strip() for setting in columns.partition(":")[2].split(",")}
    return ",".join([columns, *(f"{k}={v}" for k, v in own.items() if k not in given)])


def _decoded(chunk: pa.DictionaryArray) -> pa.Array:
    words = chunk.dictionary
    if pa.types.is_string_view(words.type):
        words = words.cast(pa.string())
    return pa.DictionaryArray.from_arrays(chunk.indices, words).dictionary_decode()


def open_text(path: str) -> Text:
    """Return the text of a table, given the name of a table in memory or the path of a file.

    Raises:
        InputError: The file is damaged, or the table is not in this process's memory.

    """
    if path.startswith(TABLE):
        table = _HELD.get(path)
        if table is None:
            raise InputError(
                "the trace was a table in the memory of another process: give the table again"
            )
        return Text(table.schema, iter(table.to_batches(ROWS)))
    try:
        with open(path, "rb") as file:
            head = file.read(6)
        if head.startswith(b"PAR1"):
            parquet = pa.parquet.ParquetFile(path)
            return Text(parquet.schema_arrow, parquet.iter_batches(ROWS))
        source = pa.memory_map(path)
        if head.startswith(b"ARROW1"):
            reader = pa.ipc.open_file(source)
            batches = (reader.get_batch(at) for at in range(reader.num_record_batches))
            return Text(reader.schema, batches)
        stream = pa.ipc.open_stream(source)
        return Text(stream.schema, iter(stream))
    except pa.ArrowException as error:
        raise InputError(f"the table cannot be read: {error}") from error


def _is_plain(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_binary(kind))


def _checked(name: str) -> str:
    if "\t" in name or "\n" in name:
        raise InputError(f"column {name!r}: names with tabs or line ends cannot be read")
    return name
