"""Notes about latencies that are mostly waiting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import flashatlas
import pytest
from flashatlas.results.rows import crowded, in_flight


def record(mode: str = "asap", fmt: str = "blkparse", depth: int = 8, passed: int = 1000) -> Any:
    return {
        "config": {"mode": mode, "params": {"host.queue_depth": depth}},
        "trace": {"format": fmt},
        "simulated_ns": passed,
        "latency_ns": {
            "read": {"count": 10, "service_mean": 300.0},
            "write": {"count": 5, "service_mean": 200.0},
        },
    }


def test_commands_in_flight_are_those_of_littles_law() -> None:
    # 10 reads of 300 ns and 5 writes of 200 ns: 4000 ns of commands in 1000 ns
    assert in_flight(record()) == 4.0
    assert in_flight(record(passed=0)) is None
    assert in_flight({"config": {}}) is None
    # four of eight requests are half; four of nine are less
    assert crowded(record(depth=8)) and not crowded(record(depth=9))
    assert not crowded(record(mode="open")) and not crowded(record(mode="closed"))
    assert not crowded(record(fmt="generator")), "a generator has no times that could be kept"


@pytest.mark.parametrize("depth", [1, 3])
def test_a_closed_loop_keeps_its_depth(depth: int) -> None:
    """A host that submits a request at each completion always has ``depth`` requests in flight."""
    options = {"drive": "tlc-small", "workload": "uniform:requests=2000,size=4KiB,read=1"}
    run = flashatlas.run(**options, depth=depth, precondition="fill")
    assert in_flight(run.record) == pytest.approx(depth, rel=0.01)


def test_a_trace_without_its_times_is_said_to_queue(cli: Any, tmp_path: Path) -> None:
    """One read a second takes some tens of microseconds: with the trace's times nothing waits."""
    lines = [f"0,{8 * (i * 37 % 5000)},4096,r,{i}\n" for i in range(2000)]
    (tmp_path / "slow.spc").write_text("".join(lines))
    base = ("run", "-d", "tlc-small", "-t", "slow.spc", "--precondition", "fill", "-q")
    fast = cli(*base).stdout
    assert "queueing" in fast and "--mode open" in fast
    assert "  at most (queue depth)" in fast
    for mode in (("--mode", "open"), ("--depth", "2")):
        assert "queueing" not in cli(*base, *mode).stdout
    assert "commands in flight" not in cli(*base, "--mode", "untimed").stdout
