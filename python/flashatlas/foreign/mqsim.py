"""MQSim's ``ssdconfig.xml`` (Tavakkol and others, FAST 2018; its README has every tag).

A mapping unit is a page, as in MQSim, and each plane works on its own. MQSim's over-provisioning is
a share of the physical space, ours a share of the logical space. The tags are taken from
CMU-SAFARI/MQSim at commit 7ec40e3 (October 2022), ``src/exec``.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from pathlib import PurePath

from flashatlas._core import InputError
from flashatlas.foreign.description import DriveFile, content_of
from flashatlas.foreign.keys import Found, Given, left_out, nothing, refused, table, used

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
"""Tags whose number becomes the value of a key of ours."""

TIMES = {
    "Page_Read_Latency_LSB": "timing.t_read",
    "Page_Program_Latency_LSB": "timing.t_program",
    "Block_Erase_Latency": "timing.t_erase",
}
"""Tags whose time in nanoseconds becomes the value of a key of ours."""

LEVELS = {
    "SLC": (),
    "MLC": (("MSB", "middle"),),
    "TLC": (("CSB", "middle"), ("MSB", "upper")),
}
"""The pages of a word line after the first: names in MQSim, and names here."""

VICTIMS = {
    "GREEDY": "greedy",
    "RGA": "d-choices",
    "RANDOM": "random",
    "RANDOM_P": "random",
    "FIFO": "fifo",
}
"""Victim policies that both simulators have; ours choose among full blocks."""

SUSPEND = {"NONE": "none", "PROGRAM": "program", "ERASE": "erase", "PROGRAM_ERASE": "both"}

FETCH_SIZE = "512"
"""The default of ``Queue_Fetch_Size`` (``Device_Parameter_Set.cpp``)."""


def _suspends_nothing(found: Found) -> bool:
    return found.get("CMD_Suspension_Support") == "NONE"


def _suspends_no_erase(found: Found) -> bool:
    return found.get("CMD_Suspension_Support") in ("NONE", "PROGRAM")


def _not_preemptible(found: Found) -> bool:
    return found.get("Preemptible_GC_Enabled") == "false"


CACHE_DRAM = "MQSim's write cache is behind one DRAM channel; set `memory.dram_shared_rate`"
WEAR = "MQSim ignores the three tags, and runs with true, true and 100"

KEYS = table(
    used("PCIe_Lane_Bandwidth", "`host.link_rate`: lanes x GB/s of a lane"),
    used("PCIe_Lane_Count", "`host.link_rate`: lanes x GB/s of a lane"),
    used("SATA_Processing_Delay", "`host.command_time` with SATA: twice this delay"),
    *nothing("Enable_ResponseTime_Logging ResponseTime_Logging_Period_Length", "MQSim's log"),
    *nothing("Seed", "`--seed` is the seed of a run"),
    left_out("Enabled_Preconditioning", "run with `--precondition steady`", "false"),
    refused("Memory_Type", "FLASH", "there is no other memory"),
    used("HostInterface_Type", "`host.full_duplex`"),
    used("IO_Queue_Depth", "`host.queue_depth`; with NVME at most Queue_Fetch_Size"),
    used("Queue_Fetch_Size", "`host.queue_depth`, with NVME: at most this number"),
    left_out("Caching_Mechanism", "there is one write cache for all flows", "ADVANCED"),
    refused("Data_Cache_Sharing_Mode", "SHARED", "the write cache is not divided"),
    used("Data_Cache_Capacity", "`cache.bytes`"),
    left_out("Data_Cache_DRAM_Row_Size", CACHE_DRAM),
    left_out("Data_Cache_DRAM_Data_Rate", CACHE_DRAM),
    left_out("Data_Cache_DRAM_Data_Busrt_Size", CACHE_DRAM),
    left_out("Data_Cache_DRAM_tRCD", CACHE_DRAM),
    left_out("Data_Cache_DRAM_tCL", CACHE_DRAM),
    left_out("Data_Cache_DRAM_tRP", CACHE_DRAM),
    refused("Address_Mapping", "PAGE_LEVEL", "MQSim does not implement HYBRID"),
    used("Ideal_Mapping_Table", "`map.store`: true sets `dram`, false sets `dftl`"),
    used("CMT_Capacity", "`map.cache_bytes`, if Ideal_Mapping_Table is false"),
    refused("CMT_Sharing_Mode", "SHARED", "the cached mapping table is not divided"),
    used("Plane_Allocation_Scheme", "`drive.allocation`"),
    refused(
        "Transaction_Scheduling_Policy",
        "OUT_OF_ORDER|PRIORITY_OUT_OF_ORDER",
        "our drive orders operations by class (`timing.priority`); MQSim has no FLIN either",
    ),
    used("Overprovisioning_Ratio", "`drive.over_provisioning`"),
    used("GC_Exec_Threshold", "`ftl.low_water`: this share of the blocks, minus one"),
    used("GC_Block_Selection_Policy", "`ftl.victim`: all but RANDOM_PP; RGA sets `ftl.d`, too"),
    used(
        "Use_Copyback_for_GC",
        "`ftl.copyback`: true sets `same-plane`; MQSim has no limit, so `ftl.copyback_max` is 255",
    ),
    used(
        "Preemptible_GC_Enabled",
        "`timing.priority`: collection comes after the host (true) or before it (false)",
    ),
    left_out(
        "GC_Hard_Threshold",
        "with Preemptible_GC_Enabled, MQSim's collection goes first again below this threshold",
        _not_preemptible,
    ),
    used("Dynamic_Wearleveling_Enabled", f"`ftl.wear_dynamic` ({WEAR})"),
    used("Static_Wearleveling_Enabled", f"`ftl.wear_static` ({WEAR})"),
    used("Static_Wearleveling_Threshold", f"`ftl.wear_threshold` ({WEAR})"),
    *[
        left_out(
            name,
            "MQSim suspends only operations with more than this time left; our drive suspends any",
            _suspends_nothing,
        )
        for name in (
            "Preferred_suspend_erase_time_for_read",
            "Prefered_suspend_erase_time_for_read",
            "Preferred_suspend_write_time_for_read",
        )
    ],
    left_out(
        "Preferred_suspend_erase_time_for_write",
        "MQSim suspends erases for programs, too; our drive suspends for reads only",
        _suspends_no_erase,
    ),
    *[used(tag, f"`{key}`") for tag, key in GEOMETRY.items()],
    used("Flash_Channel_Width", "`timing.channel_rate`: transfers x bytes"),
    used("Channel_Transfer_Rate", "`timing.channel_rate`: transfers x bytes"),
    refused("Flash_Comm_Protocol", "NVDDR2", "MQSim has no other protocol"),
    used("Flash_Technology", "`drive.cell`"),
    used(
        "CMD_Suspension_Support",
        "`timing.suspend`; MQSim bounds no suspension, so `timing.suspends_max` is 255 and "
        "`timing.suspended_max` 0",
    ),
    *[used(tag, f"`{key}`, in nanoseconds") for tag, key in TIMES.items()],
    *[
        used(f"Page_{does}_Latency_{name}", f"`timing.t_{key}_*`, if the cell has such a page")
        for does, key in (("Read", "read"), ("Program", "program"))
        for name in ("CSB", "MSB")
    ],
    used("Suspend_Erase_Time", "`timing.t_suspend`: the longer of the times in use"),
    used("Suspend_Program_Time", "`timing.t_suspend`: the longer of the times in use"),
)
"""Every tag of an ``ssdconfig.xml``."""

HOST_FIRST = "map,host_read,host_write,gc,idle"
COLLECTION_FIRST = "map,gc,host_read,host_write,idle"
"""`timing.priority` in the order of MQSim's ``TSU_OutofOrder.cpp``.

The host goes first if collection is preemptible; otherwise collection goes before the host.
"""


def root_of(path: str, tag: str, usual: str) -> ET.Element:
    """Return the root of a file of MQSim; its tag is ``tag``, and its file is usually ``usual``.

    Raises:
        InputError: The file cannot be read, or is another kind of file.

    """
    try:
        root = ET.fromstring(content_of("mqsim", path))
    except ET.ParseError as error:
        raise InputError(f"{path}: {error}; the file must be XML of MQSim") from error
    if root.tag != tag:
        raise InputError(
            f"{path}: the file begins with <{root.tag}> instead of MQSim's <{tag}> ({usual})"
        )
    return root


def leaves_of(place: str, element: ET.Element) -> dict[str, str]:
    """Return the text of each element without children.

    Raises:
        InputError: An element stands twice.

    """
    found: dict[str, str] = {}
    for leaf in element.iter():
        if len(leaf) or leaf is element:
            continue
        if leaf.tag in found:
            raise InputError(f"{place}: <{leaf.tag}> is given twice")
        found[leaf.tag] = (leaf.text or "").strip()
    return found


def described(path: str) -> DriveFile:
    """Return the drive of an ``ssdconfig.xml``.

    Raises:
        InputError: The file is no ``ssdconfig.xml``, or we cannot simulate its drive.

    """
    root = root_of(path, "Execution_Parameter_Set", "ssdconfig.xml")
    tags = Given(path, KEYS, leaves_of(path, root))
    drive = DriveFile(f"MQSim's {PurePath(path).name}")
    for tag, key in GEOMETRY.items():
        drive.set(key, tags.whole(tag), tag)
    drive.set("drive.cell", tags.text("Flash_Technology").lower(), "Flash_Technology")
    _capacity(tags, drive)
    _times(tags, drive)
    _collection(tags, drive)
    _host(tags, drive)
    drive.leave(tags.left)
    return drive


def _capacity(tags: Given, drive: DriveFile) -> None:
    spare = tags.real("Overprovisioning_Ratio")
    if spare >= 1:
        raise InputError(f"{tags.place}: Overprovisioning_Ratio = {spare} is not a share below 1")
    source = "Overprovisioning_Ratio, of the physical space"
    drive.set("drive.over_provisioning", round(1 / (1 - spare) - 1, 9), source)
    drive.set("map.unit", tags.whole("Page_Capacity"), "Page_Capacity: MQSim maps pages")
    order = tags.text("Plane_Allocation_Scheme")
    drive.set("drive.allocation", order, "Plane_Allocation_Scheme")
    tags.text("Address_Mapping")
    if not tags.flag("Ideal_Mapping_Table"):
        drive.set("map.store", "dftl", "Ideal_Mapping_Table = false: a cached mapping table")
        drive.set("map.cache_bytes", tags.whole("CMT_Capacity"), "CMT_Capacity")


def _times(tags: Given, drive: DriveFile) -> None:
    for tag, key in TIMES.items():
        drive.set(key, f"{tags.whole(tag, 0)}ns", tag)
    for name, ours in tags.one_of("Flash_Technology", LEVELS):
        for does, key in (("Read", "timing.t_read"), ("Program", "timing.t_program")):
            tag = f"Page_{does}_Latency_{name}"
            drive.set(f"{key}_{ours}", f"{tags.whole(tag, 0)}ns", tag)
    megabytes = tags.whole("Channel_Transfer_Rate") * tags.whole("Flash_Channel_Width")
    source = "Channel_Transfer_Rate x Flash_Channel_Width"
    drive.set("timing.channel_rate", f"{megabytes}MB", source)
    suspend = tags.one_of("CMD_Suspension_Support", SUSPEND)
    drive.set("timing.suspend", suspend, "CMD_Suspension_Support")
    times = {"program": "Suspend_Program_Time", "erase": "Suspend_Erase_Time"}
    # our drive has one suspend time: the longer one if both operations are suspended
    used = [tag for what, tag in times.items() if suspend in (what, "both")]
    if used:
        unbounded = "CMD_Suspension_Support: MQSim bounds no suspension"
        drive.set("timing.suspends_max", 255, unbounded)
        drive.set("timing.suspended_max", "0ns", unbounded)
        tag = max(used, key=lambda tag: tags.whole(tag, 0))
        drive.set("timing.t_suspend", f"{tags.whole(tag, 0)}ns", tag)


def _collection(tags: Given, drive: DriveFile) -> None:
    policy = tags.one_of("GC_Block_Selection_Policy", VICTIMS)
    drive.set("ftl.victim", policy, "GC_Block_Selection_Policy")
    blocks = tags.whole("Block_No_Per_Plane")
    if policy == "d-choices":
        drive.set("ftl.d", int(math.log2(blocks)), "RGA draws log2 of Block_No_Per_Plane")
    # MQSim collects below the threshold, our drive at it; two frontiers need at least two blocks
    free = max(int(tags.real("GC_Exec_Threshold") * blocks) - 1, 2)
    drive.set("ftl.low_water", free, "GC_Exec_Threshold x Block_No_Per_Plane, minus one")
    dynamic = "Dynamic_Wearleveling_Enabled"
    drive.set("ftl.wear_dynamic", tags.flag(dynamic), dynamic)
    static = tags.flag("Static_Wearleveling_Enabled")
    drive.set("ftl.wear_static", static, "Static_Wearleveling_Enabled")
    if static:
        threshold = tags.whole("Static_Wearleveling_Threshold")
        drive.set("ftl.wear_threshold", threshold, "Static_Wearleveling_Threshold")
    copyback = "Use_Copyback_for_GC"
    if tags.flag(copyback, default="false"):
        # a frame is a page of one plane, and MQSim moves a page within its plane, too
        drive.set("ftl.copyback", "same-plane", copyback)
        drive.set("ftl.copyback_max", 255, f"{copyback}: the most, as MQSim has no limit")
    preempted = tags.flag("Preemptible_GC_Enabled")
    order = HOST_FIRST if preempted else COLLECTION_FIRST
    drive.set("timing.priority", order, "Preemptible_GC_Enabled")


def _host(tags: Given, drive: DriveFile) -> None:
    drive.set("cache.bytes", tags.whole("Data_Cache_Capacity"), "Data_Cache_Capacity")
    depth = tags.whole("IO_Queue_Depth")
    nvme = tags.one_of("HostInterface_Type", {"NVME": True, "SATA": False})
    if nvme:
        depth = min(depth, tags.whole("Queue_Fetch_Size", default=FETCH_SIZE))
    drive.set("host.queue_depth", depth, "IO_Queue_Depth, at most Queue_Fetch_Size")
    drive.set("host.full_duplex", nvme, "HostInterface_Type")
    rate = tags.real("PCIe_Lane_Bandwidth") * tags.whole("PCIe_Lane_Count")
    drive.set("host.link_rate", f"{round(rate * 1000)}MB", "PCIe lanes x GB/s of a lane")
    if not nvme:
        delay = tags.whole("SATA_Processing_Delay", 0)
        drive.set("host.command_time", f"{2 * delay}ns", "SATA_Processing_Delay, there and back")
