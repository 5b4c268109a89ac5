"""Modules of the guest's kernel: the needed modules, and the modules that these depend on."""

from __future__ import annotations

import gzip
import lzma
import re
import tarfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from flashatlas._core import DriveError

READERS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda content: content,
    ".gz": gzip.decompress,
    ".xz": lzma.decompress,
}
"""Readers of modules, by the end of their file's name after ``.ko``."""

DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")
"""The field of a module that names the modules before which it cannot be loaded."""

BUILT_IN = "modules.builtin"
"""File of a kernel's package that names the modules inside the kernel."""


def modules(tar: Path, wanted: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of modules in an order in which they can be loaded.

    Args:
        tar: An archive with a kernel's package.
        wanted: The modules that are needed. Those inside the kernel are left out.

    Raises:
        DriveError: The kernel has no such module, or it is compressed in an unknown way.

    """
    with tarfile.open(tar) as archive:
        files: dict[str, tarfile.TarInfo] = {}
        inside: set[str] = set()
        for member in archive:
            name = PurePosixPath(member.name).name
            if ".ko" in PurePosixPath(name).suffixes:
                files[_plain(name)] = member
            elif name == BUILT_IN:
                lines = _content(archive, member).decode().split()
                inside = {_plain(PurePosixPath(line).name) for line in lines}
        done: set[str] = set()
        for name in wanted:
            yield from _loaded(archive, files, inside, name, done)


def top(tar: Path) -> set[str]:
    """Return the names at the top of an archive."""
    with tarfile.open(tar) as archive:
        return {path.parts[0] for path in map(PurePosixPath, archive.getnames()) if path.parts}


def _loaded(
    archive: tarfile.TarFile,
    files: dict[str, tarfile.TarInfo],
    inside: set[str],
    name: str,
    done: set[str],
) -> Iterator[tuple[str, bytes]]:
    """Yield a module after its dependencies; leave out modules that are ``done``."""
    if name in done or name in inside:
        return
    done.add(name)
    if name not in files:
        raise DriveError(f"guest: the kernel has no module `{name}`")
    content = _plain_content(archive, files[name])
    found = DEPENDS.search(content)
    for other in found[1].decode().split(",") if found else ():
        if other:
            yield from _loaded(archive, files, inside, _plain(other), done)
    yield name, content


def _plain(name: str) -> str:
    """Return the name of a module; files write it with hyphens, too."""
    return name.partition(".ko")[0].replace("-", "_")


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    if file is None:
        raise DriveError(f"guest: {member.name} is no file")
    return file.read()


def _plain_content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    end = member.name.rpartition(".ko")[2]
    if end not in READERS:
        known = ", ".join(f".ko{each}" for each in READERS)
        raise DriveError(f"guest: {member.name}: the name of a module must end in {known}")
    return READERS[end](_content(archive, member))
