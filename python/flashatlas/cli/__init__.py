"""The command line.

Only a few modules are imported here; the module of a command is imported when the command is
called. Until then, an interrupt ends the process immediately.
"""

from __future__ import annotations

import os
import sys

try:
    import signal

    from flashatlas.cli.signals import end_at_once
except KeyboardInterrupt:  # these imports take half of the time before signals are handled
    os.write(2, b"error: interrupted; nothing was written\n")
    os._exit(130)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main() -> None:
    """Run the command line; turn every error into one message and an exit code."""
    before = signal.getsignal(signal.SIGINT)
    # a process that a shell starts in the background ignores the signal; keep it so
    heeds = before is signal.default_int_handler
    if heeds:
        signal.signal(signal.SIGINT, end_at_once)
    signal.signal(signal.SIGTERM, end_at_once)
    try:
        _carry_out()
    except KeyboardInterrupt:  # while an error was printed
        sys.exit(128 + signal.SIGINT)
    finally:
        if heeds:
            signal.signal(signal.SIGINT, before)


def _carry_out() -> None:
    try:
        _must_be_text(sys.argv[1:])
        if sys.argv[1:] == ["--version"]:
            from flashatlas.cli.version import version  # noqa: PLC0415

            sys.stdout.write(version())
            sys.stdout.flush()
            return
        import warnings  # noqa: PLC0415

        from flashatlas.cli.root import app  # noqa: PLC0415

        warnings.showwarning = _note
        app(standalone_mode=True)
    except SystemExit:
        raise
    except BaseException as error:
        from flashatlas.extensions import ExtensionError  # noqa: PLC0415

        if isinstance(error, ExtensionError):  # cli.ending cannot be imported without a core
            sys.stderr.write(f"error: {error}\n")
            sys.exit(2)
        from flashatlas.cli.ending import end  # noqa: PLC0415

        end(error)


def _must_be_text(arguments: list[str]) -> None:
    from flashatlas._core import InputError  # noqa: PLC0415

    for argument in arguments:
        if any("\udc80" <= letter <= "\udcff" for letter in argument):
            raise InputError(
                f"{argument!a}: the argument is not UTF-8; arguments and names of files "
                "must be UTF-8"
            )


def _note(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning as a note, in place of :func:`warnings.showwarning`."""
    from flashatlas.cli.ending import note  # noqa: PLC0415

    note(message)


def __getattr__(name: str) -> Any:
    """Return ``app``, the command ``flashatlas`` as an object of the command-line library."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from flashatlas.cli.root import app  # noqa: PLC0415

    return app
