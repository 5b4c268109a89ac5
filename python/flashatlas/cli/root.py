"""The command ``flashatlas``, which lists the other commands and loads the one that is called."""

from __future__ import annotations

import signal
import sys
from importlib import import_module
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperCommand
from typer.main import get_group

from flashatlas.cli.commands import COMMANDS, FIRST
from flashatlas.cli.signals import end_at_once
from flashatlas.cli.strict import App, Commands
from flashatlas.cli.version import version

MARKUP: Any = "markdown"


def load(name: str) -> Any:
    """Import a command's module, and return the command with its options."""
    entry = COMMANDS[name]
    module, _, attribute = entry.place.partition(":")
    found = getattr(import_module(f"flashatlas.cli.{module}"), attribute)
    alone = App(rich_markup_mode=MARKUP)
    if isinstance(found, typer.Typer):
        alone.add_typer(found, name=name)
    else:
        alone.command(name)(found)
    return get_group(alone).commands[name]


class Root(Commands):
    """The group of all commands, in which a command is loaded only when it is called."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for entry in COMMANDS.values():
            self.commands[entry.name] = TyperCommand(
                entry.name,
                help=entry.about,
                rich_help_panel=entry.heading,
                rich_markup_mode=MARKUP,
            )

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command as other groups do, and load it."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            command = load(command.name)
        _let_commands_end()
        return name, command, rest

    def invoke(self, ctx: Any) -> Any:
        """Invoke a command as other groups do.

        Raises:
                    InputError: A record that somebody changed cannot be used.
                    Interrupted: The user stopped the command. After a ``KeyboardInterrupt``, the
                    command-line library would end without a message.

        """
        from flashatlas.progress import Interrupted  # noqa: PLC0415
        from flashatlas.results.result import changed_records_are_bad_input  # noqa: PLC0415

        try:
            with changed_records_are_bad_input():
                return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise Interrupted from stop


def _let_commands_end() -> None:
    """Let signals raise exceptions from now on, so that a command closes and removes its files."""
    for number, handler in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGTERM, _terminate),
    ):
        if signal.getsignal(number) is end_at_once:
            signal.signal(number, handler)


def _terminate(number: int, frame: FrameType | None) -> None:
    from flashatlas.cli.console import Terminated  # noqa: PLC0415

    raise Terminated


app = App(
    no_args_is_help=True,
    rich_markup_mode=MARKUP,
    pretty_exceptions_enable=False,
    help="The atlas of a flash drive's address maps: simulate, compare and check translation "
    "layers on real traces.\n\n"
    f"Five commands to begin with: {', '.join(f'`{name}`' for name in FIRST)}. "
    "`flashatlas COMMAND -h` gives examples.",
    epilog="Exit codes: 0 done, 1 the results differ (`rerun --check`, `diff`) or a run of a study "
    "failed, 2 bad input, 3 the drive could not continue, 4 wrong data, 5 an added part failed, "
    "6 the power failed (`serve --cut-after`), 70 a bug, "
    "130 interrupted, 143 terminated.",
)
app.info.cls = Root


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(version())
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
    """Simulate, compare and check a flash drive's address maps.

    FlashAtlas runs translation layers on real traces.
    """
