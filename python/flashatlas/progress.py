"""Progress bars on standard error, with rate and time left."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

SHOWN_MAX = 12
"""More runs than this share one bar."""


class Interrupted(Exception):
    """The user stopped a run.

    Not a ``KeyboardInterrupt``, of which every command-line library has its own opinion.
    """


class Bars:
    """A bar for each run, or one for all when they are many.

    Nothing where standard error is no terminal.
    """

    def __init__(self, labels: Sequence[str], *, enabled: bool = True) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not (enabled and console.is_terminal),
        )
        self._labels = labels
        self._together = len(labels) > SHOWN_MAX
        shown = ["all runs"] if self._together else labels
        self._tasks: list[TaskID] = [
            self._progress.add_task(label or "run", total=1.0, note="") for label in shown
        ]
        self._shares = [0.0] * len(labels)

    def update(
        self, run: int, phase: str, requests: int, share: float | None, unit: str = "requests"
    ) -> None:
        """Show how far a run has come."""
        self._shares[run] = share if phase == "run" and share is not None else self._shares[run]
        if self._together:
            done = sum(self._shares)
            self._progress.update(
                self._tasks[0],
                completed=done / len(self._shares),
                note=f"{done:.1f} of {len(self._shares)}",
            )
            return
        task = self._progress.tasks[run]
        rate = f", {requests / task.elapsed:,.0f}/s" if task.elapsed and phase == "run" else ""
        note = f"{phase}: {requests:,} {unit}{rate}"
        self._progress.update(
            self._tasks[run], completed=share if phase == "run" else None, note=note
        )

    def __enter__(self) -> Bars:
        self._progress.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.__exit__(kind, error, trace)
        if isinstance(error, KeyboardInterrupt):
            raise Interrupted from error
