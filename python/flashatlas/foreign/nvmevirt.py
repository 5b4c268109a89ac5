"""NVMeVirt's ``ssd_config.h`` (Kim and others, FAST 2023): the macros of one of its models.

The capacity is the memory that the kernel module gets, so the user must give it. The firmware's
time for a read becomes our time for every command. NVMeVirt reads a part of a flash page if 4 KiB
are asked for; our drive reads the whole page. The macros are taken from snu-csl/nvmevirt at commit
61c90f7 (May 2026), ``ssd_config.h``.
"""

from __future__ import annotations

from pathlib import PurePath

from flashatlas._core import InputError
from flashatlas.foreign.description import DriveFile
from flashatlas.foreign.keys import left_out, nothing, refused, table, used
from flashatlas.foreign.macros import CELLS, Macros, model_of

MAPPED_PAGE = 4096
"""Bytes of a mapping unit of NVMeVirt (``ssd_init_params``)."""

READS = {"LSB": "timing.t_read", "MSB": "timing.t_read_middle", "CSB": "timing.t_read_upper"}
"""Our times to read the pages of a word line, in the order of ``ssd.h``."""

PART_READS = "our drive reads whole flash pages"
FIRMWARE = "all commands have the same time here: the time of a read"

KEYS = table(
    *nothing("NR_NAMESPACES NS_SSD_TYPE_0 NS_SSD_TYPE_1", "they name the model (SSD_TYPE_CONV)"),
    refused("NS_CAPACITY_0", "(0)|0", "give `,capacity=`"),
    *nothing("NS_CAPACITY_1", "belongs to a second namespace"),
    *nothing("MDTS", "the largest request of the guest; here the workload decides what is sent"),
    *nothing("LBA_BITS LBA_SIZE", "sectors have 512 bytes here"),
    used("CELL_MODE", "`drive.cell`"),
    left_out("SSD_PARTITIONS", "one FTL has all channels here", "(1)|1"),
    used("NAND_CHANNELS", "`drive.channels`"),
    used("LUNS_PER_NAND_CH", "`drive.ways`"),
    used("PLNS_PER_LUN", "`drive.planes`"),
    used("BLKS_PER_PLN", "`drive.blocks`; with 0, the capacity and BLK_SIZE decide"),
    used("BLK_SIZE", "`drive.pages`, if BLKS_PER_PLN is 0; otherwise the capacity decides"),
    used("FLASH_PAGE_SIZE", "`drive.page_bytes`"),
    used(
        "ONESHOT_PAGE_SIZE",
        "`drive.program_unit`: word-line, if it has a flash page for each bit of a cell; otherwise "
        "it is the page",
    ),
    used("NAND_CHANNEL_BANDWIDTH", "`timing.channel_rate`, in MB/s"),
    used("PCIE_BANDWIDTH", "`host.link_rate`, in MB/s"),
    left_out("MAX_CH_XFER_SIZE", "here a page crosses the channel in one piece"),
    *nothing("WRITE_UNIT_SIZE", "NVMeVirt's conventional drive does not read it"),
    left_out("NAND_4KB_READ_LATENCY_LSB", PART_READS),
    left_out("NAND_4KB_READ_LATENCY_MSB", PART_READS),
    left_out("NAND_4KB_READ_LATENCY_CSB", PART_READS, "(0)|0"),
    used("NAND_READ_LATENCY_LSB", "`timing.t_read`"),
    used("NAND_READ_LATENCY_MSB", "`timing.t_read_middle`: the second page of a word line"),
    used("NAND_READ_LATENCY_CSB", "`timing.t_read_upper`: the third page, TLC"),
    used("NAND_PROG_LATENCY", "`timing.t_program`"),
    used("NAND_ERASE_LATENCY", "`timing.t_erase`"),
    used("FW_READ_LATENCY", "`host.command_time`"),
    left_out("FW_4KB_READ_LATENCY", FIRMWARE),
    left_out("FW_WBUF_LATENCY0", FIRMWARE, "(0)|0"),
    left_out("FW_WBUF_LATENCY1", FIRMWARE, "(0)|0"),
    left_out("FW_CH_XFER_LATENCY", FIRMWARE, "(0)|0"),
    used("OP_AREA_PERCENT", "`drive.over_provisioning`"),
    used("GLOBAL_WB_SIZE", "`cache.bytes`"),
    used("WRITE_EARLY_COMPLETION", "`cache.mode`: 1 is write-back, 0 write-through"),
)
"""Every macro of a conventional model."""


def described(what: str) -> DriveFile:
    """Return the drive of ``FILE,capacity=60GiB[,model=NAME]``.

    Raises:
        InputError: The file, the model or the capacity does not make a drive.

    """
    macros, capacity = model_of(
        "nvmevirt",
        what,
        KEYS,
        of_type="SSD_TYPE_CONV",
        program="NVMeVirt",
        drive="a conventional drive",
    )
    return _drive(macros, capacity)


def _drive(macros: Macros, capacity: int) -> DriveFile:
    drive = DriveFile(f"NVMeVirt's {macros.model} ({PurePath(macros.path).name})")
    cell = macros.cell()
    if cell == "qlc":
        raise InputError(
            f"{macros.path}: CELL_MODE is QLC, and NVMeVirt has no time for the fourth page"
        )
    flash_of(macros, capacity, cell, drive)
    drive.set("map.unit", MAPPED_PAGE, "NVMeVirt maps 4 KiB")
    for name, key in list(READS.items())[: CELLS.index(cell) + 1]:
        tag = f"NAND_READ_LATENCY_{name}"
        drive.set(key, f"{macros.whole(tag)}ns", tag)
    drive.set("timing.t_program", f"{macros.whole('NAND_PROG_LATENCY')}ns", "NAND_PROG_LATENCY")
    controller_of(macros, drive)
    drive.set("cache.bytes", macros.whole("GLOBAL_WB_SIZE", 1), "GLOBAL_WB_SIZE")
    drive.leave(macros.left)
    return drive


def flash_of(macros: Macros, capacity: int, cell: str, drive: DriveFile) -> None:
    """Set the geometry, the cell and the spare space.

    Raises:
        InputError: A number is missing, or makes no sense.

    """
    channels, ways = macros.whole("NAND_CHANNELS", 1), macros.whole("LUNS_PER_NAND_CH", 1)
    planes = macros.whole("PLNS_PER_LUN", 1)
    drive.set("drive.channels", channels, "NAND_CHANNELS")
    drive.set("drive.ways", ways, "LUNS_PER_NAND_CH")
    drive.set("drive.dies", 1, "a LUN is a die")
    drive.set("drive.planes", planes, "PLNS_PER_LUN")
    page, program = macros.whole("FLASH_PAGE_SIZE", 1), macros.whole("ONESHOT_PAGE_SIZE", 1)
    bits = CELLS.index(cell) + 1
    if word_line := bits > 1 and program == page * bits:
        drive.set("drive.program_unit", "word-line", "ONESHOT_PAGE_SIZE: a page for each bit")
    else:
        page = program
    each = bits if word_line else 1
    across = channels * ways * planes
    if blocks := macros.whole("BLKS_PER_PLN"):
        drive.set("drive.blocks", blocks, "BLKS_PER_PLN")
        programs = max(-(-capacity // (across * blocks * program)), 1)
        drive.set("drive.pages", programs * each, "the pages of a block, from the capacity")
    else:
        size = macros.whole("BLK_SIZE", program)
        drive.set("drive.blocks", max(-(-capacity // (across * size)), 1), "from the capacity")
        drive.set("drive.pages", size // program * each, "BLK_SIZE")
    drive.set("drive.page_bytes", page, "FLASH_PAGE_SIZE" if word_line else "ONESHOT_PAGE_SIZE")
    drive.set("drive.spare_bytes", page // 32, "NVMeVirt has no spare area: the usual size")
    drive.set("drive.cell", cell, "CELL_MODE")
    spare = macros.number("OP_AREA_PERCENT")
    drive.set("drive.over_provisioning", round(spare, 9), "OP_AREA_PERCENT")


def controller_of(macros: Macros, drive: DriveFile) -> None:
    """Set the time of an erase, the rates, the time of the firmware, and the mode of the cache.

    Raises:
        InputError: A number is missing, or makes no sense.

    """
    drive.set("timing.t_erase", f"{macros.whole('NAND_ERASE_LATENCY')}ns", "NAND_ERASE_LATENCY")
    rates = {"timing.channel_rate": "NAND_CHANNEL_BANDWIDTH", "host.link_rate": "PCIE_BANDWIDTH"}
    for key, name in rates.items():
        drive.set(key, f"{macros.whole(name)}MB", name)
    drive.set("host.command_time", f"{macros.whole('FW_READ_LATENCY')}ns", "FW_READ_LATENCY")
    early = "WRITE_EARLY_COMPLETION"
    if early in macros.found:
        mode = "write-back" if macros.whole(early) else "write-through"
        drive.set("cache.mode", mode, early)
