"""Bundles of somebody else: what is unpacked is bounded, and lies in one folder.

The directory of a zip file declares the size of every file in it. Nothing is unpacked before all of
them were added up, and of no file more than it declares.
"""

from __future__ import annotations

import stat
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from flashatlas._core import InputError
from flashatlas.result import Result, with_paths
from flashatlas.untrusted import unpacked_at_most

FILES_MAX = 10_000
"""Files in a bundle."""

METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""How files of a bundle may be compressed."""

BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError)
"""What :mod:`zipfile` raises where a file is damaged; :exc:`ValueError` is a name that no file can
have."""

INSTEAD = "if you trust who made it, unpack it yourself and run `flashatlas rerun` in its folder"


def unpack(path: Path, folder: Path) -> list[Path]:
    """Unpack a bundle into an empty folder; return the folders of its runs.

    Raises:
        InputError: It is no bundle, holds something else than files, or is larger than is allowed.

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
        raise InputError(f"{path}: not a bundle: no run.json in it")
    return runs


def must_be_bounded(path: Path, archive: zipfile.ZipFile) -> None:
    """Refuse a bundle that unpacks to more than its size allows.

    Raises:
        InputError: It does; the error names both sizes.

    """
    entries = archive.infolist()
    if len(entries) > FILES_MAX:
        raise InputError(f"{path}: {len(entries)} files, a bundle has at most {FILES_MAX}")
    declared = sum(entry.file_size for entry in entries)
    own = path.stat().st_size
    most = unpacked_at_most(own)
    if declared > most:
        raise InputError(
            f"{path}: {own} bytes that unpack to {declared}, of a bundle of this size at most "
            f"{most} are unpacked; {INSTEAD}"
        )


def _unpack(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo, folder: Path) -> None:
    """Unpack one file, into a place where there is none yet."""
    name = PurePosixPath(entry.filename)
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if name.is_absolute() or ".." in name.parts or "\\" in entry.orig_filename or not name.parts:
        why = "leads out of the bundle: expected a path below its folder, with `/`"
    elif kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        why = "is a link or a device: expected files and folders"
    elif entry.flag_bits & 1:
        why = "is encrypted: expected files without a password"
    elif entry.compress_type not in METHODS:
        why = f"has compression method {entry.compress_type}: expected 0 (stored) or 8 (deflate)"
    else:
        target = folder / name
        if entry.is_dir():
            target.mkdir(parents=True, exist_ok=True)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        # "x": of two files with one name neither is right
        with archive.open(entry) as source, target.open("xb") as out:
            while block := source.read(1 << 20):
                out.write(block)
        return
    raise InputError(f"{path}: `{entry.filename}` {why}")


def must_lie_within(result: Result, folder: Path, bundle: Path) -> None:
    """Refuse a record whose files are not those of its bundle.

    Args:
        result: A run of the bundle.
        folder: Where the bundle was unpacked.
        bundle: What messages call it.

    Raises:
        InputError: It names another file; the error says which.

    """
    root = folder.resolve()

    def checked(file: str) -> str:
        if not Path(file).resolve().is_relative_to(root):
            raise InputError(
                f"{bundle}: a run of it reads {file}, which is not in the bundle: expected its "
                "traces, job files and checkpoints below `inputs`"
            )
        return file

    with_paths(result.record, checked)
