"""The command ``diff``: the numbers that changed between two sets of runs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from flashatlas import InputError
from flashatlas.cli.console import EXIT_DIFFERS, err, out, say
from flashatlas.cli.options import Json, write_json
from flashatlas.drawing import tables
from flashatlas.results import units
from flashatlas.results.frame import Frame
from flashatlas.results.units import unit_of
from flashatlas.sweep.difference import Change, Difference, difference
from flashatlas.sweep.results import frame_at

LISTED = 40
"""Number of changes that the terminal shows."""


def diff(
    before: Annotated[
        Path,
        typer.Argument(
            metavar="A", help="Study in a store of results (STORE:STUDY), or a folder of runs."
        ),
    ],
    after: Annotated[
        Path, typer.Argument(metavar="B", help="Store or folder of the runs to compare with A.")
    ],
    of: Annotated[
        list[str],
        typer.Option(
            "--of",
            metavar="COLUMN",
            help="Number to compare; may be repeated. The value '*' means all numbers. By default "
            "the most important numbers.",
        ),
    ] = [],  # noqa: B006
    ignored: Annotated[
        list[str],
        typer.Option(
            "--except",
            metavar="COLUMN",
            help="Setting in which the runs of a pair may differ, such as ftl.victim, or a pattern "
            "for several settings, such as 'map.*'; may be repeated.",
        ),
    ] = [],  # noqa: B006
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance",
            min=0,
            metavar="PERCENT",
            help="Changes of at most this percentage do not count; a change from 0 always counts.",
        ),
    ] = 0.0,
    json_: Json = None,
) -> None:
    """Show which numbers moved between two sets of runs.

    Exit code 1 if a number moved, or if a run has no partner. A pair is two runs with the same
    settings and the same seed. If several pairs show different changes, a number has moved if the
    95 % interval of its mean change lies beyond the tolerance. A change of write amplification is
    split by cause. A change of latency is split by reason if the runs recorded the reasons (option
    `explain`).

    For example: `flashatlas diff old-results:victims new-results:victims --tolerance 1`
    """
    found = difference(_runs(before), _runs(after), of, ignored)
    moved = found.moved(tolerance / 100)
    write_json(json_, _as_json(found, moved))
    if json_ != "-":
        _show(found, moved, tolerance)
    if moved or found.only_before or found.only_after:
        raise typer.Exit(EXIT_DIFFERS)


def _runs(path: Path) -> Frame:
    found = frame_at([path])
    if not len(found):
        raise InputError(f"{path}: the folder holds no runs")
    if missing := found.incomplete():
        # only runs that both sides have can be compared; the others are reported
        err.print(escape(f"{path}: incomplete: {missing}"), highlight=False, soft_wrap=True)
    return found


def _show(found: Difference, moved: list[Change], tolerance: float) -> None:
    names = list(dict.fromkeys(name for change in moved for name in change.settings))
    rows = [
        (
            *(units.word(change.settings.get(name), found.units[name]) for name in names),
            change.number,
            _amount(change.before, found.units[change.number]),
            _amount(change.after, found.units[change.number]),
            _share(change),
            ", ".join(_part(change, part) for part in list(change.parts)[:3]),
        )
        for change in moved[:LISTED]
    ]
    if rows:
        out.print(tables.listing((*names, "number", "A", "B", "change", "parts"), rows))
    if len(moved) > LISTED:
        say(f"and {len(moved) - LISTED} more (--json)")
    beyond = f" by more than {tolerance:g} %" if tolerance else ""
    say(f"{len(moved)} of {len(found.changes)} numbers moved{beyond}")
    for which, only in (("A", found.only_before), ("B", found.only_after)):
        if only:
            named = " ".join(
                f"{name}={units.word(value, found.units[name])}" for name, value in only[0].items()
            )
            say(escape(f"{len(only)} runs are in {which} only, such as {named or 'its only one'}"))


def _amount(value: float, unit: str) -> str:
    """Return a number with its unit."""
    if unit == "bytes/s":
        return units.speed(value)
    text = units.in_unit(value, unit)
    return text if unit in ("ns", "bytes", "ratio", "share", "") else f"{text} {unit}"


def _part(change: Change, part: str) -> str:
    """Return the change of one part of a number, in the unit of the number."""
    by, unit = change.parts[part], unit_of(change.number)
    if unit == "ratio":
        return f"{part} {by:+.3f}"
    return f"{part} {'-' if by < 0 else '+'}{units.in_unit(abs(by), unit)}"


def _share(change: Change) -> str:
    share = change.share
    if share is None:
        return "from 0"
    half = "" if share.half is None else f" ± {100 * share.half:.2g} %"
    return f"{100 * share.mean:+.3g} %{half}"


def _as_json(found: Difference, moved: list[Change]) -> str:
    content = {
        "moved": [{**asdict(change), "unit": found.units[change.number]} for change in moved],
        "compared": len(found.changes),
        "only_a": found.only_before,
        "only_b": found.only_after,
    }
    return json.dumps(content, indent=2, default=str)
