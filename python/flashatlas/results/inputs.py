"""The files that a trace is read from: one file, or the parts of a merge (``merge:FILE;FILE``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from flashatlas._core import InputError, is_table, trace_files, trace_with_files
from flashatlas.files import digest_of_content


def with_files(name: str, change: Callable[[str], str]) -> str:
    """Return the name of a trace with its files renamed by ``change``.

    Raises:
        InputError: The name has no meaning.

    """
    return trace_with_files(name, [change(file) for file in trace_files(name)])


def short_name(name: str) -> str:
    """Return the name of a trace without the folders of its files."""
    return with_files(name, lambda file: Path(file).name)


def input_files(trace: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return each file of a record's ``trace`` with its digest; nothing if it has no files."""
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

    Standard input and tables are included, under the names that the record has for them.
    """
    moved = {**trace, "path": with_files(trace["path"], change)}
    if "parts" in trace:
        moved["parts"] = [part_with_files(part, change) for part in trace["parts"]]
    return moved


def digest_of_file(path: str) -> str:
    """Return the digest of a file as records have it; a table has the digest of its text.

    Raises:
        InputError: The file cannot be read.

    """
    from flashatlas.inputs.table_traces import open_text  # noqa: PLC0415

    try:
        with open_text(path) if is_table(path) else open(path, "rb") as source:
            return digest_of_content(source)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def must_be_as_read(trace: Mapping[str, Any]) -> None:
    """Refuse a record's ``trace`` if one of its files is gone, or has another content now.

    Raises:
        InputError: A file is gone or differs; the error names it and its digests.

    """
    for path, digest in input_files(trace):
        if (why := not_as_read(path, digest)) is not None:
            raise InputError(why)


def not_as_read(path: str, digest: str) -> str | None:
    """Return why a file is not the one that a run read; ``None`` if it is."""
    if not Path(path).exists():
        return f"{path}: no such file; the run read it from there ({digest})"
    if not Path(path).is_file():
        return f"{path}: no file; the run read one from there ({digest})"
    found = digest_of_file(path)
    return None if found == digest else other_file(path, found, digest)


def other_file(path: str, found: str | None, digest: str | None) -> str:
    """Return a message about a file whose content differs from the content that was read."""
    return f"{path}: not the file that was read: its digest is {found}, the record has {digest}"
