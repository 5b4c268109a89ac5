"""Units of numbers in records and tables (``docs/FORMATS.md``), and texts of such numbers."""

from __future__ import annotations

import re
from typing import Any

UNITS: tuple[tuple[str, str], ...] = (
    (r"^latency_ns\..*\.count$|^lookup\..*_ns\.count$", "requests"),
    (r"^explain\..*\.(mean_ns|parts_ns\..*)$", "ns"),
    (r"^latency_ns\.|^lookup\.(lookup|update)_ns\.|(^|[._])ns$|_ns$", "ns"),
    (r"bandwidth_bytes_per_s$", "bytes/s"),
    (r"rate$", "bytes/s"),
    (r"^iops$|^steadiness\.rounds\.iops", "1/s"),
    (r"^waf(_parts\..*)?$|write_amplification|^steadiness\.rounds\.waf", "ratio"),
    (r"(_bytes|^bytes|\.bytes)$|^memory_bytes\.|_bytes\.|^map\.unit$", "bytes"),
    (r"(_share|hit_ratio|utilisation|busy|over_provisioning|\.mean|\.min|\.max)$", ""),
    (r"^nand\.(reads|programs)(\.|$)|^(reads|programs)_", "pages"),
    (r"^nand\.erases(\.|$)|^erases_|blocks$", "blocks"),
    (r"^smart\.(percentage_used|available_spare)", "%"),
    (r"^smart\.data_units", "data units"),
    (r"^smart\.host_.*_commands$", "commands"),
    (r"^smart\.power_on_hours$", "h"),
    (r"_units$|^oracle\.units", "units"),
    (r"pages$", "pages"),
    (r"requests$|^(conservation|trace)\.(submitted|completed|failed|requests)$", "requests"),
)
"""Patterns of names, each with a unit; the first pattern that matches is used."""

SHARES = re.compile(r"(_share|hit_ratio|utilisation|_busy|^busy|\.dies\.|\.channels\.|link_)")
"""Pattern of the names of numbers that are shares, from 0 to 1."""


def unit_of(name: str) -> str:
    """Return the unit of a record's number or a table's column; empty if none is known."""
    if name.startswith("wear.") and name != "wear.blocks":
        return "blocks" if name.endswith("blocks") else "erases"
    if SHARES.search(name) and not name.startswith("explain.") and not name.endswith("count"):
        return "share"
    return next((unit for pattern, unit in UNITS if re.search(pattern, name)), "")


def duration(ns: float) -> str:
    """Return nanoseconds as a text in the largest unit that the time reaches, up to seconds."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:,.3g} {unit}" if ns < 1000 * size else f"{ns / size:,.0f} {unit}"
    return f"{ns:.0f} ns"


def size(count: float) -> str:
    """Return bytes in binary units."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= factor:
            return f"{count / factor:,.1f} {unit}"
    return f"{count:.0f} B"


def word(value: Any, unit: str) -> str:
    """Return the value of a factor with its unit; for a path, only the name of the file."""
    if value is None:
        return "–"
    if unit in ("bytes", "ns"):
        return in_unit(value, unit)
    return str(value).rsplit("/", 1)[-1]


def in_unit(value: float, unit: str) -> str:
    """Return a number of a record as a text of about four digits; add units of time and size."""
    text = {"ns": duration, "bytes": size}.get(unit)
    return text(value) if text else f"{value:,.4g}"


def speed(bytes_per_s: float) -> str:
    """Return bytes per second in decimal units."""
    return f"{bytes_per_s / 1e6:,.1f} MB/s"


def number(count: float) -> str:
    """Return a count with separators."""
    return f"{count:,.0f}"


def percent(share: float) -> str:
    """Return a share as a percentage with one decimal."""
    return f"{100 * share:.1f} %"


def fine_percent(share: float) -> str:
    """Return a share as a percentage; small shares have two significant digits."""
    return f"{100 * share:.1f} %" if share >= 0.1 or share == 0 else f"{100 * share:.2g} %"
