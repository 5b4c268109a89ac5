"""The command ``crash``, which tries every power failure of short workloads."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from flashatlas import _core
from flashatlas.cli.console import EXIT_VIOLATION, out, say
from flashatlas.cli.isolated import isolated
from flashatlas.cli.options import Quiet, Set
from flashatlas.drawing import tables
from flashatlas.files import write_whole
from flashatlas.names import registries
from flashatlas.progress import Bars

SHOWN = 10
"""Number of failures that are printed; the JSON report has all of them."""


def _list(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


@isolated
def crash(
    interface: Annotated[
        str,
        typer.Option(
            "--interface",
            metavar="NAME",
            help="Interface through which the host's commands reach the drive (see --names). With "
            "'nvme' they go through an NVMe controller, which has workloads of its own.",
        ),
    ] = "device",
    layers: Annotated[
        str | None,
        typer.Option(
            "--layers",
            metavar="NAMES",
            help="Stacks of layers to try, such as 'hard,A+B'. '-' is the drive without layers. By "
            "default all stacks are tried.",
        ),
    ] = None,
    scheme: Annotated[
        str | None,
        typer.Option(
            "--scheme",
            metavar="NAMES",
            help="Schemes to try, such as 'page,mast'. 'page.2' is a variant of the scheme 'page'. "
            "By default all schemes are tried.",
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="NAMES",
            help="Map stores to try under the scheme 'page'; by default all stores.",
        ),
    ] = None,
    geometry: Annotated[
        str | None,
        typer.Option(
            "--geometry",
            metavar="NAMES",
            help="Shapes of drives to try (see --names); by default all shapes.",
        ),
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(
            "--workload",
            metavar="NAMES",
            help="Workloads of the interface to try (see --names). The workload 'all' consists of "
            "every sequence of at most four operations. By default every workload is tried, 'all' "
            "included.",
        ),
    ] = None,
    depth: Annotated[
        int,
        typer.Option(
            "--depth",
            min=1,
            max=4,
            help="Largest number of power failures in a row. With 2, the power also fails during "
            "the mount that follows a power failure, and so on.",
        ),
    ] = 1,
    faults: Annotated[
        str,
        typer.Option(
            "--faults",
            metavar="NAMES",
            help="Additional faults (see --names). Cuts between operations are always tried. "
            "'none': no other faults; 'all': every kind that the interface has.",
        ),
    ] = "all",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the workloads.")] = 1,
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, help="Number of seeds, from --seed on.")
    ] = 1,
    steps: Annotated[
        int,
        typer.Option(
            "--steps", min=1, max=100_000, help="Approximate number of steps of a workload."
        ),
    ] = 160,
    one_in: Annotated[
        int,
        typer.Option(
            "--one-in",
            min=1,
            help="Try only one in N power failures of every workload, and one in N sequences of "
            "the workload 'all'. Power failures during mounts are never left out.",
        ),
    ] = 1,
    shard: Annotated[
        str | None,
        typer.Option("--shard", metavar="I/N", help="Run one of N shares of the workloads."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", min=1, help="Number of threads; by default one for each core."
        ),
    ] = None,
    set: Set = [],  # noqa: B006
    rerun: Annotated[
        str | None,
        typer.Option("--rerun", metavar="ID", help="Run the failure with this identity again."),
    ] = None,
    json_to: Annotated[
        Path | None,
        typer.Option(
            "--json",
            metavar="FILE",
            help="Write the report as JSON to this file. Give '-' to print it.",
        ),
    ] = None,
    names: Annotated[
        bool,
        typer.Option(
            "--names", help="List interfaces, geometries, workloads and faults, and exit."
        ),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Let the power fail at every operation of short workloads, and check the drive.

    Each workload is carried out once. For every operation on the medium (program, erase, store to
    NVM, fence), the command copies the medium and cuts the power of the copies before, during and
    after the operation. Each copy is mounted, every unit is compared with the values that a
    reference model allows, and the tables are checked. Then the copy is mounted again, written, and
    compared once more. The workload is also repeated with faults: in each repetition, one program,
    erase or page fails. After a failed program or erase, the power of a copy is also cut at each
    later operation. If anything is wrong, the exit code is 4.

    With `--interface nvme`, the commands go through an NVMe controller, several at the same time.
    The power also fails while the controller writes its own state. After each mount, the check uses
    host commands to read the contents, the saved features and the totals of the SMART log.

    A failure has an identity:

    `[layers/]scheme:store:workload[*steps]@geometry:seed:cut[.cut]…`

    The part `*steps` is present only if `--steps` differs from 160. To see a failure again, pass
    its identity to `--rerun` with the same `--set`.
    """
    if names:
        _names()
        return
    if rerun is not None:
        _rerun(rerun, set)
        return
    plan = {
        "interface": interface,
        "layers": _list(layers),
        "schemes": _list(scheme),
        "stores": _list(store),
        "geometries": _list(geometry),
        "workloads": _list(workload),
        "set": set,
        "depth": depth,
        "faults": faults,
        "seed": seed,
        "seeds": seeds,
        "steps": steps,
        "one_in": one_in,
        "shard": shard,
        "threads": jobs or 0,
    }
    with Bars(["power failures"], enabled=not quiet) as bars:
        report = json.loads(
            _core.crash(
                json.dumps(plan),
                lambda _, done, share: bars.update(0, "run", done, share, "workloads"),
            )
        )
    if json_to is not None:
        text = json.dumps({"plan": plan, **report}, indent=1) + "\n"
        if str(json_to) == "-":
            sys.stdout.write(text)
        else:
            write_whole(json_to, text.encode())
    if str(json_to) != "-":
        _print(report)
    if any(row["violations"] for row in report["rows"]):
        raise typer.Exit(EXIT_VIOLATION)


COLUMNS = {
    "cuts": "cuts",
    "torn": "torn",
    "deeper": "deeper",
    "reordered": "reordered",
    "failed_parts": "failed",
    "mounts": "mounts",
    "longest_mount": "longest",
    "violations": "violations",
}


def _print(report: dict[str, Any]) -> None:
    rows = [
        (r["layers"], r["scheme"], r["store"], *(f"{r[c]:,}" for c in COLUMNS))
        for r in report["rows"]
    ]
    sums = {
        c: (max if c == "longest_mount" else sum)(r[c] for r in report["rows"]) for c in COLUMNS
    }
    rows.append(("all", "", "", *(f"{sums[c]:,}" for c in COLUMNS)))
    out.print(tables.listing(["layers", "scheme", "store", *COLUMNS.values()], rows))
    say(
        f"{sums['cuts']:,} power failures in {report['wall_s']:.1f} s: "
        f"[bold]{sums['violations']:,} violations[/].\n[dim]torn: the power failed during an "
        "operation; deeper: the power failed during a mount; reordered: several dies had "
        "operations in flight, and another subset of these was carried out; failed: programs, "
        "erases and reads that failed while the power was on; longest: programs and erases of the "
        "longest mount[/]"
    )
    missed, refused = (sum(r[c] for r in report["rows"]) for c in ("not_reached", "refused_mounts"))
    if missed or refused:
        say(
            f"[dim]{missed:,} planned failures were not reached (a drive with one more block "
            f"erases less often); {refused:,} mounts were refused: a program had failed, and "
            "no spare block was left[/]"
        )
    for found in report["found"][:SHOWN]:
        _failure(found)
    if len(report["found"]) > SHOWN:
        say(f"and {len(report['found']) - SHOWN} more (--json has all of them)")


def _failure(found: dict[str, Any]) -> None:
    say(f"\n[bold red]{found['id']}[/]")
    out.print(f"  {found['failure']}", highlight=False, markup=False, soft_wrap=True)
    for line in found["minimal"]:
        out.print(f"    {line}", highlight=False, markup=False, soft_wrap=True)


def _rerun(identity: str, settings: list[str]) -> None:
    found = json.loads(_core.crash_rerun(identity, settings))
    if found is None:
        say(f"{identity}: nothing fails")
        return
    _failure(found)
    raise typer.Exit(EXIT_VIOLATION)


def _names() -> None:
    for kind, known in registries()["crash"].items():
        out.print(
            tables.listing([kind, ""], [(entry["name"], entry["summary"]) for entry in known])
        )
        out.print()
