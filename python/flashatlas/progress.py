"""Progress of runs.

A terminal shows bars with the rate and the time left. If standard error is no terminal, a line is
printed there every ten seconds. A notebook shows a bar in the cell's output.
"""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

if TYPE_CHECKING:
    from rich.progress import TaskID

SHOWN_MAX = 12
"""The largest number of runs for which each run has its own bar; more runs share one bar."""

LINE_EVERY_S = 10.0
"""Seconds between two lines if there is no terminal."""

CELL_EVERY_S = 0.2
"""Seconds between two updates of a notebook's cell."""


class Interrupted(Exception):
    """The user stopped a run.

    This class is not a ``KeyboardInterrupt``, because every command-line library treats that in its
    own way.
    """


class Shown:
    """The display on the terminal during runs; it turns Ctrl-C into :class:`Interrupted`."""

    _on_terminal: AbstractContextManager[Any]

    def __enter__(self) -> Self:
        self._on_terminal.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._on_terminal.__exit__(kind, error, trace)
        if isinstance(error, KeyboardInterrupt):
            raise Interrupted from error


THERE = "there"
"""The phase of a run that has results from before; the time left ignores such runs."""

TELLING = 0.02
"""The share of the runs that must be done before a time left is shown."""


class Bars(Shown):
    """A bar for each run, or one bar for many runs; lines of text if there is no terminal.

    If there are several runs, the time left is shown for all of them together.
    """

    def __init__(self, labels: Sequence[str], *, enabled: bool = True) -> None:
        from rich.console import Console  # noqa: PLC0415
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        console = Console(stderr=True, emoji=False)
        self._state = _State(labels)
        own = [] if len(labels) > 1 else [TimeRemainingColumn()]
        self._on_terminal = self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[note]}"),
            *own,
            console=console,
            transient=True,
            disable=not (enabled and console.is_terminal),
        )
        shown = [] if self._state.together else list(labels)
        shown += ["all runs"] if len(labels) > 1 else []
        self._tasks: list[TaskID] = [
            self._progress.add_task(label or "run", total=1.0, note="") for label in shown
        ]
        lines = enabled and not console.is_terminal
        self._next_line = time.monotonic() + LINE_EVERY_S if lines else float("inf")

    def update(
        self, run: int, phase: str, requests: int, share: float | None, unit: str = "requests"
    ) -> None:
        """Show the progress of a run."""
        self._state.update(run, phase, requests, share, unit)
        if time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + LINE_EVERY_S
            print(self._state.line(), file=sys.stderr, flush=True)
        if self._progress.disable:
            return
        if len(self._tasks) > 1 or self._state.together:
            done, count = self._state.done()
            note = f"{done:.1f} of {count}{self._state.later()}"
            self._progress.update(self._tasks[-1], completed=done / count, note=note)
        if self._state.together:
            return
        task = self._progress.tasks[run]
        rate = f", {requests / task.elapsed:,.0f}/s" if task.elapsed and phase == "run" else ""
        note = f"{phase}: {requests:,} {unit}{rate}"
        self._progress.update(self._tasks[run], completed=self._state.share(run), note=note)


class _State:
    """The last reported state of each run."""

    def __init__(self, labels: Sequence[str]) -> None:
        self._labels = [label or "run" for label in labels]
        self._shares = [0.0] * len(labels)
        self._notes: dict[int, str] = {}
        self._there = 0
        self._begun = time.monotonic()
        self.together = len(labels) > SHOWN_MAX

    def update(self, run: int, phase: str, requests: int, share: float | None, unit: str) -> None:
        if phase in ("check", THERE):  # the check is short, and it is the last phase
            self._shares[run] = 1.0
        elif phase != "precondition" and share is not None:
            self._shares[run] = share
        if phase == THERE:
            self._there += 1
        part = "" if share is None else f" ({share:.0%})"
        said = {THERE: THERE, "check": "done"}.get(phase, f"{phase}, {requests:,} {unit}{part}")
        self._notes[run] = said

    def share(self, run: int) -> float:
        """Return the done share of a run, from 0 to 1."""
        return self._shares[run]

    def done(self) -> tuple[float, int]:
        """Return the number of runs done, with the done shares of others, and of all runs."""
        return sum(self._shares), len(self._shares)

    def later(self) -> str:
        """Return the time left, as text to put after a count; empty while it is unknown."""
        done, count = self.done()
        own = done - self._there
        if own < TELLING * (count - self._there) or own <= 0 or done >= count:
            return ""
        passed = time.monotonic() - self._begun
        return f", about {clock(passed * (count - done) / own)} to go"

    def line(self) -> str:
        """Return the state of all runs in one line, after the seconds since the start."""
        seconds = f"{time.monotonic() - self._begun:.0f} s"
        if self.together:
            done, count = self.done()
            there = f", {self._there} there before" if self._there else ""
            return f"{seconds}: {done:.1f} of {count} runs{there}{self.later()}"
        notes = (f"{self._labels[run]}: {note}" for run, note in sorted(self._notes.items()))
        return f"{seconds}: {'; '.join(notes)}{self.later()}"


def clock(seconds: float) -> str:
    """Return a time for people to read: ``34 s``, ``2:05``, ``1:02:05``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class Cell:
    """A bar in the output of a notebook's cell; see :func:`shown_in_cell`."""

    def __init__(self, labels: Sequence[str]) -> None:
        from IPython.display import HTML, display  # noqa: PLC0415  (only a notebook has it)

        self._html, self._state, self._next = HTML, _State(labels), 0.0
        self._handle = display(HTML(""), display_id=True)

    def update(
        self, run: int, phase: str, requests: int, share: float | None, unit: str = "requests"
    ) -> None:
        """Show the progress of a run."""
        self._state.update(run, phase, requests, share, unit)
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + CELL_EVERY_S
            done, count = self._state.done()
            bar = f'<progress value="{done / count:.3f}" max="1"></progress>'
            self._handle.update(self._html(f"{bar} {html.escape(self._state.line())}"))

    def close(self) -> None:
        """Clear the output."""
        self._handle.update(self._html(""))


@contextmanager
def shown_in_cell(labels: Sequence[str], progress: Any) -> Iterator[Any]:
    """Yield ``progress``; if it is ``None``, yield a notebook cell's function or ``None``."""
    if progress is not None or not in_notebook():
        yield progress
        return
    cell = Cell(labels)
    try:
        yield cell.update
    finally:
        cell.close()


def in_notebook() -> bool:
    """Return ``True`` in a notebook's kernel, and ``False`` in a script or a shell."""
    python: Any = sys.modules.get("IPython")
    shell = python.get_ipython() if python is not None else None
    return shell is not None and shell.has_trait("kernel")
