"""What a program must do so that the plug can be pulled under it."""

from __future__ import annotations

import errno
import random
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

GONE = (errno.EIO, errno.EROFS, errno.ENODATA, errno.EBADF)
"""What the kernel says of a drive that does not answer any more."""


class Client(ABC):
    """A program that makes numbered things durable on a file system.

    Numbers go on from one life of the drive to the next: none is used twice.
    """

    name: str
    """``pull-plug --client NAME``."""
    summary: str
    """One line."""

    def missing(self) -> str | None:
        """Why it cannot run here, if so."""
        return None

    @abstractmethod
    def prepare(self, folder: Path) -> None:
        """Make what it needs on a new file system."""

    @abstractmethod
    def write(
        self, folder: Path, first: int, rng: random.Random, acknowledge: Callable[[int], None]
    ) -> None:
        """Make numbers from ``first`` on durable, until the drive does not answer any more.

        Args:
            folder: Where the file system is mounted.
            first: The first number.
            rng: Draws what is written.
            acknowledge: Hears of each number that is durable, from several threads perhaps.

        """

    @abstractmethod
    def found(self, folder: Path) -> tuple[set[int], str]:
        """Numbers that are there, whole, and what else is wrong, in words."""


def body(number: int) -> bytes:
    """What a row holds: between a hundred bytes and three pages, by its number."""
    draw = random.Random(number)
    return draw.randbytes(100 + draw.randrange(12_000))
