"""The end of a command after an exception: one message, and an exit code."""

from __future__ import annotations

import sys
import traceback
from typing import NoReturn

from flashatlas._core import (
    DriveError,
    FlashAtlasError,
    InputError,
    PartError,
    __version__,
)
from flashatlas.cli.console import (
    EXIT_DRIVE,
    EXIT_INPUT,
    EXIT_INTERNAL,
    EXIT_INTERRUPTED,
    EXIT_PART,
    EXIT_TERMINATED,
    Terminated,
    err,
    kept_at,
    seen_enough,
)
from flashatlas.progress import Interrupted


def end(error: BaseException) -> NoReturn:
    """End after an exception, with its message and its exit code."""
    match error:
        case Terminated():
            die(f"terminated; {kept_at(error)}", EXIT_TERMINATED)
        case Interrupted() | KeyboardInterrupt():
            die(f"interrupted; {kept_at(error)}", EXIT_INTERRUPTED)
        case InputError():
            die(getattr(error, "on_command_line", str(error)), EXIT_INPUT)
        case DriveError():
            die(str(error), EXIT_DRIVE)
        case PartError():
            die(str(error), EXIT_PART)
        case FlashAtlasError():
            die(
                f"{error}\nThis is a bug of FlashAtlas {__version__}: please report it with the "
                "command above.",
                EXIT_INTERNAL,
            )
        case BrokenPipeError():
            seen_enough()
        case OSError():
            die(f"{error.filename or 'standard output'}: {error.strerror}", EXIT_INPUT)
        case MemoryError():
            die("there is not enough memory", EXIT_INPUT)
        case _:
            _unforeseen(error)


def _unforeseen(error: BaseException) -> NoReturn:
    """End after an unexpected exception, with its traceback and the exit code for a bug."""
    traceback.print_exception(error)
    die(
        f"{type(error).__name__}: {error}\nThis is a bug of FlashAtlas {__version__}: "
        "please report it with the command and the lines above.",
        EXIT_INTERNAL,
    )


def die(message: str, code: int) -> NoReturn:
    """Print an error, and end with an exit code."""
    err.print("[bold red]error:[/] ", end="", highlight=False)
    err.print(message, highlight=False, markup=False, soft_wrap=True)
    sys.exit(code)


def note(message: Warning | str) -> None:
    """Print a warning as a note."""
    err.print("[bold]note:[/] ", end="", highlight=False)
    err.print(str(message), highlight=False, markup=False, soft_wrap=True)
