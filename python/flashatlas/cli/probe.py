"""Commands that measure properties of a drive by sending host commands.

``probe superpage`` measures one property of a simulated or real drive, and ``probe drive`` several
properties of a simulated one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from flashatlas import InputError
from flashatlas.cli import complete
from flashatlas.cli.console import err, out, say
from flashatlas.cli.options import Jobs, Json, Layers, Quiet, Set, with_layers, write_json
from flashatlas.cli.strict import App
from flashatlas.drawing import tables
from flashatlas.files import file_must_be_writable
from flashatlas.probing.found import Finding
from flashatlas.probing.host import Simulated
from flashatlas.probing.survey import Survey, survey
from flashatlas.progress import Bars
from flashatlas.results import units
from flashatlas.running.probe import BYTES, SIZES, Probe, measured, simulated

app = App(no_args_is_help=True, help="Measure properties of a drive by sending host commands.")


@app.command()
def superpage(
    path: Annotated[
        Path | None,
        typer.Argument(help="File or block device on a real drive. ITS CONTENT IS LOST."),
    ] = None,
    drive: Annotated[
        str | None,
        typer.Option(
            "--drive", "-d", help="Simulated drive in place of PATH: preset or path of a TOML file."
        ),
    ] = None,
    set: Set = [],  # noqa: B006
    depth: Annotated[
        int, typer.Option("--depth", min=1, max=256, help="Number of writes in flight.")
    ] = 32,
    mebibytes: Annotated[
        int,
        typer.Option(
            "--mib",
            min=4,
            help="Number of MiB that each of the 18 measurements writes. All measurements write to "
            "the same part of the drive.",
        ),
    ] = BYTES >> 20,
    create: Annotated[
        int | None,
        typer.Option(
            "--create",
            metavar="MIB",
            min=4,
            help="Create the file PATH with this size, and remove it afterwards.",
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask before writing to PATH.")
    ] = False,
    jobs: Jobs = None,
    json_: Json = None,
    quiet: Quiet = False,
) -> None:
    """Find the superpage of a drive: its mapping unit, below which random writes are slow.

    The command writes 4 KiB to 1 MiB at random addresses, both aligned and shifted by half the
    size. The superpage is the smallest size at which aligned writes have full speed and shifted
    writes are slower. A block device that is mounted or otherwise in use is refused.

    For example: `flashatlas probe superpage --drive superpage-sata`

    or: `flashatlas probe superpage /mnt/ssd/probe.bin --create 256`
    """
    if (path is None) == (drive is None):
        raise InputError("no drive is named: give a PATH, or --drive with a simulated drive")
    total = mebibytes << 20
    with Bars(["probe"], enabled=not quiet) as bars:
        if drive is not None:
            count = 2 * len(SIZES)
            probe = simulated(
                drive,
                set=set,
                depth=depth,
                total=total,
                jobs=jobs,
                progress=lambda run, phase, n, _: bars.update(0, phase, n, (run + 1) / count),
            )
        else:
            assert path is not None
            if set:
                raise InputError("--set works only with a simulated drive")
            _ask(path, total, create, yes)
            size = create << 20 if create is not None else None
            probe = measured(path, create=size, depth=depth, total=total, progress=bars.update)
    write_json(json_, json.dumps(probe.to_json(), indent=2))
    if json_ != "-":
        _show(probe)


@app.command()
def drive(
    drive: Annotated[
        str,
        typer.Option(
            "--drive",
            "-d",
            help="Simulated drive: preset or path of a TOML file.",
            autocompletion=complete.drives,
        ),
    ],
    set: Set = [],  # noqa: B006
    layers: Layers = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Seed of the addresses and of the drive.")
    ] = 1,
    json_: Json = None,
    quiet: Quiet = False,
) -> None:
    """Find out from latencies alone what a simulated drive is like.

    The command fills a blank drive, reads it, brings it to its steady state and lets it rest. From
    the latencies of its own commands it tells dies, channels, stripe, write buffer, SLC cache, the
    reach of the map in memory, write amplification, suspension and refresh. If the latencies do not
    show a quantity, the table says so, and why.

    For example: `flashatlas probe drive -d tlc-slc-small --json found.json`

    or: `flashatlas probe drive -d tiny --set cache.bytes=32KiB`
    """
    file_must_be_writable(json_)
    host = Simulated(drive, set=with_layers(set, layers), seed=seed)
    with Bars(["probe"], enabled=not quiet) as bars:
        found = survey(
            host,
            seed,
            lambda phase, share: bars.update(0, phase, host.volume >> 20, share, "MiB"),
        )
    write_json(json_, json.dumps(found.to_json(), indent=2))
    if json_ != "-":
        _show_survey(found)


def _value(finding: Finding) -> str:
    """Return a finding's value for people."""
    value = finding.value
    if value is None:
        return "cannot tell"
    if isinstance(value, str):
        return value
    return {"bytes": units.size, "ratio": "{:.2f}".format}.get(finding.unit, "{:.0f}".format)(value)


def _show_survey(found: Survey) -> None:
    rows = [
        (
            finding.name,
            _value(finding),
            "" if finding.value is None else f"{finding.confidence:.0%}",
            finding.evidence,
        )
        for finding in found.findings
    ]
    out.print(tables.listing(["quantity", "value", "confidence", "evidence, or why not"], rows))


def _ask(path: Path, total: int, create: int | None, yes: bool) -> None:
    """Ask before content is overwritten."""
    if yes or (create is not None and not path.exists()):
        return
    if not sys.stdin.isatty():
        raise InputError(
            f"{path}: the first {units.size(total)} would be overwritten: confirm this with --yes"
        )
    err.print(f"The first {units.size(total)} of {path} will be overwritten.", highlight=False)
    typer.confirm("Go on?", abort=True, err=True)


def _show(probe: Probe) -> None:
    fastest = probe.plateau
    rows = [
        (
            units.size(p.size),
            units.speed(p.aligned),
            f"{p.aligned / fastest:.0%}",
            units.speed(p.shifted),
            f"{p.shifted / p.aligned:.0%}",
        )
        for p in probe.points
    ]
    out.print(
        tables.listing(
            ["random writes of", "aligned", "of the fastest", "shifted", "of aligned"], rows
        )
    )
    if probe.superpage is None:
        say("No superpage was found: at no size are aligned writes fast and shifted writes slower.")
    else:
        say(f"Superpage: [bold]{units.size(probe.superpage)}[/]")
