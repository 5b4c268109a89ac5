"""Unpacking of untrusted bundles: within limits of size and number, and into one folder.

The directory of a zip file declares the size of every file in it. These sizes are added up before
any file is unpacked, and a file that is larger than its declared size is an error.
"""

from __future__ import annotations

import stat
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from flashatlas._core import InputError
from flashatlas.results.result import Result, with_paths
from flashatlas.untrusted import unpacked_at_most

FILES_MAX = 10_000
"""The largest number of files in a bundle."""

METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Compression methods that are allowed in a bundle."""

BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError)
"""Exceptions of :mod:`zipfile` for a damaged file.

A :exc:`ValueError` means that the name of a file is impossible.
"""

INSTEAD = "if you trust its author, unpack it yourself and run `flashatlas rerun` in its folder"


def unpack(path: Path, folder: Path) -> list[Path]:
    """Unpack a bundle into an empty folder, and return the folders of its runs.

    Raises:
        InputError: The file is not a bundle, contains links or devices, or is larger than allowed.

    """
    try:
        with zipfile.ZipFile(path) as archive:
            must_be_bounded(path, archive)
            for entry in archive.infolist():
                _unpack(path, archive, entry, folder)
    except (*BROKEN, ValueError) as error:
        raise InputError(f"{path}: not a bundle: {error}") from error
    runs = sorted(p.parent for p in folder.rglob("run.json"))
    if not runs:
        raise InputError(f"{path}: the file is not a bundle: it has no run.json")
    return runs


def must_be_bounded(path: Path, archive: zipfile.ZipFile) -> None:
    """Refuse a bundle that unpacks to more than its size allows.

    Raises:
        InputError: The bundle is too large; the error names both sizes.

    """
    entries = archive.infolist()
    if len(entries) > FILES_MAX:
        raise InputError(
            f"{path}: the file has {len(entries)} files, but a bundle has at most {FILES_MAX}"
        )
    declared = sum(entry.file_size for entry in entries)
    own = path.stat().st_size
    most = unpacked_at_most(own)
    if declared > most:
        raise InputError(
            f"{path}: the bundle has {own} bytes that unpack to {declared}; a bundle of "
            "this size may unpack to "
            f"at most {most} bytes; {INSTEAD}"
        )


def _unpack(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo, folder: Path) -> None:
    """Unpack one file to a path that does not exist yet."""
    name = PurePosixPath(entry.filename)
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if name.is_absolute() or ".." in name.parts or "\\" in entry.orig_filename or not name.parts:
        why = "leads out of the bundle; the path must be below its folder, with `/`"
    elif kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        why = "is a link or a device; a bundle has only files and folders"
    elif entry.flag_bits & 1:
        why = "is encrypted; a bundle has only files without a password"
    elif entry.compress_type not in METHODS:
        why = f"has compression method {entry.compress_type}; it must be 0 (stored) or 8 (deflate)"
    else:
        target = folder / name
        if entry.is_dir():
            target.mkdir(parents=True, exist_ok=True)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        # mode "x": two files with the same name are an error
        with archive.open(entry) as source, target.open("xb") as out:
            while block := source.read(1 << 20):
                out.write(block)
        return
    raise InputError(f"{path}: `{entry.filename}` {why}")


def must_lie_within(result: Result, folder: Path, bundle: Path) -> None:
    """Refuse a record that names files outside its bundle.

    Args:
        result: A run of the bundle.
        folder: Folder into which the bundle was unpacked.
        bundle: Name of the bundle in messages.

    Raises:
        InputError: The record names a file outside the bundle; the error names it, too.

    """
    root = folder.resolve()

    def checked(file: str) -> str:
        if not Path(file).resolve().is_relative_to(root):
            raise InputError(
                f"{bundle}: one of its runs reads {file}, which is not in the bundle; a "
                "bundle must have all "
                "traces, job files and checkpoints below `inputs`"
            )
        return file

    with_paths(result.record, checked)
