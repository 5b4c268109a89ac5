"""A host that sends commands to a drive and sees when each is complete.

Nothing else of a drive is visible to a measurement. A class for a real block device needs only the
members of :class:`Host`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from flashatlas import _core
from flashatlas.inputs.drive import Drive, Settings, drive_and_text, setting_list

READ, WRITE, FLUSH, TRIM = range(4)
"""Kinds of commands."""

PAGE = 4096
"""Bytes of the smallest aligned write that a host sends to any drive."""

PS = 1e12
"""Picoseconds of a second."""


class Command(NamedTuple):
    """A command of the host."""

    kind: int
    offset: int = 0
    size: int = 0
    after_s: float = 0.0
    """Earliest time of the command, in seconds from the start of its batch."""


class Times(NamedTuple):
    """The times of a command, in seconds of the host's clock."""

    begin: float
    end: float

    @property
    def latency(self) -> float:
        """Return the seconds from the submission to the completion."""
        return self.end - self.begin


class Host(Protocol):
    """A sender of commands to one drive. The content of the drive is lost."""

    capacity: int
    """Bytes that the drive exports."""
    sector: int
    """Bytes of a sector."""
    depth: int
    """Largest number of commands in flight."""
    volume: int
    """Bytes that were read or written so far."""

    def play(self, commands: Sequence[Command], depth: int = 1) -> list[Times]:
        """Send commands in order, at most ``depth`` at the same time, and wait for all of them."""
        ...

    def play_beside(
        self, commands: Sequence[Command], depth: int, beside: Sequence[Command], depth_beside: int
    ) -> tuple[list[Times], list[Times]]:
        """Send other commands at their times, whatever the first ones wait for."""
        ...

    def pause(self, seconds: float) -> None:
        """Let time pass without a command."""
        ...


class Simulated:
    """A host of a simulated drive that is blank at first; time passes with the commands."""

    def __init__(
        self, drive: str | os.PathLike[str] | Drive, *, set: Settings = (), seed: int = 1
    ) -> None:
        """Switch the drive on.

        Raises:
            InputError: The drive does not exist, or a parameter is bad.

        """
        name, toml, own = drive_and_text(drive)
        self._core = _core.TimedDrive(name, toml, own + setting_list(set), seed)
        self.capacity, self.sector = self._core.sizes()
        self.depth = self._core.queue_depth()
        self.volume = 0

    def play(self, commands: Sequence[Command], depth: int = 1) -> list[Times]:
        """Send commands in order, at most ``depth`` at the same time, and wait for all of them.

        Raises:
            DriveError: The drive could not go on.

        """
        return self._play([(commands, min(depth, self.depth))])[0]

    def play_beside(
        self, commands: Sequence[Command], depth: int, beside: Sequence[Command], depth_beside: int
    ) -> tuple[list[Times], list[Times]]:
        """Send other commands at their times, whatever the first ones wait for.

        Raises:
            DriveError: The drive could not go on.

        """
        depth = min(depth, self.depth - depth_beside)
        first, second = self._play([(commands, depth), (beside, depth_beside)])
        return first, second

    def _play(self, streams: Sequence[tuple[Sequence[Command], int]]) -> list[list[Times]]:
        sector, wanted = self.sector, []
        for commands, depth in streams:
            self.volume += sum(command.size for command in commands)
            wanted.append(
                (
                    [
                        (kind, offset // sector, size // sector, round(after * PS))
                        for kind, offset, size, after in commands
                    ],
                    depth,
                )
            )
        return [
            [Times(begin / PS, end / PS) for begin, end in stream]
            for stream in self._core.play(wanted)
        ]

    def pause(self, seconds: float) -> None:
        """Let time pass without a command."""
        self._core.pause(round(seconds * PS))


def reads(places: Sequence[int], size: int) -> list[Command]:
    """Return reads of ``size`` bytes at these offsets."""
    return [Command(READ, place, size) for place in places]


def writes(places: Sequence[int], size: int) -> list[Command]:
    """Return writes of ``size`` bytes at these offsets."""
    return [Command(WRITE, place, size) for place in places]


def in_order(begin: int, end: int, size: int) -> list[Command]:
    """Return writes of ``size`` bytes that follow one another from ``begin`` to ``end``."""
    return writes(range(begin, end - size + 1, size), size)
