"""SQLite on a simulated drive, with a power failure in every flash operation.

A load of transactions runs on a database on the drive. The power fails in each flash operation in
turn. Then the drive's scheme and SQLite recover. Afterwards:

- `PRAGMA integrity_check` must find no error,
- every transaction whose COMMIT had returned must exist, and
- the tables must have their content after a whole number of transactions.

    pip install apsw
    python examples/sqlite_cuts.py --journal wal --set ftl.scheme=fast --one-in 5

With `--recoveries N` the power fails again in N operations of each recovery. With `--ignore-flush`
the drive ignores FLUSH, and transactions are lost: this shows that the check can fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from every_cut import EveryCut, carry_out, needed
from flashatlas import Device, PowerLost

apsw = needed("apsw", "apsw")

SECTOR = 512
HEADER = 2 * SECTOR
"""Bytes before each file that record whether it exists, and its length."""
THERE = b"atlas file"


class Files(apsw.VFS):
    """A database, its journal and its WAL in three extents of a drive, as a VFS of SQLite.

    As on a file system, the length of a file becomes durable together with its content (`xSync`).
    The removal of a file is durable immediately.
    """

    def __init__(self, drive: Device, name: str) -> None:
        super().__init__(name, "")
        self.drive = drive
        third = drive.capacity_bytes // 4 // drive.unit_bytes * drive.unit_bytes
        self.extents = {"db": (0, 2 * third), "db-journal": (2 * third, third)}
        self.extents["db-wal"] = (3 * third, third)

    def length(self, name: str) -> int | None:
        """Return the durable length of a file, or `None` if there is no such file."""
        header = self.drive.read(self.extents[name][0], SECTOR)
        if not header.startswith(THERE):
            return None
        return int.from_bytes(header[len(THERE) : len(THERE) + 8], "little")

    def keep_length(self, name: str, length: int | None) -> None:
        """Set the length of a file durably; remove the file if the length is ``None``."""
        said = b"" if length is None else THERE + length.to_bytes(8, "little")
        self.drive.write(self.extents[name][0], said.ljust(SECTOR, b"\0"), fua=True)

    def xOpen(self, name, flags) -> apsw.VFSFile:  # noqa: D102
        return File(self, name.filename() if isinstance(name, apsw.URIFilename) else name)

    def xFullPathname(self, name: str) -> str:  # noqa: D102
        return name

    def xAccess(self, pathname: str, flags: int) -> bool:  # noqa: D102
        return self.length(pathname) is not None

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: D102
        if self.length(filename) is not None:
            self.keep_length(filename, None)

    def xRandomness(self, numbytes: int) -> bytes:  # noqa: D102
        return bytes(numbytes)  # all runs must do the same


class File(apsw.VFSFile):
    """One of the files."""

    def __init__(self, files: Files, name: str) -> None:
        self.files, self.drive, self.name = files, files.drive, name
        start, self.room = files.extents[name]
        self.start = start + HEADER
        self.durable = files.length(name)
        self.length = self.durable or 0

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: D102
        amount = max(0, min(amount, self.length - offset))
        first = offset // SECTOR * SECTOR
        end = -(-(offset + amount) // SECTOR) * SECTOR
        return self.drive.read(self.start + first, end - first)[offset - first :][:amount]

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: D102
        end = offset + len(data)
        first, last = offset // SECTOR * SECTOR, -(-end // SECTOR) * SECTOR
        if HEADER + last > self.room:
            raise apsw.FullError(f"{self.name} has no room")
        if (first, last) != (offset, end):
            around = bytearray(self.drive.read(self.start + first, last - first))
            around[offset - first : end - first] = data
            data = bytes(around)
        self.drive.write(self.start + first, data)
        self.length = max(self.length, end)

    def xTruncate(self, newsize: int) -> None:  # noqa: D102
        self.length = newsize

    def xSync(self, flags: int) -> None:  # noqa: D102
        self.drive.flush()
        if self.durable != self.length:
            self.files.keep_length(self.name, self.length)
            self.durable = self.length

    def xFileSize(self) -> int:  # noqa: D102
        return self.length

    def xSectorSize(self) -> int:  # noqa: D102
        return SECTOR

    def xDeviceCharacteristics(self) -> int:  # noqa: D102
        return apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE

    def xFileControl(self, op: int, ptr: int) -> bool:  # noqa: D102
        return False

    def xCheckReservedLock(self) -> bool:  # noqa: D102
        return False

    def xLock(self, level: int) -> None:
        """Do nothing: no other connection exists."""

    def xUnlock(self, level: int) -> None:
        """Do nothing: no other connection exists."""

    def xClose(self) -> None:
        """Do nothing: there is nothing to close."""


JOURNALS = ("delete", "truncate", "persist", "wal")


@contextmanager
def opened(drive: Device, journal: str) -> Iterator[apsw.Connection]:
    """Yield the database on a drive; SQLite repairs it first if needed."""
    files = Files(drive, "flashatlas")
    database = None
    try:
        database = apsw.Connection("db", vfs="flashatlas")
        for said in (
            "page_size=2048",
            "locking_mode=exclusive",
            f"journal_mode={journal}",
            "synchronous=full",
            "wal_autocheckpoint=24",
        ):
            database.execute(f"PRAGMA {said}").fetchall()
        yield database
    finally:
        if database is not None:
            database.close(force=True)
        files.unregister()


def blob(number: int) -> bytes:
    """Return the content of a row."""
    return bytes([number % 251 + 1]) * (300 + 700 * (number % 4))


def after(transaction: int) -> dict[int, bytes]:
    """Return the rows after ``transaction`` transactions."""
    rows: dict[int, bytes] = {}
    for n in range(1, transaction + 1):
        rows[n] = blob(n)
        if n > 3:
            rows[n - 3] = blob(100 + n)
        rows.pop(n - 6, None)
    return rows


def transactions(database: apsw.Connection, count: int) -> Iterator[int]:
    """Make the tables and carry out ``count`` transactions; yield 0, then each after its COMMIT."""
    with database:
        database.execute("CREATE TABLE t(k INTEGER PRIMARY KEY, v BLOB)")
        database.execute("CREATE TABLE ledger(n, sum)")
        database.execute("INSERT INTO ledger VALUES(0, 0)")
    yield 0
    for n in range(1, count + 1):
        with database:
            database.execute("INSERT INTO t VALUES(?, ?)", (n, blob(n)))
            database.execute("UPDATE t SET v = ? WHERE k = ?", (blob(100 + n), n - 3))
            database.execute("DELETE FROM t WHERE k = ?", (n - 6,))
            database.execute("UPDATE ledger SET n = ?, sum = sum + ?", (n, n))
        yield n


def found(database: apsw.Connection) -> int:
    """Return the number of transactions in a database; -1 if it has no tables yet.

    Raises:
        AssertionError: The database is damaged, or a transaction exists in part.

    """
    (said,) = database.execute("PRAGMA integrity_check").fetchone()
    if said != "ok":
        raise AssertionError(f"integrity_check: {said}")
    if not database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'ledger'").fetchall():
        return -1
    ((n, total),) = database.execute("SELECT n, sum FROM ledger").fetchall()
    rows = dict(database.execute("SELECT k, v FROM t").fetchall())
    if rows != after(n) or total != n * (n + 1) // 2:
        raise AssertionError(f"the tables have another content than after {n} transactions")
    return n


@dataclass
class Cuts(EveryCut):
    """Power failures during a load of transactions."""

    journal: str = "delete"

    def load(self, drive: Device) -> int:
        """Run the load until it ends or the power fails; return the last transaction."""
        last = -1
        with suppress(PowerLost), opened(drive, self.journal) as database:
            for number in transactions(database, self.count):
                last = number
        return last

    def there(self, drive: Device) -> set[int]:
        """Return the number of transactions that survived."""
        try:
            with opened(drive, self.journal) as database:
                return {found(database)}
        except apsw.Error as error:
            raise AssertionError(error) from error


if __name__ == "__main__":
    carry_out(Cuts, __doc__, {"journal": JOURNALS})
