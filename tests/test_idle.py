"""Work in idle time, as gaps are predicted, beside a fixed time."""

from __future__ import annotations

from typing import Any

import flashatlas


def run(interval: str, *settings: str) -> dict[str, Any]:
    return flashatlas.run(
        "tiny",
        workload="hotcold:requests=1500,size=2KiB,read=0.5,hot_space=0.05,hot_share=0.9,"
        f"interval={interval}",
        set=["cache.mode=write-through", "ftl.idle_free=8", "ftl.idle_valid=1", *settings],
        precondition="fill",
        mode="open",
    ).record


def longest(record: dict[str, Any], kind: str) -> float:
    """Return the longest latency of an operation in microseconds."""
    return record["latency_ns"][kind]["max"] / 1e3


READ, WRITE = 25 + 51.2, 51.2 + 200
"""Microseconds of a read and a write that wait for nothing: 2 KiB at 40 MB/s, and the cells."""


def test_equal_gaps_are_used_from_their_beginning():
    """A step fits into a gap of 5 ms, but not into its last 4 ms, and 100 ms never pass."""
    late, early = run("5ms", "host.idle_after=100ms"), run("5ms", "host.idle_after=1ms")
    predicted = run("5ms", "host.idle_after=100ms", "host.idle=predicted")
    assert late["gc"]["idle"] == 0 and late["gc"]["foreground"] > 50
    assert longest(late, "write") > 1500, "a write waits for an erase"
    assert early["gc"]["foreground"] == 0 and longest(early, "read") > READ + 500
    assert predicted["gc"]["foreground"] == 0 and predicted["gc"]["idle"] == early["gc"]["idle"]
    assert (
        abs(longest(predicted, "read") - READ) < 1 and abs(longest(predicted, "write") - WRITE) < 1
    )
    found = predicted["controller"]
    assert found["idle_gaps"] == 1499, "one gap before each request but the first"
    # the lengths of steps differ, so two of them were longer than expected
    assert found["idle_predicted"] > 50 and found["idle_interrupted"] <= 3
    assert not [key for key in late["controller"] if key.startswith("idle")]


def test_gaps_that_are_shorter_than_a_step_are_left_alone():
    """In gaps of 2 ms, no step of 1.5 ms or more fits after the first millisecond."""
    early = run("2ms", "host.idle_after=1ms")
    predicted = run("2ms", "host.idle_after=1ms", "host.idle=predicted")
    assert longest(early, "read") > READ + 1000, "a read waits for an erase"
    assert abs(longest(predicted, "read") - READ) < 1
    found = predicted["controller"]
    assert found["idle_held_back"] > 1000 and found["idle_interrupted"] <= 3
    assert 0 < found["idle_predicted"] < 20, "steps were tried until their length was known"
