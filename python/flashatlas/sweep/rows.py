"""The runs of a store as a table, a row a run.

Rows lie in Parquet files, so that pandas, polars and DuckDB read them as a dataset. Every writer
writes files of its own, and never changes one: many may write at once. Rows follow from runs. Those
that a writer did not come to write are made when the table is read.
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

from flashatlas import arrow
from flashatlas._core import InputError
from flashatlas.files import write_whole
from flashatlas.frame import Columns, columns_of, table_of
from flashatlas.result import Result
from flashatlas.sweep import lookups
from flashatlas.sweep.lookups import LookupResult
from flashatlas.sweep.store import Store
from flashatlas.untrusted import parquet_file

FILES_MAX = 64
"""Files of rows from which on they are made one."""

BATCH = 500
"""Runs whose rows a writer keeps before it writes them."""

BATCH_S = 5.0
"""Seconds after which it writes them all the same."""

FIRST = ("key", "made", "wall_s")
"""Columns of a row beside those of a frame: the run, when it was made (Unix time), and how long it
took."""


KINDS = {"key": pa.string(), "made": pa.float64()}
"""The types of the columns that tell runs apart."""


class Row:
    """A run as a row, small enough to be sent from one process to another."""

    def __init__(self, key: str, columns: Columns, wall_s: float | None) -> None:
        self.key, self.columns, self.wall_s = key, columns, wall_s
        self.made = time.time()


def row_of(key: str, result: Result | LookupResult) -> Row:
    """A run as a row."""
    columns = result.columns if isinstance(result, LookupResult) else columns_of(result)
    return Row(key, columns, result.wall_s)


class RowWriter:
    """Writes rows in batches."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows: list[Row] = []
        self._begun = time.monotonic()

    def add(self, row: Row) -> None:
        """Keep a row, and write those that are due."""
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
    """Write a file of rows; columns without a value are left out: they have no type."""
    kept = [f.name for f in table.schema if not pa.types.is_null(f.type)]
    buffer = io.BytesIO()
    pq.write_table(table.select(kept), buffer, compression="zstd")
    name = f"{time.time_ns():020d}-{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    path = store.root / "rows" / f"{name}.parquet"
    write_whole(path, buffer.getvalue())
    return path


def read(store: Store, columns: Collection[str] | None = None) -> pa.Table:
    """The rows of all runs of a store, in the order in which they were made.

    Args:
        store: The store.
        columns: Those that are wanted, beside :data:`FIRST`; all by default.

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
    """The first row of each run, in order of time."""
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
    """All files of rows as one table; many small ones are made one large on the way."""
    folder = store.root / "rows"
    for _ in range(10):  # somebody may be making them one
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
    raise InputError(f"{folder}: its files keep changing; try again")


def _read(file: Path, columns: Collection[str] | None) -> pa.Table:
    try:
        table = parquet_file(file, None if columns is None else {*FIRST, *columns})
    except InputError as error:
        raise InputError(f"{error}; rows follow from runs: remove it") from error
    for name, kind in KINDS.items():
        if name not in table.column_names or table[name].type != kind:
            raise InputError(
                f"{file}: damaged: expected a column `{name}` of {kind}; rows follow from runs: "
                "remove it"
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
            f"{folder}: its tables do not fit each other: {error}; rows follow from runs: remove "
            "them"
        ) from error
