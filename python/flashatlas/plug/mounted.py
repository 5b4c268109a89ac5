"""ext4 of the running kernel on a served drive.

As root, where the kernel has FUSE, loop devices and ext4: nbdfuse makes the served drive a file,
a loop device makes that a disk, and ext4 is mounted on it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

from flashatlas._core import DriveError, InputError
from flashatlas.serve import Serving

PROGRAMS = {"nbdfuse": "libnbd-bin", "losetup": "mount", "mkfs.ext4": "e2fsprogs"}
"""What is needed, and the package of Debian and Ubuntu that has it."""

PATIENCE_S = 120
"""Seconds after which the kernel does not answer any more."""


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
