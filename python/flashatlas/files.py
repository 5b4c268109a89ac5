"""Output files appear whole or not at all."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from flashatlas._core import InputError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary file beside ``path`` to write to.

    It takes the name ``path`` when the block ends without an error.

    A link keeps pointing to its file, which is replaced; a device or a pipe is written to, never
    replaced.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        with _then_sent(path) as temporary:
            yield temporary
        return
    path = Path(os.path.realpath(path))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.close(handle)
    except OSError as error:
        raise InputError(f"{path}: cannot write: {error.strerror}") from error
    temporary = Path(name)
    try:
        yield temporary
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise InputError(f"{path}: cannot write: {error.strerror}") from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


class Readable(Protocol):
    """What bytes can be read from."""

    def read(self, size: int, /) -> bytes:
        """So many bytes, fewer at the end."""


def digest_of_content(source: Readable) -> str:
    """``sha256:`` and the digest of what is left to be read."""
    digest = hashlib.sha256()
    while block := source.read(1 << 20):
        digest.update(block)
    return f"sha256:{digest.hexdigest()}"


def must_be_writable(folder: Path | None) -> None:
    """Refuse a folder that results cannot be written to, before anything is run for them.

    Raises:
        InputError: It is a file, or lies in one, or in a folder that may not be written to.

    """
    if folder is None:
        return
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise InputError(f"{folder}: cannot write: {there} is a file, not a folder")
    if not os.access(there, os.W_OK):
        raise InputError(f"{folder}: cannot write: permission denied for {there}")


@contextmanager
def _then_sent(path: Path) -> Iterator[Path]:
    """A temporary file elsewhere.

    Its content goes to ``path`` when the block ends without an error.
    """
    with tempfile.TemporaryDirectory(prefix="flashatlas-") as folder:
        temporary = Path(folder) / "content"
        yield temporary
        try:
            with temporary.open("rb") as source, path.open("wb") as target:
                shutil.copyfileobj(source, target)
        except OSError as error:
            raise InputError(f"{path}: cannot write: {error.strerror}") from error


def _umask() -> int:
    """The mask of this process, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file (text as UTF-8), whole or not at all."""
    with whole_file(path) as temporary, temporary.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())


def cache_folder() -> Path:
    """Where what can be made again is kept, for this user; it may not be there."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "flashatlas"
