"""The modules of a guest's kernel, from archives that look like Debian's packages."""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile

import pytest
from flashatlas import DriveError, InputError
from flashatlas.plug.guest import modules, root

KERNEL = "./lib/modules/6.1/kernel/drivers"


def module(*depends: str) -> bytes:
    return b"\x7fELF\0license=GPL\0depends=" + ",".join(depends).encode() + b"\0retpoline=Y\0"


MODULES = {
    "nvme-tcp.ko": module("nvme-core", "nvme-fabrics"),
    "nvme-fabrics.ko": module("nvme-core", "nvme-keyring"),
    "nvme-keyring.ko": module(),
    "virtio_net.ko": module("net_failover"),
    "net_failover.ko": module("failover"),
    "failover.ko": module(),
    "unused.ko": module("missing"),
}


@pytest.fixture
def tar(tmp_path):
    """Return a maker of archives with these modules; nvme-core is inside the kernel."""

    def make(end: str = "", pack=lambda content: content):
        path = tmp_path / f"root{end}.tar"
        files = {f"{KERNEL}/{name}{end}": pack(content) for name, content in MODULES.items()}
        files["./lib/modules/6.1/modules.builtin"] = b"kernel/drivers/nvme/host/nvme-core.ko\n"
        with tarfile.open(path, "w") as archive:
            for name, content in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        return path

    return make


@pytest.mark.parametrize(
    ("end", "pack"),
    [("", bytes), (".xz", lzma.compress), (".gz", gzip.compress)],
)
def test_each_module_comes_after_those_that_it_depends_on(tar, end, pack):
    found = list(modules.modules(tar(end, pack), ["nvme_tcp", "virtio_net"]))
    assert [name for name, _ in found] == [
        "nvme_keyring",
        "nvme_fabrics",
        "nvme_tcp",
        "failover",
        "net_failover",
        "virtio_net",
    ]
    assert dict(found)["nvme_tcp"] == MODULES["nvme-tcp.ko"]


def test_what_cannot_be_loaded_is_refused_by_name(tar):
    with pytest.raises(DriveError, match="the kernel has no module `btrfs`"):
        list(modules.modules(tar(), ["nvme_tcp", "btrfs"]))
    with pytest.raises(DriveError, match="the kernel has no module `missing`"):
        list(modules.modules(tar(), ["unused"]))
    with pytest.raises(DriveError, match=r"nvme-keyring\.ko\.zst: .* \.ko, \.ko\.gz, \.ko\.xz"):
        list(modules.modules(tar(".zst"), ["nvme_keyring"]))


def test_a_suite_that_is_none_is_named(monkeypatch):
    monkeypatch.setenv(root.SUITE, "sid")
    with pytest.raises(InputError, match=rf"{root.SUITE} `sid` is not known .*bookworm, trixie"):
        root.root()
