"""Options that several commands share: declared once, as the fields of a class."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, get_type_hints

import typer

from flashatlas.cli.console import seen_enough


def _option(*names: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, **more)


Set = Annotated[
    list[str],
    typer.Option("--set", "-s", metavar="KEY=VALUE", help="Change a parameter; may be repeated."),
]
Layers = Annotated[
    str | None,
    _option(
        "--layers",
        metavar="A,B,…",
        help="What the host puts over the drive, from the top down (see `flashatlas layers`): the "
        "key `layers`.",
    ),
]
Format = Annotated[
    str | None,
    _option(
        "--format", help="Format of the trace, or `columns:…`; recognised by content if not given."
    ),
]
Json = Annotated[
    str | None,
    _option(
        "--json",
        metavar="FILE",
        help="Write the record as JSON; `-`: to standard output, nothing else.",
    ),
]
Out = Annotated[Path | None, _option("--out", "-o", metavar="DIR", help="Folder for the results.")]
Quiet = Annotated[bool, _option("--quiet", "-q", help="No progress bar.")]
Jobs = Annotated[
    int | None, _option("--jobs", "-j", min=1, help="Runs at once; one for each core by default.")
]


@dataclass
class Reading:
    """How a trace is read."""

    PANEL: ClassVar[str] = "Reading a trace"

    format: Format = None
    device_map: Annotated[
        str | None,
        _option(
            "--device-map",
            metavar="MAP",
            help="Address spaces of the trace: `separate` (default), `collapse` (all are one) or "
            "`select:N`.",
        ),
    ] = None
    drop_duplicates: Annotated[
        str | None,
        _option(
            "--drop-duplicates",
            metavar="TIME",
            help="Drop a record that repeats the one before within this time.",
        ),
    ] = None
    time_gap_max: Annotated[
        str | None,
        _option(
            "--time-gap-max",
            metavar="TIME",
            help="Cut pauses to this, and ignore steps back that are longer.",
        ),
    ] = None
    assume_op: Annotated[
        str | None,
        _option("--assume-op", metavar="OP", help="`read` or `write`, for traces that do not say."),
    ] = None
    skip_bad: Annotated[
        int,
        _option("--skip-bad", min=0, help="Bad records to skip and count before one is an error."),
    ] = 0
    shift: Annotated[
        int, _option("--shift", help="Sectors added to every address (CloudPhysics traces: -7).")
    ] = 0


@dataclass
class Workload(Reading):
    """A workload, and how it meets a drive."""

    PANEL: ClassVar[str] = "Workload"

    trace: Annotated[
        Path | None, _option("--trace", "-t", help="Trace to replay, plain or gz, bz2, xz, zst.")
    ] = None
    workload: Annotated[
        str | None,
        _option(
            "--workload",
            "-w",
            help="Generated workload instead: `uniform:requests=100000,size=4KiB,read=0.5`.",
        ),
    ] = None
    job: Annotated[Path | None, _option("--job", help="fio job file instead.")] = None
    filesystem: Annotated[
        str | None,
        _option(
            "--filesystem",
            metavar="FS",
            help="With --job: a file system between jobs and drive; `ext4`, or "
            "`ext4:fua=true,files=written`.",
        ),
    ] = None
    precondition: Annotated[
        str,
        _option(
            "--precondition",
            help="`none`, `fill` (every page once, in order), `steady` (the steady state of "
            "uniform random writes, by "
            "model), `trace:FILE` or `checkpoint:FILE`.",
        ),
    ] = "none"
    fit: Annotated[
        str,
        _option(
            "--fit",
            help="Addresses beyond the drive: `error`, `wrap` (modulo) or `compact` (pack the "
            "touched 1 MiB extents).",
        ),
    ] = "error"
    limit: Annotated[
        int | None, _option("--limit", min=1, help="End after this many requests.")
    ] = None
    seed: Annotated[int, _option("--seed", min=0, help="Seed of everything random.")] = 1


@dataclass
class Playing(Workload):
    """A workload that is played and measured."""

    PANEL: ClassVar[str] = "Playing and measuring"

    mode: Annotated[
        str | None,
        _option(
            "--mode",
            help="`asap` (as many in flight as the drive takes), `closed`, `open` (trace times), "
            "`untimed`.",
        ),
    ] = None
    depth: Annotated[
        int | None, _option("--depth", min=1, help="Commands in flight; selects closed mode.")
    ] = None
    speed: Annotated[
        float, _option("--speed", help="Divide the times of the trace by this, in open mode.")
    ] = 1.0
    warmup: Annotated[
        int, _option("--warmup", min=0, help="Requests at the start that are not measured.")
    ] = 0
    flush_every: Annotated[
        int,
        _option(
            "--flush-every",
            min=0,
            help="Add a FLUSH after so many writes, for traces that have none.",
        ),
    ] = 0
    interval: Annotated[
        str | None,
        _option(
            "--interval",
            metavar="TIME",
            help="Simulated time in a row of the time series; chosen if not given.",
        ),
    ] = None


Command = TypeVar("Command", bound=Callable[..., Any])


def shared(command: Command) -> Command:
    """Give a command the fields of its parameter ``common`` as options of its own."""
    hints = get_type_hints(command, include_extras=True)
    group = hints["common"]
    group_hints = get_type_hints(group, include_extras=True)
    own = [
        p.replace(annotation=hints[p.name]) for p in inspect.signature(command).parameters.values()
    ]
    parameters = [p for p in own if p.name != "common"]
    for field in fields(group):
        kind = inspect.Parameter.KEYWORD_ONLY
        annotation = group_hints[field.name]
        declared_by = next(
            c for c in reversed(group.__mro__) if field.name in inspect.get_annotations(c)
        )
        annotation.__metadata__[0].rich_help_panel = declared_by.PANEL
        parameters.append(
            inspect.Parameter(field.name, kind, default=field.default, annotation=annotation)
        )
    names = {field.name for field in fields(group)}

    @functools.wraps(command)
    def with_options(**arguments: Any) -> Any:
        common = group(**{name: arguments.pop(name) for name in names})
        return command(**arguments, common=common)

    keywords = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    with_options.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    with_options.__annotations__ = {p.name: p.annotation for p in parameters}
    return with_options  # type: ignore[return-value]


def write_json(target: str | None, text: str) -> None:
    """Write a JSON text where ``--json`` says."""
    from flashatlas.files import write_whole  # noqa: PLC0415

    if target == "-":
        try:
            sys.stdout.write(text + "\n")
            sys.stdout.flush()
        except (
            BrokenPipeError
        ):  # which the command-line library would turn into an exit code of its own
            seen_enough()
    elif target:
        write_whole(Path(target), text + "\n")


def with_layers(settings: list[str], layers: str | None) -> list[str]:
    """Settings and what ``--layers`` says."""
    return settings if layers is None else [*settings, f"layers={layers}"]
