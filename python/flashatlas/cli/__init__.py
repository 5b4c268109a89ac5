"""The command line."""

from __future__ import annotations

import platform
import signal
import sys
import traceback
import warnings
from importlib.metadata import version
from types import FrameType
from typing import Annotated, NoReturn

import typer

import flashatlas
from flashatlas import DriveError, FlashAtlasError, InputError, PartError, api
from flashatlas.cli import (
    again,
    check,
    crash,
    diff,
    explain,
    frames,
    image,
    jobs,
    listings,
    lookup,
    new,
    plug,
    probe,
    report,
    reproduce,
    results,
    runs,
    serve,
    sweep,
    top,
    traces,
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
from flashatlas.cli.strict import App
from flashatlas.progress import Interrupted
from flashatlas.result import changed_records_are_bad_input
from flashatlas.sweep.study import StudyError

app = App(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="The atlas of a flash drive's address maps: simulate, compare and check translation "
    "layers on real traces.",
    epilog="Exit codes: 0 done, 1 another result (`rerun --check`) or a run of a study that "
    "failed, 2 bad input, 3 the drive could not go on, 4 wrong data, 5 a part that was added went "
    "wrong, 6 the power failed (`serve --cut-after`), 70 a bug, "
    "130 interrupted, 143 terminated.",
)


def _version(wanted: bool) -> None:
    if wanted:
        how = api.build()
        commit = f", commit {how['commit'][:12]}{how['commit'][40:]}" if how["commit"] else ""
        sys.stdout.write(
            f"flashatlas {how['version']}{commit}\n"
            f"sources {how['sources'][:19]}, {how['profile']} build for {how['target']}\n"
            f"Python {platform.python_version()}, pyarrow {version('pyarrow')}\n"
        )
        raise typer.Exit


@app.callback()
def options(
    version_: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """The atlas of a flash drive's address maps.

    Simulate, compare and check translation layers on real traces.
    """


runs.register(app)
report.register(app)
diff.register(app)
frames.register(app)
again.register(app)
app.add_typer(traces.app, name="trace")
lookup.register(app)
crash.register(app)
check.register(app)
new.register(app)
listings.register(app)
explain.register(app)
jobs.register(app)
serve.register(app)
top.register(app)
plug.register(app)
sweep.register(app)
app.add_typer(image.app, name="image")
app.add_typer(results.app, name="results")
app.add_typer(probe.app, name="probe")
app.add_typer(reproduce.app, name="reproduce")


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


def _note(message: Warning | str, *_: object, **__: object) -> None:
    err.print("[bold]note:[/] ", end="", highlight=False)
    err.print(str(message), highlight=False, markup=False, soft_wrap=True)


def _must_be_text(arguments: list[str]) -> None:
    for argument in arguments:
        if any("\udc80" <= letter <= "\udcff" for letter in argument):
            _die(f"{argument!a}: not UTF-8; names of files and other arguments must be", EXIT_INPUT)


def main() -> None:
    """Run the command line; every error is one message and an exit code."""
    _must_be_text(sys.argv[1:])
    signal.signal(signal.SIGTERM, _terminate)
    warnings.showwarning = _note
    try:
        with changed_records_are_bad_input():
            app(standalone_mode=True)
    except Terminated as stop:
        _die(f"terminated; {kept_at(stop)}", EXIT_TERMINATED)
    except (Interrupted, KeyboardInterrupt) as stop:
        _die(f"interrupted; {kept_at(stop)}", EXIT_INTERRUPTED)
    except StudyError as error:
        _die(str(error), EXIT_INPUT)
    except InputError as error:
        _die(getattr(error, "on_command_line", str(error)), EXIT_INPUT)
    except DriveError as error:
        _die(str(error), EXIT_DRIVE)
    except PartError as error:
        _die(str(error), EXIT_PART)
    except FlashAtlasError as error:
        _die(
            f"{error}\nThis is a bug of FlashAtlas {flashatlas.__version__}: please report it with "
            "the command above.",
            EXIT_INTERNAL,
        )
    except BrokenPipeError:
        seen_enough()
    except OSError as error:
        _die(f"{error.filename or 'standard output'}: {error.strerror}", EXIT_INPUT)
    except MemoryError:
        _die("there is not enough memory", EXIT_INPUT)
    except SystemExit:
        raise
    except BaseException as error:
        _unforeseen(error)


def _unforeseen(error: BaseException) -> NoReturn:
    """End after an exception that nobody expected, with its traceback: exit code 1 is taken."""
    traceback.print_exception(error)
    _die(
        f"{type(error).__name__}: {error}\nThis is a bug of FlashAtlas {flashatlas.__version__}: "
        "please report it with the command and the lines above.",
        EXIT_INTERNAL,
    )


def _die(message: str, code: int) -> NoReturn:
    err.print("[bold red]error:[/] ", end="", highlight=False)
    err.print(message, highlight=False, markup=False, soft_wrap=True)
    sys.exit(code)
