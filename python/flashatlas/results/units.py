"""Units of the numbers in records and tables, by their names (``docs/FORMATS.md``)."""

from __future__ import annotations

import re

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
    (r"_units$|^oracle\.units", "units"),
    (r"pages$", "pages"),
    (r"requests$|^(conservation|trace)\.(submitted|completed|failed|requests)$", "requests"),
)
"""Patterns of names, each with a unit; the first pattern that matches counts."""

SHARES = re.compile(r"(_share|hit_ratio|utilisation|_busy|^busy|\.dies\.|\.channels\.|link_)")
"""Names of shares of one."""


def unit_of(name: str) -> str:
    """Return the unit of a record's number or a table's column; empty for counts and ratios."""
    if name.startswith("wear.") and name != "wear.blocks":
        return "blocks" if name.endswith("blocks") else "erases"
    if SHARES.search(name) and not name.startswith("explain.") and not name.endswith("count"):
        return "share"
    return next((unit for pattern, unit in UNITS if re.search(pattern, name)), "")
