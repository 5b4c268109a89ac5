"""The files that a trace is read from: one, or the parts of a merge (``merge:FILE;FILE``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from flashatlas._core import InputError, trace_files, trace_with_files


def with_files(name: str, change: Callable[[str], str]) -> str:
    """Return the name of a trace whose files are called otherwise.

    Raises:
        InputError: The name says nothing.

    """
    return trace_with_files(name, [change(file) for file in trace_files(name)])


def short_name(name: str) -> str:
    """Return the name of a trace without the folders of its files."""
    return with_files(name, lambda file: Path(file).name)


def input_files(trace: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return each file of a record's ``trace`` with its digest; none where there are none."""
    if "digest" not in trace:
        return []
    return [(part["path"], part["digest"]) for part in trace.get("parts", [trace])]


def must_be_there(trace: Mapping[str, Any]) -> None:
    """Refuse a record's ``trace`` whose files are gone.

    Raises:
        InputError: One is; the error names it and its digest.

    """
    for path, digest in input_files(trace):
        if not Path(path).exists():
            raise InputError(f"{path}: no such file; the run read it from there ({digest})")
