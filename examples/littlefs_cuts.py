"""littlefs on a simulated drive, with a power failure in every flash operation.

A load of writes, renames and removals runs on a littlefs on the drive. The power fails in each
flash operation in turn. Then the drive's scheme and littlefs recover. Afterwards the files must be
in the state after all calls that had returned, or in the state after one more call, and each file
must be complete.

    pip install littlefs-python
    python examples/littlefs_cuts.py --set ftl.scheme=fast --one-in 5

With `--recoveries N` the power fails again in N operations of each recovery. With `--ignore-flush`
the drive ignores FLUSH, and files are lost: this shows that the check can fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from every_cut import EveryCut, carry_out, needed
from flashatlas import Device, PowerLost

littlefs = needed("littlefs", "littlefs-python")

BLOCK = 4096
UNIT = 512
"""Bytes of a read and of a program: a sector of the drive."""
ONE_MORE = "one more"
"""The name of a file that is written after each recovery."""
IO_ERROR = -5
"""The error number of littlefs for an error of its device."""


class Blocks(littlefs.UserContext):
    """The drive as the block device of littlefs, without an additional cache.

    A sync of littlefs becomes a FLUSH. An erase does nothing, because a drive can overwrite data.
    """

    def __init__(self, drive: Device) -> None:
        super().__init__(buffer=bytearray())
        self.drive = drive
        self.lost = False
        """``True`` after the power has failed; littlefs then gets errors, or meaningless bytes."""

    def read(self, cfg, block: int, off: int, size: int) -> bytearray:  # noqa: D102
        try:
            return bytearray(self.drive.read(block * BLOCK + off, size))
        except PowerLost:
            self.lost = True
            return bytearray(size)

    def prog(self, cfg, block: int, off: int, data: bytes) -> int:  # noqa: D102
        try:
            self.drive.write(block * BLOCK + off, bytes(data))
        except PowerLost:
            self.lost = True
        return IO_ERROR if self.lost else 0

    def erase(self, cfg, block: int) -> int:  # noqa: D102
        return IO_ERROR if self.lost else 0

    def sync(self, cfg) -> int:  # noqa: D102
        try:
            self.drive.flush()
        except PowerLost:
            self.lost = True
        return IO_ERROR if self.lost else 0


def on(drive: Device) -> tuple[littlefs.LittleFS, Blocks]:
    """Return a littlefs on the drive, which is not mounted yet, and its block device."""
    blocks = Blocks(drive)
    size = {"read_size": UNIT, "prog_size": UNIT, "cache_size": UNIT, "lookahead_size": 16}
    count = drive.capacity_bytes // BLOCK
    system = littlefs.LittleFS(blocks, False, block_size=BLOCK, block_count=count, **size)
    return system, blocks


def content(number: int) -> bytes:
    """Return the content of a file, from a part of a block to several blocks long."""
    return bytes([number % 251 + 1]) * (100 + 2500 * (number % 5))


def step(files: dict[str, bytes], n: int) -> list[tuple[str, ...]]:
    """Carry out call ``n`` on a model; return the calls of littlefs."""
    kind, name, other = n % 4, f"file {n % 5}", f"kept {n % 3}"
    if kind == 2 and (last := f"file {(n - 1) % 5}") in files:
        files[other] = files.pop(last)
        return [("rename", last, other)]
    if kind == 3 and (last := f"kept {(n - 1) % 3}") in files:
        del files[last]
        return [("remove", last)]
    files[name] = content(n)
    return [("write", name)]


def after(number: int) -> dict[str, bytes]:
    """Return the files after ``number`` calls."""
    files: dict[str, bytes] = {}
    for n in range(1, number + 1):
        step(files, n)
    return files


def put(system: littlefs.LittleFS, name: str, data: bytes) -> None:
    """Write a file, which is complete when it is closed; leave it open if a write fails."""
    file = littlefs.lfs.file_open(system.fs, name, "w")
    littlefs.lfs.file_write(system.fs, file, data)
    littlefs.lfs.file_close(system.fs, file)


def calls(system: littlefs.LittleFS, count: int) -> Iterator[int]:
    """Format and carry out ``count`` calls; yield 0, then the number of each call that returned."""
    system.format()
    system.mount()
    yield 0
    files: dict[str, bytes] = {}
    for n in range(1, count + 1):
        for what, *names in step(files, n):
            if what == "write":
                put(system, names[0], files[names[0]])
            else:
                getattr(system, what)(*names)
        yield n


@dataclass
class Cuts(EveryCut):
    """Power failures during a load of calls."""

    def load(self, drive: Device) -> int:
        """Run the load until it ends or the power fails; return the number of the last call."""
        last = -1
        system, blocks = on(drive)
        with suppress(littlefs.LittleFSError):
            for number in calls(system, self.count):
                if blocks.lost:
                    break
                last = number
        return last

    def there(self, drive: Device) -> set[int]:
        """Return each number of calls that explains the files; -1 if there is no littlefs."""
        system, blocks = on(drive)
        try:
            system.mount()
        except littlefs.LittleFSError:
            return {-1}
        try:
            found = {}
            for name in system.listdir("/"):
                with system.open(name, "rb") as file:
                    data = file.read()
                # opening a new file creates it empty
                if data and name != ONE_MORE:
                    found[name] = data
            # littlefs makes repairs before it writes, and these must be possible, too
            put(system, ONE_MORE, b"content")
        except littlefs.LittleFSError as error:
            raise AssertionError(f"littlefs: {error}") from error
        if blocks.lost:
            raise PowerLost("while it recovered")
        counts = {n for n in range(self.count + 1) if after(n) == found}
        if not counts:
            raise AssertionError(f"no number of calls leaves {sorted(found)}")
        return counts


if __name__ == "__main__":
    carry_out(Cuts, __doc__)
