"""Options that several commands share, declared once."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from flashatlas import InputError, _core
from flashatlas.cli import complete
from flashatlas.cli.console import seen_enough
from flashatlas.running.run_options import RunOption, of_groups

Command = TypeVar("Command", bound=Callable[..., Any])


def _option(*names: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, **more)


Set = Annotated[
    list[str],
    typer.Option(
        "--set",
        "-s",
        metavar="KEY=VALUE",
        help="Change a parameter (see `flashatlas explain`); may be repeated.",
        autocompletion=complete.settings,
    ),
]
Layers = Annotated[
    str | None,
    _option(
        "--layers",
        metavar="A,B,…",
        autocompletion=complete.layers,
        help="Layers that the host puts over the drive, from the top down (see `flashatlas "
        "layers`); short for `--set layers=…`.",
    ),
]
Json = Annotated[
    str | None,
    _option(
        "--json",
        metavar="FILE",
        help="Write the result as JSON to this file. Give '-' to print the JSON and nothing else.",
    ),
]
Force = Annotated[bool, _option("--force", help="Replace the results in the folder of --out.")]
Out = Annotated[
    Path | None,
    _option(
        "--out",
        "-o",
        metavar="DIR",
        help="Write the results into this folder; by default they are only shown.",
    ),
]
Title = Annotated[
    str | None, _option("--title", help="Title of the report; by default it names the runs.")
]
Quiet = Annotated[bool, _option("--quiet", "-q", help="Show no progress bar.")]
Jobs = Annotated[
    int | None,
    _option(
        "--jobs",
        "-j",
        min=1,
        help="Number of runs at the same time; by default one run for each core.",
    ),
]


AllowIncomplete = Annotated[
    bool,
    typer.Option(
        "--allow-incomplete", help="Accept a study with missing runs; report how many are missing."
    ),
]

Options = dict[str, Any]
"""The values of a run's options that were given to a command, by name."""

Reading = Annotated[Options, ("reading",)]
"""Options of reading a trace."""
Workload = Annotated[Options, ("reading", "workload")]
"""Options that choose a workload, and options of reading its trace."""
Playing = Annotated[Options, ("reading", "workload", "playing")]
"""Options of a workload, and options of playing and measuring it."""

TYPES = {"file": Path, "text": str, "count": int, "number": int, "factor": float, "choice": str}
TYPES |= {"flag": bool, "count-or": str}

SHOWN_DEFAULTS = ("count", "count-or", "number", "factor", "choice")
"""The kinds of options for which help texts show the default."""


def _count(option: RunOption, given: str | int) -> int:
    """Return a count from its text, such as ``100k`` or ``1e6``."""
    name = f"--{option.name.replace('_', '-')}"
    try:
        count = _core.count(str(given))
    except InputError as error:
        raise InputError(f"{name}: {error}; give a number such as 20000, 100k or 1e6") from error
    if option.least is not None and count < option.least:
        raise InputError(f"{name}: {given} is too small; give at least {option.least}")
    return count


def _count_or(option: RunOption, given: str | int) -> int | str:
    """Return a count, or the word that was given instead; the core checks the word."""
    text = str(given)
    return _count(option, given) if text[:1] in "+-.0123456789" else text


def option_value(option: RunOption, text: str) -> Any:
    """Return the value of an option from its text on a command line."""
    kinds: dict[str, Callable[[str], Any]] = {
        "count": functools.partial(_count, option),
        "count-or": functools.partial(_count_or, option),
        "flag": {"true": True, "false": False}.__getitem__,
        "number": int,
        "factor": float,
    }
    try:
        return kinds.get(option.kind, str)(text)
    except (KeyError, ValueError) as error:
        what = "true or false" if option.kind == "flag" else "a number"
        raise InputError(f"{option.name}: `{text}` is not {what}") from error


def _parameter(option: RunOption) -> inspect.Parameter:
    """Return an option of a run as a parameter of a command."""
    counts = {"count": _count, "count-or": _count_or}.get(option.kind)
    names = [f"--{option.name.replace('_', '-')}"]
    if option.letter:
        names.append(f"-{option.letter}")
    declared = typer.Option(
        *names,
        help=option.doc.replace("`", "'"),
        metavar=option.metavar or ("N" if option.kind == "count" else None),
        parser=functools.partial(counts, option) if counts else None,
        rich_help_panel=option.title,
        show_default=option.kind in SHOWN_DEFAULTS,
        **complete.of_option(option),
    )
    kind = TYPES[option.kind]
    # without --mode, the depth decides
    default = None if option.name == "mode" else option.default
    typed = kind if default is not None else kind | None
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[typed, declared],
    )


def shared(command: Command) -> Command:
    """Replace a command's parameter ``common`` by the options of a run that it names."""
    # in Python 3.10, get_type_hints hides the option of a parameter whose default is None
    own = inspect.signature(command, eval_str=True).parameters
    (groups,) = own["common"].annotation.__metadata__
    parameters = [p for p in own.values() if p.name != "common"]
    generated = [_parameter(option) for option in of_groups(*groups)]

    @functools.wraps(command)
    def with_options(**arguments: Any) -> Any:
        common = {p.name: arguments.pop(p.name) for p in generated}
        return command(**arguments, common=common)

    keywords = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters + generated]
    with_options.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    with_options.__annotations__ = {p.name: p.annotation for p in keywords}
    return with_options  # type: ignore[return-value]


def try_outputs(folder: Path | None, force: bool, *files: str | Path | None) -> None:
    """Check that every output of a command can be written, before the command runs anything.

    Raises:
        InputError: A folder or a file cannot be written, or earlier results would be replaced.

    """
    from flashatlas.files import file_must_be_writable, must_be_writable  # noqa: PLC0415
    from flashatlas.results.folders import must_hold_no_results  # noqa: PLC0415

    must_hold_no_results(folder, force)
    must_be_writable(folder)
    for file in files:
        file_must_be_writable(file)


def write_json(target: str | None, text: str) -> None:
    """Write a JSON text to the target of ``--json``."""
    from flashatlas.files import write_whole  # noqa: PLC0415

    if target == "-":
        try:
            sys.stdout.write(text.rstrip("\n") + "\n")
            sys.stdout.flush()
        except BrokenPipeError:  # end here: the command-line library would use another exit code
            seen_enough()
    elif target:
        write_whole(Path(target), text.rstrip("\n") + "\n")


NO_LAYERS = "none"
"""The value of ``--layers`` for a drive without layers."""


def with_layers(settings: list[str], layers: str | None) -> list[str]:
    """Return the settings, with the value of ``--layers`` added if it was given."""
    named = "" if layers == NO_LAYERS else layers
    return settings if named is None else [*settings, f"layers={named}"]
