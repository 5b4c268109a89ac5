"""The runs of a store as a table with a row for each run.

Rows lie in Parquet files, which pandas, polars and DuckDB read as a dataset. Every writer writes
its own files and never changes one, so that several may write at the same time. Missing rows are
made from their runs when the table is read.
"""

from __future__ import annotations

import io
import os
import socket
import time
import uuid
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from flashatlas._core import InputError
from flashatlas.files import write_whole
from flashatlas.results import arrow
from flashatlas.results.frame import Columns, columns_of, table_of
from flashatlas.results.result import Result
from flashatlas.sweep import lookups
from flashatlas.sweep.lookups import LookupResult
from flashatlas.sweep.store import Store
from flashatlas.untrusted import parquet_file

FILES_MAX = 64
"""Number of files of rows above which they are joined into one."""

BATCH = 500
"""Number of rows that a writer keeps before it writes them."""

BATCH_S = 5.0
"""Seconds after which a writer writes its rows in any case."""

FIRST = ("key", "made", "wall_s")
"""Leading columns of a row: the key of the run, its time (Unix time), and its duration."""


KINDS = {"key": pa.string(), "made": pa.float64()}
"""The types of the columns that identify runs."""


class Row:
    """A run as a row, small enough to be sent from one process to another."""

    def __init__(self, key: str, columns: Columns, wall_s: float | None) -> None:
        self.key, self.columns, self.wall_s = key, columns, wall_s
        self.made = time.time()


def row_of(key: str, result: Result | LookupResult) -> Row:
    """Return a run as a row."""
    columns = result.columns if isinstance(result, LookupResult) else columns_of(result.record)
    return Row(key, columns, result.wall_s)


class RowWriter:
    """A writer of rows in batches."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows: list[Row] = []
        self._begun = time.monotonic()

    def add(self, row: Row) -> None:
        """Keep a row, and write the kept rows if they are due."""
        self._rows.append(row)
        if len(self._rows) >= BATCH or time.monotonic() - self._begun > BATCH_S:
            self.flush()

    def flush(self) -> None:
        """Write all rows that were kept."""
        if self._rows:
            _write(self._store, _table(self._rows))
        self._rows, self._begun = [], time.monotonic()


def _table(rows: Sequence[Row]) -> pa.Table:
    first = [(name, [getattr(row, name) for row in rows], "name") for name in FIRST]
    return table_of([row.columns for row in rows], first)


def _write(store: Store, table: pa.Table) -> Path:
    """Write a file of rows without empty columns: such columns have no type."""
    kept = [f.name for f in table.schema if not pa.types.is_null(f.type)]
    buffer = io.BytesIO()
    pq.write_table(table.select(kept), buffer, compression="zstd")
    name = f"{time.time_ns():020d}-{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    path = store.root / "rows" / f"{name}.parquet"
    write_whole(path, buffer.getvalue())
    return path


def read(store: Store, columns: Collection[str] | None = None) -> pa.Table:
    """Return the rows of all runs of a store, in the order in which they were made.

    Args:
        store: The store.
        columns: The wanted columns beside :data:`FIRST`; all by default.

    Raises:
        InputError: A file of rows is damaged.

    """
    there = set(store.all_keys())
    table = _files(store, columns)
    known = set(table["key"].to_pylist())
    missing = sorted(there - known)
    if missing and (made := list(_made_again(store, missing))):
        _write(store, _table(made))
        table = _files(store, columns)
    keep = pc.is_in(table["key"], value_set=arrow.column(sorted(there), pa.string()))
    return _each_once(table.filter(keep))


def _each_once(table: pa.Table) -> pa.Table:
    """Return the first row of each run, in order of time."""
    if not table.num_rows:
        return table
    # not sort_by and group_by: they import pandas
    table = table.take(pc.sort_indices(table, sort_keys=[("made", "ascending")]))
    first: dict[str, int] = {}
    for at, key in enumerate(table["key"].to_pylist()):
        first.setdefault(key, at)
    if len(first) == table.num_rows:
        return table
    return table.take(arrow.column(list(first.values()), pa.int64()))


def _made_again(store: Store, keys: Iterable[str]) -> Iterable[Row]:
    for key in keys:
        if not store.has(key):
            continue
        yield row_of(key, lookups.load(store, key))


def _files(store: Store, columns: Collection[str] | None) -> pa.Table:
    """Return all files of rows as one table, and join many small files into one."""
    folder = store.root / "rows"
    for _ in range(10):  # another process may be joining them
        files = sorted(folder.glob("*.parquet")) if folder.is_dir() else []
        try:
            if len(files) > FILES_MAX:
                whole = _each_once(_joined([_read(file, None) for file in files], folder))
                _write(store, whole)
                for file in files:
                    file.unlink(missing_ok=True)
                return _chosen(whole, columns)
            return _joined([_read(file, columns) for file in files], folder)
        except FileNotFoundError:
            continue
    raise InputError(f"{folder}: the files of the folder keep changing; try again")


def _read(file: Path, columns: Collection[str] | None) -> pa.Table:
    try:
        table = parquet_file(file, None if columns is None else {*FIRST, *columns})
    except InputError as error:
        raise InputError(f"{error}; remove the file: rows are made again from runs") from error
    for name, kind in KINDS.items():
        if name not in table.column_names or table[name].type != kind:
            raise InputError(
                f"{file}: damaged: the file must have a column `{name}` of {kind}; remove "
                "the file: rows are "
                "made again from runs"
            )
    return table


def _chosen(table: pa.Table, columns: Collection[str] | None) -> pa.Table:
    if columns is None:
        return table
    return table.select([n for n in table.column_names if n in FIRST or n in columns])


def _joined(tables: Sequence[pa.Table], folder: Path) -> pa.Table:
    if not tables:
        return pa.table(
            {"key": arrow.column([], pa.string()), "made": arrow.column([], pa.float64())}
        )
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise InputError(
            f"{folder}: the tables of the folder do not fit each other: {error}; remove "
            "them: rows are made "
            "again from runs"
        ) from error
