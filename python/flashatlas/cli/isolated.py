"""A separate process for commands that call a shared library under every kind of failure."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import typer

from flashatlas import PartError, parts
from flashatlas.cli.console import EXIT_INTERNAL

Command = TypeVar("Command", bound=Callable[..., Any])

CHILD = "FLASHATLAS_ISOLATED"
"""Environment variable that marks the child process."""

PROGRAM = "import sys; sys.path.pop(0); from flashatlas.cli import main; main()"
"""The child's program, without the current folder on its path."""


def isolated(command: Command) -> Command:
    """Let a child process carry out the command if a shared library was loaded.

    If the library ends the child process, this process reports an error.
    """

    @wraps(command)
    def apart(*args: Any, **kwargs: Any) -> Any:
        if CHILD in os.environ or not parts.libraries():
            return command(*args, **kwargs)
        line = [sys.executable, "-c", PROGRAM, *sys.argv[1:]]
        code = subprocess.run(line, env={**os.environ, CHILD: "1"}, check=False).returncode
        if code < 0:
            raise PartError(f"the process of the plug-in was ended by {_named(-code)}: see above")
        if code == EXIT_INTERNAL:
            raise PartError("the process of the plug-in ended: see above")
        raise typer.Exit(code)

    return apart  # type: ignore[return-value]


def _named(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
