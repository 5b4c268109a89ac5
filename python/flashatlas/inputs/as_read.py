"""Comparison, by digest, of an input file with the content that a run read from it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flashatlas._core import InputError, is_table
from flashatlas.files import digest_of_content
from flashatlas.results.paths import input_files


def digest_of_file(path: str) -> str:
    """Return the digest of a file as in run records; for a table, the digest of its text.

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
    """Refuse a record's ``trace`` if one of its files no longer exists or has changed.

    Raises:
        InputError: A file does not exist or differs; the error names the file and its digests.

    """
    for path, digest in input_files(trace):
        if (why := not_as_read(path, digest)) is not None:
            raise InputError(why)


def not_as_read(path: str, digest: str) -> str | None:
    """Return why a file is not the file that a run read; ``None`` if it is the same."""
    if not Path(path).exists():
        return f"{path}: there is no such file; the run read the file from there ({digest})"
    if not Path(path).is_file():
        return f"{path}: this is not a file; the run read a file from there ({digest})"
    found = digest_of_file(path)
    return None if found == digest else other_file(path, found, digest)


def other_file(path: str, found: str | None, digest: str | None) -> str:
    """Return a message about a file whose content differs from the content that was read."""
    return (
        f"{path}: this is not the file that the run read: its digest is {found}, but the "
        f"record has {digest}"
    )
