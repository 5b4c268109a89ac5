"""Features of all commands: ``--plugin``, and an error for an option that is given twice."""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from flashatlas._core import InputError
from flashatlas.cli import field_words


def _load(paths: Any) -> Any:
    """Add the parts of files before other options are parsed, so that the options may name them.

    The parameter has no annotation ``list[str]``: with it, typer 0.29 fails on Python 3.10.
    """
    for path in paths:
        from flashatlas import parts  # noqa: PLC0415

        parts.load(path)
    return paths


Plugin = Annotated[
    list[str],
    typer.Option(
        "--plugin",
        metavar="FILE",
        is_eager=True,
        callback=_load,
        help="Add the schemes, policies and other parts that are defined in this file, a shared "
        "library (`flashatlas_plugin.h`) or a Python file; may be repeated.",
    ),
]


def _with_plugin(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command with the option ``--plugin``, which is handled before the command runs."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())
    plugin = inspect.Parameter(
        "plugin", inspect.Parameter.KEYWORD_ONLY, default=[], annotation=Plugin
    )

    @functools.wraps(command)
    def with_plugin(*args: Any, plugin: list[str], **kwargs: Any) -> Any:
        return command(*args, **kwargs)

    with_plugin.__signature__ = inspect.Signature([*own, plugin])  # type: ignore[attr-defined]
    with_plugin.__annotations__ = {p.name: p.annotation for p in [*own, plugin]}
    return with_plugin


class OneValueCommand(TyperCommand):
    """A command that refuses an option that is given twice; other commands use the last value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments as other commands do, after a check.

        Raises:
                    InputError: An option with a single value is given twice.

        """
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for option, times in Counter(order).items():
            if times > 1 and option.param_type_name == "option" and not option.multiple:
                name = max(option.opts, key=len)
                raise InputError(f"{name}: the option is given {times} times; give it once")
        return super().parse_args(ctx, args)


class Commands(TyperGroup):
    """A group of commands that recognises the names of commands in other tools."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command as other groups do.

        Raises:
                    InputError: The name is the name that other tools use for one of the commands.

        """
        word = args[0] if args else ""
        called = field_words.COMMANDS.get(field_words.plain(word))
        if called in self.commands and word not in self.commands:
            raise InputError(f"`{word}` is called `{called}` here: see `flashatlas {called} -h`")
        return super().resolve_command(ctx, args)


class App(typer.Typer):
    """A group of commands with these features; ``-h`` is short for ``--help``."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            cls=Commands,
            context_settings={"help_option_names": ["-h", "--help"]},
            **options,
        )

    def command(self, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        """Add a command, as :meth:`typer.Typer.command` does."""
        add = super().command(*args, **{"cls": OneValueCommand, **kwargs})
        return lambda command: add(_with_plugin(command))
