"""The tables of counterparts to other programs: every name of ours exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import pytest
from conftest import ROOT
from flashatlas.cli import explain
from flashatlas.cli.root import load
from flashatlas.foreign import conzone, femu, mqsim, mqsim_flows, nvmevirt, simplessd
from flashatlas.foreign.keys import Does, Key

PAGES = {
    "coming-from-femu-nvmevirt-qemu.md": ("serve", {"FEMU", "NVMeVirt", "QEMU"}),
    "coming-from-mqsim-simplessd-conzone.md": ("run", {"MQSim", "SimpleSSD", "ConZone"}),
}
"""The command whose options a page names, and the programs of each page."""

NOT_THERE = "not there"

SPAN = re.compile(r"`([^`]+)`")
KEY = re.compile(r"([a-z]+\.[a-z0-9_]+)(?:=(\S+))?")
OPTION = re.compile(r"(?:([a-z-]+) )?(--[a-z-]+)(?: \S+)?")


class Row(NamedTuple):
    """A row of a table: its place, other programs' names, ours, and the note."""

    command: str
    section: str
    part: str
    theirs: tuple[str, ...]
    here: str
    note: str


@cache
def rows() -> tuple[Row, ...]:
    return tuple(row for name, (command, _) in PAGES.items() for row in found(name, command))


def found(name: str, command: str) -> Iterator[Row]:
    section = part = ""
    for line in (ROOT / "docs/howto" / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif line.startswith("### "):
            part = line[4:]
        elif line.startswith("| `"):
            theirs, here, note = (cell.strip() for cell in line.strip("|").split("|"))
            yield Row(command, section, part, tuple(SPAN.findall(theirs)), here, note)


def names(section: str, *parts: str) -> list[str]:
    """Return other programs' names in the parts whose titles begin with one of these words."""
    return [
        name
        for row in rows()
        if row.section == section and row.part.startswith(parts)
        for name in row.theirs
    ]


def test_every_row_has_a_name_of_ours_or_says_that_there_is_none():
    assert {row.section for row in rows()} == set.union(*(of for _, of in PAGES.values()))
    assert all(len(names(row.section, "")) > 40 for row in rows())
    for row in rows():
        assert row.here == NOT_THERE or "".join(SPAN.split(row.here)[::2]).strip(", ") == "", row
        assert row.here != NOT_THERE or row.note, f"{row.theirs}: why is it not there?"


@cache
def options(command: str) -> set[str]:
    """Return the options of a command of ours."""
    return {word for option in load(command).params for word in option.opts}


@cache
def words_of_workloads() -> set[str]:
    """Return the options of fio jobs that we read, and the settings of a merge of traces."""
    jobs = (ROOT / "crates/fio/src/definitions.rs").read_text(encoding="utf-8")
    parts = (ROOT / "docs/howto/play-several-traces.md").read_text(encoding="utf-8")
    declared = re.findall(r'\b(?:option|aliased)\(\s*"(\w+)"(?:,\s*"(\w+)")?', jobs)
    return {name for one in declared for name in one} | set(re.findall(r"^\| `(\w+)`", parts, re.M))


WORKLOADS = ("Flows", "Traces", "Standalone: `[generator]`")
"""Parts whose names of ours may also be options of a job or of a merge."""


def test_every_name_of_ours_is_a_key_or_an_option():
    keys, wrong = explain.keys(), []
    theirs = {name for row in rows() for name in row.theirs}
    for row in rows():
        spans = SPAN.findall(row.here) + [s for s in SPAN.findall(row.note) if s not in theirs]
        for span in spans:
            key, option = KEY.fullmatch(span), OPTION.fullmatch(span)
            if key:
                name, value = key.groups()
                known = name in keys and value_is_known(value, keys[name].about["range"])
            elif option:
                known = option[2] in options(option[1] or row.command)
            elif row.part.startswith(WORKLOADS):
                known = span in words_of_workloads()
            else:
                known = row.part.startswith("Properties: the FTL") and span in VALUES_OF_FEMU
            if not known:
                wrong.append(f"{' '.join(row.theirs)}: `{span}`")
    assert wrong == []


VALUES_OF_FEMU = {"page", "dftl", "hybrid", "fast", "d-choice"}
"""Values of `mapping` and `gc_policy`."""


def value_is_known(value: str | None, among: str) -> bool:
    return value is None or value in among.split(", ")


def ours(key: Key) -> set[str]:
    """Return the keys of ours that an importer sets."""
    return {match[1] for match in map(KEY.fullmatch, SPAN.findall(key.says)) if match}


def of_simplessd(section: str) -> dict[str, Key]:
    """Return the keys of a section of SimpleSSD, without its name."""
    at = f"{section}."
    keys = simplessd.KEYS.items()
    return {name.removeprefix(at): key for name, key in keys if name.startswith(at)}


@pytest.mark.parametrize(
    ("section", "parts", "keys"),
    [
        ("FEMU", ("Properties",), femu.KEYS),
        ("NVMeVirt", ("Constants",), nvmevirt.KEYS),
        ("MQSim", ("Drive",), mqsim.KEYS),
        ("MQSim", ("Flows",), mqsim_flows.KEYS),
        ("MQSim", ("Flows: tags of all", "Traces"), mqsim_flows.TRACE_KEYS),
        ("ConZone", ("Constants",), conzone.KEYS),
        *[
            ("SimpleSSD", (f"Drive: `[{name}]`",), of_simplessd(name))
            for name in ("cpu", "nvme", "sata", "ufs", "pal", "ftl", "icl", "dram")
        ],
    ],
)
def test_the_page_has_every_key_of_the_importer_and_agrees_with_it(section, parts, keys):
    listed = names(section, *parts)
    assert len(set(listed)) == len(listed), "a name stands twice"
    assert [name for name in keys if name not in listed] == []
    for row in rows():
        for name in row.theirs:
            if row.section == section and row.part.startswith(parts) and name in keys:
                key = keys[name]
                if key.does is Does.USED and SPAN.search(key.says):
                    assert ours(key) <= {*SPAN.findall(row.here)}, name
                    assert row.here != NOT_THERE, name


@pytest.mark.parametrize(
    ("section", "part", "keys"),
    [
        ("FEMU", "Properties", femu.KEYS),
        ("MQSim", "Drive", mqsim.KEYS),
        ("MQSim", "Flows", mqsim_flows.KEYS),
    ],
)
def test_the_page_has_no_name_that_the_importer_does_not_know(section, part, keys):
    assert set(names(section, part)) == set(keys)


DRAM_CURRENTS = "IDD0 IDD2P0 IDD2P1 IDD2N IDD3P0 IDD3P1 IDD3N IDD4R IDD4W IDD5 IDD6 VDD"
DISK = "LBASize EnableDiskImage StrictSizeCheck DiskImageFile UseCopyOnWriteDisk"
LOOP = "WorkInterval MaxRequestCount"
LINK = "PCIEGeneration PCIELane AXIBusWidth AXIClock"

SIMPLESSD = {
    "Drive: `[cpu]`": "ClockSpeed HILCoreCount ICLCoreCount FTLCoreCount",
    "Drive: `[nvme]`": f"{LINK} {LOOP} {DISK} FIFOTransferUnit MaxIOCQueue MaxIOSQueue WRRHigh "
    "WRRMedium DefaultNamespace",
    "Drive: `[sata]`": f"{LINK} {LOOP} {DISK} SATAMode",
    "Drive: `[ufs]`": f"AXIBusWidth AXIClock {LOOP} {DISK} MPHYMode MPHYLane",
    "Drive: `[pal]`": "Channel Package PageAllocation SuperblockSize Die Plane Block Page PageSize "
    "EnableMultiPlaneOperation DMASpeed DMAWidth NANDType LSBRead LSBWrite CSBRead CSBWrite "
    "MSBRead MSBWrite Erase Voltage ReadCurrent ProgramCurrent EraseCurrent IdleCurrent "
    "StandbyCurrent",
    "Drive: `[ftl]`": "MappingMode OverProvisioningRatio GCThreshold EraseThreshold FillingMode "
    "FillRatio InvalidPageRatio GCMode GCReclaimBlocks GCReclaimThreshold EvictPolicy "
    "DChoiceParam EnableRandomIOTweak",
    "Drive: `[icl]`": "EnableReadCache EnableWriteCache EnableReadPrefetch EvictPolicy EvictMode "
    "CacheSize CacheWaySize ReadPrefetchCount ReadPrefetchRatio ReadPrefetchMode CacheLatency",
    "Drive: `[dram]`": "Model Channel Rank Bank Chip BusWidth BurstLength ChipSize PageSize tCK "
    "tRCD tCL tRP tRAS tWR tRTP tBURST tCCD_L tRFC tREFI tWTR tRTW tCS tRRD tRRD_L tXAW tXP "
    "tXPDLL tXS tXSDLL "
    + " ".join(f"{name}_{rail}" for name in DRAM_CURRENTS.split() for rail in (0, 1)),
    "Standalone: `[global]`": "Mode LogPeriod LogFile DebugLogFile LatencyLogFile ProgressPeriod "
    "Interface Scheduler SubmissionLatency CompletionLatency",
    "Standalone: `[generator]`": "io_size readwrite rwmixread blocksize blockalign iomode iodepth "
    "offset size thinktime randseed time_based runtime",
    "Standalone: `[trace]`": "File TimingMode QueueDepth IOLimit Regex Operation ByteOffset "
    "ByteLength LBAOffset LBALength Second Millisecond Microsecond Nanosecond Picosecond LBASize "
    "UseHexadecimal",
}
"""Options of each section (SimpleSSD at 2be3716, SimpleSSD-Standalone at 8255367)."""

READS = ("LSB", "MSB", "CSB", "TSB")
PAGE_READS = [
    f"{cell}_NAND_READ_LATENCY_{page}"
    for bits, cell in enumerate(("SLC", "MLC", "TLC", "QLC"), 1)
    for page in READS[:bits]
]

CONZONE = {
    "Models": "CONFIG_NVMEVIRT_NVM CONFIG_NVMEVIRT_SSD CONFIG_NVMEVIRT_ZNS CONFIG_NVMEVIRT_KV "
    "CONFIG_NVMEVIRT_CONZONE",
    "Parameters": "memmap_start memmap_size read_time read_delay read_trailing write_time "
    "write_delay write_trailing nr_io_units io_unit_shift cpus debug read_times write_times "
    "io_units stat",
    "Constants": "NR_NAMESPACES NS_SSD_TYPE_0 NS_SSD_TYPE_1 NS_CAPACITY_0 NS_CAPACITY_1 "
    "PHYSICAL_META_SIZE LOGICAL_META_SIZE MDTS MQES LBA_BITS LBA_SIZE CELL_MODE SLC_BYPASS "
    "NORMAL_ONLY ZONED_SLC SSD_PARTITIONS NAND_CHANNELS LUNS_PER_NAND_CH PLNS_PER_LUN PG_SIZE "
    "FLASH_PAGE_SIZE ONESHOT_PAGE_SIZE BLKS_PER_PLN BLK_SIZE DIES_PER_ZONE PLNS_PER_ZONE "
    "ZONE_SIZE MAX_CH_XFER_SIZE WRITE_UNIT_SIZE NAND_CHANNEL_BANDWIDTH PCIE_BANDWIDTH "
    "SLC_NAND_PROG_LATENCY MLC_NAND_PROG_LATENCY TLC_NAND_PROG_LATENCY QLC_NAND_PROG_LATENCY "
    f"{' '.join(PAGE_READS)} NAND_ERASE_LATENCY NAND_ERASE_LATENCY_AGED FW_4KB_READ_LATENCY "
    "FW_READ_LATENCY FW_WBUF_LATENCY0 FW_WBUF_LATENCY1 FW_CH_XFER_LATENCY ZONE_WB_SIZE NR_ZONE_WB "
    "WB_MGNT WB_FLUSH_TIMEWINDOW GLOBAL_WB_SIZE WRITE_EARLY_COMPLETION META_WB_SIZE NR_META_WB "
    "L2P_ENTRY_SIZE L2P_CACHE_SIZE L2P_CACHE_HASH_SLOT L2P_LOG_SIZE L2P_EVICT_POLICY L2P_PREREAD "
    "L2P_HYBRID_MAP L2P_HYBRID_MAP_RESIDENT CHUNK_SIZE map_type OP_AREA_PERCENT "
    "META_pSLC_INIT_BLKS DATA_pSLC_INIT_BLKS DATA_pSLC_RSV_SIZE pSLC_INIT_BLKS pSLC_BLK_SIZE "
    "pSLC_ONESHOT_PAGE_SIZE MAX_ZRWA_ZONES ZRWAFG_SIZE ZRWA_SIZE ZRWA_BUFFER_SIZE",
}
"""Names of each part (ConZone at 9983bca, the model CONZONE_PROTOTYPE)."""


@pytest.mark.parametrize(
    ("section", "part", "options"),
    [("SimpleSSD", part, of) for part, of in SIMPLESSD.items()]
    + [("ConZone", part, of) for part, of in CONZONE.items()],
)
def test_the_page_has_every_option_of_the_program(section, part, options):
    assert sorted(names(section, part)) == sorted(options.split())


def test_the_importers_know_every_option_of_a_drive():
    drive = {part: of for part, of in SIMPLESSD.items() if part.startswith("Drive")}
    sections = {part.strip("`]").partition("[")[2]: of.split() for part, of in drive.items()}
    assert set(simplessd.KEYS) == {f"{at}.{name}" for at, of in sections.items() for name in of}
    # an array of C, which is no macro
    assert set(conzone.KEYS) == set(CONZONE["Constants"].split()) - {"map_type"}
