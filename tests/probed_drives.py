"""Random drives for the probe, with the facts about each that its configuration states.

Run as a program, this file probes the drives and prints the table of the how-to. With a number, it
begins with that drive.
"""

from __future__ import annotations

import random
import sys
from typing import Any

import flashatlas
from flashatlas.probing.host import Simulated
from flashatlas.probing.survey import Survey, survey

BASE = "tlc-small"
COUNT = 20
"""Number of drives."""
MIB = 1 << 20
BITS = {"slc": 1, "mlc": 2, "tlc": 3, "qlc": 4}
PROGRAM_US = {"slc": 200, "mlc": 600, "tlc": 900, "qlc": 2000}
READ_US = {"slc": 25, "mlc": 45, "tlc": 60, "qlc": 110}
MAP_ENTRY = 4
UNIT = 4096

TOLERANCE = {
    "dies": 0.0,
    "write buffer": 0.1,
    "SLC cache": 0.1,
    "map reach": 0.25,
    "write amplification": 0.05,
}
"""Largest deviation of each quantity from the fact, as a share of the fact."""


def settings(seed: int) -> dict[str, Any]:
    """Return the settings of a random drive of 96 to 320 MiB."""
    draw = random.Random(f"probed drive {seed}")
    cell = draw.choice(list(BITS))
    while True:
        channels, ways = draw.choice([1, 2, 4, 8]), draw.choice([1, 2, 4])
        dies, planes = draw.choice([1, 1, 2]), draw.choice([1, 2, 4])
        page, pages = draw.choice([4096, 8192, 16384]), draw.choice([48, 96])
        blocks = draw.randint(72, 120)
        lanes = channels * ways * dies
        if 96 * MIB <= lanes * blocks * pages * planes * page <= 320 * MIB:
            break
    cache = draw.choice(["none", "static", "dynamic"]) if cell != "slc" else "none"
    on_demand = draw.random() < 0.5
    room = (blocks - (10 if on_demand else 6)) * pages * planes * page * lanes // UNIT
    units = int(room / (1 + draw.choice([0.07, 0.12, 0.2, 0.28])))
    chosen: dict[str, Any] = {
        "drive.channels": channels,
        "drive.ways": ways,
        "drive.dies": dies,
        "drive.planes": planes,
        "drive.frame_planes": planes,
        "drive.pages": pages,
        "drive.page_bytes": page,
        "drive.cell": cell,
        "drive.logical_pages": units,
        "timing.t_read": f"{READ_US[cell]}us",
        "timing.t_read_upper": "0",
        "timing.t_program": f"{PROGRAM_US[cell]}us",
        "timing.t_erase": f"{draw.choice([2000, 3500, 5000])}us",
        "timing.channel_rate": draw.choice([200, 400, 800, 1200]) * 10**6,
        "timing.suspend": draw.choice(["none", "program", "erase", "both"]),
        "host.link_rate": draw.choice([600, 2000, 3500, 7000]) * 10**6,
        "cache.bytes": draw.choice([512, 1024, 2048, 4096, 8192]) << 10,
        "ftl.gc_pace": "burst",
    }
    if cache != "none":
        count = draw.randint(3, 12)
        chosen |= {"ftl.slc": cache, f"ftl.slc_{cache}": count}
        chosen["timing.t_program_slc"] = f"{PROGRAM_US[cell] // draw.choice([4, 6])}us"
        chosen["timing.t_read_slc"] = f"{READ_US[cell] // 2}us"
        blocks += count if cache == "static" else 0
    chosen["drive.blocks"] = blocks
    if on_demand:
        share = draw.uniform(0.05, 0.4)
        whole = units * MAP_ENTRY
        chosen |= {"map.store": "demand", "map.page_bytes": 4096}
        chosen["map.cache_bytes"] = max(16 << 10, int(share * whole))
    return chosen


def facts(drive: dict[str, Any]) -> dict[str, float]:
    """Return the facts that the configuration states; the write amplification is not among them."""
    frame = drive["drive.planes"] * drive["drive.page_bytes"]
    dies = drive["drive.channels"] * drive["drive.ways"] * drive["drive.dies"]
    blocks = drive.get("ftl.slc_static", 0) + drive.get("ftl.slc_dynamic", 0)
    pages = drive["drive.pages"] // BITS[drive["drive.cell"]]
    capacity = drive["drive.logical_pages"] * UNIT
    cached = drive.get("map.cache_bytes", capacity) // MAP_ENTRY * UNIT
    return {
        "dies": dies,
        "write buffer": drive["cache.bytes"],
        "SLC cache": blocks * dies * pages * frame,
        "map reach": min(capacity, cached),
    }


def amplification(drive: dict[str, Any]) -> float:
    """Return the write amplification of uniform random writes that a run counts."""
    units = drive["drive.logical_pages"]
    result = flashatlas.run(
        drive=BASE,
        set=drive,
        workload=f"uniform:requests={5 * units},size=4KiB,read=0",
        mode="closed",
        depth=32,
        precondition="fill",
        warmup=3 * units,
        seed=7,
    )
    return float(result.record["waf"])


def probed(drive: dict[str, Any]) -> Survey:
    """Probe a drive."""
    return survey(Simulated(BASE, set=drive))


def deviations(drive: dict[str, Any], found: Survey) -> dict[str, float | None]:
    """Return the deviation of each quantity from its fact, or ``None`` if it cannot be told."""
    known = facts(drive) | {"write amplification": amplification(drive)}
    result: dict[str, float | None] = {}
    for name, fact in known.items():
        value = found[name].value
        if value is None:
            result[name] = None
        else:
            result[name] = float(value) / fact - 1 if fact else float(value != 0)
    return result


def is_right(name: str, deviation: float | None) -> bool:
    """Return ``True`` if a quantity was told within its tolerance."""
    return deviation is not None and abs(deviation) <= TOLERANCE[name]


def table(first: int = 0, count: int = COUNT) -> str:
    """Return a Markdown table with a row for each drive."""
    names = list(TOLERANCE)
    lines = [f"| Drive | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    sums = dict.fromkeys(names, (0, 0))
    for seed in range(first, first + count):
        drive = settings(seed)
        row = deviations(drive, probed(drive))
        cells = []
        for name, deviation in row.items():
            right, wrong = sums[name]
            told = deviation is not None
            fine = is_right(name, deviation)
            sums[name] = (right + fine, wrong + (told and not fine))
            cells.append("cannot tell" if deviation is None else f"{deviation:+.1%}")
        lines.append(f"| {seed} | {' | '.join(cells)} |")
        print(lines[-1], file=sys.stderr, flush=True)
    lines.append(f"| right, wrong | {' | '.join(f'{a}, {b}' for a, b in sums.values())} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(*map(int, sys.argv[1:])))
