"""Output of the commands, and their exit codes."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from flashatlas.drawing import tables
from flashatlas.progress import Interrupted
from flashatlas.record import Note
from flashatlas.results import notes as notes_of
from flashatlas.results import reasons, steadiness
from flashatlas.results.result import Result
from flashatlas.results.rows import crowded

EXIT_DIFFERS, EXIT_INPUT, EXIT_DRIVE, EXIT_VIOLATION, EXIT_PART, EXIT_POWER = 1, 2, 3, 4, 5, 6
EXIT_INTERNAL, EXIT_INTERRUPTED, EXIT_TERMINATED = 70, 130, 143


def seen_enough() -> NoReturn:
    """End without an error, because nobody reads standard output any longer; drop its buffer."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(0)


class _Out(Console):
    def on_broken_pipe(self) -> None:
        seen_enough()


def _width() -> int | None:
    """Return the width without a terminal: ``COLUMNS``, or 110; ``None`` for a terminal's own."""
    given = os.environ.get("COLUMNS", "")
    if sys.stdout.isatty():
        return None
    return int(given) if given.isdecimal() and int(given) > 0 else 110


out = _Out(soft_wrap=False, width=_width(), emoji=False)
err = Console(stderr=True, emoji=False)


class Terminated(BaseException):
    """SIGTERM arrived; open files are closed and removed, as after an interruption."""


NOTHING_KEPT = "nothing was written"
"""The message about an interrupted command that has written nothing."""


@contextmanager
def keeping(what: Callable[[], str]) -> Iterator[None]:
    """Use ``what()`` in the message about an interruption, instead of :data:`NOTHING_KEPT`."""
    try:
        yield
    except (Interrupted, KeyboardInterrupt, Terminated) as stop:
        stop.kept = what()  # type: ignore[union-attr]
        raise


def kept_at(stop: BaseException) -> str:
    """Return a message about the results that an interrupted command has kept."""
    kept: str = getattr(stop, "kept", "") or getattr(stop.__cause__, "kept", NOTHING_KEPT)
    return kept


def command_line() -> str:
    """Return the command line as it was typed."""
    return shlex.join(["flashatlas", *sys.argv[1:]])


def say(text: str) -> None:
    """Print text without line breaks or highlighting of its own."""
    out.print(text, highlight=False, soft_wrap=True)


MATTER = 3
"""Number of approximations that the terminal shows first; the others follow in dim text."""

REASONS_MAX = 4
"""The largest number of unsteady runs for which reasons are shown; the records have all."""


def notes(results: Sequence[Result]) -> None:
    """Print the runs that were not steady, and the approximations of all runs, each once."""
    found = steadiness.unsteady(results)
    if found:
        count = "not steady" if len(results) == 1 else f"{len(found)} of {len(results)} not steady"
        moves = steadiness.MOVES.format("its" if len(results) == 1 else "their")
        advice = steadiness.advice([result for result, _ in found])
        names = [escape(result.name) for result, _ in found]
        if len(found) <= REASONS_MAX:
            names = [
                f"{name}: {escape('; '.join(reasons))}"
                for name, (_, reasons) in zip(names, found, strict=True)
            ]
        between = "\n  " if len(found) <= REASONS_MAX else ", "
        say(f"\n[yellow]{count}[/], {moves}:\n  {between.join(names)}")
        say(escape(f"  To make it steady: {advice}"))
    if whose := [result for result in results if crowded(result.record)]:
        named = "" if len(results) == 1 else f" of {', '.join(r.name for r in whose)}"
        say(
            f"\n[yellow]queueing[/]: latencies{escape(named)} are mostly time spent waiting for "
            "other requests: the run ignores the times of the trace, and sends a request whenever "
            "the queue has room (`--mode open` keeps the times, `--depth N` has at most N "
            "requests in flight)"
        )
    if steadiness.compares_unlike(results):
        say(f"[yellow]unlike[/]: {steadiness.UNLIKE}")
    _approximations(results)


def _approximations(results: Sequence[Result]) -> None:
    found = [escape(text) for text in notes_of.by_note(results)]
    if found:
        say("\nApproximations, the most important first:")
    for note in found[:MATTER]:
        say(f"  {note}")
    for note in found[MATTER:]:
        say(f"[dim]  also: {note}[/]")


def notes_of_study(given: Sequence[Sequence[Note]]) -> None:
    """Print the approximations of a study, each once, with the number of runs that have it.

    Args:
        given: The notes of each run.

    """
    found = notes_of.gathered(given)
    if found:
        say("\nApproximations, the most important first (`flashatlas explain CODE` gives advice):")
    for code, text, runs in found:
        few = f"{len(runs)} of {len(given)} runs" if len(runs) < len(given) else "all runs"
        what = text if code in (None, text) else f"{code}: {text}"
        say(f"  {few}: {escape(what)}")


def show(results: Sequence[Result]) -> None:
    """Print a comparison with a row for each of many results, or a column for each of a few."""
    for alarm in notes_of.alarms(results):
        say(f"[bold red]{escape(alarm)}[/]")
    many = len(results) >= tables.MANY
    shown = [tables.turned(results)] if many else tables.comparison(results, out.width)
    for number, table in enumerate(shown):
        if number:
            out.print()
        # a table that is too wide for the terminal is never cut off
        out.print(table, soft_wrap=many)
    if explained := reasons.rows(results):
        out.print()
        first = 1 if len(results) == 1 else 0
        rows = [row[first:] for row in explained]
        out.print(tables.listing(reasons.COLUMNS[first:], rows))
        if len(results) == 1:
            say(escape(reasons.longest(results[0])))
    if apart := tables.unlike(results):
        say(f"[dim]No best is marked: the runs differ in {escape(apart)}.[/]")


def replaced(folder: Path, runs: int) -> None:
    """Report that earlier runs were removed from a folder."""
    if runs:
        what = "a run" if runs == 1 else f"{runs} runs"
        said = f"{folder}: {what} of an earlier comparison {'was' if runs == 1 else 'were'} removed"
        err.print(said, highlight=False, markup=False, soft_wrap=True)


def finish(results: Sequence[Result]) -> None:
    """End with an error if a page had wrong data, or a drive wore out during its workload."""
    must_be_right(results)
    if any(result.worn_out for result in results):
        raise typer.Exit(EXIT_DRIVE)


def must_be_right(results: Sequence[Result]) -> None:
    """End with an error if a page had wrong data."""
    wrong = [result for result in results if result.violations]
    for result in wrong:
        for example in result.record["oracle"]["examples"]:
            err.print(
                f"[bold red]wrong data[/] ({result.label or 'run'}): {example}", highlight=False
            )
    if wrong:
        raise typer.Exit(EXIT_VIOLATION)
