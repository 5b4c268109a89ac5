"""Reports of pulled plugs, under kernels of ours that have no file system."""

from __future__ import annotations

import shutil
from pathlib import Path

import flashatlas
import nbd
import pytest
from flashatlas import plug
from flashatlas.plug import pulling

pytestmark = pytest.mark.skipif(
    shutil.which("nbdkit") is None, reason="nbdkit is not installed (make system-tests)"
)

UNIT = 4096


class Numbers(plug.Kernel):
    """A kernel that makes number `n` durable as the content of unit `n`."""

    sends_fua = True

    def __init__(self, flags: int) -> None:
        """Write with the flags of NBD, and flush each write that has none."""
        self.flags = flags

    def missing(self):
        return None

    def prepare(self, drive, client):
        pass

    def write(self, drive, client, first, rng, acknowledge):
        link = nbd.Client(drive.uri)
        try:
            for n in range(first, 200):
                link.ask(nbd.WRITE, n * UNIT, data=self.unit(n), flags=self.flags)
                if not self.flags:
                    link.ask(nbd.FLUSH)
                acknowledge(n)
        except OSError:
            pass  # the power has failed
        finally:
            link.close()

    def found(self, drive, client):
        link = nbd.Client(drive.uri)
        there = {n for n in range(200) if link.ask(nbd.READ, n * UNIT, UNIT)[1] == self.unit(n)}
        link.close()
        return there - {0}, ""

    @staticmethod
    def unit(n: int) -> bytes:
        return n.to_bytes(8, "little") * (UNIT // 8)


def pull(monkeypatch, flags: int, **options: bool):
    monkeypatch.setitem(pulling.KERNELS, "numbers", lambda _at, _accel: Numbers(flags))
    return plug.pull("tlc-small", kernel="numbers", times=2, within=50, seed=3, **options)


def test_writes_with_fua_are_counted_in_each_life(monkeypatch):
    pulls, _ = pull(monkeypatch, nbd.FUA)
    assert [each.lost for each in pulls] == [0, 0] and pulls[1].acknowledged > 10
    in_each = [pulls[0].acknowledged, pulls[1].acknowledged - pulls[0].acknowledged]
    for each, acknowledged in zip(pulls, in_each, strict=True):
        # the power may fail after one more write and before its acknowledgement
        assert each.fua_writes in (acknowledged, acknowledged + 1)


def test_a_kernel_that_should_send_fua_and_sends_none_is_found_out(monkeypatch):
    with pytest.raises(flashatlas.DriveError, match="no write with FUA has arrived"):
        pull(monkeypatch, 0)


def test_a_drive_that_ignores_fua_is_a_control_of_its_own(monkeypatch, tmp_path: Path):
    pulls, _ = pull(monkeypatch, nbd.FUA, ignore_fua=True)
    assert pulls[-1].lost > 0 and pulls[-1].fua_writes == 0
