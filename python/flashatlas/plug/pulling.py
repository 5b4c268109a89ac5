"""Repeated power failures under a program on a real kernel's ext4."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from flashatlas._core import DriveError, InputError, PowerLost
from flashatlas.inputs.drive import Drive, Settings
from flashatlas.inputs.trace import Trace
from flashatlas.names import unknown
from flashatlas.plug.client import Client
from flashatlas.plug.guest import Guest
from flashatlas.plug.kernel import Kernel
from flashatlas.plug.postgres import Postgres
from flashatlas.plug.records import Records
from flashatlas.plug.rocksdb import RocksDB
from flashatlas.plug.running import RunningKernel
from flashatlas.plug.sqlite import Sqlite
from flashatlas.results.result import Result
from flashatlas.serving.serve import Serving, serve

CLIENTS: tuple[Client, ...] = (Records(), Sqlite(), Postgres(), RocksDB())
"""The programs under which the plug is pulled."""

KERNELS: dict[str, Callable[[Path, str], Kernel]] = {
    "running": lambda at, _: RunningKernel(at),
    "guest": lambda _, accel: Guest("virtio-blk", accel),
    "guest-nbd": lambda _, accel: Guest("nbd", accel),
    "guest-nvme": lambda _, accel: Guest("nvme", accel),
}
"""Kernels whose ext4 is used."""
LEFT = ("prefix", "torn", "subset")
"""States that a power failure leaves; the number of its operation chooses one."""
ACCELS = ("tcg", "kvm")
"""Ways in which QEMU runs a guest."""


@dataclass(frozen=True)
class Pull:
    """One power failure."""

    seed: int
    after: int
    """Operations of the flash before the failure; the state left is ``LEFT[after % 3]``."""
    acknowledged: int
    """Number of items that the drive had acknowledged to the client, this time and before."""
    lost: int
    """Number of these items that are missing, or not whole."""
    check: str
    """Faults that the client and e2fsck find."""
    fua_writes: int
    """Number of writes with FUA that the drive carried out before the failure, this time."""


def client_of(name: str) -> Client:
    """Return the client with this name.

    Raises:
        InputError: There is none, or it cannot run here.

    """
    for client in CLIENTS:
        if client.name == name:
            if (why := client.missing()) is not None:
                raise InputError(f"pull-plug: {why}")
            return client
    raise unknown("client", name, [client.name for client in CLIENTS])


def pull(
    drive: str | os.PathLike[str] | Drive = "tlc-small",
    *,
    set: Settings = (),
    client: str = "records",
    times: int = 5,
    seed: int = 1,
    within: int = 2000,
    kernel: str = "running",
    accel: str = "tcg",
    ignore_flush: bool = False,
    ignore_fua: bool = False,
    folder: str | os.PathLike[str] | None = None,
    progress: Callable[[Pull], None] = lambda _: None,
) -> tuple[list[Pull], Result]:
    """Pull the plug under ext4, mount the drive, and look for everything acknowledged.

    The power fails within the first ``within`` operations of the flash after power-on. Each
    pull begins with the state that the previous pull left.

    Args:
        drive: Preset, path of a TOML file, or a :class:`flashatlas.Drive`.
        set: Parameters with other values than the drive has.
        client: The program that writes: ``records``, ``sqlite``, ``postgres`` or ``rocksdb``.
        times: Number of times that the plug is pulled.
        seed: Seed of the moment of the failure, and of the content.
        within: The largest number of flash operations before the failure.
        kernel: The kernel whose ext4 is used. ``running``: the kernel of this machine, through
            nbdfuse and a loop device (root). ``guest``: the kernel of a guest in QEMU; the guest
            ends when the drive's power fails. ``guest-nbd``: a guest's with its own NBD driver,
            whose writes carry FUA. ``guest-nvme``: a guest's with its own NVMe driver, over TCP;
            its writes carry FUA, too.
        accel: The way in which QEMU runs a guest: ``tcg``, or ``kvm`` if it is available.
        ignore_flush: The drive ignores FLUSH and FUA: a control, which must lose something.
        ignore_fua: The drive ignores FUA: a control under ``guest-nbd`` and ``guest-nvme``. The
            other kernels send no FUA.
        folder: Folder in which the image is kept; by default a new one, removed afterwards.
        progress: Called after each power failure.

    Returns:
        Each power failure, and the result of the last drive.

    Raises:
        InputError: Nothing can be mounted here, or the client is not installed.
        DriveError: The client gave up, or a kernel that sends FUA has sent none.

    """
    if kernel not in KERNELS:
        raise unknown("kernel", kernel, KERNELS)
    if accel not in ACCELS:
        raise unknown("accel", accel, ACCELS)
    with tempfile.TemporaryDirectory(prefix="flashatlas-plug-") as scratch:
        os.chmod(scratch, 0o755)  # the client may run as another user
        at = Path(scratch) / "at"
        at.mkdir()
        image = Path(folder or scratch) / "drive.img"
        of = KERNELS[kernel](at, accel)
        if (why := of.missing()) is not None:
            raise InputError(f"pull-plug: {why}")
        requests = Path(scratch) / "requests.fatr"
        ignored = {"ignore_flush": ignore_flush, "ignore_fua": ignore_fua}
        plug = _Plug(drive, set, image, requests, of, client_of(client), ignored)
        return plug.pulled(times, seed, within, progress)


@dataclass(frozen=True)
class _Plug:
    """A drive, and the client on it."""

    drive: str | os.PathLike[str] | Drive
    settings: Settings
    image: Path
    requests: Path
    kernel: Kernel
    client: Client
    ignored: dict[str, bool]

    def pulled(
        self, times: int, seed: int, within: int, progress: Callable[[Pull], None]
    ) -> tuple[list[Pull], Result]:
        with self._served() as fresh:
            self.kernel.prepare(fresh, self.client)
        pulls: list[Pull] = []
        promised: set[int] = set()
        first, result = 1, fresh.result
        for number in range(times):
            rng = random.Random(seed * 1_000_003 + number)
            after = rng.randrange(1, within)
            failed, fua_writes = self._until_the_power_fails(after, first, rng, promised.add)
            with self._served() as left:
                try:
                    there, wrong = self.kernel.found(left, self.client)
                except DriveError as error:  # the drive has no valid file system any more
                    there, wrong = set(), f"cannot be mounted: {error}"
            result = left.result
            lost = len(promised - there)
            pulls.append(Pull(seed, after, len(promised), lost, wrong, fua_writes))
            progress(pulls[-1])
            if pulls[-1].lost or wrong:
                break
            if not failed:
                raise DriveError("the client gave up before the power failed")
            first = max([0, *promised, *there]) + 1
        hears_fua = not any(self.ignored.values())
        seen = any(each.fua_writes for each in pulls)
        if promised and self.kernel.sends_fua and hears_fua and not seen:
            raise DriveError("no write with FUA has arrived: this kernel sends one for each commit")
        assert result is not None
        return pulls, result

    def _served(self, **options: Any) -> Serving:
        options |= {"set": self.settings, "image": self.image, "nvme": self.kernel.nvme}
        return serve(self.drive, **options)

    def _until_the_power_fails(
        self, after: int, first: int, rng: random.Random, acknowledge: Callable[[int], None]
    ) -> tuple[bool, int]:
        """Write on the image until the power fails.

        Return ``True`` if it failed, and the number of writes with FUA.
        """
        self.requests.unlink(missing_ok=True)
        options = {"cut_after": after, "cut_mode": LEFT[after % len(LEFT)]}
        try:
            drive = self._served(record=self.requests, **options, **self.ignored)
        except PowerLost:
            return True, 0  # the power failed in the drive's own mount
        try:
            self.kernel.write(drive, self.client, first, rng, acknowledge)
            drive.stop()
            failed = False
        except PowerLost:
            failed = True
        finally:
            drive.kill()
        return failed, _fua_writes(self.requests)


def _fua_writes(requests: Path) -> int:
    """Return the number of writes with FUA in the recorded requests of a drive."""
    batches = Trace(requests).batches()
    return sum(int(pc.sum(batch["fua"]).as_py() or 0) for batch in batches)
