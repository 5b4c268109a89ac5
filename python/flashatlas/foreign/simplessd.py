"""SimpleSSD's configuration (Jung and others, CAL 2018): the sections of a drive.

A name of the table is a section and an option: ``pal.Channel``. A file has sections for several
interfaces, of which the description chooses one: ``simplessd:FILE.cfg,interface=sata``. SimpleSSD's
over-provisioning is a share of the physical space, ours a share of the logical space. The options
are taken from SimpleSSD/SimpleSSD at commit 2be3716 (version 2.0), the ``config.cc`` of each
section.
"""

from __future__ import annotations

import configparser
import math
import re
from pathlib import PurePath

from flashatlas._core import InputError
from flashatlas.foreign.description import DriveFile, content_of
from flashatlas.foreign.keys import Found, Given, Key, left_out, nothing, refused, table, used
from flashatlas.names import hint

INTERFACES = ("nvme", "sata", "ufs", "none")
"""Values of ``interface=``; the first is the default, and ``none`` has no link."""

GEOMETRY = {
    "pal.Channel": "drive.channels",
    "pal.Package": "drive.ways",
    "pal.Die": "drive.dies",
    "pal.Plane": "drive.planes",
    "pal.Block": "drive.blocks",
    "pal.Page": "drive.pages",
    "pal.PageSize": "drive.page_bytes",
}

DEFAULTS = {
    "pal.Channel": "8",
    "pal.Package": "4",
    "pal.Die": "2",
    "pal.Plane": "1",
    "pal.Block": "512",
    "pal.Page": "512",
    "pal.PageSize": "16384",
    "pal.EnableMultiPlaneOperation": "1",
    "pal.NANDType": "1",
    "pal.LSBRead": "40000000",
    "pal.LSBWrite": "500000000",
    "pal.CSBRead": "0",
    "pal.CSBWrite": "0",
    "pal.MSBRead": "65000000",
    "pal.MSBWrite": "1300000000",
    "pal.Erase": "3500000000",
    "pal.DMASpeed": "400",
    "pal.DMAWidth": "8",
    "pal.SuperblockSize": "",
    "ftl.OverProvisioningRatio": "0.25",
    "ftl.EraseThreshold": "100000",
    "ftl.EvictPolicy": "0",
    "ftl.DChoiceParam": "3",
    "ftl.GCThreshold": "0.05",
    "ftl.GCReclaimBlocks": "1",
    "ftl.EnableRandomIOTweak": "1",
    "icl.CacheSize": "33554432",
    "icl.EnableWriteCache": "1",
    "nvme.PCIEGeneration": "2",
    "nvme.PCIELane": "4",
    "nvme.AXIBusWidth": "2",
    "nvme.AXIClock": "250000000",
}
"""SimpleSSD's defaults of the options that are read; the other interfaces must be complete."""

LEVELS = {
    "0": ("slc", (("LSB", ""),)),
    "1": ("mlc", (("LSB", ""), ("MSB", "_middle"))),
    "2": ("tlc", (("LSB", ""), ("CSB", "_middle"), ("MSB", "_upper"))),
}
"""The cell of each ``NANDType``, with the names of its pages in SimpleSSD and here."""

VICTIMS = {"0": "greedy", "1": "cost-benefit", "2": "random", "3": "d-choices"}
"""Values of the FTL's ``EvictPolicy``, and our policies."""

FRAMES = {"C": "channels", "W": "ways", "D": "dies", "P": "planes"}
"""Letters of ``SuperblockSize``, and our ``drive.frame_*``."""

LANE_MB = {"0": 250.0, "1": 500.0, "2": 1e6 / (1000 * 1.015625)}
"""MB/s of a lane of each ``PCIEGeneration`` (``util/interface.cc``: time of a symbol, coding)."""

SATA_MB = {"0": 1e6 / (5336 * 1.25), "1": 1e6 / (2667 * 1.25), "2": 1e6 / (1333 * 1.25)}
"""MB/s of each ``SATAMode``."""

MPHY_MB = {str(mode): 1e6 / (time * 1.25) for mode, time in enumerate((6410, 3205, 1603, 801))}
"""MB/s of a lane of each ``MPHYMode``."""

COMMAND_CYCLES = 7
"""Cycles of the command and the address of a read or a program (``pal/config.cc``)."""

ON = {"1": True, "true": True, "0": False, "false": False}

NUMBERED = re.compile(r"^DiskImageFile[0-9]+$")
"""The option with the number of a namespace."""

FIRMWARE = "instructions are not counted; set `host.command_time` and `firmware.cores`"
LOOP = "a command is taken as soon as it arrives"
ENERGY = "currents are not read; set `energy.read_nj` and its like"
CACHE_DRAM = "the write cache takes no time here"
DRAM_ROWS = "rows and commands of the DRAM are not timed; set `memory.dram_shared_rate`"
CONTENT = "where SimpleSSD keeps the content of the drive"
OFFERED = "the controller offers it; here the workload decides what is sent"

DRAM = (
    "Model Channel Rank Bank Chip BusWidth BurstLength ChipSize PageSize tCK tRCD tCL tRP tRAS tWR "
    "tRTP tBURST tCCD_L tRFC tREFI tWTR tRTW tCS tRRD tRRD_L tXAW tXP tXPDLL tXS tXSDLL"
)
RAILS = "IDD0 IDD2P0 IDD2P1 IDD2N IDD3P0 IDD3P1 IDD3N IDD4R IDD4W IDD5 IDD6 VDD"
CURRENTS = "Voltage ReadCurrent ProgramCurrent EraseCurrent IdleCurrent StandbyCurrent"


def _fills_nothing(found: Found) -> bool:
    return all(not found.get(f"ftl.{name}", "0").strip("0.") for name in FILLS)


FILLS = ("FillRatio", "InvalidPageRatio")


def _each(section: str, names: str, says: str, unless: str = "") -> list[Key]:
    return [left_out(f"{section}.{name}", says, unless) for name in names.split()]


def _nothing(section: str, names: str, says: str) -> list[Key]:
    return nothing(" ".join(f"{section}.{name}" for name in names.split()), says)


def _interface(section: str) -> list[Key]:
    return [
        *_each(section, "WorkInterval MaxRequestCount", LOOP),
        *_nothing(section, "LBASize", "sectors have 512 bytes here"),
        *_nothing(
            section, "EnableDiskImage StrictSizeCheck DiskImageFile UseCopyOnWriteDisk", CONTENT
        ),
        *[
            used(f"{section}.{name}", "`host.link_rate`: the slowest bus")
            for name in ("AXIBusWidth", "AXIClock")
        ],
    ]


def _pcie(section: str) -> list[Key]:
    return [
        used(f"{section}.{name}", "`host.link_rate`: the slowest bus")
        for name in ("PCIEGeneration", "PCIELane")
    ]


KEYS = table(
    _each("cpu", "ClockSpeed HILCoreCount ICLCoreCount FTLCoreCount", FIRMWARE),
    _pcie("nvme"),
    _interface("nvme"),
    _each("nvme", "FIFOTransferUnit", "data crosses the link in one piece"),
    _nothing("nvme", "MaxIOCQueue MaxIOSQueue WRRHigh WRRMedium", OFFERED),
    refused("nvme.DefaultNamespace", "1", "a drive has one namespace"),
    _pcie("sata"),
    _interface("sata"),
    used("sata.SATAMode", "`host.link_rate`: the slowest bus"),
    _interface("ufs"),
    used("ufs.MPHYMode", "`host.link_rate`: the slowest bus"),
    used("ufs.MPHYLane", "`host.link_rate`: the slowest bus"),
    *[used(name, f"`{key}`") for name, key in GEOMETRY.items()],
    used("pal.EnableMultiPlaneOperation", "`drive.frame_planes`: all planes"),
    used("pal.NANDType", "`drive.cell`"),
    used("pal.LSBRead", "`timing.t_read`, in picoseconds"),
    used("pal.LSBWrite", "`timing.t_program`, in picoseconds"),
    used("pal.CSBRead", "`timing.t_read_middle`, TLC"),
    used("pal.CSBWrite", "`timing.t_program_middle`, TLC"),
    used("pal.MSBRead", "`timing.t_read_middle` (MLC) or `_upper` (TLC)"),
    used("pal.MSBWrite", "`timing.t_program_middle` (MLC) or `_upper` (TLC)"),
    used("pal.Erase", "`timing.t_erase`, in picoseconds"),
    used("pal.DMASpeed", "`timing.channel_rate`; seven cycles are `timing.t_command`"),
    used("pal.DMAWidth", "`timing.channel_rate`; seven cycles are `timing.t_command`"),
    used(
        "pal.SuperblockSize",
        "`drive.frame_channels`, `drive.frame_ways`, `drive.frame_dies`, `drive.frame_planes`",
    ),
    used("pal.PageAllocation", "`drive.allocation`"),
    _each("pal", CURRENTS, ENERGY),
    refused("ftl.MappingMode", "0", "SimpleSSD has no other scheme"),
    used("ftl.OverProvisioningRatio", "`drive.over_provisioning`"),
    used("ftl.EraseThreshold", "`nand.endurance`"),
    *[left_out(f"ftl.{name}", "run with `--precondition`", _fills_nothing) for name in FILLS],
    _nothing("ftl", "FillingMode", "belongs to FillRatio"),
    used("ftl.EvictPolicy", "`ftl.victim`"),
    used("ftl.DChoiceParam", "`ftl.d`, times GCReclaimBlocks"),
    used("ftl.GCThreshold", "`ftl.low_water`: this share of the blocks, less the last one"),
    left_out("ftl.GCMode", "a lane collects until it has one more free block", "0"),
    left_out("ftl.GCReclaimBlocks", "a lane collects until it has one more free block", "1"),
    _nothing("ftl", "GCReclaimThreshold", "belongs to GCMode = 1"),
    used("ftl.EnableRandomIOTweak", "`map.unit`: a page of the planes, or the whole frame"),
    used("icl.CacheSize", "`cache.bytes`"),
    used("icl.EnableWriteCache", "`cache.mode`: 1 is write-back, 0 write-through"),
    _each("icl", "EnableReadCache", "our cache holds writes only", "0|false"),
    _each("icl", "EnableReadPrefetch", "data is not prefetched", "0|false"),
    _nothing(
        "icl", "ReadPrefetchMode ReadPrefetchCount ReadPrefetchRatio", "belongs to prefetching"
    ),
    _each("icl", "CacheWaySize", "any unit may be anywhere in the cache", "0"),
    _each("icl", "EvictPolicy", "the least recently written units leave", "2"),
    _each("icl", "EvictMode", "units leave in whole frames"),
    _each("icl", "CacheLatency", CACHE_DRAM, "0"),
    _each("dram", DRAM, DRAM_ROWS),
    _each("dram", " ".join(f"{name}_{rail}" for name in RAILS.split() for rail in "01"), ENERGY),
)
"""Every option of each section."""


def described(what: str) -> DriveFile:
    """Return the drive of ``FILE.cfg[,interface=nvme|sata|ufs|none]``.

    Raises:
        InputError: The file is no configuration of SimpleSSD, or we cannot simulate its drive.

    """
    path, *options = what.split(",")
    interface = INTERFACES[0]
    for one in options:
        name, _, interface = one.partition("=")
        if name != "interface" or interface not in INTERFACES:
            raise InputError(
                f"simplessd: `{one}` is not known{hint(interface, INTERFACES)}; write interface= "
                f"and one of {', '.join(INTERFACES)}"
            )
    found = _options_of(path)
    others = tuple(f"{name}." for name in INTERFACES if name != interface)
    # options of the other interfaces are checked by their names alone
    Given(path, KEYS, {name: text for name, text in found.items() if name not in KEYS})
    given = Given(path, KEYS, {n: text for n, text in found.items() if not n.startswith(others)})
    drive = DriveFile(f"SimpleSSD's {PurePath(path).name}")
    _flash(given, drive)
    _collection(given, drive)
    on = given.one_of("icl.EnableWriteCache", ON, DEFAULTS["icl.EnableWriteCache"])
    drive.set("cache.mode", "write-back" if on else "write-through", "icl.EnableWriteCache")
    drive.set("cache.bytes", _whole(given, "icl.CacheSize"), "icl.CacheSize")
    _link(given, interface, drive)
    drive.leave(given.left)
    return drive


def _options_of(path: str) -> dict[str, str]:
    reader = configparser.ConfigParser(
        interpolation=None, inline_comment_prefixes=("#",), default_section=""
    )
    reader.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        reader.read_string(content_of("simplessd", path))
    except configparser.Error as error:
        said = " ".join(str(error).split())
        raise InputError(f"{path}: {said}; give a .cfg file of SimpleSSD") from error
    if "pal" not in reader:
        raise InputError(f"{path}: there is no [pal] section; give a .cfg file of SimpleSSD")
    return {
        f"{section}.{NUMBERED.sub('DiskImageFile', name)}": text
        for section in reader.sections()
        for name, text in reader[section].items()
    }


def _whole(given: Given, name: str, least: int = 1) -> int:
    return given.whole(name, least, DEFAULTS.get(name))


def _flash(given: Given, drive: DriveFile) -> None:
    sizes = {name: _whole(given, name) for name in GEOMETRY}
    for name, key in GEOMETRY.items():
        drive.set(key, sizes[name], name)
    page = sizes["pal.PageSize"]
    drive.set("drive.spare_bytes", max(page // 32, 16), "SimpleSSD has no spare area: usual size")
    frame, unit = _frame(given, sizes, drive), page
    multi = "pal.EnableMultiPlaneOperation"
    if given.one_of(multi, ON, DEFAULTS[multi]):
        unit *= sizes["pal.Plane"]
    tweak = "ftl.EnableRandomIOTweak"
    if not given.one_of(tweak, ON, DEFAULTS[tweak]):
        unit = page * frame
    drive.set("map.unit", unit, tweak)
    order = given.text("pal.PageAllocation").upper()
    drive.set("drive.allocation", order, "pal.PageAllocation")
    cell, levels = given.one_of("pal.NANDType", LEVELS, DEFAULTS["pal.NANDType"])
    drive.set("drive.cell", cell, "pal.NANDType")
    for theirs, ours in levels:
        for does, key in (("Read", "t_read"), ("Write", "t_program")):
            name = f"pal.{theirs}{does}"
            drive.set(f"timing.{key}{ours}", f"{_whole(given, name, 0)}ps", name)
    drive.set("timing.t_erase", f"{_whole(given, 'pal.Erase', 0)}ps", "pal.Erase")
    width = _whole(given, "pal.DMAWidth", 8) // 8
    # SimpleSSD's million of transfers is 2^20
    rate = _whole(given, "pal.DMASpeed") * 2**20 * width
    source = "DMASpeed x 2^20 x DMAWidth / 8"
    drive.set("timing.channel_rate", str(rate), source)
    drive.set("timing.t_command", f"{COMMAND_CYCLES * 10**12 // rate}ps", "seven cycles of it")


def _frame(given: Given, sizes: dict[str, int], drive: DriveFile) -> int:
    """Set the frame, and return its pages."""
    letters = set(given.text("pal.SuperblockSize", "").upper())
    if unknown := letters - set(FRAMES):
        raise InputError(
            f"{given.place}: pal.SuperblockSize has the letter {min(unknown)!r}; give C, W, D and P"
        )
    multi = "pal.EnableMultiPlaneOperation"
    if given.one_of(multi, ON, DEFAULTS[multi]):
        letters.add("P")
    pages = 1
    for (letter, ours), size in zip(FRAMES.items(), list(GEOMETRY)[:4], strict=True):
        if letter in letters:
            source = multi if letter == "P" else "pal.SuperblockSize"
            drive.set(f"drive.frame_{ours}", sizes[size], source)
            pages *= sizes[size]
    return pages


def _collection(given: Given, drive: DriveFile) -> None:
    name = "ftl.OverProvisioningRatio"
    spare = given.real(name, DEFAULTS[name])
    if spare >= 1:
        raise InputError(f"{given.place}: {name} = {spare} is not a share below 1")
    drive.set(
        "drive.over_provisioning", round(1 / (1 - spare) - 1, 9), f"{name}, of the physical space"
    )
    drive.set("nand.endurance", _whole(given, "ftl.EraseThreshold"), "ftl.EraseThreshold")
    policy = given.one_of("ftl.EvictPolicy", VICTIMS, DEFAULTS["ftl.EvictPolicy"])
    drive.set("ftl.victim", policy, "ftl.EvictPolicy")
    if policy == "d-choices":
        drawn = _whole(given, "ftl.DChoiceParam") * _whole(given, "ftl.GCReclaimBlocks")
        drive.set("ftl.d", drawn, "DChoiceParam x GCReclaimBlocks")
    # SimpleSSD collects below the threshold, our drive at it; two frontiers need two blocks
    share = given.real("ftl.GCThreshold", DEFAULTS["ftl.GCThreshold"])
    free = max(math.ceil(share * _whole(given, "pal.Block")) - 1, 2)
    drive.set("ftl.low_water", free, "GCThreshold x Block, less the last one")


def _link(given: Given, interface: str, drive: DriveFile) -> None:
    if interface == "none":
        return
    rates: list[float] = [_axi(given, interface)]
    if interface in ("nvme", "sata"):
        lane = _chosen(given, f"{interface}.PCIEGeneration", LANE_MB)
        rates.append(lane * _whole(given, f"{interface}.PCIELane"))
    if interface == "sata":
        rates.append(_chosen(given, "sata.SATAMode", SATA_MB))
    if interface == "ufs":
        rates.append(_chosen(given, "ufs.MPHYMode", MPHY_MB) * _whole(given, "ufs.MPHYLane"))
    drive.set("host.link_rate", f"{round(min(rates))}MB", f"the slowest bus of [{interface}]")
    drive.set("host.full_duplex", interface != "sata", f"[{interface}]")


def _axi(given: Given, interface: str) -> float:
    widths = {str(n): 4 * 2**n for n in range(6)}
    width = _chosen(given, f"{interface}.AXIBusWidth", widths)
    return width * _whole(given, f"{interface}.AXIClock") / 1e6


def _chosen(given: Given, name: str, among: dict[str, float] | dict[str, int]) -> float:
    return given.one_of(name, among, DEFAULTS.get(name))
