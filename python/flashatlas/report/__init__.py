"""The report: one HTML file about one run or many, which needs no network and no server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from flashatlas.files import write_whole
from flashatlas.report.page import page
from flashatlas.results.result import Result

__all__ = ["render", "write_report"]


def write_report(path: Path, title: str, results: Sequence[Result], command: str) -> Path:
    """Write the report of some runs, side by side.

    Args:
        path: The file; it appears whole or not at all.
        title: Heading of the report.
        results: At least one run. The report names tables that a run lacks; they are never an
            error.
        command: The command that runs everything again.

    Raises:
        InputError: There is no run, or the file cannot be written.

    """
    write_whole(path, render(title, results, command))
    return path


def render(title: str, results: Sequence[Result], command: str) -> str:
    """Return the report as HTML text; arguments as for :func:`write_report`."""
    return page(title, results, command)
