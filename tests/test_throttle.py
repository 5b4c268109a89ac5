"""Throttling of host writes, where theory says what a bounded queue gains from it."""

from __future__ import annotations

from typing import Any

import flashatlas
import pytest

DEPTH, SIZE, MS = 16, 4096, 1e6
RATE = 58_000_000
"""Bytes a second, 88 % of what the drive of the first test sustains."""
THROTTLE = {"ftl.throttle_from": 1, "ftl.throttle_rate": "58MB"}
BURST = {"ftl.gc_pace": "burst", "cache.ahead": 4}


def run(settings: dict[str, Any], read: float = 0, requests: int = 60_000) -> dict[str, Any]:
    return flashatlas.run(
        "tlc-small",
        workload=f"uniform:requests={requests},size=4KiB,read={read}",
        set=BURST | settings,
        precondition="steady",
        warmup=20_000,
        depth=DEPTH,
    ).record


def latency(record: dict[str, Any], of: str, kind: str = "write") -> float:
    """Return a latency in nanoseconds."""
    return record["latency_ns"][kind][of]


def test_a_rate_that_the_flash_sustains_turns_stalls_into_equal_delays():
    """Writes that come at a rate need a cache of this rate times the longest stall (Le Boudec and
    Thiran, *Network Calculus*, 2001: the backlog of a rate-latency server). With such a cache no
    write waits for it. So each of 16 writes in flight waits for 16 times 4 KiB at the rate.
    """
    cache = 64 << 20
    room = {"cache.bytes": "64MiB", "cache.high": 0.25, "cache.low": 0.2}
    plain, throttled = run(room), run(room | THROTTLE)
    assert plain["bandwidth_bytes_per_s"] > RATE, "the flash sustains the rate"
    stall = latency(plain, "max") / 1e9
    assert cache * (1 - 0.25) > RATE * stall, "the cache takes in what comes during a stall"
    bound = DEPTH * SIZE / RATE * 1e9
    for of in ("p50", "p99", "p99_9", "max"):
        assert latency(throttled, of) == pytest.approx(bound, rel=0.002)
    assert latency(plain, "p50") < bound / 5 and latency(plain, "p99_9") > 100 * bound
    assert throttled["iops"] > 0.85 * plain["iops"]
    writes = throttled["host"]["writes"]
    assert throttled["controller"]["throttled_writes"] == writes
    mean = throttled["controller"]["throttled_ns"] / writes
    assert mean == pytest.approx(latency(throttled, "mean"), rel=0.02)
    assert "throttled_writes" not in plain["controller"]


def test_reads_wait_less_when_writes_take_less_of_the_flash():
    """With fewer programs, erases and reads in flight, a read finds its die free more often."""
    plain = run({}, read=0.5)
    throttled = run(THROTTLE | {"ftl.throttle_rate": "30MB"}, read=0.5)
    assert throttled["utilisation"]["dies"]["mean"] < 0.75 * plain["utilisation"]["dies"]["mean"]
    for of in ("mean", "p99", "p99_9"):
        assert latency(throttled, of, "read") < 0.75 * latency(plain, of, "read"), of
    assert throttled["controller"]["throttled_writes"] > 0


def test_nothing_changes_while_there_is_room():
    def blank(settings: dict[str, Any]) -> dict[str, Any]:
        record = flashatlas.run(
            "tlc-small", workload="uniform:requests=5000,size=4KiB,read=0.3", set=settings, depth=8
        ).record
        return {key: record[key] for key in ("latency_ns", "controller", "nand", "simulated_ns")}

    # 102 of 104 blocks of each lane are free above the mark, and few of them are used
    plain = blank({})
    assert blank({"ftl.throttle_from": 90, "ftl.throttle_rate": "1MB"}) == plain
    assert blank({"ftl.throttle_from": 120, "ftl.throttle_rate": "1MB"}) != plain


def test_a_path_names_the_delay():
    record = flashatlas.run(
        "tiny",
        workload="uniform:requests=2000,size=2KiB",
        set={"ftl.throttle_from": 8, "ftl.throttle_rate": "2MB"},
        precondition="fill",
        depth=4,
        explain="p99",
    ).record
    slow = record["explain"]["ops"]["write"]
    assert slow["parts_ns"]["throttle"] > 0.5 * slow["mean_ns"]
