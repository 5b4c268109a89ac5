"""Commands about runs that were carried out before: ``rerun``, ``bundle``, ``cite``."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from flashatlas import InputError, tables
from flashatlas.api import build
from flashatlas.bundle import bundle as pack
from flashatlas.bundle import summary
from flashatlas.citations import bibtex
from flashatlas.cli.console import (
    EXIT_DIFFERS,
    command_line,
    err,
    finish,
    notes,
    replaced,
    say,
    show,
)
from flashatlas.cli.options import Out, Quiet
from flashatlas.folders import run_folders
from flashatlas.progress import Bars
from flashatlas.rerun import LARGEST_SHOWN, differences
from flashatlas.rerun import rerun as carried_out_again
from flashatlas.result import (
    Result,
    changed_records_are_bad_input,
    load_all,
    save_all,
    save_one,
)
from flashatlas.unpacking import must_lie_within, unpack

Run = Annotated[
    Path,
    typer.Argument(
        metavar="DIR", help="A folder that `run --out` or `compare --out` wrote, or a bundle."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (rerun, bundle, cite):
        app.command()(command)


def rerun(
    path: Run,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Only say whether the results are the same; exit code 1 if not."
        ),
    ] = False,
    out_: Out = None,
    quiet: Quiet = False,
) -> None:
    """Run again what was run before, from its record alone.

    The drive is made of the parameters in the record; traces and job files must still be the
    files that were read. A run of a bundle reads nothing outside the bundle.

    For example: `flashatlas rerun out/demo --check`
    """
    if path.is_file() and path.suffix == ".zip":
        with tempfile.TemporaryDirectory(prefix="flashatlas-") as folder:
            try:
                with changed_records_are_bad_input():
                    _rerun(unpack(path, Path(folder)), check, out_, quiet, (path, Path(folder)))
            except InputError as error:
                # the place that a user can look at
                said = getattr(error, "on_command_line", str(error))
                raise InputError(said.replace(folder, str(path))) from error
    else:
        _rerun(run_folders(path), check, out_, quiet)


def _rerun(
    folders: list[Path],
    check: bool,
    out_: Path | None,
    quiet: bool,
    bundled: tuple[Path, Path] | None = None,
) -> None:
    before = [Result.load(folder) for folder in folders]
    if bundled is not None:
        for result in before:
            must_lie_within(result, bundled[1], bundled[0])
    within = None if bundled is None else bundled[1]
    after = []
    with Bars([result.name for result in before], enabled=not quiet) as bars:
        for number, result in enumerate(before):
            again = carried_out_again(
                result, lambda *at, n=number: bars.update(n, *at), within=within
            )
            after.append(replace(again, command=command_line()))
    if out_:
        if len(after) == 1:
            replaced(out_, save_one(after[0], out_))
        else:
            replaced(out_, save_all(after, out_))
    if not check:
        show(after)
        notes(after)
        say("")
    same = True
    for folder, was, now in zip(folders, before, after, strict=True):
        found = differences(was, now)
        same = same and not found
        say(f"{folder.name if len(folders) > 1 else was.name}: {_verdict(was, found)}")
        for line in found[:LARGEST_SHOWN]:
            say(f"  {line}")
        if len(found) > LARGEST_SHOWN:
            say(f"  and {len(found) - LARGEST_SHOWN} more")
    finish(after)
    if check and not same:
        raise typer.Exit(EXIT_DIFFERS)


def _verdict(before: Result, found: list[str]) -> str:
    """Whether a run gave the same again, and which builds gave what."""
    here, there = build()["sources"], before.record.get("build", {}).get("sources")
    if there == here:
        builds = "the same build"
    else:
        builds = f"built from {(there or 'unknown sources')[:19]}, here from {here[:19]}"
    return f"{'differs' if found else 'the same results'} ({builds})"


def bundle(
    path: Run,
    out_: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="The bundle; DIR.zip if not given."),
    ] = None,
) -> None:
    """Pack runs and the traces, job files and checkpoints that they read into one file.

    `flashatlas rerun FILE.zip --check` runs it elsewhere.

    For example: `flashatlas bundle out/demo -o demo.zip`
    """
    if not path.is_dir():
        raise InputError(f"{path}: not a folder of runs")
    target = out_ or path.with_name(f"{path.resolve().name}.zip")
    pack(load_all([path]), target)
    say(f"Bundle: {target} ({tables.size(target.stat().st_size)}: {summary(target)})")


def cite(path: Run) -> None:
    """Print BibTeX of what runs used: FlashAtlas, and the papers of scheme, store, policy, layers.

    For example: `flashatlas cite out/demo > flash.bib`
    """
    text, unknown = bibtex([result.record for result in load_all([path])])
    say(text)
    for part in unknown:
        err.print(f"{part} has no paper: it is in common use", highlight=False)
