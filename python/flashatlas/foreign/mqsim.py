"""MQSim's ``ssdconfig.xml`` (Tavakkol and others, FAST 2018; its README has every tag).

One mapping unit is a page, as there; planes work apart from each other; over-provisioning is a
share of the physical space there and of the logical space here.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from pathlib import PurePath
from typing import TypeVar

from flashatlas._core import InputError
from flashatlas.foreign.drive_file import DriveFile, content_of, number

GEOMETRY = {
    "Flash_Channel_Count": "drive.channels",
    "Chip_No_Per_Channel": "drive.ways",
    "Die_No_Per_Chip": "drive.dies",
    "Plane_No_Per_Die": "drive.planes",
    "Block_No_Per_Plane": "drive.blocks",
    "Page_No_Per_Block": "drive.pages",
    "Page_Capacity": "drive.page_bytes",
    "Page_Metadat_Capacity": "drive.spare_bytes",
    "Block_PE_Cycles_Limit": "nand.endurance",
}
"""Tags whose number is that of a key."""

TIMES = {
    "Page_Read_Latency_LSB": "timing.t_read",
    "Page_Program_Latency_LSB": "timing.t_program",
    "Block_Erase_Latency": "timing.t_erase",
}
"""Tags whose nanoseconds are those of a key."""

LEVELS = {
    "SLC": (),
    "MLC": (("MSB", "middle"),),
    "TLC": (("CSB", "middle"), ("MSB", "upper")),
}
"""The pages of a word line after the first: MQSim's name, and ours."""

VICTIMS = {
    "GREEDY": "greedy",
    "RGA": "d-choices",
    "RANDOM": "random",
    "RANDOM_P": "random",
    "FIFO": "fifo",
}
"""Victim policies that both have: ours choose among full blocks."""

SUSPEND = {"NONE": "none", "PROGRAM": "program", "ERASE": "erase", "PROGRAM_ERASE": "both"}

WITHOUT_MEANING = ("Seed", "Enabled_Preconditioning", "Memory_Type", "Flash_Comm_Protocol")
"""Tags that say nothing of a drive, or have one value."""

Choice = TypeVar("Choice")


def root_of(path: str, tag: str, usual: str) -> ET.Element:
    """The root of a file of MQSim, which is called ``tag`` and the file usually ``usual``.

    Raises:
        InputError: It cannot be read, or is another file.

    """
    try:
        root = ET.fromstring(content_of("mqsim", path))
    except ET.ParseError as error:
        raise InputError(f"{path}: {error}; expected MQSim's XML") from error
    if root.tag != tag:
        raise InputError(f"{path}: <{root.tag}>, expected MQSim's <{tag}> ({usual})")
    return root


class _Tags:
    """The leaves of the file; what was asked for, and what was not."""

    def __init__(self, path: str) -> None:
        self.path = path
        root = root_of(path, "Execution_Parameter_Set", "ssdconfig.xml")
        self.found = {leaf.tag: (leaf.text or "").strip() for leaf in root.iter() if not len(leaf)}
        self.asked: set[str] = set()

    def text(self, tag: str) -> str:
        self.asked.add(tag)
        if tag not in self.found:
            raise InputError(f"{self.path}: <{tag}> is missing")
        return self.found[tag]

    def whole(self, tag: str, least: int = 1) -> int:
        return number(self.path, tag, self.text(tag), least=least, read=int)

    def real(self, tag: str) -> float:
        return number(self.path, tag, self.text(tag), read=float)

    def flag(self, tag: str) -> bool:
        return self.one_of(tag, {"true": True, "false": False})

    def one_of(self, tag: str, of: dict[str, Choice]) -> Choice:
        text = self.text(tag)
        if text not in of:
            raise InputError(f"{self.path}: {tag} = {text!r}, expected one of {', '.join(of)}")
        return of[text]


def described(path: str) -> DriveFile:
    """The drive of an ``ssdconfig.xml``.

    Raises:
        InputError: It is none, or says what ours cannot be.

    """
    tags = _Tags(path)
    drive = DriveFile(f"MQSim's {PurePath(path).name}")
    for tag, key in GEOMETRY.items():
        drive.set(key, tags.whole(tag), tag)
    drive.set("drive.cell", tags.text("Flash_Technology").lower(), "Flash_Technology")
    _capacity(tags, drive)
    _times(tags, drive)
    _collection(tags, drive)
    _host(tags, drive)
    drive.leave(tag for tag in tags.found if tag not in tags.asked and tag not in WITHOUT_MEANING)
    return drive


def _capacity(tags: _Tags, drive: DriveFile) -> None:
    spare = tags.real("Overprovisioning_Ratio")
    if spare >= 1:
        raise InputError(f"{tags.path}: Overprovisioning_Ratio = {spare}, expected a share below 1")
    source = "Overprovisioning_Ratio, of the physical space"
    drive.set("drive.over_provisioning", round(1 / (1 - spare) - 1, 9), source)
    drive.set("map.unit", tags.whole("Page_Capacity"), "Page_Capacity: MQSim maps pages")
    order = tags.text("Plane_Allocation_Scheme")
    drive.set("drive.allocation", order, "Plane_Allocation_Scheme")
    if tags.one_of("Address_Mapping", {"PAGE_LEVEL": True, "HYBRID": False}) is False:
        raise InputError(
            f"{tags.path}: Address_Mapping = HYBRID, which MQSim does not implement; expected "
            "PAGE_LEVEL"
        )
    if not tags.flag("Ideal_Mapping_Table"):
        drive.set("map.store", "dftl", "Ideal_Mapping_Table = false: a cached mapping table")
        drive.set("map.cache_bytes", tags.whole("CMT_Capacity"), "CMT_Capacity")
    tags.asked.add("CMT_Capacity")


def _times(tags: _Tags, drive: DriveFile) -> None:
    for tag, key in TIMES.items():
        drive.set(key, f"{tags.whole(tag, 0)}ns", tag)
    for name, ours in tags.one_of("Flash_Technology", LEVELS):
        for does, key in (("Read", "timing.t_read"), ("Program", "timing.t_program")):
            tag = f"Page_{does}_Latency_{name}"
            drive.set(f"{key}_{ours}", f"{tags.whole(tag, 0)}ns", tag)
    for name in ("CSB", "MSB"):
        tags.asked |= {f"Page_{does}_Latency_{name}" for does in ("Read", "Program")}
    megabytes = tags.whole("Channel_Transfer_Rate") * tags.whole("Flash_Channel_Width")
    source = "Channel_Transfer_Rate x Flash_Channel_Width"
    drive.set("timing.channel_rate", f"{megabytes}MB", source)
    suspend = tags.one_of("CMD_Suspension_Support", SUSPEND)
    drive.set("timing.suspend", suspend, "CMD_Suspension_Support")
    times = {"program": "Suspend_Program_Time", "erase": "Suspend_Erase_Time"}
    # ours has one time: the longer one where both are suspended
    used = [tag for what, tag in times.items() if suspend in (what, "both")]
    if used:
        tag = max(used, key=lambda tag: tags.whole(tag, 0))
        drive.set("timing.t_suspend", f"{tags.whole(tag, 0)}ns", tag)
    tags.asked |= set(times.values())


def _collection(tags: _Tags, drive: DriveFile) -> None:
    policy = tags.one_of("GC_Block_Selection_Policy", VICTIMS)
    drive.set("ftl.victim", policy, "GC_Block_Selection_Policy")
    blocks = tags.whole("Block_No_Per_Plane")
    if policy == "d-choices":
        drive.set("ftl.d", int(math.log2(blocks)), "RGA draws log2 of Block_No_Per_Plane")
    # MQSim collects below the threshold, ours at it; two blocks are the least for two frontiers
    free = max(int(tags.real("GC_Exec_Threshold") * blocks) - 1, 2)
    drive.set("ftl.low_water", free, "GC_Exec_Threshold x Block_No_Per_Plane, less one")
    dynamic = "Dynamic_Wearleveling_Enabled"
    drive.set("ftl.wear_dynamic", tags.flag(dynamic), dynamic)
    static = tags.flag("Static_Wearleveling_Enabled")
    drive.set("ftl.wear_static", static, "Static_Wearleveling_Enabled")
    if static:
        threshold = tags.whole("Static_Wearleveling_Threshold")
        drive.set("ftl.wear_threshold", threshold, "Static_Wearleveling_Threshold")
    tags.asked.add("Static_Wearleveling_Threshold")


def _host(tags: _Tags, drive: DriveFile) -> None:
    drive.set("cache.bytes", tags.whole("Data_Cache_Capacity"), "Data_Cache_Capacity")
    drive.set("host.queue_depth", tags.whole("IO_Queue_Depth"), "IO_Queue_Depth")
    nvme = tags.one_of("HostInterface_Type", {"NVME": True, "SATA": False})
    drive.set("host.full_duplex", nvme, "HostInterface_Type")
    if nvme:
        rate = tags.real("PCIe_Lane_Bandwidth") * tags.whole("PCIe_Lane_Count")
        drive.set("host.link_rate", f"{round(rate * 1000)}MB", "PCIe lanes x their GB/s")
        tags.asked.add("SATA_Processing_Delay")
