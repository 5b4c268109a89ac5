"""Commands about earlier runs: ``rerun``, ``bundle``, ``cite``."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from flashatlas import InputError
from flashatlas.cli.console import (
    EXIT_DIFFERS,
    command_line,
    err,
    finish,
    must_be_right,
    notes,
    replaced,
    say,
    show,
)
from flashatlas.cli.options import Force, Out, Quiet, try_outputs
from flashatlas.progress import Bars
from flashatlas.results import units
from flashatlas.results.citations import bibtex
from flashatlas.results.result import Result, changed_records_are_bad_input, save_one
from flashatlas.results.runs import save_all
from flashatlas.running.api import build
from flashatlas.running.bundle import bundle as pack
from flashatlas.running.bundle import summary
from flashatlas.running.rerun import LARGEST_SHOWN, copy_differences, differences, edited
from flashatlas.running.rerun import rerun as carried_out_again
from flashatlas.running.unpacking import must_lie_within, unpack
from flashatlas.sweep.results import named_results, study_at

Run = Annotated[
    Path,
    typer.Argument(
        metavar="DIR",
        help="A folder that `run --out` or `compare --out` wrote, a record (run.json), a bundle, "
        "or a study (STORE:STUDY).",
    ),
]


def rerun(
    path: Run,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Only report whether the results are the same; exit code 1 if not."
        ),
    ] = False,
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace",
            "-t",
            metavar="FILE",
            help="Present path of the trace or job file that the run read; its content must be the "
            "same.",
        ),
    ] = None,
    inputs: Annotated[
        Path | None,
        typer.Option(
            "--inputs",
            metavar="DIR",
            help="Search this folder and all folders below it for input files that have been "
            "moved. Files are found by the digest in the record; the file of a precondition is "
            "found by its name.",
        ),
    ] = None,
    out_: Out = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Run earlier runs again, from their records alone.

    The drive is built from the parameters in the record. Traces and job files must have the same
    content as when the run read them. If you do not have them, ask the author of the record for
    a bundle. A run of a bundle reads no files outside the bundle.

    For example: `flashatlas rerun out/demo --check`

    or: `flashatlas rerun run.json --inputs traces --check`
    """
    try_outputs(out_, force)
    elsewhere = {"trace": trace, "inputs": inputs}
    if path.is_file() and path.suffix == ".zip":
        if given := [name for name, file in elsewhere.items() if file is not None]:
            raise InputError(
                f"--{given[0]}: {path} is a bundle, which contains its input files: leave the "
                "option out"
            )
        with tempfile.TemporaryDirectory(prefix="flashatlas-") as folder:
            try:
                with changed_records_are_bad_input():
                    runs = [(one.name, Result.load(one)) for one in unpack(path, Path(folder))]
                    for _, result in runs:
                        must_lie_within(result, Path(folder), path)
                    _rerun(path, runs, check, out_, quiet, within=Path(folder))
            except InputError as error:
                # name the bundle instead of the temporary folder
                said = getattr(error, "on_command_line", str(error))
                raise InputError(said.replace(folder, str(path))) from error
    else:
        _rerun(path, named_results(path), check, out_, quiet, **elsewhere)


def _rerun(
    path: Path,
    runs: list[tuple[str, Result]],
    check: bool,
    out_: Path | None,
    quiet: bool,
    **elsewhere: Path | None,
) -> None:
    before = [result for _, result in runs]
    after = []
    with Bars([result.name for result in before], enabled=not quiet) as bars:
        for number, result in enumerate(before):
            again = carried_out_again(
                result, lambda *at, n=number: bars.update(n, *at), **elsewhere
            )
            after.append(replace(again, command=command_line()))
    if not check:
        show(after)
        notes(after)
        say("")
    same = True
    for (name, was), now in zip(runs, after, strict=True):
        found = differences(was, now)
        same = same and not found
        say(escape(f"{name if len(runs) > 1 else was.name}: {_verdict(was, found)}"))
        if (why := edited(was)) is not None:
            say(escape(f"  {why}"))
        _list(found)
    if copies := copy_differences(path, before):
        same = False
        say(escape(f"{path}: differs from the records of its runs"))
        _list(copies)
    if out_:
        one = len(after) == 1
        replaced(out_, save_one(after[0], out_) if one else save_all(after, out_))
    if not check:
        finish(after)
    must_be_right(after)
    if check and not same:
        raise typer.Exit(EXIT_DIFFERS)


def _list(found: list[str]) -> None:
    for line in found[:LARGEST_SHOWN]:
        say(escape(f"  {line}"))
    if len(found) > LARGEST_SHOWN:
        say(f"  and {len(found) - LARGEST_SHOWN} more")


def _verdict(before: Result, found: list[str]) -> str:
    """Return the verdict on a rerun in words, with the builds of both runs."""
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
        typer.Option("--out", "-o", metavar="FILE", help="File of the bundle; by default DIR.zip."),
    ] = None,
) -> None:
    """Pack runs into one file, with the traces, job files and checkpoints that they read.

    `flashatlas rerun FILE.zip --check` runs the bundle elsewhere. Every run of a study must be
    done.

    For example: `flashatlas bundle out/demo -o demo.zip`

    or: `flashatlas bundle flashatlas-results:victims`
    """
    study = study_at(path)
    if study is None and not path.is_dir():
        raise InputError(f"{path}: not a folder of runs, and no study (STORE:STUDY)")
    target = out_ or _beside(path, study[1]["name"] if study else path.resolve().name)
    pack([result for _, result in named_results(path)], target)
    said = f"Bundle: {target} ({units.size(target.stat().st_size)}: {summary(target)})"
    say(escape(said))


def _beside(path: Path, name: str) -> Path:
    """Return the default path of a bundle."""
    return (
        path.resolve().with_name(f"{name}.zip") if path.is_dir() else path.with_name(f"{name}.zip")
    )


def cite(path: Run) -> None:
    """Print BibTeX entries of FlashAtlas and of the papers about the parts that the runs used.

    For example: `flashatlas cite out/demo > flash.bib`
    """
    text, unknown = bibtex([result.record for _, result in named_results(path)])
    say(text)
    for part in unknown:
        err.print(f"{part} has no paper: it is in common use", highlight=False)
