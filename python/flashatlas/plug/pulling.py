"""The plug, pulled under a program on a real kernel's ext4, again and again."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flashatlas._core import DriveError, InputError, PowerLost
from flashatlas.drive import Drive, Settings
from flashatlas.names import unknown
from flashatlas.plug.client import Client
from flashatlas.plug.guest import Guest
from flashatlas.plug.kernel import Kernel
from flashatlas.plug.postgres import Postgres
from flashatlas.plug.records import Records
from flashatlas.plug.rocksdb import RocksDB
from flashatlas.plug.running import RunningKernel
from flashatlas.plug.sqlite import Sqlite
from flashatlas.result import Result
from flashatlas.serve import Serving, serve

CLIENTS: tuple[Client, ...] = (Records(), Sqlite(), Postgres(), RocksDB())
"""The programs under which the plug is pulled."""

KERNELS: dict[str, Callable[[Path, str], Kernel]] = {
    "running": lambda at, _: RunningKernel(at),
    "guest": lambda _, accel: Guest("virtio-blk", accel),
    "guest-nbd": lambda _, accel: Guest("nbd", accel),
}
"""Whose ext4 it is."""
LEFT = ("prefix", "torn", "subset")
"""What the power failure leaves, by the number of its operation."""
ACCELS = ("tcg", "kvm")
"""How QEMU runs a guest."""


@dataclass(frozen=True)
class Pull:
    """One time the plug was pulled."""

    seed: int
    after: int
    """Operations of the flash until then; what is left is ``LEFT[after % 3]``."""
    acknowledged: int
    """What the client had been promised, of this time and those before."""
    lost: int
    """Of that, how much is not there, or not whole."""
    check: str
    """What the client and e2fsck find wrong."""


def client_of(name: str) -> Client:
    """The client of that name.

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
    """Pull the plug under ext4, mount what is left, and look for everything acknowledged.

    The power fails within the first ``within`` operations of the flash after the drive was powered
    on; each time goes on with what the last one left.

    Args:
        drive: Preset, path of a TOML file, or a :class:`flashatlas.Drive`.
        set: Parameters that differ from the drive's.
        client: What writes: ``records``, ``sqlite``, ``postgres`` or ``rocksdb``.
        times: How often.
        seed: Draws where the power fails, and what is written.
        within: Operations of the flash until then, at most.
        kernel: Whose ext4 it is: that of the ``running`` kernel, through nbdfuse and a loop device
            (root); that of a ``guest`` in QEMU, which dies with the drive's power; ``guest-nbd``:
            of a guest with the NBD driver of its own kernel, whose writes carry FUA.
        accel: How QEMU runs a guest: ``tcg``, or ``kvm`` where that works.
        ignore_flush: The drive ignores FLUSH and FUA: a control, which must lose something.
        ignore_fua: It ignores FUA: a control under ``guest-nbd``. No other kernel sends it.
        folder: Where the image is kept; a new one, removed afterwards, if not given.
        progress: Hears of each time.

    Returns:
        Each time, and the result of the drive that was looked at in the end.

    Raises:
        InputError: Nothing can be mounted here, or the client is not installed.

    """
    if kernel not in KERNELS:
        raise unknown("kernel", kernel, KERNELS)
    if accel not in ACCELS:
        raise unknown("accel", accel, ACCELS)
    with tempfile.TemporaryDirectory(prefix="flashatlas-plug-") as scratch:
        os.chmod(scratch, 0o755)  # the client may be another user
        at = Path(scratch) / "at"
        at.mkdir()
        image = Path(folder or scratch) / "drive.img"
        of = KERNELS[kernel](at, accel)
        if (why := of.missing()) is not None:
            raise InputError(f"pull-plug: {why}")
        ignored = {"ignore_flush": ignore_flush, "ignore_fua": ignore_fua}
        plug = _Plug(drive, set, image, of, client_of(client), ignored)
        return plug.pulled(times, seed, within, progress)


@dataclass(frozen=True)
class _Plug:
    """A drive, and the client on it."""

    drive: str | os.PathLike[str] | Drive
    settings: Settings
    image: Path
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
            failed = self._until_the_power_fails(after, first, rng, promised.add)
            with self._served() as left:
                try:
                    there, wrong = self.kernel.found(left, self.client)
                except DriveError as error:  # it is no file system any more
                    there, wrong = set(), f"cannot be mounted: {error}"
            result = left.result
            pulls.append(Pull(seed, after, len(promised), len(promised - there), wrong))
            progress(pulls[-1])
            if pulls[-1].lost or wrong:
                break
            if not failed:
                raise DriveError("the client gave up before the power failed")
            first = max([0, *promised, *there]) + 1
        assert result is not None
        return pulls, result

    def _served(self, **options: Any) -> Serving:
        return serve(self.drive, set=self.settings, image=self.image, **options)

    def _until_the_power_fails(
        self, after: int, first: int, rng: random.Random, acknowledge: Callable[[int], None]
    ) -> bool:
        """Write on what the image holds until then; whether it came to that."""
        try:
            drive = self._served(cut_after=after, cut_mode=LEFT[after % len(LEFT)], **self.ignored)
        except PowerLost:
            return True  # in the drive's own mount
        try:
            self.kernel.write(drive, self.client, first, rng, acknowledge)
            drive.stop()
            return False
        except PowerLost:
            return True
        finally:
            drive.kill()
