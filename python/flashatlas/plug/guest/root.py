"""The guest's kernel and its root, made of Debian's packages and kept."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from flashatlas._core import DriveError
from flashatlas.files import cache_folder
from flashatlas.names import unknown
from flashatlas.plug import client, records, sqlite
from flashatlas.plug.guest import init
from flashatlas.plug.guest import modules as of_kernel

KEPT = "guest-"
"""Beginning of the names of the guest's folders; suite, kind and a digest of the parts follow."""

SUITES = ("bookworm", "trixie")
"""Debian's suites that a guest can be made of: Linux 6.1, and Linux 6.12."""
SUITE = "FLASHATLAS_GUEST_SUITE"
"""The variable of the environment that chooses the suite."""

PACKAGES = (
    "linux-image-cloud-amd64",
    "busybox-static",
    "python3-minimal",
    "libpython3-stdlib",
    "e2fsprogs",
    "nbd-client",
)
MODULES = ("virtio_pci", "virtio_blk", "virtio_console", "virtio_net", "nbd", "nvme_tcp")


@dataclass(frozen=True)
class Kind:
    """Contents of a root besides :data:`PACKAGES` and :data:`MODULES`."""

    packages: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    shares: tuple[str, ...] = ()
    """Folders of ``/usr/share`` that its programs read."""
    memory: str = "512M"
    """The guest's memory, which holds the root, and two copies of it for a moment."""


KINDS = {
    "small": Kind(),
    "tools": Kind(("nvme-cli", "fio", "btrfs-progs"), ("btrfs",), memory="1G"),
    "postgres": Kind(("postgresql",), shares=("postgresql",), memory="1G"),
}
"""Roots by name: for pulled plugs, for other people's tools, for a database."""

LEFT_OUT = (
    "boot/*",
    "lib/udev/*",
    "lib/klibc/*",
    "gconv/*",
    "usr/share/*",
    "systemd/*",
    "*.ko",
    "*.ko.*",
    # parts of Perl, and of PostgreSQL's compiler
    "perl/*",
    "perl5/*",
    "perl-base/*",
    "libperl.*",
    "libLLVM*",
    "libz3.*",
    "bitcode/*",
)
"""Parts of the packages that the guest does not need, matched behind any folder.

The needed modules are added separately.
"""

MERGED = ("bin", "sbin", "lib", "lib64")
"""Folders in the packages of some suites; in other suites they are links into ``/usr``."""

PROGRAMS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "mmdebstrap": "mmdebstrap",
    "bsdtar": "libarchive-tools",
}
"""Programs that are needed, with their packages of Debian and Ubuntu."""


def missing() -> str | None:
    """Return why there can be no guest here, or ``None``."""
    if platform.machine() != "x86_64":
        return f"a guest needs an x86_64 machine, but this machine is {platform.machine()}"
    for program, package in PROGRAMS.items():
        if shutil.which(program) is None:
            return f"{program} is not installed (Debian and Ubuntu: apt install {package})"
    return None


def root(kind: str = "small") -> Path:
    """Return a folder with ``kernel`` and ``root.cpio``; it is made if it does not exist.

    Args:
        kind: One of :data:`KINDS`.

    Raises:
        InputError: The variable names no suite.
        DriveError: The folder cannot be made; mmdebstrap wrote the message.

    """
    suite = os.environ.get(SUITE) or SUITES[0]
    if suite not in SUITES:
        raise unknown(SUITE, suite, SUITES)
    cache = cache_folder()
    beginning = f"{KEPT}{suite}-{kind}-"
    folder = cache / f"{beginning}{_digest()[:16]}"
    if not folder.is_dir():
        for old in cache.glob(f"{beginning}*"):
            shutil.rmtree(old, ignore_errors=True)
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="making-", dir=cache) as scratch:
            _make(Path(scratch), suite, KINDS[kind])
            made = Path(scratch) / "made"
            try:
                made.rename(folder)
            except OSError:  # another process made the folder first
                if not folder.is_dir():
                    raise
    return folder


def _own() -> Iterator[tuple[str, bytes]]:
    """Yield the files of FlashAtlas in the root: the clients, without the rest of the package."""
    for module in (client, records, sqlite):
        path = Path(str(module.__file__))
        yield f"flashatlas/plug/{path.name}", path.read_bytes()
    yield "flashatlas/__init__.py", b""
    yield "flashatlas/plug/__init__.py", b""
    yield "init", Path(init.__file__).read_bytes()


def _digest() -> str:
    digest = hashlib.sha256()
    for module in (__file__, of_kernel.__file__):
        digest.update(Path(module).read_bytes())
    for name, content in _own():
        digest.update(f"{name} {len(content)} ".encode() + content)
    return digest.hexdigest()


def _make(scratch: Path, suite: str, kind: Kind) -> None:
    """Make the folder ``made`` from the files that mmdebstrap unpacks; no package script is run."""
    made, own, tar = scratch / "made", scratch / "own", scratch / "root.tar"
    made.mkdir()
    packages = ",".join(PACKAGES + kind.packages)
    do("mmdebstrap", "--quiet", "--variant=extract", f"--include={packages}", suite, str(tar))
    for name, content in _own():
        _put(own / name, content)
    for number, (name, content) in enumerate(of_kernel.modules(tar, MODULES + kind.modules)):
        _put(own / init.MODULES.name / f"{number:03}-{name}.ko", content)
    (own / "usr/share").mkdir(parents=True)
    there = of_kernel.top(tar)
    for folder in MERGED:
        if folder not in there:
            (own / "usr" / folder).mkdir()
            (own / folder).symlink_to(f"usr/{folder}")
    (own / "bin").mkdir(exist_ok=True)
    (own / "bin/sh").symlink_to("busybox")
    left_out = [word for pattern in LEFT_OUT for word in ("--exclude", pattern)]
    shares = [word for name in kind.shares for word in ("--include", f"./usr/share/{name}/*")]
    cpio = ("bsdtar", "-c", "--format=newc", "-f", "-")
    # the kernel unpacks concatenated archives in order, each over the one before
    parts = [[*left_out, f"@{tar}"], ["-C", str(own), "."]]
    parts += [[*shares, f"@{tar}"]] if shares else []
    (made / "root.cpio").write_bytes(b"".join(do(*cpio, *words) for words in parts))
    (made / "kernel").write_bytes(do("bsdtar", "-xOf", str(tar), "./boot/vmlinuz-*"))


def _put(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    file.chmod(0o755)


def do(*command: str) -> bytes:
    """Return the output of a command.

    Raises:
        DriveError: The command has failed; the message is the last line that it said.

    """
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise DriveError(f"{command[0]}: {said[-1] if said else done.returncode}")
    return done.stdout
