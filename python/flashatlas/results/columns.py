"""Tables of a run. The columns come from the core, and become Arrow tables on request.

Most commands print a record and use no table, and importing Arrow takes longer than a short run.
The digest of the tables is therefore computed from the buffers of the core, without Arrow.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from flashatlas.results.bits import bits, numbers_there

if TYPE_CHECKING:
    import pyarrow as pa

Column = tuple[str, str, bytes, list[str]]
"""Name, kind (``int64``, ``float64`` or ``dictionary``), buffer, and the words of a dictionary."""

LARGE_BYTES = 4 << 20
"""Size of all float columns, in bytes, above which Arrow finds missing values faster."""

TYPES = {"int64": "int64", "float64": "double"}
"""Arrow's name for each kind of column."""

WORDS = "dictionary<values=string, indices=uint8, ordered=0>"
"""Arrow's name for the type of a column of words."""


class Tables(Mapping[str, "pa.Table"]):
    """Tables by name; a table is made at the first access, and its buffers are not copied."""

    def __init__(self, columns: Iterable[tuple[str, list[Column]]]) -> None:
        self._columns = dict(columns)
        self._made: dict[str, pa.Table] = {}

    def __getitem__(self, name: str) -> pa.Table:
        if name not in self._made:
            self._made[name] = table_of(self._columns[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def is_large(self) -> bool:
        """``True`` if Arrow, including its import, finds missing values faster than Python."""
        found = [data for table in self._columns.values() for _, kind, data, _ in table
                 if kind == "float64"]  # fmt: skip
        return sum(map(len, found)) > LARGE_BYTES

    def buffers(self, name: str) -> Iterator[tuple[str, str, int, list[bytes]]]:
        """Yield the name, Arrow type, length and Arrow buffers of each column of a table.

        A dictionary column has the buffers of the same values as a column of texts.
        """
        for column, kind, data, words in self._columns[name]:
            if kind == "int64":
                yield column, TYPES[kind], len(data) // 8, [b"", data]
            elif kind == "float64":
                yield column, TYPES[kind], len(data) // 8, [numbers_there(data), data]
            else:
                texts = [words[code].encode() for code in data]
                ends = array("i", accumulate(map(len, texts), initial=0))
                there = bits(True for _ in data)
                yield column, WORDS, len(data), [there, ends.tobytes(), b"".join(texts)]


def update(digest: hashlib._Hash, tables: Mapping[str, pa.Table]) -> None:
    """Add tables to a digest: names, types, lengths and buffers of their columns."""
    for name in sorted(tables):
        if isinstance(tables, Tables) and not tables.is_large:
            columns = tables.buffers(name)
        else:
            columns = _read(tables[name])
        for column, kind, length, buffers in columns:
            digest.update(f"{name}.{column} {kind} {length}\n".encode())
            for buffer in buffers:
                digest.update(buffer)


def _read(table: pa.Table) -> Iterator[tuple[str, str, int, list[Any]]]:
    """Yield the columns of an Arrow table as :meth:`Tables.buffers` does."""
    import pyarrow as pa  # noqa: PLC0415

    for column, values in zip(table.column_names, table.columns, strict=True):
        buffers: list[Any] = []
        for chunk in values.chunks:
            plain = chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk
            buffers += [buffer or b"" for buffer in plain.buffers()]
        yield column, str(values.type), len(values), buffers


def table_of(columns: Iterable[Column]) -> pa.Table:
    """Return columns of the core as an Arrow table."""
    import pyarrow as pa  # noqa: PLC0415

    return pa.table({name: _array(kind, data, words) for name, kind, data, words in columns})


def as_made(table: pa.Table) -> pa.Table:
    """Return a table from a file with the same buffers as the table that the core made.

    In a file, a column has a validity bit for each value, even if no value is missing.
    """
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        whole = column.combine_chunks()
        if pa.types.is_int64(whole.type):
            columns[name] = _array("int64", whole.buffers()[1].to_pybytes(), [])
        elif pa.types.is_float64(whole.type):
            nan = pc.fill_null(whole, float("nan"))
            columns[name] = _array("float64", nan.buffers()[1].to_pybytes(), [])
        else:
            columns[name] = whole
    return pa.table(columns)


def _array(kind: str, data: bytes, words: list[str]) -> pa.Array:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    from flashatlas.results import arrow  # noqa: PLC0415

    buffer = pa.py_buffer(data)
    if kind == "int64":
        return pa.Array.from_buffers(pa.int64(), len(data) // 8, [None, buffer])
    if kind == "float64":
        values = pa.Array.from_buffers(pa.float64(), len(data) // 8, [None, buffer])
        return pc.if_else(pc.is_nan(values), pa.nulls(1, pa.float64())[0], values)
    codes = pa.Array.from_buffers(pa.uint8(), len(data), [None, buffer])
    return pa.DictionaryArray.from_arrays(codes, arrow.column(words, pa.string()))
