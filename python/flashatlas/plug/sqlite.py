"""Transactions of SQLite, with a rollback journal or with a WAL."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from flashatlas.plug.client import Client, body

JOURNALS = ("delete", "truncate", "persist", "wal")


class Sqlite(Client):
    """Writer of transactions, each with a numbered row and the sum so far."""

    name = "sqlite"
    summary = "SQLite: a row and a sum in each transaction, with another journal each time"

    def prepare(self, folder: Path) -> None:
        """Make the tables."""
        with closing(self._open(folder, "delete")) as database, database:
            database.execute("CREATE TABLE log(n INTEGER PRIMARY KEY, body BLOB)")
            database.execute("CREATE TABLE ledger(rows, sum)")
            database.execute("INSERT INTO ledger VALUES(0, 0)")

    def write(
        self, folder: Path, first: int, rng: random.Random, acknowledge: Callable[[int], None]
    ) -> None:
        """Commit transactions until the drive no longer answers."""
        n = first
        try:
            with closing(self._open(folder, rng.choice(JOURNALS))) as database:
                while True:
                    with database:
                        database.execute("INSERT INTO log VALUES(?, ?)", (n, body(n)))
                        database.execute("UPDATE ledger SET rows = rows + 1, sum = sum + ?", (n,))
                    acknowledge(n)
                    n += 1
        except sqlite3.OperationalError:
            pass  # disk I/O error, or a database that is read-only now

    def found(self, folder: Path) -> tuple[set[int], str]:
        """Return the rows, and the faults that `integrity_check` and the sum show."""
        try:
            with closing(self._open(folder, None)) as database:
                (said,) = database.execute("PRAGMA integrity_check").fetchone()
                rows = database.execute("SELECT n, body FROM log").fetchall()
                (sums,) = database.execute("SELECT rows, sum FROM ledger").fetchall()
        except sqlite3.DatabaseError as error:
            return set(), f"SQLite: {error}"
        there = {n for n, content in rows if content == body(n)}
        if said != "ok":
            return there, f"integrity_check: {said}"
        if sums != (len(rows), sum(n for n, _ in rows)):
            return there, f"the ledger says {sums[0]} rows with the sum {sums[1]}"
        return there, ""

    def _open(self, folder: Path, journal: str | None) -> sqlite3.Connection:
        database = sqlite3.connect(folder / "ledger.db")
        try:
            # without exclusive locking, SQLite would map shared memory from the drive
            database.execute("PRAGMA locking_mode = exclusive")
            if journal is not None:
                database.execute(f"PRAGMA journal_mode = {journal}").fetchall()
            database.execute("PRAGMA synchronous = full")
            database.execute("PRAGMA wal_autocheckpoint = 50")
        except BaseException:
            database.close()
            raise
        return database
