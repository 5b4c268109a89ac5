"""Batches of RocksDB, which creates and removes files all the time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from flashatlas.plug.client import Client, body

LEDGER = b"ledger"
"""The key of the number of rows and their sum; the keys of rows are eight bytes."""


class RocksDB(Client):
    """Writer of batches, each of a numbered row and the sum so far, with a sync of the log.

    Memtables and files are small, so that flushes, compactions and new manifests are frequent.
    """

    name = "rocksdb"
    summary = "RocksDB: a row and a sum in each batch, with small files"

    def missing(self) -> str | None:
        """Return why RocksDB cannot run here, or ``None``."""
        if find_spec("rocksdict") is None:
            return "RocksDB is not installed (pip install rocksdict)"
        return None

    def prepare(self, folder: Path) -> None:
        """Make a database."""
        with _opened(folder) as database:
            _put(database, {LEDGER: _sum(0, 0)})

    def write(
        self, folder: Path, first: int, rng: random.Random, acknowledge: Callable[[int], None]
    ) -> None:
        """Write batches until the drive no longer answers."""
        n = first
        # RocksDB has one class for all errors; only the text shows an I/O error, which ends the
        # loop
        try:
            with _opened(folder) as database:
                rows, total = map(int, database[LEDGER].split())
                while True:
                    rows, total = rows + 1, total + n
                    _put(database, {n.to_bytes(8, "big"): body(n), LEDGER: _sum(rows, total)})
                    acknowledge(n)
                    n += 1
        except Exception as error:
            if not str(error).startswith(("IO error", "Corruption")):
                raise

    def found(self, folder: Path) -> tuple[set[int], str]:
        """Return the rows after RocksDB's recovery, and whether the sum holds."""
        try:
            with _opened(folder) as database:
                rows = {key: value for key, value in database.items() if key != LEDGER}
                ledger = database[LEDGER]
        except Exception as error:  # RocksDB has no class for I/O errors
            return set(), f"RocksDB: {error}"
        numbers = {int.from_bytes(key, "big"): value for key, value in rows.items()}
        there = {n for n, value in numbers.items() if value == body(n)}
        if ledger != _sum(len(numbers), sum(numbers)):
            return there, f"the ledger says {ledger.decode()} of {len(numbers)} rows"
        return there, ""


def _sum(rows: int, total: int) -> bytes:
    return f"{rows} {total}".encode()


@contextmanager
def _opened(folder: Path) -> Iterator[Any]:
    from rocksdict import Options, Rdict, WriteOptions  # noqa: PLC0415

    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_paranoid_checks(True)
    options.set_write_buffer_size(64 << 10)
    options.set_target_file_size_base(256 << 10)
    options.set_max_manifest_file_size(4 << 10)
    database = Rdict(str(folder / "rocks"), options)
    durable = WriteOptions()
    durable.sync = True
    database.set_write_options(durable)
    try:
        yield database
    finally:
        database.close()


def _put(database: Any, entries: dict[bytes, bytes]) -> None:
    from rocksdict import WriteBatch  # noqa: PLC0415

    batch = WriteBatch(raw_mode=True)
    for key, value in entries.items():
        batch.put(key, value)
    database.write(batch)
