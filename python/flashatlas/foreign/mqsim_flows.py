"""MQSim's ``workload.xml``, as an fio job file or a trace (its README, ``IOGiven_Synthetic.cpp``).

A scenario is a list of flows that run together, each with its part of the drive. A flow is a job:
its part follows from the number of flows, and its working set begins at the start of the part.
Flows that play traces are the parts of a merge. The tags are taken from CMU-SAFARI/MQSim at commit
7ec40e3, ``src/exec/IOGiven_Parameter_Set.cpp``.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePath
from statistics import NormalDist

from flashatlas._core import InputError, trace_with_files
from flashatlas.foreign.description import number
from flashatlas.foreign.keys import Given, Key, left_out, nothing, table, used
from flashatlas.foreign.mqsim import leaves_of, root_of

SECTOR = 512

PARTS_OF_SIZES = 100
"""Parts of a distribution of sizes: fio's shares are whole percents."""

TRACE_BASED = "IO_Flow_Parameter_Set_Trace_Based"

PARTS = ("Channel_IDs", "Chip_IDs", "Die_IDs", "Plane_IDs")

SHARED: list[Key] = [
    left_out("Priority_Class", "all jobs have the same priority", "HIGH"),
    left_out(
        "Device_Level_Data_Caching_Mode",
        "all flows share the write cache: `--set cache.mode=write-through` turns it off",
        "WRITE_CACHE",
    ),
    *[
        used(name, "every job uses the whole drive; a note says so if flows differ in this tag")
        for name in PARTS
    ],
    left_out("Initial_Occupancy_Percentage", "run with `--precondition`"),
]
"""Tags of every flow."""

KEYS = table(
    SHARED,
    used("Working_Set_Percentage", "`size`"),
    used("Synthetic_Generator_Type", "`iodepth`, or random times at `rate_iops` for BANDWIDTH"),
    used("Read_Percentage", "`rw`, `rwmixread`"),
    used("Address_Distribution", "`rw`, `random_distribution`"),
    used("Percentage_of_Hot_Region", "`random_distribution=zoned`, with RANDOM_HOTCOLD"),
    used("Generated_Aligned_Addresses", "`blockalign`"),
    used("Address_Alignment_Unit", "`blockalign`, with Generated_Aligned_Addresses"),
    used(
        "Request_Size_Distribution", "`bs` for FIXED, `bssplit` for NORMAL: a hundred equal parts"
    ),
    used("Average_Request_Size", "`bs`, or the mean of `bssplit`"),
    used("Variance_Request_Size", "`bssplit`, with NORMAL: the standard deviation"),
    used("Seed", "`randseed`"),
    used("Average_No_of_Reqs_in_Queue", "`iodepth`, with QUEUE_DEPTH"),
    used("Bandwidth", "`rate_iops`, with BANDWIDTH"),
    *nothing("Intensity", "MQSim does not read it; it reads Bandwidth"),
    used("Stop_Time", "`runtime`"),
    used("Total_Requests_To_Generate", "`io_size`, if Stop_Time is 0"),
)
"""Every tag of a synthetic flow."""

TRACE_KEYS = table(
    SHARED,
    used("File_Path", "the file of a part of `--trace merge:`, relative to the current folder"),
    used(
        "Percentage_To_Be_Executed",
        "`requests` of the part: this share of each pass, from its begin",
    ),
    used("Relay_Count", "`times` of the part, with `gap=0s`"),
    used("Time_Unit", "`format=columns:…,time=0:UNIT` of the part"),
)
"""Every tag of a flow that plays a trace."""

GENERATORS = {"QUEUE_DEPTH": True, "BANDWIDTH": False}
"""``Synthetic_Generator_Type``; ``True`` if it keeps a number of requests in flight."""

UNITS = {"PICOSECOND": "ps", "NANOSECOND": "ns", "MICROSECOND": "us"}
"""``Time_Unit``, and the unit of a column of a trace."""


@dataclass(frozen=True)
class JobFile:
    """The text of a job file, and the scenario's settings that the file leaves out."""

    text: str
    left: tuple[str, ...]


def job_file(what: str) -> JobFile:
    """Return the job file of a scenario: ``workload.xml``, or ``workload.xml,scenario=2``.

    Raises:
        InputError: The file is something else, the scenario does not exist, or a flow cannot be a
            job.

    """
    path, which, elements = _scenario(what)
    if any(element.tag == TRACE_BASED for element in elements):
        raise InputError(
            f"{path}: scenario {which} plays traces, so it is not a job: `flashatlas run --trace "
            f"mqsim:{what}` plays it ({trace_name(what).text})"
        )
    flows = [_flow(place, one) for place, one in _placed(path, which, elements)]
    left = [f"{tag} ({KEYS[tag].says})" for flow in flows for tag in flow.left]
    if any(len({flow.found.get(tag) for flow in flows}) > 1 for tag in PARTS):
        left.append(f"{', '.join(PARTS)} (every job may use the whole drive)")
    blocks = [_job(flow, n, len(flows), left) for n, flow in enumerate(flows)]
    named = f"scenario {which} of MQSim's {PurePath(path).name}"
    head = [f"# {named}", *(f"# without {one}" for one in dict.fromkeys(left)), ""]
    shared = ["[global]", "filename=/dev/drive", "ioengine=libaio", "direct=1", "norandommap=1", ""]
    return JobFile("\n".join(head + shared + blocks), tuple(dict.fromkeys(left)))


@dataclass(frozen=True)
class TraceText:
    """The name of the trace that a scenario plays, and the settings that the name leaves out."""

    text: str
    left: tuple[str, ...]


def trace_name(what: str) -> TraceText:
    """Return the trace that a scenario plays: ``workload.xml``, or ``workload.xml,scenario=2``.

    A flow has the part of the drive that ``src/exec/Host_System.cpp`` gives it; all parts have the
    same size. MQSim at that commit reads every time as nanoseconds. It also ignores the percentage
    if the trace is repeated. FlashAtlas takes both settings as they are written.

    Raises:
        InputError: The file is something else, the scenario does not exist, or a flow plays no
            trace.

    """
    path, which, elements = _scenario(what)
    flows = []
    for place, one in _placed(path, which, elements):
        if one.tag != TRACE_BASED:
            raise InputError(
                f"{place}: <{one.tag}> beside flows that play traces: a run takes jobs or traces; "
                "put them into separate scenarios"
            )
        flows.append(Given(place, TRACE_KEYS, leaves_of(place, one)))
    left = [f"{tag} ({TRACE_KEYS[tag].says})" for flow in flows for tag in flow.left]
    if any(len({flow.found.get(tag) for flow in flows}) > 1 for tag in PARTS):
        left.append(f"{', '.join(PARTS)} (every flow may use the whole drive)")
    parts = [_part(flow, n, len(flows)) for n, flow in enumerate(flows)]
    names = [flow.text("File_Path") for flow in flows]
    merge = f"merge:{';'.join(f'FILE,{part}' for part in parts)}"
    return TraceText(trace_with_files(merge, names), tuple(dict.fromkeys(left)))


def _part(flow: Given, number_: int, flows: int) -> str:
    """Return the settings of a flow as a part of a merge."""
    unit = flow.one_of("Time_Unit", UNITS)
    percentage, times = flow.percent("Percentage_To_Be_Executed", 1), flow.whole("Relay_Count")
    # six decimals, rounded down, so that the last part ends within the drive
    begin, share = (100_000_000 * n // flows / 1e6 for n in (number_, 1))
    settings = [f"at={begin:.6f}%", f"space={share:.6f}%", "begin=recorded"]
    settings += [f"requests={percentage}%"] if percentage < 100 else []
    settings += [f"times={times}", "gap=0s"] if times > 1 else []
    columns = "device=1,offset=2:sectors,size=3:sectors,op=4,read=1,write=0"
    return ",".join([*settings, f"format=columns:delimiter=space,time=0:{unit},{columns}"])


def _scenario(what: str) -> tuple[str, int, list[ET.Element]]:
    """Return the file of a scenario, its number and its flows.

    Raises:
        InputError: The scenario does not exist.

    """
    path, _, option = what.partition(",scenario=")
    scenarios = root_of(path, "MQSim_IO_Scenarios", "workload.xml").findall("IO_Scenario")
    which = number(path, "scenario", option or "1", least=1, read=int)
    if which > len(scenarios):
        raise InputError(f"{path}: there is no scenario {which}: the file has {len(scenarios)}")
    elements = list(scenarios[which - 1])
    if not elements:
        raise InputError(f"{path}: scenario {which} has no flow")
    return path, which, elements


def _placed(path: str, which: int, elements: list[ET.Element]) -> list[tuple[str, ET.Element]]:
    """Return each flow with the place that errors name."""
    return [
        (f"{path}: scenario {which}, flow {n}", element) for n, element in enumerate(elements, 1)
    ]


def _flow(place: str, element: ET.Element) -> Given:
    if element.tag != "IO_Flow_Parameter_Set_Synthetic":
        raise InputError(f"{place}: <{element.tag}> is not the parameter set of a flow")
    return Given(place, KEYS, leaves_of(place, element))


def _job(flow: Given, number_: int, flows: int, left: list[str]) -> str:
    share = 100 // flows
    working = flow.percent("Working_Set_Percentage", 1)
    size = working * share // 100
    if size == 0:
        raise InputError(
            f"{flow.place}: Working_Set_Percentage = {working} of a {flows}th of the drive is "
            "below 1 %, fio's smallest share"
        )
    if 100 % flows or working * share % 100:
        left.append("shares of the drive below 1 %")
    lines = [
        f"[flow{number_ + 1}]",
        *_pattern(flow),
        *_sizes(flow, left),
        *([f"offset={number_ * share}%"] if number_ else []),
        f"size={size}%",
        f"randseed={flow.whole('Seed')}",
        *_pace(flow, left),
        *_length(flow),
    ]
    return "\n".join(lines) + "\n"


def _pattern(flow: Given) -> list[str]:
    reads = flow.percent("Read_Percentage")
    kinds = ("STREAMING", "RANDOM_UNIFORM", "RANDOM_HOTCOLD")
    kind = flow.one_of("Address_Distribution", {kind: kind for kind in kinds})
    names = {0: "write", 100: "read"}
    random = "" if kind == "STREAMING" else "rand"
    lines = [f"rw={random}{names.get(reads, 'rw')}"]
    lines += [f"rwmixread={reads}"] if 0 < reads < 100 else []
    hot = flow.percent("Percentage_of_Hot_Region")
    if kind == "RANDOM_HOTCOLD" and 0 < hot < 100:
        lines.append(f"random_distribution=zoned:{100 - hot}/{hot}:{hot}/{100 - hot}")
    return lines


def _sizes(flow: Given, left: list[str]) -> list[str]:
    drawn = _drawn_sizes(flow)
    sectors = drawn[0]
    shares = Counter(drawn)
    if len(shares) == 1:
        lines = [f"bs={sectors * SECTOR}"]
    else:
        split = ":".join(f"{size * SECTOR}/{share}" for size, share in shares.items())
        # without bs_unaligned, fio rounds sizes down to multiples of the smallest one
        lines = [f"bssplit={split}", "bs_unaligned=1"]
    if flow.flag("Generated_Aligned_Addresses"):
        unit = flow.whole("Address_Alignment_Unit", 1)
        # after each request a stream skips to the next multiple; fio has no option for this
        if flow.text("Address_Distribution") != "STREAMING":
            lines.append(f"blockalign={unit * SECTOR}")
        elif any(size % unit for size in shares):
            left.append("Address_Alignment_Unit of a stream (requests follow each other)")
    else:
        lines.append(f"blockalign={SECTOR}")
    return lines


def _drawn_sizes(flow: Given) -> list[int]:
    """Return the sectors of a request at each hundredth of its distribution.

    MQSim rounds up what it draws, and a request has at least one sector. What it calls the variance
    is the standard deviation (``IO_Flow_Synthetic.cpp``, ``RandomGenerator.cpp``).
    """
    average = flow.whole("Average_Request_Size", 1)
    normal = flow.one_of("Request_Size_Distribution", {"FIXED": False, "NORMAL": True})
    deviation = flow.whole("Variance_Request_Size", 0, "0") if normal else 0
    if deviation == 0:
        return [average] * PARTS_OF_SIZES
    if max(average, deviation) >= 2**32:
        raise InputError(f"{flow.place}: sizes of requests in MQSim are below 2^32 sectors")
    sizes = NormalDist(average, deviation)
    middles = ((part + 0.5) / PARTS_OF_SIZES for part in range(PARTS_OF_SIZES))
    return [max(math.ceil(sizes.inv_cdf(middle)), 1) for middle in middles]


def _pace(flow: Given, left: list[str]) -> list[str]:
    if flow.one_of("Synthetic_Generator_Type", GENERATORS):
        return [f"iodepth={flow.whole('Average_No_of_Reqs_in_Queue', 1)}"]
    left.append(
        "times of requests while others are in flight (exponential gaps in whole microseconds, "
        "each behind the requests before it)"
    )
    sectors = flow.whole("Average_Request_Size", 1)
    per_second = flow.whole("Bandwidth", SECTOR) // SECTOR // sectors
    if per_second == 0:
        raise InputError(f"{flow.place}: Bandwidth is less than one request a second")
    return ["iodepth=1024", f"rate_iops={per_second}", "rate_process=poisson"]


def _length(flow: Given) -> list[str]:
    nanoseconds = flow.whole("Stop_Time", 0)
    if nanoseconds > 0:
        return ["time_based=1", f"runtime={-(-nanoseconds // 1000)}us"]
    requests = flow.whole("Total_Requests_To_Generate", 1)
    # the number of bytes does not depend on the working set
    return [f"io_size={requests * sum(_drawn_sizes(flow)) // PARTS_OF_SIZES * SECTOR}"]
