"""The tables of the experiment with demand-paged maps."""

from __future__ import annotations

from flashatlas.reproduce.demand_map.plan import DemandMap, Row
from flashatlas.reproduce.table import Listing
from flashatlas.results.units import size

NUMBERS = ("hit ratio", "map reads", "map writes", "read mean", "write mean", "RAM", "WAF")
"""Columns of the tables; map pages are counted per thousand lookups and changes."""


def numbers_of(row: Row) -> tuple[str, ...]:
    """Return the cells of a row."""

    def latency(op: str) -> str:
        mean = row.latency_ns(op)
        return "–" if mean is None else f"{mean / 1e3:,.0f} µs"

    return (
        f"{100 * row.hit_ratio:.1f} %",
        f"{row.reads:,.1f}",
        f"{row.writes:,.1f}",
        latency("read"),
        latency("write"),
        size(row.ram_bytes),
        f"{row.result.waf:.3f}" if row.result.waf else "–",
    )


def name_of(row: Row) -> str:
    """Return the store and its memory, in words."""
    return f"{row.store}, {size(row.cache_bytes)}" if row.cache_bytes else row.store


def listings(demand: DemandMap) -> list[Listing]:
    """Return the tables for the terminal."""
    return [
        Listing(
            a.name,
            a.source,
            ["", *NUMBERS],
            [(name_of(row), *numbers_of(row)) for row in demand.of(a.name)],
        )
        for a in demand.applications
    ]
