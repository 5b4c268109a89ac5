"""The command that runs the lookup engine alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from flashatlas import InputError
from flashatlas.cli.console import out, say
from flashatlas.cli.options import Json, Quiet, Reading, Set, shared, write_json
from flashatlas.drawing import plots, tables
from flashatlas.inputs.trace import Trace
from flashatlas.names import registries
from flashatlas.progress import Bars
from flashatlas.results import units
from flashatlas.results.notes import texts
from flashatlas.running import lookups
from flashatlas.running.run_options import of_groups


@shared
def lookup(
    common: Reading,
    trace: Annotated[
        Path | None, typer.Option("--trace", "-t", help="Trace whose addresses are looked up.")
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(
            "--workload",
            "-w",
            help="Generated workload in place of a trace, as for `flashatlas run`.",
        ),
    ] = None,
    files: Annotated[
        int | None,
        typer.Option(
            "--files",
            min=1,
            help="Look up this number of files at random addresses, in place of a trace.",
        ),
    ] = None,
    sets: Annotated[
        int | None,
        typer.Option(
            "--sets",
            min=1,
            help="Scan this number of random sets to their ends, in place of a trace.",
        ),
    ] = None,
    hash_: Annotated[
        str | None, typer.Option("--hash", help="Hash function (lookup.hash); see --parameters.")
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            help="Placement of sets, and order of banks (lookup.policy); see --parameters.",
        ),
    ] = None,
    banks: Annotated[
        int | None,
        typer.Option("--banks", min=1, help="Number of banks of the LPMT (lookup.banks)."),
    ] = None,
    ways: Annotated[
        int | None, typer.Option("--ways", min=1, help="Number of entries in a set (lookup.ways).")
    ] = None,
    dram: Annotated[
        str | None, typer.Option("--dram", help="DRAM device (dram.preset); see --parameters.")
    ] = None,
    set_: Set = [],  # noqa: B006
    address: Annotated[
        str,
        typer.Option(
            "--address",
            help="Translation of host addresses to logical addresses: low-bits, dense (numbered in "
            "the order of first use) or exact.",
        ),
    ] = "low-bits",
    unit: Annotated[
        int, typer.Option("--unit", min=1, help="Number of sectors in an address unit.")
    ] = 1,
    page_bytes: Annotated[
        int,
        typer.Option(
            "--page-bytes", min=512, help="Number of bytes in a flash page, for `lookup.pages=all`."
        ),
    ] = 4096,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, help="Number of requests after which the workload ends."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")] = 1,
    commands: Annotated[
        str | None,
        typer.Option(
            "--commands",
            metavar="FILE",
            help="Write every command of the DRAM with its clock to this file (.csv, .jsonl or "
            ".parquet), so that other programs can check them.",
        ),
    ] = None,
    parameters: Annotated[
        bool,
        typer.Option(
            "--parameters", "-p", help="List hash functions, policies, DRAM devices and settings."
        ),
    ] = False,
    json_: Json = None,
    quiet: Quiet = False,
) -> None:
    """Look up addresses in hardware tables of a multi-bank DRAM, without a drive.

    The tables are the LPMT and block tables. The DRAM is simulated clock by clock.

    As in the paper, requests that begin at the same address belong to the same file. A file that is
    not in the tables is inserted after its lookup. The sizes and the DRAM are those in the paper
    (2^17 sets of 8 entries, DDR4 at 1.5 ns, all constraints on) unless `--set` changes them.

    For example:
    `flashatlas lookup --trace requests.csv --hash folding --banks 4 --policy dynamic`
    """
    if parameters:
        _parameters()
        return
    named = {
        "lookup.hash": hash_,
        "lookup.policy": policy,
        "lookup.banks": banks,
        "lookup.ways": ways,
        "dram.preset": dram,
    }
    given = [f"{key}={value}" for key, value in named.items() if value is not None]
    for setting in set_:
        key = setting.partition("=")[0].strip()
        if named.get(key) is not None:
            raise InputError(
                f"--set {key}: the option for {key} is given as well; give one of the two"
            )
    if trace is None:
        for option in of_groups("reading"):
            if common[option.name] != option.default:
                raise InputError(
                    f"--{option.name.replace('_', '-')}: this option changes how a trace is read, "
                    "but no trace is given"
                )
    if address not in lookups.ADDRESSES:
        raise InputError(
            f"--address: `{address}` is not known (allowed: {', '.join(lookups.ADDRESSES)})"
        )
    with Bars(["lookups"], enabled=not quiet) as bars:
        found = lookups.lookup(
            None if trace is None else Trace(trace, **common),
            workload=workload,
            files=None if files is None else {"files": files},
            sets=None if sets is None else {"lookups": sets},
            set=[*given, *set_],
            address=address,
            unit_sectors=unit,
            page_bytes=page_bytes,
            limit=limit,
            seed=seed,
            commands=commands,
            progress=lambda *at: bars.update(0, *at),
        )
    write_json(json_, json.dumps(found, indent=2))
    if json_ != "-":
        _print(found)


def _print(found: dict[str, Any]) -> None:
    tck = found["tck_ps"] / 1000
    clocks = lambda n: f"{n:,.2f}  ({n * tck:,.1f} ns)"  # noqa: E731
    service = found["service_clocks"]
    rows = [
        ("lookups", f"{found['lookups']:,}"),
        ("of known addresses", f"{found['hits']:,}"),
        ("clocks a lookup", clocks(found["clocks_per_lookup"])),
        ("by the paper's table, literally", clocks(found["paper_table_clocks_per_lookup"])),
        *((f"clocks, {name}", clocks(service[name])) for name in ("p50", "p99", "max")),
    ]
    if "latency_clocks" in found:
        rows.append(("latency, mean", clocks(found["latency_clocks_mean"])))
        rows += [
            (f"latency, {name}", clocks(found["latency_clocks"][name]))
            for name in ("p50", "p99", "max")
        ]
    rows += [
        ("reads a lookup", f"{found['reads_per_lookup']:.3f}"),
        *((f"reads, {name}", f"{100 * share:.2f} %") for name, share in found["classes"].items()),
        ("skew of first banks, sum of squares", f"{found['bank_skew']:.3f}"),
    ]
    if found["entries"]:
        rows += [
            ("entries", f"{found['entries']:,}"),
            ("of these in the primary LPMT", f"{100 * found['primary_share']:.2f} %"),
            (
                "keys by sets in their chain",
                ", ".join(f"{i}: {n:,}" for i, n in enumerate(found["chains"], 1) if n),
            ),
        ]
    size = found["bytes"]
    rows.append(
        (
            "DRAM of the LPMT",
            f"{units.size(size['lpmt'])}, packed {units.size(size['lpmt_packed'])}",
        )
    )
    if size["block_tables"]:
        packed = units.size(size["block_tables_packed"])
        rows.append(
            ("DRAM of the block tables", f"{units.size(size['block_tables'])}, packed {packed}")
        )
    out.print(tables.listing(["", ""], rows))
    tenths = [t["ns_per_lookup"] for t in found["tenths"]]
    say(
        f"ns a lookup in each tenth: {' '.join(f'{ns:.1f}' for ns in tenths)}  "
        f"{plots.spark([ns - 0.9 * min(tenths) for ns in tenths])}"
    )
    say(f"[dim]{escape('; '.join(texts(found['approximations'])))}[/]")


def _parameters() -> None:
    known = registries()
    for kind, key in (("hashes", "lookup.hash"), ("policies", "lookup.policy")):
        out.print(
            tables.listing(
                [key, "", "source"], [(e["name"], e["summary"], e["paper"]) for e in known[kind]]
            )
        )
        out.print()
    out.print(
        tables.listing(["dram.preset", ""], [(d["name"], d["summary"]) for d in known["dram"]])
    )
    out.print()
    rows = [(p["key"], p["range"], p["default"] or "–", p["doc"]) for p in known["lookup_params"]]
    out.print(tables.listing(["setting", "range", "default", ""], rows))
