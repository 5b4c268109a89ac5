"""Commands about images of served drives: ``image info``, ``check``, ``age`` and ``cut``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from flashatlas.cli.console import EXIT_VIOLATION, out, say
from flashatlas.cli.options import Json, Layers, Set, with_layers, write_json
from flashatlas.cli.strict import App
from flashatlas.serving.image import image_age, image_check, image_cut, image_info

app = App(
    no_args_is_help=True, help="Inspect images, the files in which served drives store their flash."
)

Image = Annotated[Path, typer.Argument(metavar="FILE", help="An image that `serve` made.")]
DriveOf = Annotated[
    str | None,
    typer.Option(
        "--drive",
        "-d",
        help="The drive, if the header of the image does not determine it: for a drive with layers "
        "or from a file.",
    ),
]


def _table(rows: list[tuple[str, str]]) -> Table:
    table = Table(show_header=False, box=None)
    for name, value in rows:
        table.add_row(name, value)
    return table


def _of_file(said: dict[str, Any]) -> list[tuple[str, str]]:
    mib = 1 << 20
    return [
        ("image", said["path"]),
        ("drive", f"{said['drive']}, {said['capacity_bytes'] / mib:,.1f} MiB"),
        ("file", f"{said['bytes'] / mib:,.1f} MiB, {said['allocated_bytes'] / mib:,.1f} on disk"),
    ]


@app.command()
def info(image: Image, json_: Json = None) -> None:
    """Show the drive and the size of an image. Only the header is read.

    For example: `flashatlas image info drive.img`
    """
    said = image_info(image)
    write_json(json_, json.dumps(said, indent=1) + "\n")
    if json_ != "-":
        out.print(_table([*_of_file(said), ("settings", " ".join(said["set"]))]))


@app.command()
def check(
    image: Image,
    drive: DriveOf = None,
    layers: Layers = None,
    set: Set = [],  # noqa: B006
    json_: Json = None,
) -> None:
    """Mount an image in memory, as `serve` would, and report its state. The file is not changed.

    Every frame is compared with its checksum, the scheme's recovery mounts the drive, the rules of
    the drive are checked, and every unit in the map is read. Exit code 4 if anything is damaged or
    lost.

    For example: `flashatlas image check drive.img`
    """
    said = image_check(image, drive, with_layers(set, layers))
    write_json(json_, json.dumps(said, indent=1) + "\n")
    if json_ != "-":
        out.print(_table([*_of_file(said), *_of_flash(said)]))
    if not said["sound"]:
        raise typer.Exit(EXIT_VIOLATION)


UNITS = {"h": 3_600, "d": 86_400, "w": 604_800, "y": 31_536_000}
"""Seconds of the units of time in which a drive rests; a year has 365 days."""


def _seconds(text: str) -> int:
    """Return the seconds of a time such as ``1y`` or ``12h``."""
    number, unit = text[:-1], text[-1:]
    try:
        seconds = round(float(number) * UNITS[unit])
    except (KeyError, ValueError):
        seconds = 0
    if not 0 < seconds < 1 << 32:
        raise typer.BadParameter(
            f"`{text}` is not a time at rest: give a number of hours, days, weeks or years, "
            "such as 12h, 90d, 2w or 1y, at most 136y"
        )
    return seconds


@app.command()
def age(
    image: Image,
    time: Annotated[
        str,
        typer.Argument(metavar="TIME", help="Time at rest, such as 12h, 90d, 2w or 1y."),
    ],
    drive: DriveOf = None,
    layers: Layers = None,
    set: Set = [],  # noqa: B006
) -> None:
    """Let a drive rest, switched off, for a time. THE CLOCK OF THE FILE IS CHANGED.

    If the drive has bit errors (errors.model), the next mount finds bits that went wrong in this
    time.

    For example: `flashatlas image age drive.img 1y`
    """
    clock = image_age(image, _seconds(time), drive, with_layers(set, layers))
    say(f"{image}: its clock is now at {clock / UNITS['d']:,.1f} days")


@app.command()
def cut(
    image: Image,
    after: Annotated[
        int,
        typer.Option(
            "--after",
            metavar="N",
            min=0,
            help="Number of operations that the mount still carries out.",
        ),
    ],
    cut_mode: Annotated[
        str,
        typer.Option(
            "--cut-mode",
            metavar="prefix|torn|subset",
            help="State that the power failure leaves. prefix: the operation has no effect. "
            "torn: a program leaves an unreadable page, an erase leaves a block of such pages. "
            "subset: see `flashatlas serve -h`.",
        ),
    ] = "prefix",
    drive: DriveOf = None,
    layers: Layers = None,
    set: Set = [],  # noqa: B006
) -> None:
    """Mount an image, as `serve` would, and let the power fail in the mount. THE FILE IS CHANGED.

    The recovery of the image is then incomplete, and the next mount must complete it. If the mount
    takes at most N operations, the power does not fail, and the number of operations is shown.

    For example: `flashatlas image cut drive.img --after 3`
    """
    operations = image_cut(image, after, drive, with_layers(set, layers), cut_mode)
    if operations is None:
        say(f"{image}: the power failed during the mount, in flash operation {after + 1}")
    else:
        say(f"{image}: the power did not fail: the mount takes {operations} flash operations")


def _of_flash(said: dict[str, Any]) -> list[tuple[str, str]]:
    blocks, frames, units = said["blocks"], said["frames"], said["units"]
    damaged, mount, erases = said["damaged"], said["mount"], said["blocks"]["erases"]
    rows = [
        ("blocks", f"{blocks['all']:,}: {blocks['erased']:,} erased, {blocks['bad']:,} bad"),
        (
            "erases of a block",
            f"{erases['least'] or 0:,} to {erases['most'] or 0:,}, mean {erases['mean']:,.1f}",
        ),
        (
            "frames",
            f"{frames['all']:,}: {frames['programmed']:,} hold something, "
            f"{frames['unreadable']:,} cannot be read",
        ),
        ("units", f"{units['all']:,}: {units['written']:,} written"),
        ("rolled forward", f"{mount['rolled_forward']:,} entries of the map"),
    ]
    for name, count, which in [
        ("damaged frames", damaged["frames"], damaged["named_frames"]),
        ("damaged records of blocks", damaged["block_records"], damaged["named_blocks"]),
        ("damaged map pages", mount["damaged_map_pages"], []),
        ("damaged slots of NVM", mount["damaged_nvm_slots"], []),
        ("pages lost", mount["lost"], []),
    ]:
        if count:
            first = ", ".join(map(str, which[:8])) + (", …" if count > 8 else "")
            rows.append((name, f"{count:,}" + (f": {first}" if which else "")))
    return [*rows, ("verdict", "sound" if said["sound"] else "damaged")]
