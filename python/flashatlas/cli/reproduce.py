"""Commands that compute published results again."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.markup import escape

from flashatlas import InputError, tables
from flashatlas.cli.console import command_line, err, finish, notes, out, say
from flashatlas.cli.options import Jobs, Json, Out, Quiet, write_json
from flashatlas.files import write_whole
from flashatlas.progress import Bars
from flashatlas.result import save_all
from flashatlas.theory import MODELS

if TYPE_CHECKING:
    from flashatlas.reproduce.demand_map import DemandMap
    from flashatlas.reproduce.experiment import Application
    from flashatlas.reproduce.hard import Hard
    from flashatlas.reproduce.hpb import Hpb
    from flashatlas.reproduce.lpmt import Lpmt
    from flashatlas.reproduce.mast import Mast
    from flashatlas.reproduce.nvm_map import NvmMap

Traces = Annotated[
    Path | None,
    typer.Option(
        "--traces", metavar="DIR", help="Folder of recorded traces; by default FLASHATLAS_TRACES."
    ),
]
StandIns = Annotated[bool, typer.Option("--stand-ins", help="Generated workloads only.")]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, help="End each run after this many requests.")
]

app = typer.Typer(
    no_args_is_help=True, help="Compute published results again, and show the deviation."
)


@app.command("theory")
def reproduce_theory(
    blocks: Annotated[
        int, typer.Option("--blocks", min=16, help="Blocks of the simulated drives.")
    ] = 2000,
    drive_writes: Annotated[
        int,
        typer.Option(
            "--drive-writes", min=2, help="Writes of the whole drive; the second half is measured."
        ),
    ] = 20,
    rho: Annotated[list[float], typer.Option("--rho", help="Utilisations.")] = [0.7, 0.8, 0.9],  # noqa: B006
    b: Annotated[list[int], typer.Option("--b", help="Pages of a block.")] = [32, 64, 128],  # noqa: B006
    policy: Annotated[
        list[str], typer.Option("--policy", help=f"One of: {', '.join(MODELS)}; all by default.")
    ] = [],  # noqa: B006
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Write amplification under uniform random writes.

    Models beside simulation, with the error of each.
    """
    from flashatlas import reproduce  # noqa: PLC0415

    chosen = policy or list(MODELS)
    for name in chosen:
        if name not in MODELS:
            raise InputError(f"policy `{name}` has no model (allowed: {', '.join(MODELS)})")
    if any(not 0 < r < 1 for r in rho):
        raise InputError("--rho: a utilisation lies between 0 and 1")
    labels = [f"{p} ρ={r} b={n}" for p in chosen for r in rho for n in b]
    with Bars(labels, enabled=not quiet) as bars:
        points = reproduce.theory(
            rho,
            b,
            chosen,
            blocks=blocks,
            drive_writes=drive_writes,
            jobs=jobs,
            progress=bars.update,
        )
    rows = [
        (
            p.policy,
            f"{p.rho:g}",
            str(p.b),
            f"{p.theory:.4f}",
            f"{p.simulated:.4f}",
            f"{100 * p.error:+.2f} %",
        )
        for p in points
    ]
    out.print(tables.listing(["policy", "ρ", "b", "theory", "simulated", "error"], rows))
    worst = max(points, key=lambda p: abs(p.error))
    out.print(
        f"largest error: {100 * worst.error:+.2f} % ({worst.policy}, ρ = {worst.rho:g}, b = "
        f"{worst.b})",
        highlight=False,
    )


@app.command("mast")
def reproduce_mast(
    traces: Traces = None,
    stand_ins: StandIns = False,
    sensitivity: Annotated[
        bool,
        typer.Option("--sensitivity", help="Also run each reading of what the paper leaves open."),
    ] = False,
    limit: Limit = None,
    jobs: Jobs = None,
    json_: Json = None,
    out_: Out = None,
    quiet: Quiet = False,
) -> None:
    """Figures 2, 3 and 4 of the MAST paper.

    Utilisation of the log, merges by class, efficiency over FAST.

    FAST, LAST and MAST, and for reference BAST, FASTer, Superblock and page mapping, each with 256
    log blocks (or as many spare ones) on a 4 GB drive. Applications are recorded traces where they
    are found, and generated workloads otherwise.

    For example: `flashatlas reproduce mast --sensitivity --out out/mast`
    """
    from flashatlas.reproduce import mast_page  # noqa: PLC0415
    from flashatlas.reproduce.mast import plan  # noqa: PLC0415

    planned = plan(traces, stand_ins=stand_ins, sensitivity=sensitivity)
    _say_missing(planned.applications, stand_ins)
    with Bars(planned.labels, enabled=not quiet) as bars:
        mast = planned.carry_out(limit=limit, jobs=jobs, progress=bars.update)
    _hand_over("mast", mast, mast_page.page, _show, out_, json_)


def _say_missing(workloads: Sequence[Application], stand_ins: bool) -> None:
    """Which recorded traces were not found."""
    names = [workload.name for workload in workloads if not workload.recorded]
    if names and not stand_ins:
        err.print(
            f"Traces not found (--traces, FLASHATLAS_TRACES): {', '.join(names)} generated instead",
            highlight=False,
        )


Made = TypeVar("Made", "Mast", "NvmMap", "DemandMap", "Lpmt", "Hard", "Hpb")


def _hand_over(
    name: str,
    made: Made,
    page: Callable[[Made, str], str],
    show: Callable[[Made], None],
    folder: Path | None,
    json_: str | None,
) -> None:
    """Write and print what an experiment found, as the options say."""
    results = made.results
    text = json.dumps(made.to_json(), indent=2)
    if folder:
        save_all(results, folder)
        write_whole(folder / "report.html", page(made, command_line()))
        write_whole(folder / f"{name}.json", text + "\n")
    write_json(json_, text)
    if json_ != "-":
        show(made)
        notes(results)
        if folder:
            say(f"Report: {folder / 'report.html'}")
    finish(results)


@app.command("nvm-map")
def reproduce_nvm_map(
    traces: Traces = None,
    stand_ins: StandIns = False,
    operations: Annotated[
        int | None,
        typer.Option("--operations", min=1, help="Calls of fsync or fdatasync in each run."),
    ] = None,
    jobs: Jobs = None,
    json_: Json = None,
    out_: Out = None,
    quiet: Quiet = False,
) -> None:
    """Figure 1 of the DRAM+NVM map paper.

    Fsync and fdatasync on ext4, over the size of NVM, against maps in DRAM.

    With it what a FLUSH costs (data, map pages, directory, NVM), and what the paper does not show:
    overwrites, random writes, and a database's trace with FLUSHes.

    For example: `flashatlas reproduce nvm-map --out out/nvm-map`
    """
    from flashatlas.reproduce import nvm_map_page  # noqa: PLC0415
    from flashatlas.reproduce.nvm_map import plan  # noqa: PLC0415

    planned = plan(traces, stand_ins=stand_ins, operations=operations)
    _say_missing([planned.trace], stand_ins)
    with Bars(planned.labels, enabled=not quiet) as bars:
        nvm = planned.carry_out(jobs=jobs, progress=bars.update)
    _hand_over("nvm-map", nvm, nvm_map_page.page, _show_nvm_map, out_, json_)


def _show_nvm_map(nvm: NvmMap) -> None:
    from flashatlas.reproduce.nvm_map_page import HEADLINE, NUMBERS, headline_rows, numbers_of  # noqa: PLC0415

    for workload in nvm.workloads:
        say(f"\n[bold]{workload}[/]")
        out.print(
            tables.listing(
                ["", *NUMBERS], [(row.map, *numbers_of(row)) for row in nvm.of(workload)]
            )
        )
    say("\n[bold]Largest gain of DRAM+NVM on the paper's workloads[/]")
    out.print(tables.listing(list(HEADLINE), headline_rows(nvm)))


@app.command("demand-map")
def reproduce_demand_map(
    traces: Traces = None,
    stand_ins: StandIns = False,
    cache_bytes: Annotated[
        list[int],
        typer.Option("--cache-bytes", min=1, help="Bytes of memory for the map; may be repeated."),
    ] = [],  # noqa: B006
    limit: Limit = None,
    jobs: Jobs = None,
    json_: Json = None,
    out_: Out = None,
    quiet: Quiet = False,
) -> None:
    """Every demand-paged map over the size of its memory.

    Shows hit ratio, map reads and writes, latency and RAM.

    For example: `flashatlas reproduce demand-map --out out/demand-map`
    """
    from flashatlas.reproduce import demand_map_page  # noqa: PLC0415
    from flashatlas.reproduce.demand_map import plan  # noqa: PLC0415

    planned = plan(traces, stand_ins=stand_ins, cache_bytes=cache_bytes or None)
    _say_missing(planned.applications, stand_ins)
    with Bars(planned.labels, enabled=not quiet) as bars:
        demand = planned.carry_out(limit=limit, jobs=jobs, progress=bars.update)
    _hand_over("demand-map", demand, demand_map_page.page, _show_demand_map, out_, json_)


def _show_demand_map(demand: DemandMap) -> None:
    from flashatlas.reproduce.demand_map_page import NUMBERS, name_of, numbers_of  # noqa: PLC0415

    for application in demand.applications:
        say(f"\n[bold]{application.name}[/]  {escape(application.source)}")
        out.print(
            tables.listing(
                ["", *NUMBERS],
                [(name_of(row), *numbers_of(row)) for row in demand.of(application.name)],
            )
        )


def _show(mast: Mast) -> None:
    """The tables of the experiment in the terminal."""
    from flashatlas.reproduce.mast_page import NUMBERS, VARIANTS, numbers_of, variant_rows  # noqa: PLC0415

    for application in mast.applications:
        say(f"\n[bold]{application.name}[/]  {escape(application.source)}")
        rows = [(row.scheme, *numbers_of(mast, row)) for row in mast.of(application.name)]
        out.print(tables.listing(["", *NUMBERS], rows))
    say("\n[bold]MAST's gain in efficiency[/]")
    claims = [
        (c.application, c.over, f"{c.published:+g} %", f"{c.ours:+.1f} %", f"{c.deviation:+.1f}")
        for c in mast.claims()
    ]
    out.print(tables.listing(["", "over", "published", "ours", "deviation, points"], claims))
    say("\n[bold]Schemes by share of merges, the largest first[/]")
    orders = [
        (o.application, o.kind, o.published, o.ours or "nothing merged") for o in mast.orders()
    ]
    out.print(tables.listing(["", "share of", "published", "ours"], orders))
    if any(row.variant for row in mast.rows):
        say(f"\n[bold]What the paper leaves open[/]  {VARIANTS}")
        out.print(tables.listing(["", *(a.name for a in mast.applications)], variant_rows(mast)))


@app.command("lpmt")
def reproduce_lpmt(
    traces: Traces = None,
    stand_ins: StandIns = False,
    sweep: Annotated[
        bool,
        typer.Option(
            "--sweep/--no-sweep",
            help="Sweep banks, ways, hash functions and orders on every trace.",
        ),
    ] = True,
    limit: Limit = None,
    jobs: Jobs = None,
    json_: Json = None,
    out_: Out = None,
    quiet: Quiet = False,
) -> None:
    """Tables III to VI and figures 6 and 8 of the hardware lookup paper (LPMT).

    Every table says whether it is derived, reproduced, calibrated, or not reproducible without the
    original trace. Beyond the paper: a sweep of banks, ways, hash functions and orders against a
    flat map, and the engine in a drive.

    For example: `flashatlas reproduce lpmt --out out/lpmt`
    """
    from flashatlas.reproduce import lpmt_page  # noqa: PLC0415
    from flashatlas.reproduce.lpmt import plan  # noqa: PLC0415

    planned = plan(traces, stand_ins=stand_ins, sweep=sweep, limit=limit)
    _say_missing(planned.applications, stand_ins)
    with Bars(planned.labels, enabled=not quiet) as bars:
        made = planned.carry_out(jobs=jobs, progress=bars.update)
    _hand_over("lpmt", made, lpmt_page.page, _show_tables, out_, json_)


@app.command("hard")
def reproduce_hard(
    traces: Traces = None,
    stand_ins: StandIns = False,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", min=64, help="Make runs short: requests of studies, KiB of figures."
        ),
    ] = None,
    jobs: Jobs = None,
    json_: Json = None,
    out_: Out = None,
    quiet: Quiet = False,
) -> None:
    """Figures 14.4 and 14.5 of the HARD paper.

    Random writes over their size, and IOzone, with the layer and without.

    Beyond the paper: where the gain comes from, a full drive, hot and cold data, FLUSHes, and a
    database's trace.

    For example: `flashatlas reproduce hard --out out/hard`
    """
    from flashatlas.reproduce import hard_page  # noqa: PLC0415
    from flashatlas.reproduce.hard import plan  # noqa: PLC0415

    planned = plan(traces, stand_ins=stand_ins, requests=limit)
    _say_missing([planned.application], stand_ins)
    with Bars(planned.labels, enabled=not quiet) as bars:
        made = planned.carry_out(jobs=jobs, progress=bars.update)
    _hand_over("hard", made, hard_page.page, _show_tables, out_, json_)


@app.command("hpb")
def reproduce_hpb(
    traces: Traces = None,
    stand_ins: StandIns = False,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", min=256, help="Make runs short: random requests of a stage, or of a trace."
        ),
    ] = None,
    jobs: Jobs = None,
    json_: Json = None,
    out_: Out = None,
    quiet: Quiet = False,
) -> None:
    """Tiobench and mixed work of the HPB slides.

    The map cached in host memory, with the layer and without.

    Beyond the slides: what time at the host their range implies, phones' traces over host memory,
    what verification and updates cost, and both host layers together.

    For example: `flashatlas reproduce hpb --out out/hpb`
    """
    from flashatlas.reproduce import hpb_page  # noqa: PLC0415
    from flashatlas.reproduce.hpb import plan  # noqa: PLC0415

    planned = plan(traces, stand_ins=stand_ins, requests=limit)
    _say_missing(planned.phones, stand_ins)
    with Bars(planned.labels, enabled=not quiet) as bars:
        made = planned.carry_out(jobs=jobs, progress=bars.update)
    _hand_over("hpb", made, hpb_page.page, _show_tables, out_, json_)


def _show_tables(made: Lpmt | Hard | Hpb) -> None:
    for table in made.tables():
        say(f"\n[bold]{escape(table.title)}[/]  ({table.kind})")
        out.print(tables.listing(list(table.head), table.rows))
        say(f"[dim]{escape(table.note)}[/]")
