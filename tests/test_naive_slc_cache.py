"""Runs with an SLC cache beside the model in `naive/slc_cache.py`, and what holds of each run."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import flashatlas
import pytest
from drawn import sample
from naive.slc_cache import Drive, NoSpace, Shape
from naive.traces import US, Request, written

CELLS = {2: "mlc", 3: "tlc", 4: "qlc"}
TIMES = ["timing.t_read_slc=15us", "timing.t_program_slc=60us"]
PAUSE = 10 * 1_000_000 * US
"""Time in which a small drive ends all work of idle time."""


def drawn_shape(chosen: random.Random, lanes: int) -> tuple[Shape, int]:
    """Return a drive, and the number of its logical pages."""
    bits, slc = chosen.choice(list(CELLS)), chosen.choice(["static", "dynamic", "hybrid"])
    native, static = chosen.randint(10, 24), chosen.randint(1, 4)
    shape = Shape(
        lanes=lanes,
        blocks=native + (static if slc != "dynamic" else 0),
        pages=bits * chosen.randint(1, 6),
        bits=bits,
        slc=slc,
        slc_static=static if slc != "dynamic" else 0,
        slc_dynamic=chosen.choice([0, 1, 2, 5]) if slc != "static" else 0,
        slc_keep=chosen.choice([0, 0, 1, 3]),
        low_water=chosen.choice([2, 2, 3]),
        idle_free=chosen.choice([0, 4, 8]),
        victim=chosen.choice(["greedy", "fifo"]),
    )
    # a lane needs its frontiers, its low-water mark, and a block that is not quite full
    return shape, max(2, int(lanes * (native - 6) * shape.pages * chosen.uniform(0.5, 0.98)))


def settings(shape: Shape, logical: int) -> list[str]:
    ways = 2 if shape.lanes > 1 else 1
    own = ["slc", "slc_static", "slc_dynamic", "slc_keep", "low_water", "idle_free", "victim"]
    return [
        f"drive.channels={shape.lanes // ways}",
        f"drive.ways={ways}",
        f"drive.cell={CELLS[shape.bits]}",
        f"drive.pages={shape.pages}",
        f"drive.blocks={shape.blocks}",
        f"drive.logical_pages={logical}",
        "cache.mode=write-through",
        *TIMES,
        *(f"ftl.{key}={getattr(shape, key)}" for key in own),
        # a lane collects for itself alone
        "ftl.gc_parallel=false",
    ]


def counted(run: flashatlas.Result) -> dict[str, Any]:
    """Return the counts of a run in the form of the model."""
    nand, scheme = run.record["nand"], run.record["scheme"]
    return {
        "scheme": {key: n for key, n in scheme.items() if key.startswith("slc_") and n},
        "programs": nand["programs"],
        "erases": nand["erases"],
        "slc": {key: n for key, n in nand.get("slc", {}).items() if n},
        "collected": {
            key: n for key, n in run.record.get("gc", {}).items() if n and key != "valid_share"
        },
    }


def drawn_requests(chosen: random.Random, logical: int, pauses: float) -> list[Request]:
    at, found = 0, []
    for _ in range(chosen.randint(50, 4 * logical + 100)):
        at += PAUSE if chosen.random() < pauses else 10_000 * US
        operation = "trim" if chosen.random() < 0.05 else "write"
        found.append(Request(at, operation, chosen.randrange(logical)))
    return found


@pytest.mark.parametrize("seed", sample(range(2000), 20))
def test_the_model_counts_what_a_run_counts(seed: int, tmp_path: Path) -> None:
    """Programs and erases by cause and mode, folds, direct writes, and what is held at the end."""
    chosen = random.Random(seed)
    shape, logical = drawn_shape(chosen, chosen.choice([1, 2, 4]))
    pauses = chosen.choice([0, 0.01, 0.05])
    model, last = Drive(shape), 0
    requests = drawn_requests(chosen, logical, pauses)
    for taken, (at, operation, page) in enumerate(requests):
        if at - last == PAUSE:
            model.idle()
        last = at
        try:
            (model.trim if operation == "trim" else model.write)(page)
        except (NoSpace, IndexError):
            pytest.fail(f"the model has no room for request {taken}: draw fewer logical pages")
    run = flashatlas.run(
        drive="tiny",
        set=settings(shape, logical),
        trace=written(tmp_path / "drawn.csv", requests),
        mode="open" if pauses else "untimed",
    )
    assert counted(run) == model.counts(), (shape, logical)
    assert run.violations == 0
    host = sum(operation == "write" for _, operation, _ in requests)
    assert run.waf == pytest.approx(sum(model.programs.values()) / host)


@pytest.mark.parametrize("seed", sample(range(400), 20))
def test_what_holds_of_every_cache(seed: int) -> None:
    """Frames of several units, lanes that collect together, a write cache: nothing gets lost."""
    chosen = random.Random(seed)
    lanes = chosen.choice([1, 2, 4])
    shape, logical = drawn_shape(chosen, lanes)
    frame = chosen.choice([1, 2, 4])
    word_line = chosen.choice([True, False])
    several = [f"drive.page_bytes={2 * frame}KiB", f"drive.spare_bytes={64 * frame}"]
    if word_line:
        several.append("drive.program_unit=word-line")
    if chosen.choice([True, False]):
        several += ["cache.mode=write-back", f"cache.bytes={64 * frame * shape.bits}KiB"]
    name = chosen.choice(["uniform", "zipf", "sequential"])
    timed = chosen.choice([{"depth": 4}, {"mode": "open"}, {"mode": "untimed"}])
    size, between = chosen.choice([2, 4, 16]), chosen.choice(["1ms", "150ms"])
    load = f"{name}:requests={chosen.randint(100, 1000)},size={size}KiB,trim=0.05"
    run = flashatlas.run(
        drive="tiny",
        set=[
            *settings(shape, max(8, logical // 3 * frame)),
            *several,
            f"ftl.gc_parallel={chosen.choice(['true', 'false'])}",
        ],
        workload=f"{load},interval={between},flush_every={chosen.choice([0, 20])}",
        **timed,
    )
    assert run.violations == 0
    scheme = run.record["scheme"]
    nand = run.record["nand"]
    slc = {"reads": 0, "programs": 0, "erases": 0, **nand.get("slc", {})}
    written_there = scheme["slc_writes"]
    assert written_there == scheme["slc_folded"] + scheme["slc_saved"] + scheme["slc_held"]
    # a page of a program to the cache holds at most `frame` units, and is padded if it holds less
    assert slc["programs"] * frame >= written_there
    assert slc["programs"] * frame - written_there <= nand["padded_units"]
    host = sum(nand["programs"].get(cause, 0) for cause in ("host", "cache_evict"))
    # only the host programs in SLC mode, and what it programs elsewhere is direct
    native = host - slc["programs"]
    assert 0 <= native * frame - scheme["slc_direct"] <= nand["padded_units"]
    # a folded block is erased when the frames of its last copies are programmed
    units = frame * (shape.bits if word_line else 1)
    assert slc["erases"] == nand["erases"].get("fold", 0)
    assert 0 <= scheme["slc_folds"] - slc["erases"] <= lanes * units
    # a block in SLC mode has one page on each word line, and is erased when all are programmed
    room = shape.pages // shape.bits
    limit = shape.slc_static
    if shape.slc != "static":
        limit += shape.slc_dynamic or shape.blocks - shape.slc_static
    assert 0 <= slc["programs"] - slc["erases"] * room <= lanes * room * (limit + units)
    # what is programmed is of the host, or a copy; without other collection, only folds copy
    assert nand["reads"].get("fold", 0) * frame >= scheme["slc_folded"]
    copies = sum(nand["programs"].values()) * frame - nand["padded_units"]
    copies -= scheme["slc_writes"] + scheme["slc_direct"]
    if "gc" not in run.record:
        assert scheme["slc_folded"] - lanes * units <= copies <= scheme["slc_folded"]


@pytest.mark.parametrize("slc", ["static", "dynamic", "hybrid"])
def test_a_blank_drive_takes_as_many_bytes_at_slc_speed_as_its_cache_holds(slc: str) -> None:
    """One unit at a time: the program of an SLC page takes 60 us, of a native page 200 us.

    Other times (a transfer of 2 KiB at 40 MB/s) are the same for both: 51.2 us.
    """
    static, dynamic = (3 if slc != "dynamic" else 0), (5 if slc != "static" else 0)
    shape = Shape(
        lanes=4, blocks=32, pages=12, bits=3, slc=slc, slc_static=static, slc_dynamic=dynamic
    )
    held = 4 * (static + dynamic) * (12 // 3)
    for requests in (held, held + 1, 300):
        run = flashatlas.run(
            drive="tiny",
            set=settings(shape, 600),
            workload=f"sequential:requests={requests},size=2KiB",
            depth=1,
        )
        # edges of bins are at most 0.1 % above the latencies
        bins = run.tables["latency"].to_pylist()
        fast, slow = (
            sum(
                row["count"] for row in bins if 0 <= row["latency_ns"] / (tprog + 51_200) - 1 < 1e-3
            )
            for tprog in (60_000, 200_000)
        )
        assert (fast, slow) == (held, requests - held)


def test_lanes_that_collect_together_fold_dynamic_blocks_first() -> None:
    """Two lanes of 14 blocks hold three filled blocks in SLC mode when one of them has no room.

    2 x 3 x 2 pages went to the cache, and 2 x 9 x 6 directly: with the blocks at the low-water mark
    that is all, so the next write needs a block.
    """
    shape = Shape(lanes=2, blocks=14, pages=6, bits=3, slc="dynamic", slc_dynamic=3)
    run = flashatlas.run(
        drive="tiny",
        set=[*settings(shape, 72), "ftl.gc_parallel=true"],
        workload="sequential:requests=121,size=2KiB",
        mode="untimed",
    )
    assert run.record["scheme"]["slc_folds"] >= 1
    assert set(run.record["nand"]["erases"]) == {"fold"}
