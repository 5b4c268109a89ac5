"""The order in which the quantities of a drive are measured.

A blank drive is filled, read, brought to its steady state, and left to rest. Each measurement gets
the drive in the state that it needs, and only findings of earlier measurements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flashatlas._core import InputError
from flashatlas.probing.amplification import Flash, steady
from flashatlas.probing.buffer import write_buffer
from flashatlas.probing.dies import Parallelism, parallelism
from flashatlas.probing.found import SCHEMA, Finding
from flashatlas.probing.host import PAGE, Host
from flashatlas.probing.reach import map_reach
from flashatlas.probing.refresh import refresh
from flashatlas.probing.slc import FOLD_S, fill, folding, peak_speed, slc_cache, twice

Progress = Callable[[str, float], None]
"""A function that is called with the name of each phase and the share that is done."""

PHASES = (
    ("fill", 0.02),
    ("parallel reads", 0.05),
    ("map reach", 0.08),
    ("steady state", 0.15),
    ("write buffer", 0.85),
    ("refresh", 0.93),
)
"""Names of the phases, and the share of the work before each."""


@dataclass(frozen=True)
class Survey:
    """The findings about a drive."""

    capacity: int
    findings: list[Finding]
    volume: int
    """Bytes that were read and written."""

    def __getitem__(self, name: str) -> Finding:
        """Return a finding by its name."""
        return next(finding for finding in self.findings if finding.name == name)

    def to_json(self) -> dict[str, Any]:
        """Return all findings with their curves."""
        return {
            "schema": SCHEMA,
            "capacity_bytes": self.capacity,
            "volume_bytes": self.volume,
            "findings": [finding.to_json() for finding in self.findings],
        }


LARGEST = 8 << 30
"""Bytes of the largest drive that is measured."""
SMALLEST = 1 << 20
"""Bytes of the smallest drive that is measured."""


def survey(host: Host, seed: int = 1, progress: Progress | None = None) -> Survey:
    """Measure a blank drive, whose content is lost.

    Raises:
        InputError: The drive is too large or too small, or takes one command at a time.
        DriveError: The drive could not go on.

    """
    if not SMALLEST <= host.capacity <= LARGEST:
        raise InputError(
            f"the drive exports {host.capacity} bytes, and the probe writes all of them about ten "
            f"times: use a drive of {SMALLEST} to {LARGEST} bytes (drive.blocks)"
        )
    if host.depth < 2:
        raise InputError(
            "the drive takes one command at a time, and the probe sends at least two: raise "
            "host.queue_depth"
        )
    phases = iter(PHASES)

    def begin() -> None:
        name, share = next(phases)
        if progress:
            progress(name, share)

    begin()
    times = fill(host)
    again = twice(host)
    host.pause(FOLD_S)
    begin()
    parallel = parallelism(host, seed)
    begin()
    reach = map_reach(host, seed)
    begin()
    busy = steady(host, _flash(parallel, reach, host.capacity), seed)
    begin()
    buffer = write_buffer(host, peak_speed(times, host.capacity), seed)
    bytes_ = None if buffer.value is None else float(buffer.value)
    cache = slc_cache(times, host.capacity, bytes_)
    fold = folding(again, cache, bytes_, host.capacity)
    begin()
    fill(host)
    host.pause(FOLD_S)
    rest = refresh(host, seed)
    findings = [*parallel.findings, buffer, cache, fold, reach, *busy, rest]
    return Survey(host.capacity, findings, host.volume)


def _flash(parallel: Parallelism, reach: Finding, capacity: int) -> Flash | None:
    """Return the facts that the measurement of busy dies needs; ``None`` if one is unknown."""
    if parallel.dies is None or reach.value is None:
        return None
    return Flash(
        dies=parallel.dies,
        frame_pages=(parallel.chunk_bytes or 0) / PAGE,
        read_s=parallel.read_s,
        occupied_s=parallel.occupied_s,
        channels=parallel.channels or 1,
        transfer_s=parallel.transfer_s,
        misses=max(0.0, 1 - float(reach.value) / capacity),
    )
