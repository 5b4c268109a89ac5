"""Collection at the pace of the presets of TLC drives: its effect on a host's latencies.

A user of such a drive would ask for these bounds. If collection works in bursts, the longest read
here takes seconds, and the longest write 0.1 s (ADR 0036).
"""

from __future__ import annotations

import flashatlas
import pytest

BURST = {"ftl.gc_pace": "burst", "cache.ahead": 4}
DFTL = {"map.store": "dftl", "map.cache_bytes": "64KiB"}
SLOW = ["learnedftl", "demand", "leaftl"]
# stores that hold map pages, with the same memory
PAGED = ["cdftl", "sftl", "tpftl", *(pytest.param(s, marks=pytest.mark.long) for s in SLOW)]
REQUESTS = [200_000, pytest.param(400_000, marks=pytest.mark.long)]


def run(requests: int, settings: dict[str, object]) -> dict[str, object]:
    return flashatlas.run(
        "tlc-small",
        workload=f"uniform:requests={requests},size=4KiB,read=0.7",
        set=settings,
        precondition="steady",
        depth=16,
    ).record


def longest(record: dict[str, object], kind: str, of: str = "max") -> float:
    """Return a latency of an operation in milliseconds."""
    return record["latency_ns"][kind][of] / 1e6


@pytest.mark.parametrize("requests", REQUESTS)
def test_reads_that_miss_the_map_do_not_wait_for_collection(requests):
    paced, burst = run(requests, DFTL), run(requests, DFTL | BURST)
    assert paced["gc"]["foreground"] > 0 and paced["scheme"]["partial_frames"] > 0
    assert longest(paced, "read") <= 50
    # 16 requests are always in flight, so a time without completions adds to each latency
    assert max(longest(paced, kind) for kind in ("read", "write")) < 100
    assert paced["waf"] <= 1.15 * burst["waf"]


@pytest.mark.parametrize("requests", REQUESTS)
def test_writes_wait_for_a_step_of_collection(requests):
    paced, burst = run(requests, {}), run(requests, BURST)
    assert longest(paced, "write", "p99_9") <= 10
    assert paced["waf"] <= 1.1 * burst["waf"]


@pytest.mark.parametrize("store", PAGED)
def test_every_store_finds_what_was_moved(store):
    """A lookup writes no map page for the sole reason that collection changed its entries."""
    settings = DFTL | {"map.store": store}
    paced, burst = run(30_000, settings), run(30_000, settings | BURST)
    assert longest(paced, "read") <= 60
    assert paced["waf_parts"]["map"] <= burst["waf_parts"]["map"]


# the number of blocks of 32 pages in each of eight lanes, and the over-provisioning
SMALL = [(28, 0.28), (64, 0.12), (64, 0.28), (128, 0.07)]


@pytest.mark.parametrize(("blocks", "spare"), SMALL)
def test_small_drives_lose_little_to_the_pace(blocks, spare):
    shape = {
        "drive.channels": 8,
        "drive.ways": 1,
        "drive.dies": 1,
        "drive.planes": 1,
        "drive.frame_planes": 1,
        "drive.page_bytes": "4KiB",
        "drive.pages": 32,
        "drive.blocks": blocks,
        "drive.logical_pages": int(8 * 32 * blocks / (1 + spare)),
        "map.unit": "4KiB",
        "nand.endurance": 1_000_000,
        "cache.bytes": "256KiB",
    }

    def waf(more: dict[str, object]) -> float:
        workload = f"uniform:requests={2_000 * blocks},size=4KiB"
        settings = {**shape, **more}
        done = flashatlas.run(
            "tlc-nvme-1tb", workload=workload, set=settings, precondition="fill", depth=16
        )
        return done.record["waf"]

    assert waf({}) <= 1.06 * waf(BURST)
