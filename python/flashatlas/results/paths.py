"""Names of traces: a single file, or a merge of files (``merge:FILE;FILE``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from flashatlas._core import trace_files, trace_with_files


def with_files(name: str, change: Callable[[str], str]) -> str:
    """Return the name of a trace with its files renamed by ``change``.

    Raises:
        InputError: The name is not a valid name of a trace.

    """
    return trace_with_files(name, [change(file) for file in trace_files(name)])


def short_name(name: str) -> str:
    """Return the name of a trace without the folders of its files."""
    return with_files(name, lambda file: Path(file).name)


def input_files(trace: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return each file of a record's ``trace`` with its digest; empty if there are no files."""
    if "digest" not in trace:
        return []
    parts = [file for part in trace.get("parts", [trace]) for file in part.get("files", [part])]
    return [(part["path"], part["digest"]) for part in parts]


def part_with_files(part: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """Return a part of a record's ``trace`` with its files renamed by ``change``."""
    moved = {**part, "path": with_files(part["path"], change)}
    if "files" in part:
        moved["files"] = [{**file, "path": change(file["path"])} for file in part["files"]]
    return moved


def with_inputs(trace: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """Return a record's ``trace`` with its input files renamed by ``change``.

    Standard input and tables are renamed as well; their names in the record are passed to
    ``change``.
    """
    moved = {**trace, "path": with_files(trace["path"], change)}
    if "parts" in trace:
        moved["parts"] = [part_with_files(part, change) for part in trace["parts"]]
    return moved
