"""Refresh of blocks by their age (ADR 0047), on lanes whose frames are single pages.

The flash has a clock in seconds. A block ages from its first program after an erase. Pages are
never overwritten here, so each block that is due is copied with all its pages, and none is
collected for room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

HOUR = 3600
"""Seconds between two looks of idle time."""


@dataclass(eq=False)
class Block:
    """The time of a block's first program, and how many pages it holds."""

    since: int
    pages: int = 0


@dataclass
class Lane:
    """Blocks of a lane: full ones, and the two that writes and copies fill."""

    full: list[Block] = field(default_factory=list)
    host: Block | None = None
    copies: Block | None = None

    def blocks(self) -> list[Block]:
        return [*self.full, *(block for block in (self.host, self.copies) if block)]


class Drive:
    """A drive that is asked about its age, by commands and in idle time."""

    def __init__(
        self, lanes: int, pages: int, due: Callable[[float], bool], check: float, idle: float
    ) -> None:
        """``due`` is told the age of a block in seconds."""
        self.lanes = [Lane() for _ in range(lanes)]
        self.pages, self.due, self.check, self.idle_after = pages, due, check, idle
        self.turn = 0
        self.looked = 0.0
        self.now = 0.0
        self.refreshed = Counter[float]()
        """Blocks by the time at which they were refreshed."""

    def fill(self, frames: int) -> None:
        """Precondition: write frames in no time."""
        for _ in range(frames):
            self._write()

    def rest(self, seconds: int) -> None:
        """Let all blocks age."""
        for lane in self.lanes:
            for block in lane.blocks():
                block.since -= seconds

    def command(self, at: float, *, write: bool) -> None:
        """Let idle time pass until a command arrives, carry it out, and look if it is time to."""
        self.pass_time(at)
        if write:
            self._write()
        if at - self.looked >= self.check:
            self._look(at, one_of_each_lane=True)

    def pass_time(self, until: float) -> None:
        """Look at each full hour of idle time."""
        begin = self.now + self.idle_after
        hour = -(-begin // HOUR)
        while hour * HOUR < until:
            self._look(hour * HOUR, one_of_each_lane=False)
            hour += 1
        self.now = until

    def _look(self, at: float, *, one_of_each_lane: bool) -> None:
        self.now = self.looked = at
        for lane in self.lanes:
            old = sorted(lane.blocks(), key=lambda block: block.since)
            due = [block for block in old if self.due(int(at) - block.since)]
            self._close(lane, due)
            for block in due[:1] if one_of_each_lane else due:
                lane.full.remove(block)
                for _ in range(block.pages):
                    lane.copies = self._programmed(lane, lane.copies)
                self.refreshed[at] += 1

    @staticmethod
    def _close(lane: Lane, due: list[Block]) -> None:
        """Take no more pages into open blocks that are due."""
        if lane.host in due:
            lane.full.append(lane.host)
            lane.host = None
        if lane.copies in due:
            lane.full.append(lane.copies)
            lane.copies = None

    def _write(self) -> None:
        lane = self.lanes[self.turn % len(self.lanes)]
        self.turn += 1
        lane.host = self._programmed(lane, lane.host)

    def _programmed(self, lane: Lane, block: Block | None) -> Block | None:
        """Program a page of an open block, and return the block if it stays open."""
        block = block or Block(since=int(self.now))
        block.pages += 1
        if block.pages < self.pages:
            return block
        lane.full.append(block)
        return None
