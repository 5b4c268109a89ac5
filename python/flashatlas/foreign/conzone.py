"""ConZone's ``ssd_config.h``: the flash of a phone's drive, and its cached map.

ConZone is made from NVMeVirt, and its drive has zones. Ours has none: the flash, the times, the
SLC blocks, the write buffer and the cache of the map are taken, and every address can be written
again. The capacity is the flash of the namespace for data. The macros are taken from
DingcuiYu/ConZone at commit 9983bca, ``ssd_config.h``.
"""

from __future__ import annotations

from pathlib import PurePath

from flashatlas.foreign.description import DriveFile
from flashatlas.foreign.keys import Found, left_out, nothing, refused, table, used
from flashatlas.foreign.macros import CELLS, Macros, model_of
from flashatlas.foreign.nvmevirt import FIRMWARE, controller_of, flash_of

READS = {
    "LSB": "timing.t_read",
    "MSB": "timing.t_read_middle",
    "CSB": "timing.t_read_upper",
    "TSB": "timing.t_read_top",
}
"""Our times to read the pages of a word line, in the order of ``ssd.h``."""

OWN_CELL = "of the cell that CELL_MODE names"
METADATA = "belongs to the namespace for metadata, which is left out (NR_NAMESPACES)"
ZONES = "belongs to zones, which are left out (NS_SSD_TYPE_1)"
SHARED = "the write cache is not divided"


def _bypasses_nothing(found: Found) -> bool:
    off = ("0", "(0)")
    return found.get("SLC_BYPASS") in off or found.get("NORMAL_ONLY", "0") not in off


KEYS = table(
    left_out("NR_NAMESPACES", "the drive is the namespace for data", "1|(1)|(1ULL)"),
    *nothing("NS_SSD_TYPE_0 NS_CAPACITY_0 PHYSICAL_META_SIZE LOGICAL_META_SIZE", METADATA),
    *nothing("META_WB_SIZE NR_META_WB META_pSLC_INIT_BLKS", METADATA),
    left_out(
        "NS_SSD_TYPE_1",
        "there are no zones: every address can be written again",
        "SSD_TYPE_CONZONE_BLOCK|NS_SSD_TYPE_0",
    ),
    refused("NS_CAPACITY_1", "(0)|0|(0ULL)", "give `,capacity=`"),
    *nothing("MDTS", "the largest request of the guest; here the workload decides what is sent"),
    used("MQES", "`host.queue_depth`: this number plus one"),
    *nothing("LBA_BITS LBA_SIZE", "sectors have 512 bytes here"),
    used("CELL_MODE", "`drive.cell`"),
    left_out(
        "SLC_BYPASS",
        "all host writes go to native blocks; ConZone puts parts of word lines into SLC blocks",
        _bypasses_nothing,
    ),
    used("NORMAL_ONLY", "`ftl.slc`: 1 is none"),
    used("DATA_pSLC_INIT_BLKS", "`ftl.slc_static`, if SLC_BYPASS and NORMAL_ONLY are 0"),
    *nothing("DATA_pSLC_RSV_SIZE pSLC_INIT_BLKS", "computed from the blocks in SLC mode"),
    *nothing("pSLC_BLK_SIZE pSLC_ONESHOT_PAGE_SIZE", "computed from the size of a block"),
    *nothing("ZONED_SLC DIES_PER_ZONE PLNS_PER_ZONE ZONE_SIZE", ZONES),
    *nothing("MAX_ZRWA_ZONES ZRWAFG_SIZE ZRWA_SIZE ZRWA_BUFFER_SIZE", ZONES),
    left_out("SSD_PARTITIONS", "one FTL has all channels here", "(1)|1"),
    used("NAND_CHANNELS", "`drive.channels`"),
    used("LUNS_PER_NAND_CH", "`drive.ways`"),
    used("PLNS_PER_LUN", "`drive.planes`, `drive.frame_planes`"),
    used("PG_SIZE", "`map.unit`"),
    used("FLASH_PAGE_SIZE", "`drive.page_bytes`"),
    used("ONESHOT_PAGE_SIZE", "`drive.program_unit`: word-line, if it has a page for each bit"),
    used("BLKS_PER_PLN", "`drive.blocks`; with 0, the capacity and BLK_SIZE decide"),
    used("BLK_SIZE", "`drive.pages`, if BLKS_PER_PLN is 0; otherwise the capacity decides"),
    left_out("MAX_CH_XFER_SIZE", "here a page crosses the channel in one piece"),
    *nothing("WRITE_UNIT_SIZE", "the host may write any block"),
    used("NAND_CHANNEL_BANDWIDTH", "`timing.channel_rate`, in MB/s"),
    used("PCIE_BANDWIDTH", "`host.link_rate`, in MB/s"),
    used("SLC_NAND_PROG_LATENCY", "`timing.t_program_slc`"),
    used("SLC_NAND_READ_LATENCY_LSB", "`timing.t_read_slc`"),
    *[
        used(f"{cell.upper()}_NAND_PROG_LATENCY", f"`timing.t_program`, {OWN_CELL}")
        for cell in CELLS[1:]
    ],
    *[
        used(f"{cell.upper()}_NAND_READ_LATENCY_{page}", f"`{key}`, {OWN_CELL}")
        for bits, cell in enumerate(CELLS[1:], 2)
        for page, key in list(READS.items())[:bits]
    ],
    used("NAND_ERASE_LATENCY", "`timing.t_erase`"),
    *nothing("NAND_ERASE_LATENCY_AGED", "ConZone does not use it"),
    used("FW_READ_LATENCY", "`host.command_time`"),
    left_out("FW_4KB_READ_LATENCY", FIRMWARE),
    left_out("FW_WBUF_LATENCY0", FIRMWARE, "(0)|0"),
    left_out("FW_WBUF_LATENCY1", FIRMWARE, "(0)|0"),
    left_out("FW_CH_XFER_LATENCY", FIRMWARE, "(0)|0"),
    used("ZONE_WB_SIZE", "`cache.bytes`"),
    left_out("NR_ZONE_WB", SHARED, "(1)|1"),
    *nothing("WB_MGNT", "chooses among the buffers of NR_ZONE_WB"),
    left_out("WB_FLUSH_TIMEWINDOW", "units leave the cache by its fill, not by their age", "(0)|0"),
    refused("GLOBAL_WB_SIZE", "(0)|0", "ConZone's buffers belong to zones; give ZONE_WB_SIZE"),
    used("WRITE_EARLY_COMPLETION", "`cache.mode`: 1 is write-back, 0 write-through"),
    used("L2P_ENTRY_SIZE", "`map.entry_bytes`"),
    used(
        "L2P_CACHE_SIZE",
        "`map.store`, `map.cache_bytes`: demand (it writes the map; ConZone does not)",
    ),
    *nothing("L2P_CACHE_HASH_SLOT", "a table of the emulator"),
    *nothing("L2P_LOG_SIZE", "ConZone does not use it"),
    left_out("L2P_EVICT_POLICY", "our store evicts by a policy of its own"),
    left_out("L2P_PREREAD", "set `map.policy=readahead`", "(0)|0"),
    left_out("L2P_HYBRID_MAP", "an entry of our map stands for one unit", "(0)|0"),
    *nothing("L2P_HYBRID_MAP_RESIDENT CHUNK_SIZE", "belongs to L2P_HYBRID_MAP"),
    used("OP_AREA_PERCENT", "`drive.over_provisioning`"),
)
"""Every macro of the model."""


def described(what: str) -> DriveFile:
    """Return the drive of ``FILE,capacity=8GiB[,model=NAME]``.

    Raises:
        InputError: The file, the model or the capacity does not make a drive.

    """
    macros, capacity = model_of(
        "conzone",
        what,
        KEYS,
        of_type="SSD_TYPE_CONZONE",
        program="ConZone",
        drive="a drive of ConZone",
    )
    drive = DriveFile(f"ConZone's {macros.model} ({PurePath(macros.path).name})")
    cell = macros.cell()
    flash_of(macros, capacity, cell, drive)
    drive.set("drive.frame_planes", macros.whole("PLNS_PER_LUN", 1), "PLNS_PER_LUN: all together")
    drive.set("map.unit", macros.whole("PG_SIZE", 512), "PG_SIZE")
    _times(macros, cell, drive)
    controller_of(macros, drive)
    drive.set("host.queue_depth", macros.whole("MQES") + 1, "MQES + 1")
    drive.set("cache.bytes", macros.whole("ZONE_WB_SIZE", 1), "ZONE_WB_SIZE")
    drive.set(
        "map.store", "demand", "L2P_CACHE_SIZE: a cache of the map, which ConZone never writes"
    )
    drive.set("map.cache_bytes", macros.whole("L2P_CACHE_SIZE", 1), "L2P_CACHE_SIZE")
    drive.set("map.entry_bytes", macros.whole("L2P_ENTRY_SIZE", 1), "L2P_ENTRY_SIZE")
    if cell != "slc" and not macros.flag("SLC_BYPASS") and not macros.flag("NORMAL_ONLY"):
        drive.set("ftl.slc", "static", "SLC_BYPASS and NORMAL_ONLY are 0")
        blocks = macros.whole("DATA_pSLC_INIT_BLKS", 1)
        drive.set("ftl.slc_static", blocks, "DATA_pSLC_INIT_BLKS: blocks of each plane")
    drive.leave(macros.left)
    return drive


def _times(macros: Macros, cell: str, drive: DriveFile) -> None:
    for page, key in list(READS.items())[: CELLS.index(cell) + 1]:
        tag = f"{cell.upper()}_NAND_READ_LATENCY_{page}"
        drive.set(key, f"{macros.whole(tag)}ns", tag)
    tag = f"{cell.upper()}_NAND_PROG_LATENCY"
    drive.set("timing.t_program", f"{macros.whole(tag)}ns", tag)
    if cell != "slc":
        slc = {"program": "SLC_NAND_PROG_LATENCY", "read": "SLC_NAND_READ_LATENCY_LSB"}
        for does, name in slc.items():
            drive.set(f"timing.t_{does}_slc", f"{macros.whole(name)}ns", name)
