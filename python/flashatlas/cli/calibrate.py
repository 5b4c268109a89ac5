"""The command ``calibrate``: find the parameters of a drive from fio's measurements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from flashatlas import InputError
from flashatlas.calibration.measured import measurements
from flashatlas.calibration.preset import is_drive_file, must_be_the_same
from flashatlas.calibration.space import TRIALS, parameters
from flashatlas.cli import complete
from flashatlas.cli.console import keeping, out, say
from flashatlas.cli.options import Jobs, Json, Layers, Quiet, Set, with_layers, write_json
from flashatlas.drawing import tables
from flashatlas.files import file_must_be_writable, write_whole
from flashatlas.results import units
from flashatlas.sweep.display import Display
from flashatlas.sweep.search import library
from flashatlas.sweep.study import STORE

if TYPE_CHECKING:
    from flashatlas.calibration.calibrate import Calibration

INPUT, SEARCH = "What was measured, and what may change", "The search"

INFEASIBLE_MAX = 3
"""Largest number of impossible drives whose reasons the terminal shows."""


def calibrate(
    measured: Annotated[
        list[str],
        typer.Option(
            "--measured",
            "-m",
            metavar="JOB.fio=RESULT",
            help="A fio job file, and what fio wrote about it on the real drive: its output as "
            "JSON (NAME.json), a bandwidth log (NAME_bw.1.log) or a latency log (NAME_lat.1.log, "
            "NAME_clat.1.log); may be repeated, also for several results of one job file.",
            rich_help_panel=INPUT,
        ),
    ] = [],  # noqa: B006
    vary: Annotated[
        list[str],
        typer.Option(
            "--vary",
            metavar="KEY=FROM..TO",
            help="A parameter that may change, and its range; 'KEY=FROM..TO:lin' for equal steps "
            "instead of equal ratios, 'KEY=A,B,…' for a list of values; may be repeated.",
            rich_help_panel=INPUT,
        ),
    ] = [],  # noqa: B006
    drive: Annotated[
        str,
        typer.Option(
            "--drive",
            "-d",
            help="Drive to begin with: preset or path of a TOML file.",
            autocompletion=complete.drives,
            rich_help_panel=INPUT,
        ),
    ] = "tlc-small",
    set: Set = [],  # noqa: B006
    layers: Layers = None,
    precondition: Annotated[
        list[str],
        typer.Option(
            "--precondition",
            metavar="KIND",
            help="State in which fio met the real drive: 'none', 'fill' or 'steady'; "
            "'JOB.fio=KIND' for one of the job files; may be repeated.",
            rich_help_panel=INPUT,
        ),
    ] = [],  # noqa: B006
    trials: Annotated[
        int,
        typer.Option(
            "--trials",
            min=10,
            metavar="N",
            help="Largest number of drives that are tried.",
            rich_help_panel=SEARCH,
        ),
    ] = TRIALS,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds",
            min=0.0,
            metavar="S",
            help="Time limit: after it, no further drive is tried.",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            "--seed",
            min=0,
            metavar="N",
            help="Seed of the search and of the runs.",
            rich_help_panel=SEARCH,
        ),
    ] = 1,
    store: Annotated[
        Path,
        typer.Option(
            "--store",
            metavar="DIR",
            help="Store of results, which keeps every run.",
            rich_help_panel=SEARCH,
        ),
    ] = Path(STORE),
    name: Annotated[
        str,
        typer.Option(
            "--name",
            metavar="NAME",
            help="Name of the study in the store; by default one that depends on the options.",
            rich_help_panel=SEARCH,
        ),
    ] = "",
    jobs: Jobs = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", metavar="FILE.toml", help="Write the drive that was found to this file."
        ),
    ] = None,
    json_: Json = None,
    quiet: Quiet = False,
) -> None:
    """Find the parameters of a drive from fio's measurements of a real one.

    The command runs the same job files on simulated drives, and searches for the parameters with
    which bandwidths, request rates and latencies are the measured ones. It shows the residuals,
    the range of each parameter that fits as well, and what the measurements cannot tell apart. The
    runs are a study: an interrupted calibration continues with the same command.

    For example: `flashatlas calibrate -m read.fio=read.json --vary timing.t_read=20us..100us`

    or: `flashatlas calibrate -m fill.fio=fill_bw.1.log -d tlc-slc-small --vary
    ftl.slc_dynamic=10..40 --to preset.toml`
    """
    if to is not None and not is_drive_file(to):
        raise InputError(f"--to {to}: the name of a drive file ends in .toml")
    file_must_be_writable(to)
    file_must_be_writable(json_)
    given = measurements(measured, precondition)
    space = parameters(vary)
    library()
    from flashatlas.calibration import calibrate as calibration  # noqa: PLC0415  (needs NumPy)

    settings = with_layers(set, layers)
    kept = f"the runs that are done are in {store}; the same command continues"
    runs = trials * len(given)
    with keeping(lambda: kept), Display(runs, 0, enabled=not quiet) as display:
        found = calibration.calibrate(
            given,
            space,
            drive=drive,
            settings=settings,
            count=trials,
            seed=seed,
            store=store,
            name=name,
            jobs=jobs,
            seconds=seconds,
            watcher=display,
        )
    if to is not None:
        write_whole(to, found.preset())
        must_be_the_same(to, drive, [*settings, *(f"{k}={v}" for k, v in found.values.items())])
    write_json(json_, json.dumps(found.to_json(), indent=2))
    if json_ != "-":
        _show(found, to)


def _in_unit(value: float, unit: str) -> str:
    return units.speed(value) if unit == "bytes/s" else units.in_unit(value, unit)


def _show(found: Calibration, to: Path | None) -> None:
    rows = [
        (one.parameter.key, one.parameter.word(one.at), one.range_text(), one.started_text())
        for one in found.found
    ]
    out.print(tables.listing(["parameter", "best value", "fits as well", "at first"], rows))
    said = found.sentences()
    if said:
        say("\nWhat cannot be told:")
    for one in said:
        say(f"  {escape(one)}")
    say("\nResiduals:")
    residuals = [
        (
            one.quantity.name,
            _in_unit(one.quantity.value, one.quantity.unit),
            _in_unit(one.simulated, one.quantity.unit),
            f"{one.ratio - 1:+.1%}",
            f"± {one.noise:.1%}",
        )
        for one in found.residuals
    ]
    for name, real, ours in found.breaks:
        own = ("not seen", "–") if ours is None else (units.size(ours), f"{ours / real - 1:+.1%}")
        residuals.append((name, units.size(real), *own, ""))
    out.print(
        tables.listing(["quantity", "measured", "simulated", "deviation", "seeds"], residuals)
    )
    say(f"Root mean square deviation: {found.deviation:.1%}")
    if found.cut:
        say(f"[yellow]ended early[/]: {found.cut}; more --trials or --seconds go on from there")
    if found.infeasible:
        say(f"{len(found.infeasible)} of {found.trials} drives could not be run:")
        for why in list(dict.fromkeys(found.infeasible))[:INFEASIBLE_MAX]:
            say(f"  {escape(why)}")
    say(escape(f"Runs: flashatlas results show {found.study}"))
    if to is not None:
        say(escape(f"Drive: {to}"))
