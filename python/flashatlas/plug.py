"""A real kernel's file system on a served drive, with the plug pulled under it.

As root, where the kernel has FUSE, loop devices and ext4: nbdfuse makes the served drive a file,
a loop device makes that a disk, and ext4 is mounted on it.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import struct
import subprocess
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from flashatlas._core import DriveError, InputError, PowerLost
from flashatlas.drive import Drive, Settings
from flashatlas.result import Result
from flashatlas.serve import Serving, serve
from flashatlas.served import CUT_MODES

PROGRAMS = {"nbdfuse": "libnbd-bin", "losetup": "mount", "mkfs.ext4": "e2fsprogs"}
"""What is needed, and the package of Debian and Ubuntu that has it."""

FILES = 8
"""Files that records are appended to."""

PATIENCE_S = 120
"""Seconds after which the kernel does not answer any more."""

HEAD = struct.Struct("<QII")
"""Of a record: its number, the length of what follows, the CRC-32 of that."""


def missing() -> str | None:
    """Why nothing can be mounted here, if so."""
    if os.geteuid() != 0:
        return "only root can mount a file system"
    for path in ("/dev/fuse", "/dev/loop-control"):
        if not Path(path).exists():
            return f"{path} is not there: this kernel, or this container, has none"
    for program, package in PROGRAMS.items():
        if shutil.which(program, path=_path()) is None:
            return f"{program} is not installed (Debian and Ubuntu: apt install {package})"
    return None


def _path() -> str:
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def _do(*command: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    try:
        done = subprocess.run(
            [str(word) for word in command],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
            env={**os.environ, "PATH": _path()},
        )
    except subprocess.TimeoutExpired:
        raise DriveError(f"{command[0]}: no answer in {PATIENCE_S} s") from None
    if check and done.returncode != 0:
        raise DriveError(f"{command[0]}: {done.stderr.strip() or done.returncode}")
    return done


class Mounted:
    """ext4 on a served drive, in a folder; a context manager."""

    def __init__(self, drive: Serving, folder: str | os.PathLike[str], *, make: bool) -> None:
        """Mount in ``folder``; ``make`` a file system first.

        Raises:
            InputError: Nothing can be mounted here.
            DriveError: What the kernel says.

        """
        if (why := missing()) is not None:
            raise InputError(f"mount: {why}")
        self.folder = Path(folder)
        if os.path.ismount(self.folder):
            raise InputError(f"mount: {self.folder}: something is mounted there")
        self.device = ""
        self._is_mounted = False
        self._made = Path(tempfile.mkdtemp(prefix="flashatlas-fuse-"))
        self._fuse = subprocess.Popen(
            ["nbdfuse", f"{self._made}/", drive.uri],
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            self._mount(make=make)
        except BaseException:
            self.abandon()
            raise

    def _mount(self, *, make: bool) -> None:
        disk = self._made / "nbd"
        end = time.monotonic() + 30
        while not disk.exists():
            if self._fuse.poll() is not None or time.monotonic() > end:
                raise DriveError("nbdfuse did not start")
            time.sleep(0.01)
        found = _do("losetup", "--find", "--show", "--direct-io=on", disk)
        self.device = found.stdout.strip()
        if make:
            _do("mkfs.ext4", "-q", "-F", self.device)
        _do("mount", "-t", "ext4", self.device, self.folder)
        self._is_mounted = True

    def __enter__(self) -> Mounted:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.abandon()
        elif self._is_mounted:
            self.unmount()

    def unmount(self) -> None:
        """Unmount: everything is written back and flushed.

        Raises:
            DriveError: It is in use; it stays mounted.

        """
        # what was written comes to the drive, however long that takes
        subprocess.run(["sync", "--file-system", self.folder], check=False)
        _do("umount", self.folder)
        self._is_mounted = False
        self._release()

    def check(self) -> str:
        """Unmount, and what e2fsck finds: nothing, or its words."""
        _do("umount", self.folder)
        self._is_mounted = False
        try:
            done = _do("e2fsck", "-f", "-n", self.device, check=False)
        finally:
            self._release()
        return "" if done.returncode == 0 else done.stdout.strip()

    def abandon(self) -> None:
        """Let go of a drive that does not answer any more."""
        if self._is_mounted:
            _do("umount", "--lazy", self.folder, check=False)
            self._is_mounted = False
        self._release()

    def _release(self) -> None:
        if self.device:
            _do("losetup", "--detach", self.device, check=False)
        _do("umount", "--lazy", self._made, check=False)
        try:
            self._fuse.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._fuse.kill()
            self._fuse.wait()
        shutil.rmtree(self._made, ignore_errors=True)


def record(number: int, rng: random.Random) -> bytes:
    """A record that is appended."""
    body = rng.randbytes(rng.randrange(16, 6000))
    return HEAD.pack(number, len(body), zlib.crc32(body)) + body


def records(content: bytes) -> Iterator[int]:
    """Numbers of the whole records at the beginning of a file."""
    at = 0
    while at + HEAD.size <= len(content):
        number, length, crc = HEAD.unpack_from(content, at)
        body = content[at + HEAD.size : at + HEAD.size + length]
        if number == 0 or len(body) < length or zlib.crc32(body) != crc:
            return
        yield number
        at += HEAD.size + length


@dataclass(frozen=True)
class Pull:
    """One time the plug was pulled."""

    seed: int
    after: int
    """Operations of the flash until then. After an odd number the next one is left torn."""
    acknowledged: int
    """Records that fsync said were durable, of this time and those before."""
    lost: int
    """Of those, how many are not there, or are not whole."""
    check: str
    """What e2fsck found."""


def write_until_it_fails(folder: Path, number: int, rng: random.Random) -> int:
    """Append records, each with fsync, until the drive does not answer; the last acknowledged."""
    files = [(folder / str(i)).open("ab", buffering=0) for i in range(FILES)]
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        while True:
            file = files[(number + 1) % FILES]
            file.write(record(number + 1, rng))
            os.fsync(file.fileno())
            number += 1
    except OSError as error:
        if error.errno not in (errno.EIO, errno.EROFS, errno.ENODATA, errno.EBADF):
            raise
    finally:
        for file in files:
            file.close()
    return number


def pull(
    drive: str | os.PathLike[str] | Drive = "tlc-small",
    *,
    set: Settings = (),
    times: int = 5,
    seed: int = 1,
    within: int = 2000,
    ignore_flush: bool = False,
    folder: str | os.PathLike[str] | None = None,
    progress: Callable[[Pull], None] = lambda _: None,
) -> tuple[list[Pull], Result]:
    """Pull the plug under ext4, mount what is left, and look for every acknowledged record.

    The power fails within the first ``within`` operations of the flash after the file system was
    mounted; each time goes on with what the last one left.

    Args:
        drive: Preset, path of a TOML file, or a :class:`flashatlas.Drive`.
        set: Parameters that differ from the drive's.
        times: How often.
        seed: Draws where the power fails, and what is written.
        within: Operations of the flash until then, at most.
        ignore_flush: The drive ignores FLUSH: a control, which must lose something.
        folder: Where the image is kept; a new one, removed afterwards, if not given.
        progress: Hears of each time.

    Returns:
        Each time, and the result of the drive that was looked at in the end.

    Raises:
        InputError: Nothing can be mounted here.

    """
    if (why := missing()) is not None:
        raise InputError(f"pull-plug: {why}")
    with tempfile.TemporaryDirectory(prefix="flashatlas-plug-") as scratch:
        image = Path(folder or scratch) / "drive.img"
        at = Path(scratch) / "at"
        at.mkdir()
        with serve(drive, set=set, image=image) as fresh, Mounted(fresh, at, make=True):
            for i in range(FILES):
                (at / str(i)).touch()
        pulls: list[Pull] = []
        last, result = 0, fresh.result
        for number in range(times):
            rng = random.Random(seed * 1_000_003 + number)
            after = rng.randrange(1, within)
            last = _once(drive, set, image, at, after, last, rng, ignore_flush=ignore_flush)
            with serve(drive, set=set, image=image) as left:
                try:
                    there, found = _what_is_left(left, at)
                except DriveError as error:  # it is no file system any more
                    there, found = [], f"cannot be mounted: {error}"
            lost = last - len({n for n in there if n <= last})
            result = left.result
            pulls.append(Pull(seed, after, last, lost, found))
            progress(pulls[-1])
            if lost or found:
                break
            last = max([last, *there])
        assert result is not None
        return pulls, result


def _what_is_left(served: Serving, at: Path) -> tuple[list[int], str]:
    """Numbers of the records that are there, and what e2fsck finds."""
    mounted = Mounted(served, at, make=False)
    try:
        there: list[int] = []
        for i in range(FILES):
            try:
                there += records((at / str(i)).read_bytes())
            except OSError:
                continue  # what cannot be read is lost
        return there, mounted.check()
    except BaseException:
        mounted.abandon()
        raise


def _once(
    drive: str | os.PathLike[str] | Drive,
    set: Settings,
    image: Path,
    at: Path,
    after: int,
    last: int,
    rng: random.Random,
    *,
    ignore_flush: bool,
) -> int:
    """Write on what the image holds until the power fails; the last acknowledged record."""
    served = serve(
        drive,
        set=set,
        image=image,
        cut_after=after,
        cut_mode=CUT_MODES[after % 2],
        ignore_flush=ignore_flush,
    )
    try:
        try:
            mounted = Mounted(served, at, make=False)
        except DriveError:
            return last  # the power failed before
        try:
            last = write_until_it_fails(at, last, rng)
        finally:
            mounted.abandon()
        served.stop()
    except PowerLost:
        return last
    finally:
        served.kill()
    raise DriveError("the file system gave up before the power failed")
