"""The command ``top``, which shows the state of a served drive in a terminal."""

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
        str,
        typer.Argument(
            metavar="[HOST:PORT]", help="Address after `--metrics` of `flashatlas serve`."
        ),
    ] = f"127.0.0.1:{PORT}",
    every: Annotated[
        float, typer.Option("--every", min=0.1, help="Seconds between two updates.")
    ] = 1.0,
    count: Annotated[
        int,
        typer.Option(
            "--count",
            min=0,
            help="Number of updates after which the command ends. The value 0 never ends it.",
        ),
    ] = 0,
) -> None:
    """Watch a served drive: rates, latencies, write amplification by cause, free blocks, merges.

    The command does not change the drive. Latencies are in simulated time, for the commands since
    the last update. Ctrl-C ends only this command.

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
                    raise InputError(
                        f"{where}: damaged: {error}; the content must be {EXPECTED}"
                    ) from error
                if terminal:
                    terminal.update(shown, refresh=True)
                else:
                    out.print(shown)
                before, looks = seen, looks + 1
    except KeyboardInterrupt:
        return
