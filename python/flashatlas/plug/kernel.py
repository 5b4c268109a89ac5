"""The interface of kernels under whose ext4 the plug is pulled."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable

from flashatlas.plug.client import Client
from flashatlas.serving.serve import Serving


class Kernel(ABC):
    """A kernel that mounts ext4 on a served drive and runs a client there."""

    nvme: str | None = None
    """The address at which this kernel expects the drive over NVMe; without it, over NBD."""
    sends_fua: bool = False
    """``True`` if a commit of ext4 sends the drive a write with FUA."""

    @abstractmethod
    def missing(self) -> str | None:
        """Return why this kernel cannot be used here, or ``None``."""

    @abstractmethod
    def prepare(self, drive: Serving, client: Client) -> None:
        """Make a file system with the client's files.

        Raises:
            DriveError: The kernel's error.

        """

    @abstractmethod
    def write(
        self,
        drive: Serving,
        client: Client,
        first: int,
        rng: random.Random,
        acknowledge: Callable[[int], None],
    ) -> None:
        """Mount, and let the client write until the drive no longer answers."""

    @abstractmethod
    def found(self, drive: Serving, client: Client) -> tuple[set[int], str]:
        """Mount; return the numbers that are there, and the faults that client and e2fsck find.

        Raises:
            DriveError: The drive cannot be mounted.

        """
