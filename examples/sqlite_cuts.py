"""SQLite on a simulated drive, with the power cut at every operation of the flash.

A load of transactions runs on a database that stands on the drive. The power fails at each
operation of the flash in turn; the drive is mounted by its scheme's own recovery, SQLite by its
own, and then:

- `PRAGMA integrity_check` finds nothing,
- every transaction whose COMMIT had returned is there, and
- the tables are those after some number of whole transactions.

    pip install apsw
    python examples/sqlite_cuts.py --journal wal --set ftl.scheme=fast --one-in 5

`--recoveries N` cuts the power again while it recovers: at N operations of each. With
`--ignore-flush` the drive lies, and transactions are lost: the check can fail.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import apsw
from flashatlas import Device, PowerLost

SECTOR = 512
HEADER = 2 * SECTOR
"""In front of each file: whether it is there, and how long it is."""
THERE = b"atlas file"


class Files(apsw.VFS):
    """A database, its journal and its WAL in three extents of a drive, as a VFS of SQLite.

    A length becomes durable with the file (`xSync`), as on a file system; removing a file is
    durable at once.
    """

    def __init__(self, drive: Device, name: str) -> None:
        super().__init__(name, "")
        self.drive = drive
        third = drive.capacity_bytes // 4 // drive.unit_bytes * drive.unit_bytes
        self.extents = {"db": (0, 2 * third), "db-journal": (2 * third, third)}
        self.extents["db-wal"] = (3 * third, third)

    def length(self, name: str) -> int | None:
        """The durable length of a file; `None` where it is not."""
        header = self.drive.read(self.extents[name][0], SECTOR)
        if not header.startswith(THERE):
            return None
        return int.from_bytes(header[len(THERE) : len(THERE) + 8], "little")

    def keep_length(self, name: str, length: int | None) -> None:
        """Make a file so long, or remove it, durably."""
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
        return bytes(numbytes)  # every run does the same


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
        """Nobody else is here."""

    def xUnlock(self, level: int) -> None:
        """Nobody else is here."""

    def xClose(self) -> None:
        """There is nothing to close."""


JOURNALS = ("delete", "truncate", "persist", "wal")


@contextmanager
def opened(drive: Device, journal: str) -> Iterator[apsw.Connection]:
    """The database on a drive; SQLite repairs it first where that is needed."""
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
    """What a row holds."""
    return bytes([number % 251 + 1]) * (300 + 700 * (number % 4))


def after(transaction: int) -> dict[int, bytes]:
    """The rows after so many transactions."""
    rows: dict[int, bytes] = {}
    for n in range(1, transaction + 1):
        rows[n] = blob(n)
        if n > 3:
            rows[n - 3] = blob(100 + n)
        rows.pop(n - 6, None)
    return rows


def transactions(database: apsw.Connection, count: int) -> Iterator[int]:
    """Make the tables (0), then carry out so many; each is yielded once its COMMIT has returned."""
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
    """How many transactions a database holds, -1 before the first; all of each, or it raises."""
    (said,) = database.execute("PRAGMA integrity_check").fetchone()
    if said != "ok":
        raise AssertionError(f"integrity_check: {said}")
    if not database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'ledger'").fetchall():
        return -1
    ((n, total),) = database.execute("SELECT n, sum FROM ledger").fetchall()
    rows = dict(database.execute("SELECT k, v FROM t").fetchall())
    if rows != after(n) or total != n * (n + 1) // 2:
        raise AssertionError(f"the tables are not those after {n} transactions")
    return n


@dataclass
class Cuts:
    """Power failures under the load, and what was found after them."""

    journal: str = "delete"
    count: int = 12
    """Transactions of the load."""
    one_in: int = 1
    recoveries: int = 0
    """Operations of each recovery in which the power fails once more."""
    options: dict[str, Any] = field(default_factory=dict)
    """Of :class:`flashatlas.Device`."""
    operations: int = 0
    erases: int = 0
    """Of the drive, in filling it and in the load."""
    cuts: int = 0
    in_recovery: int = 0
    acknowledged: int = 0
    """Transactions whose COMMIT had returned, over all cuts."""
    wrong: list[str] = field(default_factory=list)

    def load(self, drive: Device) -> int:
        """Run until the end or until the power fails; how many were acknowledged."""
        last = -1
        with suppress(PowerLost), opened(drive, self.journal) as database:
            for number in transactions(database, self.count):
                last = number
        return last

    def examine(self, drive: Device, acknowledged: int, said: str) -> int:
        """Power on and look; returns the operations of the flash that this took."""
        drive.power_on()
        try:
            with opened(drive, self.journal) as database:
                there = found(database)
        except (apsw.Error, AssertionError) as error:
            self.wrong.append(f"{said}: {error}")
            return 0
        if not acknowledged <= there <= acknowledged + 1:
            self.wrong.append(f"{said}: {acknowledged} were acknowledged, {there} are there")
        return drive.operations

    def full(self) -> Device:
        """A drive that is full of something else, so that it must collect."""
        drive = Device(**self.options)
        unit = drive.unit_bytes
        for at in range(0, drive.capacity_bytes, unit):
            drive.write(at, b"\xff" * unit)
        drive.flush()
        return drive

    def cut_at(self, operation: int) -> tuple[Device, int]:
        """A drive whose power failed in an operation of the load."""
        drive = self.full()
        drive.cut(after=operation)
        return drive, self.load(drive)

    def run(self) -> Cuts:
        """Let the power fail in each operation, or in one of so many."""
        drive = self.full()
        before = drive.operations
        assert self.load(drive) == self.count
        self.operations = drive.operations - before
        self.erases = sum(drive.power_off().record["nand"]["erases"].values())
        for operation in range(0, self.operations, self.one_in):
            drive, acknowledged = self.cut_at(operation)
            self.cuts += 1
            self.acknowledged += acknowledged + 1
            took = self.examine(drive, acknowledged, f"operation {operation}")
            every = max(1, took // max(self.recoveries, 1))
            for second in range(0, took if self.recoveries else 0, every):
                drive, acknowledged = self.cut_at(operation)
                with suppress(PowerLost):
                    drive.power_on(cut_after=second)
                    with opened(drive, self.journal) as database:
                        found(database)
                self.in_recovery += 1
                self.examine(drive, acknowledged, f"operation {operation}, then {second}")
        return self


def main() -> None:
    """Parse the command line, let the power fail, and say what was lost."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--drive", default="tiny")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--journal", choices=JOURNALS, default="delete")
    parser.add_argument("--transactions", type=int, default=12)
    parser.add_argument("--one-in", type=int, default=1)
    parser.add_argument("--recoveries", type=int, default=0)
    parser.add_argument("--torn", action="store_true", help="leave what cannot be read")
    parser.add_argument("--ignore-flush", action="store_true", help="a drive that lies")
    given = parser.parse_args()
    options = {
        "drive": given.drive,
        "set": given.set,
        "cut_mode": "torn" if given.torn else "prefix",
        "ignore_flush": given.ignore_flush,
    }
    cuts = Cuts(given.journal, given.transactions, given.one_in, given.recoveries, options).run()
    print(
        f"{cuts.operations} operations and {cuts.erases} erases, power cut in {cuts.cuts} of them "
        f"and {cuts.in_recovery} times while it recovered; {cuts.acknowledged} transactions "
        "acknowledged"
    )
    print("\n".join(cuts.wrong) or "every one of them is there, and every database is sound")
    sys.exit(1 if cuts.wrong else 0)


if __name__ == "__main__":
    main()
