"""A real kernel's ext4 on a served drive, with the plug pulled under it."""

from __future__ import annotations

import random
import shutil

import pytest
import torn_scheme
from conftest import ONE_IN
from drawn import LEFT, drawn
from flashatlas import InputError, plug
from flashatlas.plug import records
from pulled_plugs import cells

pytestmark = pytest.mark.skipif(
    plug.missing() is not None or shutil.which("nbdkit") is None,
    reason=f"{plug.missing() or 'nbdkit is not installed'} (make system-tests)",
)

CELLS = {name: (drive, settings) for name, drive, settings in cells()}
TRIED = ("page, demand", "page, dram", "hard over page, demand")
"""The rows of ``make pull-plug`` that are tried here."""


@pytest.mark.parametrize("cell", TRIED)
def test_ext4_finds_everything_that_fsync_promised(cell):
    drive, settings = CELLS[cell]
    times = 20 // min(ONE_IN, 10)
    pulls, result = plug.pull(drive, set=settings, times=times, within=1500, seed=len(cell))
    assert len(pulls) == times and [(p.lost, p.check) for p in pulls] == [(0, "")] * times
    assert pulls[-1].acknowledged > 10 * times and result.violations == 0


def installed(name: str) -> None:
    if name != "records" and "clients" not in drawn():
        pytest.skip(LEFT)
    (client,) = (client for client in plug.CLIENTS if client.name == name)
    if (why := client.missing()) is not None:
        pytest.skip(why)


@pytest.mark.parametrize("client", ["sqlite", "postgres", "rocksdb"])
def test_a_database_finds_every_transaction_that_it_had_committed(client):
    installed(client)
    drive, settings = CELLS["page, demand"]
    times = 20 // min(ONE_IN, 10)
    pulls, result = plug.pull(
        drive, set=settings, client=client, times=times, within=1500, seed=len(client)
    )
    assert len(pulls) == times and [(p.lost, p.check) for p in pulls] == [(0, "")] * times
    assert pulls[-1].acknowledged > 10 * times and result.violations == 0


@pytest.mark.parametrize("client", [client.name for client in plug.CLIENTS])
def test_a_drive_that_ignores_flush_is_found_out(client):
    installed(client)
    drive, settings = CELLS["page, demand"]
    # without FLUSH the drive acknowledges many items with few operations
    pulls, _ = plug.pull(drive, set=settings, client=client, times=4, within=300, ignore_flush=True)
    assert pulls[-1].lost > 0 or pulls[-1].check


def test_a_mount_that_drops_blocks_with_a_torn_page_is_found_out():
    torn_scheme.load()
    pulls, _ = plug.pull(torn_scheme.DRIVE, set=torn_scheme.SETTINGS, times=4, within=1500, seed=7)
    assert pulls[-1].lost > 0 or pulls[-1].check


def test_a_client_that_is_none_is_named():
    with pytest.raises(InputError, match=r"`mysql` is not known .*sqlite, postgres, rocksdb"):
        plug.pull("tlc-small", client="mysql")


def test_records_end_where_one_is_not_whole():
    whole = [records.record(n, random.Random(n)) for n in (1, 9, 17)]
    assert list(records.records(b"".join(whole))) == [1, 9, 17]
    assert list(records.records(b"".join(whole)[:-1])) == [1, 9]
    broken = whole[0] + bytes([whole[1][0]]) + b"\x07" + whole[1][2:30] + b"x" + whole[1][31:]
    assert list(records.records(broken + whole[2])) == [1]
    assert list(records.records(whole[0] + bytes(4096))) == [1], "zeros behind the end"
