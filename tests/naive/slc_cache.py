"""The SLC cache of page mapping (ADR 0044), page by page.

A frame is one page with one unit, and no write waits in a cache. So each write is a program, and
each valid page of a block that is emptied is a copy.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Block:
    """An erase block: its mode since the last erase, and its pages."""

    static: bool
    slc: bool = False
    programmed: int = 0
    valid: dict[int, None] = field(default_factory=dict)
    """Logical pages whose newest version is here, in the order of their programs."""


@dataclass
class Lane:
    """The blocks of a lane, each in one list or open."""

    static: list[Block]
    """Erased blocks that are always in SLC mode."""
    free: list[Block]
    """Other erased blocks."""
    filled: list[Block] = field(default_factory=list)
    """Full blocks in SLC mode, oldest first."""
    full: list[Block] = field(default_factory=list)
    """Full native blocks, oldest first."""
    cache: Block | None = None
    direct: Block | None = None
    copies: Block | None = None

    def dynamic(self) -> list[Block]:
        """Return the dynamic blocks that are in SLC mode."""
        found = [*self.filled, *([self.cache] if self.cache else [])]
        return [block for block in found if not block.static]


@dataclass
class Shape:
    """Parameters of a drive of the model, named as the keys."""

    lanes: int
    blocks: int
    pages: int
    bits: int
    slc: str
    slc_static: int = 0
    slc_dynamic: int = 0
    slc_keep: int = 0
    low_water: int = 2
    idle_free: int = 0
    idle_valid: float = 0.5
    victim: str = "greedy"


class NoSpace(Exception):
    """No block of a lane can be collected."""


class Drive:
    """A page-mapped drive with an SLC cache, and what it counts."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        static = 0 if shape.slc == "dynamic" else shape.slc_static
        self.lanes = [
            Lane(
                static=[Block(static=True) for _ in range(static)],
                free=[Block(static=False) for _ in range(shape.blocks - static)],
            )
            for _ in range(shape.lanes)
        ]
        self.place: dict[int, Block] = {}
        self.turn_of_cache = self.turn_of_direct = 0
        self.cache = Counter[str]()
        self.programs = Counter[str]()
        self.erases = Counter[str]()
        self.slc = Counter[str]()
        self.collected = Counter[str]()

    def write(self, page: int) -> None:
        """Write a logical page: to the cache if a lane has room there, otherwise directly."""
        for _ in self.lanes:
            lane = self.lanes[self.turn_of_cache % len(self.lanes)]
            self.turn_of_cache += 1
            if self._has_room(lane):
                return self._write_to_cache(lane, page)
        lane = self.lanes[self.turn_of_direct % len(self.lanes)]
        self.turn_of_direct += 1
        return self._write_directly(lane, page)

    def trim(self, page: int) -> None:
        """Forget a logical page."""
        block = self.place.pop(page, None)
        if block is not None:
            del block.valid[page]
            self.cache["slc_saved"] += block.slc

    def idle(self) -> None:
        """Do all that idle time is for: each lane folds, then collects."""
        for lane in self.lanes:
            while len(lane.filled) > self.shape.slc_keep:
                if lane.filled[0].static and len(lane.free) <= self.shape.low_water:
                    self._make_room(lane)
                else:
                    self._fold(lane, lane.filled[0])
            while len(lane.free) < self.shape.idle_free:
                victim = self._victim(lane)
                most = self.shape.idle_valid * self.shape.pages
                if victim is None or len(victim.valid) > most:
                    break
                self._collect(lane, victim, "idle")

    def counts(self) -> dict[str, Any]:
        """Return the counts under the names of the run record; none is 0."""
        held = sum(
            len(block.valid)
            for lane in self.lanes
            for block in [*lane.filled, *([lane.cache] if lane.cache else [])]
        )
        return {
            "scheme": dict(+Counter({**self.cache, "slc_held": held})),
            "programs": dict(+self.programs),
            "erases": dict(+self.erases),
            "slc": dict(+self.slc),
            "collected": dict(+self.collected),
        }

    def _has_room(self, lane: Lane) -> bool:
        if lane.cache or lane.static:
            return True
        limit = self.shape.slc_dynamic or self.shape.blocks
        may_open = self.shape.slc != "static" and len(lane.dynamic()) < limit
        return may_open and len(lane.free) - 1 > self.shape.low_water

    def _write_to_cache(self, lane: Lane, page: int) -> None:
        if lane.cache is None:
            lane.cache = (lane.static or lane.free).pop(0)
            lane.cache.slc = True
        block = lane.cache
        self.trim(page)
        self._program(block, page, "host")
        self.cache["slc_writes"] += 1
        if block.programmed == self.shape.pages // self.shape.bits:
            lane.filled.append(block)
            lane.cache = None

    def _write_directly(self, lane: Lane, page: int) -> None:
        if lane.direct is None:
            self._make_room(lane)
            lane.direct = lane.free.pop(0)
        block = lane.direct
        self.trim(page)
        self._program(block, page, "host")
        self.cache["slc_direct"] += 1
        if block.programmed == self.shape.pages:
            lane.full.append(block)
            lane.direct = None

    def _program(self, block: Block, page: int, cause: str) -> None:
        block.programmed += 1
        block.valid[page] = None
        self.place[page] = block
        self.programs[cause] += 1
        self.slc["programs"] += block.slc

    def _make_room(self, lane: Lane) -> None:
        """Empty blocks until the lane is above its low-water mark: dynamic ones, then victims."""
        while len(lane.free) <= self.shape.low_water:
            folded = next((block for block in lane.filled if not block.static), None)
            victim = self._victim(lane)
            if folded is not None:
                self._fold(lane, folded)
            elif victim is not None:
                self._collect(lane, victim, "gc")
            else:
                raise NoSpace

    def _victim(self, lane: Lane) -> Block | None:
        worth = [block for block in lane.full if len(block.valid) < self.shape.pages]
        if self.shape.victim == "fifo" or not worth:
            return worth[0] if worth else None
        return min(worth, key=lambda block: len(block.valid))

    def _collect(self, lane: Lane, victim: Block, cause: str) -> None:
        lane.full.remove(victim)
        self._empty(lane, victim, cause)
        self.collected["foreground" if cause == "gc" else cause] += 1
        lane.free.append(victim)

    def _fold(self, lane: Lane, block: Block) -> None:
        lane.filled.remove(block)
        self.cache["slc_folded"] += len(block.valid)
        self._empty(lane, block, "fold")
        self.cache["slc_folds"] += 1
        (lane.static if block.static else lane.free).append(block)

    def _empty(self, lane: Lane, block: Block, cause: str) -> None:
        """Copy the valid pages of a block to the lane's frontier of copies, and erase it."""
        self.slc["reads"] += len(block.valid) * block.slc
        for page in list(block.valid):
            del block.valid[page]
            if lane.copies is None:
                lane.copies = lane.free.pop(0)
            self._program(lane.copies, page, cause)
            if lane.copies.programmed == self.shape.pages:
                lane.full.append(lane.copies)
                lane.copies = None
        self.erases[cause] += 1
        self.slc["erases"] += block.slc
        block.slc, block.programmed = False, 0
