"""MQSim's ``workload.xml``, as an fio job file (its README and ``IO_Flow_Synthetic.cpp``).

A scenario is a list of flows that run together, each with its part of the drive. A flow is a job:
its part follows from how many flows there are, and its working set is the first of it.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import PurePath

from flashatlas._core import InputError
from flashatlas.foreign.drive_file import number
from flashatlas.foreign.mqsim import root_of

SECTOR = 512

WITHOUT = {
    "Priority_Class": "all jobs are of one priority",
    "Device_Level_Data_Caching_Mode": "the drive has a write cache or none for all",
    "Initial_Occupancy_Percentage": "run with `--precondition`",
}
"""Tags without a counterpart, and what is said of them."""

PARTS = ("Channel_IDs", "Chip_IDs", "Die_IDs", "Plane_IDs")


@dataclass(frozen=True)
class JobFile:
    """The text of a job file, and what of the scenario it leaves out."""

    text: str
    left: tuple[str, ...]


class _Flow:
    """The leaves of one flow."""

    def __init__(self, place: str, element: ET.Element) -> None:
        self.place = place
        self.found = {leaf.tag: (leaf.text or "").strip() for leaf in element}

    def text(self, tag: str) -> str:
        if tag not in self.found:
            raise InputError(f"{self.place}: <{tag}> is missing")
        return self.found[tag]

    def whole(self, tag: str, least: int = 0) -> int:
        return number(self.place, tag, self.text(tag), least=least, read=int)

    def percent(self, tag: str, least: int = 0) -> int:
        value = self.whole(tag, least)
        if value > 100:
            raise InputError(f"{self.place}: {tag} = {value}, expected a percentage")
        return value

    def one_of(self, tag: str, names: tuple[str, ...]) -> str:
        value = self.text(tag)
        if value not in names:
            raise InputError(f"{self.place}: {tag} = {value!r}, expected {' or '.join(names)}")
        return value


def job_file(what: str) -> JobFile:
    """The job file of a scenario: ``workload.xml``, or ``workload.xml,scenario=2``.

    Raises:
        InputError: It is none, has no such scenario, or flows that no job can be.

    """
    path, _, option = what.partition(",scenario=")
    scenarios = root_of(path, "MQSim_IO_Scenarios", "workload.xml").findall("IO_Scenario")
    which = number(path, "scenario", option or "1", least=1, read=int)
    if which > len(scenarios):
        raise InputError(f"{path}: scenario={which}, but it has {len(scenarios)}")
    elements = list(scenarios[which - 1])
    flows = [_Flow(f"{path}: scenario {which}, flow {n}", one) for n, one in enumerate(elements, 1)]
    if not flows:
        raise InputError(f"{path}: scenario {which} has no flow")
    for element, flow in zip(elements, flows, strict=True):
        if element.tag == "IO_Flow_Parameter_Set_Trace_Based":
            raise InputError(
                f"{flow.place}: plays the trace {flow.text('File_Path')}, which is no job: "
                "`flashatlas run --trace FILE --format mqsim` plays it"
            )
        if element.tag != "IO_Flow_Parameter_Set_Synthetic":
            raise InputError(f"{flow.place}: <{element.tag}>, expected a flow's parameter set")
    left = [f"{tag} ({why})" for tag, why in WITHOUT.items() if any(tag in f.found for f in flows)]
    if any(len({flow.found.get(tag) for flow in flows}) > 1 for tag in PARTS):
        left.append(f"{', '.join(PARTS)} (every job may use the whole drive)")
    blocks = [_job(flow, n, len(flows), left) for n, flow in enumerate(flows)]
    named = f"scenario {which} of MQSim's {PurePath(path).name}"
    head = [f"# {named}", *(f"# without {one}" for one in dict.fromkeys(left)), ""]
    shared = ["[global]", "filename=/dev/drive", "ioengine=libaio", "direct=1", "norandommap=1", ""]
    return JobFile("\n".join(head + shared + blocks), tuple(dict.fromkeys(left)))


def _job(flow: _Flow, number_: int, flows: int, left: list[str]) -> str:
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


def _pattern(flow: _Flow) -> list[str]:
    reads = flow.percent("Read_Percentage")
    kinds = ("STREAMING", "RANDOM_UNIFORM", "RANDOM_HOTCOLD")
    kind = flow.one_of("Address_Distribution", kinds)
    names = {0: "write", 100: "read"}
    random = "" if kind == "STREAMING" else "rand"
    lines = [f"rw={random}{names.get(reads, 'rw')}"]
    lines += [f"rwmixread={reads}"] if 0 < reads < 100 else []
    hot = flow.percent("Percentage_of_Hot_Region")
    if kind == "RANDOM_HOTCOLD" and 0 < hot < 100:
        lines.append(f"random_distribution=zoned:{100 - hot}/{hot}:{hot}/{100 - hot}")
    return lines


def _sizes(flow: _Flow, left: list[str]) -> list[str]:
    sectors = flow.whole("Average_Request_Size", 1)
    if flow.one_of("Request_Size_Distribution", ("FIXED", "NORMAL")) == "NORMAL":
        left.append("Variance_Request_Size (every request has the average size)")
    lines = [f"bs={sectors * SECTOR}"]
    if flow.one_of("Generated_Aligned_Addresses", ("true", "false")) == "true":
        unit = flow.whole("Address_Alignment_Unit", 1)
        # a stream skips to the next multiple after each request, which fio has no option for
        if flow.text("Address_Distribution") != "STREAMING":
            lines.append(f"blockalign={unit * SECTOR}")
        elif sectors % unit:
            left.append("Address_Alignment_Unit of a stream (requests follow each other)")
    else:
        lines.append(f"blockalign={SECTOR}")
    return lines


def _pace(flow: _Flow, left: list[str]) -> list[str]:
    if flow.one_of("Synthetic_Generator_Type", ("QUEUE_DEPTH", "BANDWIDTH")) == "QUEUE_DEPTH":
        return [f"iodepth={flow.whole('Average_No_of_Reqs_in_Queue', 1)}"]
    left.append("exponential times between requests (they are at equal ones)")
    sectors = flow.whole("Average_Request_Size", 1)
    per_second = flow.whole("Bandwidth", SECTOR) // SECTOR // sectors
    if per_second == 0:
        raise InputError(f"{flow.place}: Bandwidth is less than one request a second")
    return ["iodepth=1024", f"rate_iops={per_second}"]


def _length(flow: _Flow) -> list[str]:
    nanoseconds = flow.whole("Stop_Time")
    if nanoseconds > 0:
        return ["time_based=1", f"runtime={-(-nanoseconds // 1000)}us"]
    requests = flow.whole("Total_Requests_To_Generate", 1)
    # as many bytes, however large the working set is
    return [f"io_size={requests * flow.whole('Average_Request_Size', 1) * SECTOR}"]
