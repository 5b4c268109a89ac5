"""The interface of programs under which the plug is pulled."""

from __future__ import annotations

import errno
import random
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

GONE = (errno.EIO, errno.EROFS, errno.ENODATA, errno.EBADF)
"""Errors of the kernel about a drive that no longer answers."""


class Client(ABC):
    """A program that makes numbered items durable on a file system.

    After a power failure, numbers continue from the last one: no number is used twice.
    """

    name: str
    """The name in ``pull-plug --client NAME``."""
    summary: str
    """A description in one line."""

    def missing(self) -> str | None:
        """Return why the program cannot run here, or ``None``."""
        return None

    @abstractmethod
    def prepare(self, folder: Path) -> None:
        """Make the files that the program needs on a new file system."""

    @abstractmethod
    def write(
        self, folder: Path, first: int, rng: random.Random, acknowledge: Callable[[int], None]
    ) -> None:
        """Make the numbers from ``first`` on durable, until the drive no longer answers.

        Args:
            folder: The folder in which the file system is mounted.
            first: The first number.
            rng: Random numbers for the content.
            acknowledge: Called with each number that is durable, perhaps from several threads.

        """

    @abstractmethod
    def found(self, folder: Path) -> tuple[set[int], str]:
        """Return the numbers whose items are there and whole, and other faults in words."""


def body(number: int) -> bytes:
    """Return the content of a row: between a hundred bytes and three pages, by its number."""
    draw = random.Random(number)
    return draw.randbytes(100 + draw.randrange(12_000))
