"""Runs that reach every mechanism that a scheme, store or layer declares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

LOG = ["drive.blocks=96", "drive.logical_pages=2048", "ftl.log_blocks=16"]
"""Log blocks on `tiny`: 256 logical blocks of 8 pages."""
MAP = ["map.page_bytes=512", "drive.blocks=128", "drive.logical_pages=2048"]
"""Sixteen map pages of 128 entries."""

SLC = [
    "drive.cell=tlc",
    "drive.pages=12",
    "drive.blocks=64",
    "drive.logical_pages=1200",
    "ftl.slc=hybrid",
    "ftl.slc_static=3",
    "ftl.slc_dynamic=4",
    "ftl.slc_keep=1",
    "timing.t_read_slc=15us",
    "timing.t_program_slc=60us",
    "cache.mode=write-through",
]
"""An SLC cache of seven blocks in each lane, with four pages in a block."""

STEPS = [
    "drive.cell=tlc",
    "drive.pages=24",
    "drive.blocks=64",
    "drive.logical_pages=2400",
    "drive.program_unit=word-line",
    "drive.spare_bytes=128",
    "cache.bytes=96KiB",
    "ftl.program_steps=2",
    "timing.t_program_first=300us",
    "timing.t_program_second=700us",
]
"""Word lines of three pages, in two steps."""

COPIES = [
    *STEPS,
    "ftl.flush=slc",
    "ftl.flush_blocks=2",
    "timing.t_read_slc=15us",
    "timing.t_program_slc=60us",
]
"""The same, with two blocks of each lane for the copies of a FLUSH."""

MLC = ["drive.cell=mlc", "drive.pages=16", "drive.blocks=64", "drive.logical_pages=1200"]
"""Cells of two bits, whose pages share word lines."""

HOT = "hotcold:requests=6000,size=2KiB,hot_space=0.02,hot_share=0.9"
SEQUENTIAL = "sequential:requests=600,size=16KiB"
MIXED = "mixed:requests=3000,read=0.2,sizes=2KiB/4KiB/16KiB,sequential=0.5"
PIECES = "uniform:requests=1000,size=10KiB"
"""Five of the eight pages of a block."""
PAUSES = "hotcold:requests=1500,size=2KiB,hot_space=0.05,hot_share=0.9,interval=150ms"
RANDOM = "uniform:requests=4000,size=2KiB,read=0.3,flush_every=100"
COMMITS = "uniform:requests=2000,size=2KiB,flush_every=20"


Add = Callable[..., None]


def runs() -> list[dict[str, Any]]:
    """Return the arguments of :func:`flashatlas.compare` for each run."""
    found: list[dict[str, Any]] = []

    def add(label: str, workload: str, *settings: str, **options: Any) -> None:
        base = {"drive": "tiny", "precondition": "fill", "depth": 4}
        if options.get("mode") == "open":
            del base["depth"]
        run = {**base, "label": label, "workload": workload, "set": list(settings), **options}
        found.append(run)

    for part in (_log_blocks, _page_mapping, _map_stores, _layers):
        part(add)
    return found


def _log_blocks(add: Add) -> None:
    for scheme in ("bast", "fast", "faster", "sast", "superblock", "last", "mast"):
        own = [f"ftl.scheme={scheme}", *LOG, "cache.mode=write-through"]
        for workload in (HOT, SEQUENTIAL, MIXED, PIECES):
            add(f"{scheme} {workload}", workload, *own)
        add(f"{scheme} blank", SEQUENTIAL, *own, precondition="none")
        add(f"{scheme} pauses", PAUSES, *own, "ftl.idle_log_blocks=8", mode="open")
    tiny_log = ["ftl.scheme=mast", *LOG, "cache.mode=write-through", "ftl.resize_window=64"]
    add("mast sizes", HOT, *tiny_log, "ftl.cold_utilisation=0.9", "ftl.resize_band=0.01")
    grows = ["ftl.cold_utilisation=0", "ftl.hot_utilisation=0.1", "ftl.resize_slope=0"]
    add("mast cold grows", HOT, *tiny_log, *grows)
    add("mast hot grows", HOT, *tiny_log, *grows, "ftl.resize_hot=hot")
    last = ["ftl.scheme=last", *LOG, "cache.mode=write-through"]
    add("last window", HOT, *last, "ftl.hot_window_adaptive=true")
    add("block", MIXED, "ftl.scheme=block", "cache.mode=write-through", precondition="none")


def _page_mapping(add: Add) -> None:
    add("page idle", PAUSES, "ftl.idle_free=8", "ftl.idle_valid=1", mode="open")
    add("page even", HOT, "ftl.gc_pace=even")
    add("page throttled", HOT, "ftl.throttle_from=2", "ftl.throttle_rate=1MB")
    add("page wear", HOT, "ftl.wear_static=true", "ftl.wear_threshold=2")
    add("page slc", PAUSES, *SLC, mode="open")
    add("page slc mixed", MIXED, *SLC)
    add("page copyback", HOT, "ftl.copyback=same-plane")
    add("page steps", f"{HOT},flush_every=20", *STEPS)
    add("page copies for flushes", f"{HOT},flush_every=20", *COPIES)
    for defence in ("skip", "backup"):
        add(f"page {defence}", f"{HOT},flush_every=20", *MLC, f"ftl.lower_pages={defence}")


def _map_stores(add: Add) -> None:
    add("dram", COMMITS, *MAP, "map.flush=pages")
    nvm = [*MAP[1:], "map.store=nvm-hybrid", "map.segment_bytes=512", "map.nvm_idle=10ms"]
    runs_of_512 = "sequential:requests=600,size=32KiB,flush_every=9"
    add("nvm roomy", COMMITS, *nvm, "nvm.bytes=64KiB", "map.dense_share=0.1")
    add("nvm short", COMMITS, *nvm, "nvm.bytes=2KiB", "map.dense_share=0.15")
    add("nvm full", runs_of_512, *nvm, "nvm.bytes=2KiB", "map.full_share=0.9")
    add("nvm roomy, full", runs_of_512, *nvm, "nvm.bytes=64KiB", "map.full_share=0.9")
    add("nvm evicts", COMMITS, *nvm, "nvm.bytes=2KiB", "map.nvm_evict=oldest")
    pauses = "uniform:requests=100,size=2KiB,flush_every=5,interval=300ms"
    add("nvm pauses", pauses, *nvm, "nvm.bytes=64KiB", mode="open")
    small = {
        "demand": ["map.cache_bytes=2KiB"],
        "dftl": ["map.cache_bytes=1KiB"],
        "cdftl": ["map.cache_bytes=2KiB"],
        "sftl": ["map.cache_bytes=1KiB"],
        "tpftl": ["map.cache_bytes=512"],
        "learnedftl": ["map.cache_bytes=512"],
        "leaftl": ["map.cache_bytes=3KiB", "map.gamma=8", "map.compaction=500"],
    }
    for store, own in small.items():
        for workload in (RANDOM, MIXED):
            add(f"{store} {workload}", workload, *MAP, f"map.store={store}", *own)
    demand = [*MAP, "map.store=demand", "map.cache_bytes=1KiB"]
    add("demand leaves out", MIXED, *demand, "map.policy=ghost")
    reads = "sequential:requests=4000,size=2KiB,read=1"
    add("demand reads ahead", reads, *demand, "map.policy=readahead")
    add(
        "tpftl reads",
        reads,
        *MAP,
        "map.store=tpftl",
        "map.cache_bytes=128",
    )
    spilling = ["lookup.extent_pages=1", "lookup.sets=256", "lookup.ways=4", "lookup.hash=mixer"]
    add("lpmt", RANDOM, "map.store=lpmt", *spilling)
    add("lpmt extents", SEQUENTIAL, "map.store=lpmt", precondition="none")


def _layers(add: Add) -> None:
    mirror = ["layers=mirror", "drive.blocks=128", "drive.logical_pages=2048"]
    add("mirror", RANDOM, *mirror)
    add("mirror loses a drive", RANDOM, *mirror, "mirror.lose=1@10ms")
    hard = ["layers=hard", "hard.superpage=8KiB", "hard.page=2KiB", "drive.blocks=128"]
    add("hard", "uniform:requests=8000,size=2KiB,read=0.2,flush_every=64", *hard)
    add("hard direct", "mixed:requests=2000,sizes=8KiB/2KiB,read=0.3", *hard)
    add("hard pauses", "uniform:requests=200,size=2KiB,interval=20ms", *hard, mode="open")
    hpb = [
        "layers=hpb-host",
        "hpb.region=64KiB",
        "hpb.subregion=64KiB",
        *MAP,
        "map.store=demand",
        "map.cache_bytes=2KiB",
        "map.unit=2KiB",
        "hpb.max_read=2KiB",
    ]
    reads = "uniform:requests=6000,size=2KiB,read=0.8"
    add("hpb", reads, *hpb, "hpb.host_bytes=2KiB")
    add("hpb pairs", reads, *hpb, "hpb.update=piggyback", "hpb.protect=plain", "hpb.wire=paper")
    add("hpb pressure", reads, *hpb, "hpb.pressure=100ms=1KiB")
    add("hpb host", reads, *hpb, "hpb.control=host", "hpb.active_regions=4")
    aging = "zipf:requests=3000,size=2KiB,read=0.9,interval=5ms"
    add("hpb gives back", reads, *hpb, "hpb.active_regions=4")
    add(
        "hpb ages",
        aging,
        *hpb,
        "hpb.control=host",
        "hpb.read_timeout=20ms",
        "hpb.timeout_expiries=2",
        "hpb.poll=10ms",
        mode="open",
    )
