"""The policy of the DRAM+NVM map: workloads that reach each of its states."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from flashatlas.results.result import Result

WHERE = (
    ("sparse", "segments_to_nvm_sparse"),
    ("dense", "segments_to_nvm_dense"),
    ("full", "segments_to_nvm_full"),
    ("full, flash", "segments_to_flash_full"),
    ("no room", "segments_to_flash_no_room"),
    ("evicted", "segments_to_flash_evicted"),
    ("idle", "segments_to_flash_idle"),
)
"""Fates of segments: the first three went to NVM, the others to flash."""


@dataclass(frozen=True)
class PolicyRow:
    """One policy on one workload."""

    workload: str
    slots: int
    settings: tuple[str, ...]
    """Settings that differ from the defaults."""
    result: Result = field(repr=False)

    @property
    def segments(self) -> dict[str, int]:
        """Numbers of segments by fate, with the names of :data:`WHERE`."""
        counts = self.result.record["map"]
        return {name: counts[key] for name, key in WHERE}

    def to_json(self) -> dict[str, Any]:
        """Return all numbers."""
        return {
            "workload": self.workload,
            "nvm_slots": self.slots,
            "set": list(self.settings),
            "flush_ns": self.result.latency["flush"],
            "waf": self.result.waf,
            "segments": self.segments,
            "violations": self.result.violations,
        }


def runs(
    experiment: dict[str, Any], slot_bytes: int, most: int | None
) -> list[tuple[tuple[str, int, tuple[str, ...]], dict[str, Any]]]:
    """Return the identity of each row, and the options of its run.

    ``most`` limits the measured requests of a run, and makes the drive a tenth as large.
    """
    made = []
    shape = ["drive.logical_pages=1300000"] if most else []
    for entry in experiment["policy"]:
        warmup = 0 if most else entry.get("warmup", 0)
        count = warmup + min(entry["requests"], most or entry["requests"])
        how = {key: entry[key] for key in ("depth", "mode") if key in entry}
        how["warmup"] = warmup
        for case in entry["cases"]:
            own = tuple(case.get("set", ()))
            settings = [
                *experiment["set"],
                *experiment["nvm"]["set"],
                *shape,
                f"nvm.bytes={case['slots'] * slot_bytes}",
                *own,
            ]
            workload = entry["workload"].replace("{n}", str(count))
            made.append(
                (
                    (entry["name"], case["slots"], own),
                    {"set": settings, "workload": workload, **how},
                )
            )
    return made


HEAD = ("slots", "settings", "FLUSH mean", "FLUSH p99", "WAF", *(name for name, _ in WHERE))
"""The head of the tables."""


def cells(row: PolicyRow) -> tuple[str, ...]:
    """Return the cells of a row."""
    flush = row.result.latency["flush"]
    return (
        f"{row.slots:,}",
        ", ".join(setting.removeprefix("map.") for setting in row.settings) or "–",
        f"{flush['mean'] / 1e6:.2f} ms",
        f"{flush['p99'] / 1e6:.2f} ms",
        f"{row.result.waf:.3f}" if row.result.waf else "–",
        *(f"{count:,}" for count in row.segments.values()),
    )
