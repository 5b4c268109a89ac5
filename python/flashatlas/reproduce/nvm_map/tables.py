"""The tables of the DRAM+NVM map experiment."""

from __future__ import annotations

from flashatlas.reproduce.nvm_map.plan import NvmMap, Row
from flashatlas.reproduce.nvm_map.policy import HEAD, cells
from flashatlas.reproduce.table import Listing
from flashatlas.results.units import size

NUMBERS = (
    "calls a second",
    "FLUSH mean",
    "FLUSH p99",
    "data programs",
    "map pages",
    "directory",
    "NVM",
    "WAF",
)
"""Columns of the tables; programs, pages and bytes are the average of one FLUSH."""


def headline_rows(nvm: NvmMap) -> list[tuple[str, ...]]:
    """Return the published gain and ours for each baseline."""
    published = nvm.experiment["published"]["gain_max"]
    return [
        (over, f"{published:g}", f"{ours:.2f}", f"{100 * (ours / published - 1):+.0f} %")
        for over, ours in nvm.headline().items()
    ]


HEADLINE = ("over", "published, up to", "ours", "deviation")


def numbers_of(row: Row) -> tuple[str, ...]:
    """Return the cells of a row."""
    cost, flush = row.per_flush, row.flush_ns
    return (
        f"{row.calls_per_s:,.1f}" if row.calls_per_s else "–",
        f"{flush['mean'] / 1e6:.2f} ms",
        f"{flush['p99'] / 1e6:.2f} ms",
        f"{cost['data']:.2f}",
        f"{cost['map']:.2f}",
        f"{cost['directory']:.2f}",
        size(cost["nvm_bytes"]) if cost["nvm_bytes"] else "–",
        f"{row.result.waf:.3f}" if row.result.waf else "–",
    )


def policy_rows(nvm: NvmMap) -> dict[str, list[tuple[str, ...]]]:
    """Return the policies on each of their workloads."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for row in nvm.policies:
        found.setdefault(row.workload, []).append(cells(row))
    return found


def listings(nvm: NvmMap) -> list[Listing]:
    """Return the tables for the terminal."""
    made = [
        Listing(
            workload, "", ["", *NUMBERS], [(row.map, *numbers_of(row)) for row in nvm.of(workload)]
        )
        for workload in nvm.workloads
    ]
    made += [Listing(f"Policy: {name}", "", HEAD, rows) for name, rows in policy_rows(nvm).items()]
    title = "Largest gain of DRAM+NVM on the paper's workloads"
    return [*made, Listing(title, "", HEADLINE, headline_rows(nvm))]
