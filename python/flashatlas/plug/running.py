"""The kernel that runs here: ext4 through nbdfuse and a loop device."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from flashatlas._core import DriveError
from flashatlas.plug.client import Client
from flashatlas.plug.kernel import Kernel
from flashatlas.plug.mounted import Mounted, missing
from flashatlas.serving.serve import Serving


class RunningKernel(Kernel):
    """The kernel of this machine; root is needed."""

    def __init__(self, at: Path) -> None:
        """Mount in the folder ``at``."""
        self.at = at

    def missing(self) -> str | None:
        """Return why nothing can be mounted here, or ``None``."""
        return missing()

    def prepare(self, drive: Serving, client: Client) -> None:
        """Make a file system with the client's files."""
        with Mounted(drive, self.at, make=True):
            client.prepare(self.at)

    def write(
        self,
        drive: Serving,
        client: Client,
        first: int,
        rng: random.Random,
        acknowledge: Callable[[int], None],
    ) -> None:
        """Mount, and let the client write until the drive no longer answers."""
        try:
            mounted = Mounted(drive, self.at, make=False)
        except DriveError:
            return  # the power failed in the mount
        try:
            client.write(self.at, first, rng, acknowledge)
        finally:
            mounted.abandon()

    def found(self, drive: Serving, client: Client) -> tuple[set[int], str]:
        """Return the numbers that are there, and the faults that the client and e2fsck find."""
        mounted = Mounted(drive, self.at, make=False)
        try:
            there, wrong = client.found(self.at)
            return there, "; ".join(filter(None, (wrong, mounted.check())))
        except BaseException:
            mounted.abandon()
            raise
