"""The command ``top``: a served drive, live."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Annotated

import typer
from rich.live import Live

from flashatlas._core import InputError
from flashatlas.cli.console import out, say
from flashatlas.live import EXPECTED, PORT, look
from flashatlas.live.terminal import screen


def top(
    where: Annotated[
        str, typer.Argument(metavar="[HOST:PORT]", help="Address that `serve --metrics` was given.")
    ] = f"127.0.0.1:{PORT}",
    every: Annotated[
        float, typer.Option("--every", min=0.1, help="Seconds between two looks.")
    ] = 1.0,
    count: Annotated[
        int,
        typer.Option(
            "--count", min=0, help="Number of looks after which the command ends; 0: it goes on."
        ),
    ] = 0,
) -> None:
    """Watch a served drive: rates, latencies, write amplification by cause, free blocks, merges.

    The command changes nothing. Latencies are in the drive's own time, for the commands since the
    last look. Ctrl-C ends only this command.

    For example: `flashatlas serve -d tlc-small --metrics 127.0.0.1:9464` in one terminal, and
    `flashatlas top` in another.
    """
    before, looks = look(where), 0
    terminal = Live(console=out, auto_refresh=False, screen=count == 0) if out.is_terminal else None
    try:
        with terminal or nullcontext():
            while count == 0 or looks < count:
                time.sleep(every)
                try:
                    seen = look(where)
                except InputError:
                    say("The drive is no longer served.")
                    return
                try:
                    shown = screen(before, seen, out.width)
                except (LookupError, TypeError, ValueError, ArithmeticError) as error:
                    raise InputError(f"{where}: damaged: {error}; expected {EXPECTED}") from error
                if terminal:
                    terminal.update(shown, refresh=True)
                else:
                    out.print(shown)
                before, looks = seen, looks + 1
    except KeyboardInterrupt:
        return
