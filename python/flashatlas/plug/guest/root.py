"""The guest's kernel and its root, made of Debian's packages and kept."""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from flashatlas._core import DriveError
from flashatlas.files import cache_folder
from flashatlas.plug import client, records, sqlite
from flashatlas.plug.guest import init

KEPT = "guest-"
"""Beginning of the names of the guest's folders; a digest of the parts follows."""

SUITE = "bookworm"
PACKAGES = (
    "linux-image-cloud-amd64",
    "busybox-static",
    "python3-minimal",
    "libpython3-stdlib",
    "e2fsprogs",
    "nbd-client",
)
LEFT_OUT = (
    "./boot/*",
    "./lib/udev/*",
    "./usr/lib/klibc/*",
    "./usr/lib/x86_64-linux-gnu/gconv/*",
    "./usr/share/*",
    "*/systemd/*",
    "*.ko",
)
"""Parts of the packages that the guest does not need; it has the modules of ``init.MODULES``."""

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


def root() -> Path:
    """Return a folder with ``kernel`` and ``root.cpio``; it is made if it does not exist.

    Raises:
        DriveError: The folder cannot be made; the message is mmdebstrap's.

    """
    cache = cache_folder()
    folder = cache / f"{KEPT}{_digest()[:16]}"
    if not folder.is_dir():
        for old in cache.glob(f"{KEPT}*"):
            shutil.rmtree(old, ignore_errors=True)
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="making-", dir=cache) as scratch:
            _make(Path(scratch))
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
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for name, content in _own():
        digest.update(f"{name} {len(content)} ".encode() + content)
    return digest.hexdigest()


def _make(scratch: Path) -> None:
    """Make the folder ``made`` from the files that mmdebstrap unpacks; no package script is run."""
    made, own, tar = scratch / "made", scratch / "own", scratch / "root.tar"
    made.mkdir()
    packages = ",".join(PACKAGES)
    _do("mmdebstrap", "--quiet", "--variant=extract", f"--include={packages}", SUITE, str(tar))
    for name, content in _own():
        file = own / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(0o755)
    left_out = [word for pattern in LEFT_OUT for word in ("--exclude", pattern)]
    modules = [word for name in init.MODULES for word in ("--include", f"*/{name}.ko")]
    cpio = ("bsdtar", "-c", "--format=newc", "-f", "-")
    # the kernel unpacks concatenated archives in order, each over the one before
    parts = ([*left_out, f"@{tar}"], [*modules, f"@{tar}"], ["-C", str(own), "."])
    (made / "root.cpio").write_bytes(b"".join(_do(*cpio, *words) for words in parts))
    (made / "kernel").write_bytes(_do("bsdtar", "-xOf", str(tar), "./boot/vmlinuz-*"))


def _do(*command: str) -> bytes:
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise DriveError(f"{command[0]}: {said[-1] if said else done.returncode}")
    return done.stdout
