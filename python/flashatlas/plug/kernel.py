"""Whose ext4 it is under which the plug is pulled."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable

from flashatlas.plug.client import Client
from flashatlas.serve import Serving


class Kernel(ABC):
    """A kernel that mounts ext4 on a served drive and runs a client there."""

    @abstractmethod
    def missing(self) -> str | None:
        """Why it cannot be had here, if so."""

    @abstractmethod
    def prepare(self, drive: Serving, client: Client) -> None:
        """Make a file system, and on it what the client needs.

        Raises:
            DriveError: What the kernel says.

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
        """Mount, and let the client write until the drive does not answer any more."""

    @abstractmethod
    def found(self, drive: Serving, client: Client) -> tuple[set[int], str]:
        """Mount; numbers that are there, and what the client and e2fsck find wrong.

        Raises:
            DriveError: It cannot be mounted.

        """
