"""Search for the input files of a run that have been moved, by their digests in the record."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from flashatlas._core import InputError, about, is_file, trace_files
from flashatlas.inputs.as_read import digest_of_file, not_as_read, other_file
from flashatlas.results.paths import input_files, with_inputs
from flashatlas.results.result import with_paths

ASK = (
    "if you do not have it, ask the author of the record for a bundle (`flashatlas bundle`), which "
    "contains the input files"
)
"""Advice if an input file cannot be found."""


def at_hand(
    record: Mapping[str, Any],
    trace: str | os.PathLike[str] | None,
    inputs: str | os.PathLike[str] | None,
) -> dict[str, Any]:
    """Return a record with the present paths of its input files.

    ``trace``, if it is given, is the path of the run's trace or job file. Any other file is first
    looked up at its path in the record. If it is missing there or has changed, a file with the same
    digest is searched below ``inputs``. The record has no digest of a precondition's file, so that
    file is searched by its name.

    Args:
        record: A run record.
        trace: The present path of the trace or job file, if the run read only one file.
        inputs: The folder below which the files are searched.

    Raises:
        InputError: A file was not found, or has changed; the error contains advice.

    """
    looked = _Folder(inputs)
    moved = _traces(record["trace"], trace, looked)
    moved |= _precondition(record["config"], moved, looked)
    found = with_paths(record, lambda file: moved.get(file, file))
    if "digest" in found["trace"] and not is_file(found["trace"]["path"]):
        found["trace"] = with_inputs(found["trace"], lambda file: moved.get(file, file))
    return found


class _Folder:
    """The files below a folder; the digest of a file is computed at most once."""

    def __init__(self, root: str | os.PathLike[str] | None) -> None:
        self.root = None if root is None else Path(root)
        if self.root is not None and not self.root.is_dir():
            raise about("inputs", f"{self.root}: there is no such folder")
        self._digests: dict[Path, str] = {}

    def named(self, name: str) -> list[Path]:
        """Return the files with this name, sorted by path."""
        return [file for file in self._files() if file.name == name]

    def with_digest(self, digest: str, name: str) -> Iterator[Path]:
        """Yield the files with this content; files with the given name come first."""
        for file in sorted(self._files(), key=lambda file: file.name != name):
            if self._digest(file) == digest:
                yield file

    def _files(self) -> list[Path]:
        if self.root is None:
            return []
        walked = os.walk(self.root)
        found = [Path(folder) / name for folder, _, names in walked for name in names]
        return sorted(file for file in found if file.is_file())

    def _digest(self, file: Path) -> str:
        if file not in self._digests:
            try:
                self._digests[file] = digest_of_file(str(file))
            except InputError:  # a file that cannot be read matches no digest
                self._digests[file] = ""
        return self._digests[file]


def _traces(
    trace: Mapping[str, Any], given: str | os.PathLike[str] | None, looked: _Folder
) -> dict[str, str]:
    """Return the present path of each file in a record's ``trace``, by its path in the record."""
    wanted = dict(input_files(trace))
    moved: dict[str, str] = {}
    if given is not None:
        moved = {_only(wanted): _the_same(os.fspath(given), next(iter(wanted.values())))}
    for path, digest in wanted.items():
        if path in moved:
            continue
        why = _not_there(path, digest)
        if why is None:
            continue
        logs = trace.get("named", ())
        found = looked.with_digest(digest, Path(path).name)
        file = next((one for one in found if _has_logs(one, path, logs)), None)
        if file is None:
            raise _nowhere(why, looked.root, alone=len(wanted) == 1, logs=bool(logs))
        moved[path] = str(file)
    logs_moved = {
        log["path"]: str(_beside(Path(file), job, log["path"]))
        for job, file in moved.items()
        for log in trace.get("named", ())
    }
    return moved | logs_moved


def _only(wanted: Mapping[str, str]) -> str:
    """Return the name of the one file that a run read.

    Raises:
        InputError: The run read no file, or several.

    """
    if not wanted:
        raise about("trace", "the run read no file: its requests came from a generator")
    if len(wanted) > 1:
        names = ", ".join(sorted(wanted))
        raise about("trace", f"the run read {len(wanted)} files ({names}): ‹inputs=DIR› finds each")
    return next(iter(wanted))


def _the_same(given: str, digest: str) -> str:
    """Return the path that was given for a file, if the content is the same.

    Raises:
        InputError: The file does not exist, or has another content.

    """
    if not Path(given).is_file():
        raise about("trace", f"{given}: there is no such file")
    if (found := digest_of_file(given)) != digest:
        raise about("trace", other_file(given, found, digest))
    return given


def _not_there(path: str, digest: str) -> str | None:
    """Return why a file cannot be read from its path in the record; ``None`` if it can."""
    if not is_file(path):
        source = "standard input" if path == "-" else "a table"
        return f"the trace came from {source} ({digest}), which was not kept"
    return not_as_read(path, digest)


def _nowhere(why: str, root: Path | None, *, alone: bool, logs: bool = False) -> InputError:
    """Return the error about a file that was not found, with advice."""
    if root is not None:
        beside = " and lies beside the logs that it replays" if logs else ""
        return about("inputs", f"{why}; no file below {root} has this digest{beside}; {ASK}")
    one = "its present path (‹trace=FILE›) or " if alone else ""
    return about("trace", f"{why}; give {one}a folder to search (‹inputs=DIR›); {ASK}")


def _beside(file: Path, job: str, log: str) -> Path:
    """Return the present path of a log whose job file is now at ``file``."""
    return Path(os.path.normpath(file.parent / os.path.relpath(log, Path(job).parent)))


def _has_logs(file: Path, job: str, logs: Any) -> bool:
    """Return ``True`` if the logs that a job file replays lie beside it."""
    places = [(_beside(file, job, log["path"]), log["digest"]) for log in logs]
    return all(at.is_file() and digest_of_file(str(at)) == digest for at, digest in places)


def _precondition(
    config: Mapping[str, Any], moved: Mapping[str, str], looked: _Folder
) -> dict[str, str]:
    """Return the present paths of a precondition's files that have been moved."""
    begin = config.get("precondition")
    if not isinstance(begin, dict):
        return {}
    ((kind, name),) = begin.items()
    places: dict[str, str] = {}
    for path in trace_files(name) if kind == "trace" else [name]:
        if path in moved or Path(path).exists():
            continue
        there = looked.named(Path(path).name)
        if len({digest_of_file(str(file)) for file in there}) > 1:
            names = ", ".join(map(str, there))
            raise about(
                "inputs",
                "several files have the name of the precondition's file, and the record has no "
                f"digest of that file: {names}; leave only one of them there",
            )
        if not there:
            why = f"{path}: there is no such file; the precondition of the run read it from there"
            raise _nowhere(why, looked.root, alone=False)
        places[path] = str(there[0])
    return places
