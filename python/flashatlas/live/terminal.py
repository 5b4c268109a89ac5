"""The display of a served drive in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from flashatlas.live import OPS, Between, Seen
from flashatlas.report.palette import CAUSES
from flashatlas.results.units import duration, number, speed

STYLES = {
    "free": "bright_black",
    "open": "red",
    "closed": "blue",
    "leaving": "yellow",
    "bad": "white",
    "data": "blue",
    "log": "magenta",
    "map": "green",
    "slc": "cyan",
}
"""The colour of each use of a block."""

SHADES = " ░▒▓█"
"""Shades by the share of valid data in a block, from none to all."""

LINES_MAX = 16
"""The largest number of lines of the heat map; a larger map has several blocks per character."""


def screen(before: Seen, seen: Seen, width: int) -> RenderableType:
    """Return the display of a drive, with its changes since the last update."""
    found = seen.found
    title = Text(f"{found['drive']} {' '.join(found['set'])}".strip(), style="bold")
    title.append(
        f"   serving for {seen.seconds:,.0f} s, {found['simulated_ns'] / 1e9:,.1f} s of its own; "
        f"{found['in_flight']} in flight",
        style="dim",
    )
    between = Between(before, seen)
    doubts = [Text(said, style="bold red") for said in seen.notes]
    return Group(title, *doubts, _commands(between), _flash(between), *_blocks(seen, width))


def _commands(between: Between) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for name in ("a second", "bandwidth", "p50", "p99", "all"):
        table.add_column(name, justify="right")
    for op in OPS:
        times = [between.percentile(op, share) for share in (0.5, 0.99)]
        table.add_row(
            op,
            number(between.rate(op)),
            speed(between.bandwidth(op)) if op != "flush" else "–",
            *("–" if ns is None else duration(ns) for ns in times),
            f"{between.after.requests(op):,}",
        )
    return table


def _flash(between: Between) -> Table:
    seen, record = between.after, between.after.record
    nand, wear = record["nand"], record["wear"]
    table = Table(box=None, pad_edge=False, show_header=False)
    now = between.amplification()
    table.add_row("WAF", f"{record['waf']:.3f}" if record.get("waf") else "–", _parts(record))
    table.add_row("  now", f"{sum(now.values()):.3f}" if now else "–", _causes(now, ".3f"))
    programs = seen.programs()
    table.add_row("programs", f"{sum(programs.values()):,}", _causes(programs, ","))
    erases = nand["erases"]
    worn = f"a block {wear['min']} to {wear['max']}, mean {wear['mean']:.2f}"
    table.add_row("erases", f"{sum(erases.values()):,}", worn)
    table.add_row("free blocks", f"{record['blocks']['free']:,}", "")
    merged = record.get("merges", {}).get("log_blocks", {})
    if merged:
        said = ", ".join(f"{name} {count:,}" for name, count in merged.items())
        table.add_row("merges", f"{sum(merged.values()):,}", said)
    return table


def _parts(record: dict) -> str:
    return _causes(record.get("waf_parts", {}), ".3f")


def _causes(found: Mapping[str, float], form: str) -> str:
    return ", ".join(f"{CAUSES.get(cause, cause)} {count:{form}}" for cause, count in found.items())


def _blocks(seen: Seen, width: int) -> Iterable[Text]:
    table = seen.table("blocks")
    roles, valid = table.get("role", []), table.get("valid", [])
    across = max(16, width - 1)
    each = max(1, -(-len(roles) // (across * LINES_MAX)))
    there = [(role, n) for role, n in seen.record["blocks"].items() if n]
    key = Text("blocks   ")
    for role, n in there:
        key.append("█ ", style=STYLES.get(role, "cyan"))
        key.append(f"{role} {n:,}   ")
    if each > 1:
        key.append(f"(a character: {each} cells)", style="dim")
    line = Text()
    for start in range(0, len(roles), each):
        group = roles[start : start + each]
        share = sum(valid[start : start + each]) / len(group)
        role = max(set(group), key=group.count)
        shade = "·" if role == "free" else SHADES[round(share * (len(SHADES) - 1))]
        line.append("▁" if shade == " " else shade, style=STYLES.get(role, "cyan"))
    return key, line
