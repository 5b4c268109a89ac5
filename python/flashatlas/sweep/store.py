"""A store of results: a folder of runs, each under the digest of what its results depend on.

::

    flashatlas-store.json       what kind of folder this is
    runs/ab/abcd…/              a run, as `run --out` writes it, and entry.json
    rows/*.parquet              a row a run, for pandas, polars and DuckDB
    failures/abcd….json         the last failure of a run that has none of its own yet
    checkpoints/abcd….ckpt      preconditioned drives that runs share
    studies/NAME.json           which runs a study has
    unfinished/                 what writers are at

Many may write at once, also from several machines: a run appears whole, by the renaming of its
folder, and whoever comes second leaves what is there. Rows are made of runs and can be made again.
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
from flashatlas.result import Made, Result
from flashatlas.untrusted import json_file, must_be

SCHEMA = "flashatlas.store/1"
MARK = "flashatlas-store.json"
ENTRY = "entry.json"

KEEP = ("tables", "record")
"""What is kept of a run: everything, or its record alone."""


def _something_else(root: Path) -> bool:
    """Whether a folder has files of others, not those of a store that is just being made.

    Shards of a job array begin at once, each with the same new folder. The mark is the first file
    of a store: whoever sees another one looks for the mark again.
    """
    others = any(not entry.name.startswith(f".{MARK}.") for entry in root.iterdir())
    return others and not is_store(root)


def is_store(path: Path) -> bool:
    """Whether a folder is a store."""
    return (path / MARK).is_file()


KEY = re.compile("[0-9a-f]{40}")
"""The digest of what a run depends on: it is the name of a folder."""


class Identity(TypedDict):
    """What the results of a run depend on, as far as it is read again."""

    sources: str


class Entry(TypedDict):
    """What ``entry.json`` of a run says."""

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
    """What is noted of a study."""

    name: str
    title: str
    source: str | None
    text: str
    when: float
    axes: list[str]
    runs: list[NotedRun]


class Failure(TypedDict, total=False):
    """Why a run is not there."""

    error: str


class Keepable(Protocol):
    """What a run came to."""

    def files(self, folder: Path, /) -> dict[str, bytes]:
        """Files of a folder by name, ``run.json`` among them."""


@dataclass(frozen=True)
class Store:
    """A store of results in a folder."""

    root: Path

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, create: bool = False) -> Store:
        """A store; with ``create`` it is made where there is none.

        Raises:
            InputError: There is none, it is of a newer version, or the folder is something else.

        """
        root = Path(path)
        mark = root / MARK
        if not mark.is_file():
            if root.exists() and (not root.is_dir() or _something_else(root)):
                raise InputError(
                    f"{root}: no store of results ({MARK} is not in it), and not empty: expected "
                    "a folder that `flashatlas sweep` made, or a new name"
                )
            if not create:
                raise InputError(f"{root}: no store of results: `flashatlas sweep` makes one")
            write_whole(mark, json.dumps({"schema": SCHEMA}) + "\n")
        try:
            found = json_file(mark, SCHEMA)["schema"]
        except (LookupError, TypeError) as error:
            raise InputError(f"{mark}: damaged: expected {SCHEMA}") from error
        if found != SCHEMA:
            raise InputError(
                f"{mark}: its schema is {found!r}, this FlashAtlas reads {SCHEMA!r}: a newer one "
                "wrote it"
            )
        return cls(root)

    def folder(self, key: str) -> Path:
        """Where a run lies."""
        return self.root / "runs" / key[:2] / key

    def has(self, key: str) -> bool:
        """Whether a run is there, whole."""
        return self.entry(key) is not None

    def entry(self, key: str) -> dict[str, Any] | None:
        """What ``entry.json`` of a run says; ``None`` if the run is not there, or not whole."""
        folder = self.folder(key)
        try:
            entry: dict[str, Any] = json_file(folder / ENTRY, "an entry of a store")
            must_be(entry, Entry, folder / ENTRY)
            whole = all((folder / f).stat().st_size == n for f, n in entry["files"].items())
        except (OSError, ValueError, InputError):
            return None
        return entry if whole else None

    def all_keys(self) -> Iterator[str]:
        """The keys of all runs; not each is looked at."""
        runs = self.root / "runs"
        if not runs.is_dir():
            return
        with os.scandir(runs) as shelves:
            for shelf in sorted(shelves, key=lambda entry: entry.name):
                with os.scandir(shelf.path) as entries:
                    yield from sorted(entry.name for entry in entries)

    def load(self, key: str) -> Result:
        """A run, with its tables."""
        if not self.has(key):
            raise InputError(f"{self.root}: run {key} is not in it, or not whole")
        return Result.load(self.folder(key))

    def seconds(self, key: str) -> float | None:
        """Return how long a run took; ``None`` if it is not there, or nobody measured it."""
        file = self.folder(key) / "made.json"
        try:
            made = json_file(file, "how long a run took")
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
        """Keep a run; whether it was not there yet."""
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
            if self.has(key):  # somebody else was faster
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
        """Where a preconditioned drive lies, or will lie."""
        return self.root / "checkpoints" / f"{key}.ckpt"

    def fail(self, key: str, failure: Mapping[str, Any]) -> None:
        """Note why a run is not there."""
        write_whole(self.root / "failures" / f"{key}.json", json.dumps(failure) + "\n")

    def forgive(self, key: str) -> None:
        """Forget a failure."""
        (self.root / "failures" / f"{key}.json").unlink(missing_ok=True)

    def failure(self, key: str) -> dict[str, Any] | None:
        """Why a run is not there; ``None`` if it never failed."""
        file = self.root / "failures" / f"{key}.json"
        try:
            found: dict[str, Any] = json_file(file, "why a run failed")
            must_be(found, Failure, file)
        except (OSError, InputError):
            return None
        return found

    def failed_keys(self) -> set[str]:
        """Runs whose last attempt failed."""
        folder = self.root / "failures"
        return {file.stem for file in folder.glob("*.json")} if folder.is_dir() else set()

    def write_study(self, name: str, content: Mapping[str, Any]) -> None:
        """Note which runs a study has."""
        write_whole(self.root / "studies" / f"{name}.json", json.dumps(content) + "\n")

    def study(self, name: str) -> dict[str, Any] | None:
        """What was noted of a study; ``None`` if there is none of this name.

        Raises:
            InputError: The note is damaged.

        """
        if "/" in name:
            return None
        file = self.root / "studies" / f"{name}.json"
        try:
            found: dict[str, Any] = json_file(file, "what is noted of a study")
        except FileNotFoundError:
            return None
        must_be(found, Noted, file)
        for run in found["runs"]:
            if not KEY.fullmatch(run["key"]):
                raise InputError(
                    f"{file}: damaged: `{run['key']}` is no key of a run: expected 40 digits from "
                    "0 to f"
                )
        return found

    def studies(self) -> list[str]:
        """The names of all studies."""
        folder = self.root / "studies"
        return sorted(file.stem for file in folder.glob("*.json")) if folder.is_dir() else []

    def remove(self, keys: Sequence[str]) -> None:
        """Remove runs."""
        for key in keys:
            shutil.rmtree(self.folder(key), ignore_errors=True)
            self.forgive(key)

    def size(self, key: str) -> int:
        """Bytes of a run's files."""
        return sum(file.stat().st_size for file in self.folder(key).iterdir())
