"""Results stay what they are: ``make fingerprints`` says how to change that on purpose."""

from __future__ import annotations

import fingerprints
import flashatlas


def test_no_example_moved():
    assert fingerprints.moved(fingerprints.expected(), fingerprints.compute()) == []


def test_a_nanosecond_moves_the_trajectory_and_nothing_else_need():
    run = {"drive": "tiny", "workload": "uniform:requests=50,size=2KiB", "fingerprint": True}
    plain, slower, again = (
        fingerprints.of(flashatlas.run(set=[f"timing.t_read={time}"], **run, depth=1))
        for time in ("25us", "25.001us", "25us")
    )
    assert plain == again
    read = {**run, "workload": "uniform:requests=50,size=2KiB,read=1", "precondition": "fill"}
    fast, slow = (
        fingerprints.of(flashatlas.run(set=[f"timing.t_read={time}"], **read))
        for time in ("25us", "25.001us")
    )
    assert fast[0] == slow[0] and fast[1] != slow[1]
    assert plain[1] == slower[1], "writes alone read nothing"
