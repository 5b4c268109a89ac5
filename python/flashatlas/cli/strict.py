"""One value means one: an option that takes one value may be given once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand

from flashatlas import InputError


class OneValueCommand(TyperCommand):
    """A command that refuses an option given twice, rather than let the last one win."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments as every command does, after they were looked at once.

        Raises:
            InputError: An option that takes one value is there twice.

        """
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for option, times in Counter(order).items():
            if times > 1 and option.param_type_name == "option" and not option.multiple:
                name = max(option.opts, key=len)
                raise InputError(f"{name}: given {times} times, expected once")
        return super().parse_args(ctx, args)


class App(typer.Typer):
    """A group of such commands; ``-h`` is ``--help``."""

    def __init__(self, **options: Any) -> None:
        super().__init__(context_settings={"help_option_names": ["-h", "--help"]}, **options)

    def command(self, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        """As :meth:`typer.Typer.command`."""
        return super().command(*args, **{"cls": OneValueCommand, **kwargs})
