"""ext4 of the running kernel on a served drive.

The mount needs root, and a kernel with FUSE, loop devices and ext4: nbdfuse turns the served drive
into a file, a loop device turns the file into a disk, and ext4 is mounted on the disk.
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
from flashatlas.serving.serve import Serving

PROGRAMS = {"nbdfuse": "libnbd-bin", "losetup": "mount", "mkfs.ext4": "e2fsprogs"}
"""Programs that are needed, with their packages of Debian and Ubuntu."""

PATIENCE_S = 120
"""Seconds after which the kernel counts as stopped."""


def missing() -> str | None:
    """Return why nothing can be mounted here, or ``None``."""
    if os.geteuid() != 0:
        return "only root can mount a file system"
    for path in ("/dev/fuse", "/dev/loop-control"):
        if not Path(path).exists():
            return f"{path} does not exist in this kernel or container"
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
        raise DriveError(f"{command[0]} did not end within {PATIENCE_S} s") from None
    if check and done.returncode != 0:
        raise DriveError(f"{command[0]}: {done.stderr.strip() or done.returncode}")
    return done


class Mounted:
    """ext4 on a served drive, in a folder; a context manager."""

    def __init__(self, drive: Serving, folder: str | os.PathLike[str], *, make: bool) -> None:
        """Mount in ``folder``; with ``make``, make a file system first.

        Raises:
            InputError: Nothing can be mounted here.
            DriveError: The kernel's error.

        """
        if (why := missing()) is not None:
            raise InputError(f"mount: {why}")
        self.folder = Path(folder)
        if os.path.ismount(self.folder):
            raise InputError(f"mount: {self.folder}: the folder is already a mount point")
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
            DriveError: The file system is in use; it stays mounted.

        """
        # wait until all writes have reached the drive, however long that takes
        subprocess.run(["sync", "--file-system", self.folder], check=False)
        _do("umount", self.folder)
        self._is_mounted = False
        self._release()

    def check(self) -> str:
        """Unmount, and return the output of e2fsck; empty if it finds nothing."""
        _do("umount", self.folder)
        self._is_mounted = False
        try:
            done = _do("e2fsck", "-f", "-n", self.device, check=False)
        finally:
            self._release()
        return "" if done.returncode == 0 else done.stdout.strip()

    def abandon(self) -> None:
        """Release a drive that no longer answers."""
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
