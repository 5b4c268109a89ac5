"""FEMU's black-box mode (Li and others, FAST 2018): the properties of its QEMU device.

FEMU collects lines, a block of every die together; ours collects in each die apart. It has no write
cache, and writes one flash page at a time.
"""

from __future__ import annotations

from flashatlas._core import InputError
from flashatlas.foreign.drive_file import DriveFile, number

DEFAULTS = {
    "devsz_mb": 1024,
    "secsz": 512,
    "secs_per_pg": 8,
    "pgs_per_blk": 256,
    "blks_per_pl": 256,
    "pls_per_lun": 1,
    "luns_per_ch": 8,
    "nchs": 8,
    "pg_rd_lat": 40_000,
    "pg_wr_lat": 200_000,
    "blk_er_lat": 2_000_000,
    "ch_xfer_lat": 0,
    "gc_thres_pcent_high": 95,
}
"""What FEMU takes where a property is not given (``hw/femu/femu.c``)."""

GEOMETRY = {
    "nchs": "drive.channels",
    "luns_per_ch": "drive.ways",
    "pls_per_lun": "drive.planes",
    "blks_per_pl": "drive.blocks",
    "pgs_per_blk": "drive.pages",
}

TIMES = {
    "pg_rd_lat": "timing.t_read",
    "pg_wr_lat": "timing.t_program",
    "blk_er_lat": "timing.t_erase",
}

BLACK_BOX = "1"
"""``femu_mode`` of a drive with an FTL of its own."""


def described(what: str) -> DriveFile:
    """The drive of ``femu,devsz_mb=12288,…``: what QEMU's ``-device`` is given.

    Raises:
        InputError: It is none, is not in black-box mode, or has a value that makes no sense.

    """
    name, *properties = what.split(",")
    if name.strip() != "femu":
        raise InputError(
            f"femu:{what}: expected what QEMU's -device has: femu:femu,devsz_mb=12288,nchs=8"
        )
    given: dict[str, str] = {}
    for one in properties:
        key, equals, value = one.partition("=")
        if not equals:
            raise InputError(f"femu: {one!r}, expected PROPERTY=VALUE")
        given[key.strip()] = value.strip()
    if given.pop("femu_mode", BLACK_BOX) != BLACK_BOX:
        raise InputError("femu: femu_mode is not 1, the black-box mode: only that has an FTL")
    values = {
        key: number("femu", key, given[key], read=int, least=int(key not in ("ch_xfer_lat",)))
        if key in given
        else default
        for key, default in DEFAULTS.items()
    }
    return _drive(values, [key for key in given if key not in DEFAULTS])


def _drive(values: dict[str, int], left: list[str]) -> DriveFile:
    drive = DriveFile("FEMU's black-box drive")
    for name, key in GEOMETRY.items():
        drive.set(key, values[name], name)
    drive.set("drive.dies", 1, "a LUN is a die")
    page = values["secsz"] * values["secs_per_pg"]
    drive.set("drive.page_bytes", page, "secsz x secs_per_pg")
    drive.set("drive.spare_bytes", max(page // 32, 16), "FEMU has none: what is usual")
    drive.set("drive.cell", "slc", "FEMU's pages are all alike")
    drive.set("map.unit", page, "FEMU maps pages")
    pages = values["devsz_mb"] * 2**20 // page
    drive.set("drive.logical_pages", pages, "devsz_mb, in pages")
    for name, key in TIMES.items():
        drive.set(key, f"{values[name]}ns", name)
    if transfer := values["ch_xfer_lat"]:
        drive.set("timing.channel_rate", f"{page * 1000 / transfer}MB", "a page in ch_xfer_lat")
    else:
        drive.set("timing.channel_rate", "0", "ch_xfer_lat = 0: transfers take no time")
    drive.set("cache.mode", "write-through", "FEMU has no write cache")
    share = 1 - values["gc_thres_pcent_high"] / 100
    low = max(int(share * values["blks_per_pl"]), 2)
    drive.set("ftl.low_water", low, "free lines at gc_thres_pcent_high")
    drive.set("ftl.victim", "greedy", "the line with the fewest valid pages")
    drive.leave(left)
    return drive
