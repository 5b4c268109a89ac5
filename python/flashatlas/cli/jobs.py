"""The command that writes another simulator's workload as an fio job file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from flashatlas import InputError
from flashatlas.cli.console import err
from flashatlas.files import write_whole
from flashatlas.foreign import job_file


def job(
    workload: Annotated[
        str,
        typer.Argument(
            help="Workload to write: `mqsim:workload.xml`, or `mqsim:workload.xml,scenario=2`."
        ),
    ],
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", metavar="FILE", help="The job file to write; by default the job is printed."
        ),
    ] = None,
) -> None:
    """Write another simulator's workload as an fio job file, for `--job`.

    Settings that fio does not have are reported, and are written as comments into the file. The
    option `--drive mqsim:ssdconfig.xml` reads a drive of the same simulator.

    For example: `flashatlas job mqsim:workload.xml --to scenario.fio`
    """
    made = job_file(workload)
    if made is None:
        raise InputError(f"{workload}: this is not a workload; give mqsim:FILE")
    for one in made.left:
        err.print(f"note: without {escape(one)}", soft_wrap=True)
    if to is None:
        sys.stdout.write(made.text)
    else:
        write_whole(to, made.text)
