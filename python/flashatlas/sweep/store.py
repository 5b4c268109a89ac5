"""A store of results: a folder of runs, each under the digest of its identity.

::

    flashatlas-store.json       mark and version of the store
    runs/ab/abcd…/              a run, as `run --out` writes it, and entry.json
    rows/*.parquet              a row for each run, for pandas, polars and DuckDB
    failures/abcd….json         the last failure of a run that is not in runs/
    checkpoints/abcd….ckpt      preconditioned drives that runs share
    studies/NAME.json           the runs of a study
    unfinished/                 runs that are being written

Many writers may write at the same time, also from several machines. A run appears whole, because
its folder is renamed; a second writer of the same run keeps the first one's folder. Rows are made
from runs and can be made again.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from typing_extensions import TypedDict

from flashatlas._core import InputError
from flashatlas.files import write_whole
from flashatlas.results.result import Made, Result
from flashatlas.untrusted import json_file, must_be

SCHEMA = "flashatlas.store/1"
MARK = "flashatlas-store.json"
ENTRY = "entry.json"

KEEP = ("tables", "record")
"""The parts of a run that are kept: everything, or its record alone."""


def _something_else(root: Path) -> bool:
    """Return ``True`` if a folder has other files than a store that is just being made.

    Shards of a job array begin at the same time, each with the same new folder. The mark is the
    first file of a store: a process that sees another file looks for the mark again.
    """
    others = any(not entry.name.startswith(f".{MARK}.") for entry in root.iterdir())
    return others and not is_store(root)


def is_store(path: Path) -> bool:
    """Return ``True`` if a folder is a store."""
    return (path / MARK).is_file()


KEY = re.compile("[0-9a-f]{40}")
"""The digest of a run's identity, and the name of its folder."""


class Identity(TypedDict):
    """The part of a run's identity that is read again."""

    sources: str


class Entry(TypedDict):
    """The content of a run's ``entry.json``."""

    key: str
    identity: Identity
    files: dict[str, int]
    made: float


class NotedRun(TypedDict):
    """A run of a study."""

    key: str
    label: str
    axes: dict[str, str | int | float | bool | None]


class Noted(TypedDict):
    """The store's note of a study."""

    name: str
    title: str
    source: str | None
    text: str
    when: float
    axes: list[str]
    runs: list[NotedRun]


class Failure(TypedDict, total=False):
    """The reason why a run failed."""

    error: str


class Keepable(Protocol):
    """A result that a store can keep."""

    def files(self, folder: Path, /) -> dict[str, bytes]:
        """Return the files of a folder by name, with ``run.json``."""


@dataclass(frozen=True)
class Store:
    """A store of results in a folder."""

    root: Path

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, create: bool = False) -> Store:
        """Return a store; with ``create`` it is made if it does not exist.

        Raises:
            InputError: There is no store, its version is newer, or the folder is something else.

        """
        root = Path(path)
        mark = root / MARK
        if not mark.is_file():
            if root.exists() and (not root.is_dir() or _something_else(root)):
                raise InputError(
                    f"{root}: the folder is not empty, and is not a store of results "
                    f"({MARK} is missing): give "
                    "a folder that `flashatlas sweep` made, or a new name"
                )
            if not create:
                raise InputError(
                    f"{root}: there is no store of results: `flashatlas sweep` makes a store"
                )
            write_whole(mark, json.dumps({"schema": SCHEMA}) + "\n")
        try:
            found = json_file(mark, SCHEMA)["schema"]
        except (LookupError, TypeError) as error:
            raise InputError(f"{mark}: damaged: the content must be {SCHEMA}") from error
        if found != SCHEMA:
            raise InputError(
                f"{mark}: its schema is {found!r}, and this FlashAtlas reads {SCHEMA!r}: a newer "
                "one wrote it"
            )
        return cls(root)

    def folder(self, key: str) -> Path:
        """Return the folder of a run."""
        return self.root / "runs" / key[:2] / key

    def has(self, key: str) -> bool:
        """Return ``True`` if a run is in the store, and whole."""
        return self.entry(key) is not None

    def entry(self, key: str) -> dict[str, Any] | None:
        """Return a run's ``entry.json``; ``None`` if the run is missing or not whole."""
        folder = self.folder(key)
        try:
            entry: dict[str, Any] = json_file(folder / ENTRY, "an entry of a store")
            must_be(entry, Entry, folder / ENTRY)
            whole = all((folder / f).stat().st_size == n for f, n in entry["files"].items())
        except (OSError, ValueError, InputError):
            return None
        return entry if whole else None

    def all_keys(self) -> Iterator[str]:
        """Yield the keys of all runs, whole or not."""
        runs = self.root / "runs"
        if not runs.is_dir():
            return
        with os.scandir(runs) as shelves:
            for shelf in sorted(shelves, key=lambda entry: entry.name):
                with os.scandir(shelf.path) as entries:
                    yield from sorted(entry.name for entry in entries)

    def load(self, key: str) -> Result:
        """Return a run, with its tables."""
        if not self.has(key):
            raise InputError(f"{self.root}: run {key} is not in the store, or is incomplete")
        return Result.load(self.folder(key))

    def seconds(self, key: str) -> float | None:
        """Return the seconds that a run took; ``None`` if it is missing, or nobody measured it."""
        file = self.folder(key) / "made.json"
        try:
            made = json_file(file, "the duration of a run")
            must_be(made, Made, file)
        except (OSError, InputError):
            return None
        return made.get("wall_s")

    def put(
        self,
        key: str,
        result: Keepable,
        identity: Mapping[str, Any],
        keep: str = "tables",
    ) -> bool:
        """Keep a run, and return ``True`` if it was not there yet."""
        final = self.folder(key)
        if self.has(key):
            return False
        files = result.files(final)
        if keep == "record":
            files = {name: content for name, content in files.items() if name.endswith(".json")}
        sizes = {name: len(content) for name, content in files.items()}
        entry = {"key": key, "identity": identity, "files": sizes, "made": time.time()}
        own = self._own_folder()
        try:
            for name, content in files.items():
                (own / name).write_bytes(content)
            (own / ENTRY).write_text(json.dumps(entry) + "\n", encoding="utf-8")
            final.parent.mkdir(parents=True, exist_ok=True)
            if final.exists() and not self.has(key):
                shutil.rmtree(final, ignore_errors=True)
            os.rename(own, final)
        except OSError as error:
            shutil.rmtree(own, ignore_errors=True)
            if self.has(key):  # another process kept the run first
                return False
            raise InputError(f"{final}: cannot write: {error.strerror}") from error
        self.forgive(key)
        return True

    def _own_folder(self) -> Path:
        own = self.root / "unfinished" / f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex}"
        try:
            own.mkdir(parents=True)
        except OSError as error:
            raise InputError(f"{self.root}: cannot write: {error.strerror}") from error
        return own

    def checkpoint(self, key: str) -> Path:
        """Return the present or future path of a preconditioned drive."""
        return self.root / "checkpoints" / f"{key}.ckpt"

    def fail(self, key: str, failure: Mapping[str, Any]) -> None:
        """Write down why a run failed."""
        write_whole(self.root / "failures" / f"{key}.json", json.dumps(failure) + "\n")

    def forgive(self, key: str) -> None:
        """Remove the note of a failure."""
        (self.root / "failures" / f"{key}.json").unlink(missing_ok=True)

    def failure(self, key: str) -> dict[str, Any] | None:
        """Return why a run failed; ``None`` if it never failed."""
        file = self.root / "failures" / f"{key}.json"
        try:
            found: dict[str, Any] = json_file(file, "the reason why a run failed")
            must_be(found, Failure, file)
        except (OSError, InputError):
            return None
        return found

    def failed_keys(self) -> set[str]:
        """Return the keys of runs whose last attempt failed."""
        folder = self.root / "failures"
        return {file.stem for file in folder.glob("*.json")} if folder.is_dir() else set()

    def write_study(self, name: str, content: Mapping[str, Any]) -> None:
        """Write down the runs of a study."""
        write_whole(self.root / "studies" / f"{name}.json", json.dumps(content) + "\n")

    def study(self, name: str) -> dict[str, Any] | None:
        """Return the note of a study; ``None`` if there is none of this name.

        Raises:
            InputError: The note is damaged.

        """
        if "/" in name:
            return None
        file = self.root / "studies" / f"{name}.json"
        try:
            found: dict[str, Any] = json_file(file, "the notes on a study")
        except FileNotFoundError:
            return None
        must_be(found, Noted, file)
        for run in found["runs"]:
            if not KEY.fullmatch(run["key"]):
                raise InputError(
                    f"{file}: damaged: `{run['key']}` is not a key of a run: a key has 40 "
                    "digits from "
                    "0 to f"
                )
        return found

    def studies(self) -> list[str]:
        """Return the names of all studies."""
        folder = self.root / "studies"
        return sorted(file.stem for file in folder.glob("*.json")) if folder.is_dir() else []

    def remove(self, keys: Sequence[str]) -> None:
        """Remove runs."""
        for key in keys:
            shutil.rmtree(self.folder(key), ignore_errors=True)
            self.forgive(key)

    def size(self, key: str) -> int:
        """Return the bytes of a run's files."""
        return sum(file.stat().st_size for file in self.folder(key).iterdir())
