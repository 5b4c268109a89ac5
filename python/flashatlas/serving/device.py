"""A drive with real bytes in this process; its power can fail in any flash operation.

>>> drive = flashatlas.Device("tiny")
>>> drive.write(0, b"atlas".ljust(512))
>>> drive.flush()
>>> drive.cut(after=0)
>>> drive.write(0, b"other".ljust(512), fua=True)
Traceback (most recent call last):
    ...
flashatlas.PowerLost: the power has failed
>>> drive.power_on()
>>> drive.read(0, 5)
b'atlas'
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path
from types import TracebackType

from flashatlas import _core
from flashatlas.inputs.drive import Drive, Settings
from flashatlas.inputs.trace import Progress
from flashatlas.results.result import Result
from flashatlas.serving import served


class Device:
    """A drive with the same layers, controller, scheme and flash as in a run, but with real bytes.

    The content of the flash is an image, in memory or in a file. A power failure, or the end of the
    process, leaves the image in its present state; :meth:`power_on` mounts it with the scheme's own
    recovery. The same commands cause the same flash operations. A program that counts the
    operations (:attr:`operations`) can therefore let the power fail in each of them.

    Attributes:
        damage: A line for each part of the image that the last mount could not read.

    """

    def __init__(
        self,
        drive: str | os.PathLike[str] | Drive = "tiny",
        *,
        set: Settings = (),
        image: str | os.PathLike[str] | None = None,
        precondition: str = "none",
        cut_after: int | None = None,
        cut_mode: str = "prefix",
        ignore_flush: bool = False,
        ignore_fua: bool = False,
        seed: int = 1,
        progress: Progress | None = None,
    ) -> None:
        """Power a drive on.

        Args:
            drive: Preset, path of a TOML file, or a :class:`Drive`.
            set: Parameters of the drive to change.
            image: File of the drive's flash, as for ``flashatlas serve``; without it, the flash is
                in memory.
            precondition: The drive's initial state, as for :func:`flashatlas.serve`.
            cut_after: Number of flash operations before the operation in which the power fails;
                operations of this first mount count.
            cut_mode: State that the power failure leaves. ``prefix``: the operation in which the
                power fails has no effect. ``torn``: a program leaves an unreadable page, an erase
                leaves a block of unreadable pages. ``subset``: each lane loses its operations from
                a random point on, except operations that a FLUSH of the caller or a layer made
                durable.
            ignore_flush: Answer FLUSH and FUA without carrying them out. This fault is deliberate:
                tests should notice it.
            ignore_fua: Answer FUA without carrying it out, as a deliberate fault. FLUSH is still
                carried out.
            seed: Seed of everything random.
            progress: Called while the drive is preconditioned; see :func:`flashatlas.run`.

        Raises:
            InputError: The drive does not exist, or the image belongs to another drive.
            PowerLost: The power failed during the mount.

        """
        told = served.plan(
            drive, set, image, cut_mode, ignore_flush, ignore_fua, seed, precondition
        )
        with tempfile.TemporaryDirectory(prefix="flashatlas-") as folder:
            told = served.aged(told, drive, set, Path(folder), progress)
            self._core = _core.Device(json.dumps(told))
            self._begin = time.perf_counter()
            self.damage: list[str] = []
            self.power_on(cut_after)

    def __enter__(self) -> Device:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None and self._is_on:
            self.power_off()

    @property
    def capacity_bytes(self) -> int:
        """Bytes that the drive exports."""
        return self._core.sizes()[0]

    @property
    def unit_bytes(self) -> int:
        """Bytes of a mapping unit; a smaller write is a read and a write of the whole unit."""
        return self._core.sizes()[1]

    @property
    def operations(self) -> int:
        """Number of programs, erases, stores and fences since power-on, including the mount.

        Raises:
            PowerLost: The power failed.

        """
        return self._core.operations()

    def power_on(self, cut_after: int | None = None) -> None:
        """Mount the content of the image, as after a power failure.

        Args:
            cut_after: Number of flash operations before the operation in which the power fails;
                operations of the mount count.

        Raises:
            PowerLost: The power failed during the mount.
            DriveError: The content of the image cannot be mounted.

        """
        frames, blocks = self._core.power_on(cut_after)
        self._is_on = True
        self.damage = [f"the image holds no readable page in frame {frame}" for frame in frames]
        self.damage += [f"the image's record of block {block} is damaged" for block in blocks]

    def cut(self, after: int = 0) -> None:
        """Let ``after`` more flash operations complete, and let the power fail in the next one."""
        self._core.cut_after(after)

    def read(self, offset: int, count: int) -> bytes:
        """Read ``count`` bytes; in all commands, offset and count must be multiples of 512."""
        return self._core.read(offset, count)

    def write(self, offset: int, data: bytes, *, fua: bool = False) -> None:
        """Write bytes; with ``fua`` they are durable when this method returns."""
        self._core.write(data, offset, fua)

    def flush(self) -> None:
        """Make all earlier writes durable."""
        self._core.flush()

    def trim(self, offset: int, count: int) -> None:
        """Trim whole mapping units; until the power fails, they read as zeros."""
        self._core.trim(offset, count)

    def zero(self, offset: int, count: int) -> None:
        """Write zeros."""
        self._core.zero(offset, count)

    def power_off(self) -> Result:
        """Make all writes durable, and return the record of the drive since power-on.

        Raises:
            PowerLost: The power had failed.
            DriveError: The drive is off, or broke one of its rules.

        """
        self._is_on = False
        found = json.loads(self._core.power_off())
        return served.result(found, time.perf_counter() - self._begin)
