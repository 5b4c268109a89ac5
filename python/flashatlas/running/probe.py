"""Measurement of a drive's superpage by random writes of the host.

Writes of several sizes are measured, both aligned and shifted by half their size.

The tool of the HARD paper (section 14.3) looks for the smallest random write that is as fast as
larger writes. Here a size counts only if writes shifted by half the size are slower. This condition
distinguishes a mapping unit from other limits.
"""

from __future__ import annotations

import contextlib
import errno
import math
import mmap
import os
import random
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flashatlas._core import InputError
from flashatlas.inputs.drive import Drive, Settings, setting_list
from flashatlas.running.api import Case, compare

KIB = 1 << 10
SIZES = tuple((4 * KIB) << n for n in range(9))
"""Sizes of the writes in bytes: 4 KiB to 1 MiB (HARD, Fig. 14.4)."""
NEAR = 0.9
"""The least share of the highest speed that counts as full speed."""
SLOWER = 0.9
"""The largest share of the aligned writes' speed at which shifted writes count as slower."""
BYTES = 64 << 20
"""Bytes written for each measurement."""


@dataclass(frozen=True)
class Point:
    """Speeds of random writes of one size."""

    size: int
    """Size of each write in bytes."""
    aligned: float
    """Bytes per second of writes at multiples of the size."""
    shifted: float
    """Bytes per second of writes that are shifted by half the size."""


@dataclass(frozen=True)
class Probe:
    """The measurements, and the superpage that they show."""

    points: list[Point]

    @property
    def plateau(self) -> float:
        """The highest speed of aligned writes over all sizes, in bytes per second."""
        return max(point.aligned for point in self.points)

    @property
    def superpage(self) -> int | None:
        """The smallest size at full speed whose shifted writes are slower.

        ``None`` if there is none.
        """
        for point in self.points:
            if point.aligned >= NEAR * self.plateau and point.shifted <= SLOWER * point.aligned:
                return point.size
        return None

    def to_json(self) -> dict[str, Any]:
        """Return all numbers."""
        return {
            "schema": "flashatlas.probe.superpage/1",
            "superpage": self.superpage,
            "points": [
                {"size": p.size, "aligned_bytes_per_s": p.aligned, "shifted_bytes_per_s": p.shifted}
                for p in self.points
            ],
        }


Progress = Callable[[int, str, int, float | None], None]

JOB = """[probe]
direct=1
ioengine=libaio
rw=randwrite
bs={size}
iodepth={depth}
offset={offset}
size={span}
io_size={total}
"""


def simulated(
    drive: str | os.PathLike[str],
    *,
    set: Settings = (),
    depth: int = 32,
    total: int = BYTES,
    sizes: Sequence[int] = SIZES,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Probe:
    """Probe a simulated drive by the times of writes; the drive is filled first.

    Args:
        drive: Preset or path of a TOML file.
        set: Parameters of the drive to change.
        depth: Number of writes in flight.
        total: Bytes written for each measurement.
        sizes: Sizes of the writes, in bytes.
        jobs: Number of runs at the same time.
        progress: See :func:`flashatlas.compare`.

    """
    room = Drive(drive, set).capacity_bytes
    if room < (needed := max(total, 4 * max(sizes))):
        raise InputError(
            f"{os.fspath(drive)}: the drive exports {room} bytes, but probing writes to {needed} "
            "bytes; use a larger drive, or a smaller `total`"
        )
    with tempfile.TemporaryDirectory(prefix="flashatlas-") as folder:
        cases: list[Case] = []
        for size in sizes:
            for offset in (0, size // 2):
                job = Path(folder) / f"{size}-{offset}.fio"
                span = max(total, 4 * size) // size * size
                written = max(total // size, depth) * size
                job.write_text(
                    JOB.format(size=size, depth=depth, offset=offset, span=span, total=written)
                )
                cases.append({"job": job})
        results = compare(
            cases,
            drive=drive,
            set=setting_list(set),
            precondition="fill",
            jobs=jobs,
            progress=progress,
        )
    speeds = [result.record["bandwidth_bytes_per_s"] for result in results]
    return Probe([Point(size, *speeds[2 * i : 2 * i + 2]) for i, size in enumerate(sizes)])


def in_use(path: Path) -> str | None:
    """Return the reason why a block device must not be written, or ``None``.

    The reasons are a mounted file system, swap space, or another device that uses the device. The
    result is ``None`` if the device is free.
    """
    number = os.stat(path).st_rdev
    system = Path("/sys/dev/block") / f"{os.major(number)}:{os.minor(number)}"
    parts = [system, *(p.parent for p in system.glob("*/partition"))]
    numbers = {(part / "dev").read_text().strip() for part in parts if (part / "dev").exists()}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        if fields[2] in numbers:
            return f"one of its file systems is mounted at {fields[4]}"
    for line in Path("/proc/swaps").read_text().splitlines()[1:]:
        swap = os.stat(line.split()[0])
        if (
            stat.S_ISBLK(swap.st_mode)
            and f"{os.major(swap.st_rdev)}:{os.minor(swap.st_rdev)}" in numbers
        ):
            return f"the device is swap space ({line.split()[0]})"
    for part in parts:
        holders = [holder.name for holder in part.glob("holders/*")]
        if holders:
            return f"{', '.join(holders)} uses the device"
    return None


@contextlib.contextmanager
def opened(path: Path, create: int | None) -> Iterator[tuple[int, int]]:
    """Yield the descriptor of a file or block device opened for direct writes, and its size.

    A file that is created here is removed at the end.

    Raises:
        InputError: The file or device does not exist, is in use, or does not allow direct writes.

    """
    made = create is not None and not path.exists()
    if made:
        assert create is not None
        try:
            with path.open("xb") as file:
                for _ in range(math.ceil(create / (1 << 20))):
                    file.write(os.urandom(1 << 20))
                os.fsync(file.fileno())
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    try:
        if not path.exists():
            raise InputError(
                f"{path}: there is no such file or device (--create SIZE makes a file, and "
                "removes it "
                "afterwards)"
            )
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISBLK(mode)):
            raise InputError(f"{path}: this is neither a file nor a block device")
        if stat.S_ISBLK(mode) and (why := in_use(path)):
            raise InputError(f"{path}: {why}; nothing was written to it")
        flags = os.O_RDWR | getattr(os, "O_DIRECT", 0) | (os.O_EXCL if stat.S_ISBLK(mode) else 0)
        try:
            descriptor = os.open(path, flags)
        except OSError as error:
            if error.errno == errno.EINVAL:
                raise InputError(
                    f"{path}: its file system allows no direct writes (O_DIRECT)"
                ) from error
            raise InputError(f"{path}: {error.strerror}") from error
        try:
            yield descriptor, os.lseek(descriptor, 0, os.SEEK_END)
        finally:
            os.close(descriptor)
    finally:
        if made:
            path.unlink(missing_ok=True)


def measured(
    path: Path,
    *,
    create: int | None = None,
    depth: int = 32,
    total: int = BYTES,
    sizes: Sequence[int] = SIZES,
    seed: int = 1,
    progress: Progress | None = None,
) -> Probe:
    """Probe a real drive by writing to a file or a block device. Its content is lost.

    Args:
        path: File or block device.
        create: If the file does not exist, create it with this size in bytes, and remove it
            afterwards.
        depth: Number of writes in flight.
        total: Bytes written for each measurement; only the first ``total`` bytes of the drive are
            written.
        sizes: Sizes of the writes, in bytes.
        seed: Seed of the addresses.
        progress: See :func:`flashatlas.compare`.

    """
    with opened(path, create) as (descriptor, size), ThreadPoolExecutor(max_workers=depth) as pool:
        # a shifted write ends half its size beyond the range
        span = min(size, total) - sizes[-1]
        if span < 2 * sizes[-1]:
            raise InputError(
                f"{path}: {min(size, total)} bytes are too few: probing needs at least "
                f"{3 * sizes[-1]}"
            )
        buffer = mmap.mmap(-1, sizes[-1])  # aligned to a page, as direct writes must be
        buffer.write(random.Random(seed).randbytes(sizes[-1]))
        draw = random.Random(seed)
        speeds: list[float] = []
        for number, (bytes_, shift) in enumerate(
            (s, shift) for s in sizes for shift in (0, s // 2)
        ):
            places = [
                draw.randrange(span // bytes_) * bytes_ + shift
                for _ in range(max(min(total, size) // bytes_, depth))
            ]
            speeds.append(_speed(pool, descriptor, memoryview(buffer)[:bytes_], places))
            if progress:
                progress(0, "run", number + 1, (number + 1) / (2 * len(sizes)))
    return Probe([Point(s, *speeds[2 * i : 2 * i + 2]) for i, s in enumerate(sizes)])


def _speed(
    pool: ThreadPoolExecutor, descriptor: int, data: memoryview, places: Sequence[int]
) -> float:
    """Return the speed, in bytes per second, of writes to all places and the FLUSH after them."""
    begun = time.perf_counter()
    for written in pool.map(lambda place: os.pwrite(descriptor, data, place), places):
        if written != len(data):
            raise InputError(f"a write of {len(data)} bytes wrote {written}: is the drive full?")
    os.fsync(descriptor)
    return len(places) * len(data) / (time.perf_counter() - begun)
