"""Progress of a study: a line for each worker, rate, time left, failures."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table

from flashatlas.progress import LINE_EVERY_S, Shown, clock
from flashatlas.sweep.plan import Run

WINDOW = 50
"""Number of runs whose pace predicts the time left."""

WORKERS_MAX = 16
"""The largest number of workers that have a line each."""

SILENT_S = 10.0
"""Seconds without news after which a worker's line is left out."""


class Display(Shown):
    """Display of a study's progress: a :class:`flashatlas.sweep.execution.Watcher`.

    There are lines every ten seconds if standard error is not a terminal.
    """

    def __init__(self, count: int, there: int, *, enabled: bool = True) -> None:
        self._count, self._there = count, there
        self._done = self._failed = 0
        self._begun = time.monotonic()
        self._ends: deque[float] = deque([self._begun], maxlen=WINDOW)
        self._workers: dict[str, tuple[float, str]] = {}
        self._console = Console(stderr=True, emoji=False)
        self._enabled = enabled
        on_terminal = enabled and self._console.is_terminal
        self._live = (
            Live(console=self._console, transient=True, refresh_per_second=4)
            if on_terminal
            else None
        )
        self._on_terminal = self._live or nullcontext()
        self._next_line = self._begun + LINE_EVERY_S

    def told(self, worker: str, label: str, phase: str, requests: int, share: float | None) -> None:
        """Take note of a worker's progress in a run."""
        part = "" if share is None else f" ({share:.0%})"
        said = f"{label}: {phase}, {requests:,} requests{part}"
        self._workers[str(worker)] = (time.monotonic(), said)

    def ended(self, run: Run, failure: Mapping[str, Any] | None) -> None:
        """Take note that a run is done, or has failed."""
        self._done += 1
        self._ends.append(time.monotonic())
        if failure is not None:
            self._failed += 1
            if self._enabled:
                why = first_line(failure)
                text = f"[red]failed[/] {escape(run.label)}: {escape(why)}"
                self._console.print(text, highlight=False, soft_wrap=True)

    def tick(self) -> None:
        """Show the time that has passed."""
        if self._live:
            self._live.update(self._shown())
        elif self._enabled and time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + LINE_EVERY_S
            print(self.line(), file=sys.stderr, flush=True)

    def line(self) -> str:
        """Return the whole state in a line."""
        failed = f", {self._failed} failed" if self._failed else ""
        there = f", {self._there} there before" if self._there else ""
        to_go = self._to_go()
        later = "" if to_go is None else f", {clock(to_go)} to go"
        return (
            f"{clock(time.monotonic() - self._begun)}: {self._done} of {self._count} runs{failed}"
            f"{there}, {self._rate():.2g} a second{later}"
        )

    def _rate(self) -> float:
        seconds = time.monotonic() - self._ends[0]
        return (len(self._ends) - 1) / seconds if seconds > 0 else 0.0

    def _to_go(self) -> float | None:
        rate = self._rate()
        return (self._count - self._done) / rate if rate else None

    def _shown(self) -> Group:
        now = time.monotonic()
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True, overflow="ellipsis")
        recent = [
            (name, said)
            for name, (at, said) in sorted(self._workers.items())
            if now - at < SILENT_S
        ]
        for name, said in recent[:WORKERS_MAX]:
            table.add_row(f"worker {escape(name.rpartition('/')[2])}", escape(said))
        if recent[WORKERS_MAX:]:
            table.add_row("", f"and {len(recent) - WORKERS_MAX} workers more")
        return Group(table, ProgressBar(total=self._count, completed=self._done), self.line())


def first_line(failure: Mapping[str, Any]) -> str:
    """Return why a run failed, without the traceback that may follow."""
    return str(failure.get("error") or "unknown").splitlines()[0]
