"""A drive in this process, with real bytes and power that fails where you say.

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

from flashatlas import _core, served
from flashatlas.drive import Drive, Settings
from flashatlas.result import Result
from flashatlas.trace import Progress


class Device:
    """A drive with its maps: the same stack as in a run, which keeps bytes.

    What it holds is on an image, in memory or in a file. A power failure, and the end of the
    process, leave that image as it is then; :meth:`power_on` mounts it by the scheme's own
    recovery. The same commands give the same operations of the flash: a program that counts them
    (:attr:`operations`) can let the power fail in each.

    Attributes:
        damage: What of the image could not be read when it was mounted last, a line each.

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
            set: Parameters that differ from the drive's.
            image: File that holds the drive's flash, as ``flashatlas serve`` has it; in memory if
                not given.
            precondition: What the drive begins as, as :func:`flashatlas.serve` has it.
            cut_after: The power fails in the operation of the flash after so many, those of this
                first mount among them.
            cut_mode: What the operation in which the power fails leaves: nothing (``prefix``), or
                (``torn``) of a program a page that cannot be read, of an erase a block of them.
                ``subset``: of what no FLUSH has made durable, each lane keeps a beginning.
            ignore_flush: FLUSH and FUA are answered and not carried out: for tests that must fail.
            ignore_fua: FUA is answered and not carried out, FLUSH is: likewise.
            seed: Seed of everything random.
            progress: Called while the drive is preconditioned, as by :func:`flashatlas.run`.

        Raises:
            InputError: It is no drive, or the image of another one.
            PowerLost: The power failed in the mount.

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
        if kind is None:
            self.power_off()

    @property
    def capacity_bytes(self) -> int:
        """Bytes that the drive exports."""
        return self._core.sizes()[0]

    @property
    def unit_bytes(self) -> int:
        """Bytes of a mapping unit: smaller writes are read, changed and written."""
        return self._core.sizes()[1]

    @property
    def operations(self) -> int:
        """Programs, erases, stores and fences since the power came, those of the mount among them.

        Raises:
            PowerLost: It failed.

        """
        return self._core.operations()

    def power_on(self, cut_after: int | None = None) -> None:
        """Mount what the image holds, as after a power failure.

        Args:
            cut_after: The power fails in the operation of the flash after so many, those of the
                mount among them.

        Raises:
            PowerLost: It failed in the mount.
            DriveError: What the image holds cannot be mounted.

        """
        frames, blocks = self._core.power_on(cut_after)
        self.damage = [f"the image holds no readable page in frame {frame}" for frame in frames]
        self.damage += [f"the image's record of block {block} is damaged" for block in blocks]

    def cut(self, after: int = 0) -> None:
        """Let the power fail in the operation of the flash after so many more."""
        self._core.cut_after(after)

    def read(self, offset: int, count: int) -> bytes:
        """Read ``count`` bytes; both are multiples of 512, as in all commands."""
        return self._core.read(offset, count)

    def write(self, offset: int, data: bytes, *, fua: bool = False) -> None:
        """Write; with ``fua`` it is durable when this returns."""
        self._core.write(data, offset, fua)

    def flush(self) -> None:
        """Make durable every write that has returned."""
        self._core.flush()

    def trim(self, offset: int, count: int) -> None:
        """Forget whole mapping units; they read as zeros, until the power fails at least."""
        self._core.trim(offset, count)

    def zero(self, offset: int, count: int) -> None:
        """Write zeros."""
        self._core.zero(offset, count)

    def power_off(self) -> Result:
        """Make durable what was written, and return what the drive did since the power came.

        Raises:
            PowerLost: Its power had failed.
            DriveError: It is off, or a rule of the drive was broken.

        """
        found = json.loads(self._core.power_off())
        return served.result(found, time.perf_counter() - self._begin)
