"""Writing of output files: a file appears complete, or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from flashatlas._core import InputError

T = TypeVar("T")


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary file beside ``path`` to write to.

    The file takes the name ``path`` when the block ends without an error.

    If ``path`` is a symbolic link, the file to which it points is replaced, and the link stays. A
    device or a pipe is written to and never replaced.
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
    """A source of bytes."""

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes."""


def digest_of_content(source: Readable) -> str:
    """Return ``sha256:`` and the digest of the bytes that ``source`` has not yet returned."""
    digest = hashlib.sha256()
    while block := source.read(1 << 20):
        digest.update(block)
    return f"sha256:{digest.hexdigest()}"


def must_be_writable(folder: Path | None, called: str | Path | None = None) -> None:
    """Refuse a folder that cannot be written to, before the run that writes there.

    If the folder does not exist, the check makes it and removes it again. A later failure therefore
    leaves no empty folder.

    Args:
        folder: The folder; ``None`` means that nothing is checked.
        called: The name of the folder in an error; by default its path.

    Raises:
        InputError: The path or one of its parents is a file, or nothing can be written there.

    """
    if folder is None:
        return
    called = called or folder
    new = _missing(folder)
    there = new[-1].parent if new else folder
    if not there.is_dir():
        raise InputError(f"{called}: cannot write: {there} is a file, not a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as trial:
            trial.write(b"\0" * 4096)
    except OSError as error:
        raise InputError(f"{called}: cannot write: {error.strerror}") from error
    finally:
        _remove_empty(new)


def _missing(folder: Path) -> list[Path]:
    """Return ``folder`` and its parents that do not exist yet; ``folder`` is first."""
    every = (folder.absolute(), *folder.absolute().parents)
    return list(itertools.takewhile(lambda path: not path.exists(), every))


def _remove_empty(folders: list[Path]) -> None:
    """Remove the folders that are empty."""
    for folder in sorted(folders, key=lambda path: len(path.parts), reverse=True):
        with contextlib.suppress(OSError):
            folder.rmdir()


def file_must_be_writable(path: str | Path | None) -> None:
    """Refuse a file whose folder cannot be written to; accept ``None`` and ``-``.

    Raises:
        InputError: The path is a folder, or nothing can be written beside it.

    """
    if path is None or str(path) == "-":
        return
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise InputError(f"{path}: cannot write: it is a folder")
    if not target.exists() or target.is_file():
        must_be_writable(target.parent, path)


@contextmanager
def _then_sent(path: Path) -> Iterator[Path]:
    """Yield a temporary file in another folder.

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
    """Return the process's umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file (text as UTF-8), whole or not at all."""
    with whole_file(path) as temporary, temporary.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())


def write_together(contents: Iterable[tuple[Path, bytes]], before: Callable[[], T]) -> T:
    """Write several files, and return the result of ``before``.

    All files are first written under temporary names; then ``before`` is called. If a file cannot
    be written or ``before`` raises, no file is replaced. Then the files are renamed, the last file
    first. If renaming a file fails, the files that are already renamed keep their new names.

    Raises:
        InputError: A file cannot be written or renamed.

    """
    made: list[Path] = []
    with contextlib.ExitStack() as stack:
        stack.callback(_remove_empty, made)
        for path, content in contents:
            made += _missing(path.parent)
            with stack.enter_context(whole_file(path)).open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        return before()


def cache_folder() -> Path:
    """Return the folder of FlashAtlas's cache for this user. The folder may not exist yet."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "flashatlas"
