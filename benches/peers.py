"""`make bench-peers`: run the same drive and loads alternately on MQSim and FlashAtlas.

``FLASHATLAS_MQSIM`` names a binary of MQSim (https://github.com/CMU-SAFARI/MQSim) that you have
built; for a fair comparison, build it with optimisation. Each load runs with its number of requests
and with twice this number. The difference is the cost of the requests; the rest of the first run is
set-up. Seconds are CPU time in user mode, and the least of all rounds counts; the machine should be
quiet. This is not a test: the reader judges the numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from dataclasses import dataclass, replace
from pathlib import Path

from flashatlas.drawing.tables import listing
from flashatlas.progress import Bars
from flashatlas.statistics.theory import greedy
from rich.console import Console

MIB = 1 << 20
DIES, PLANES, BLOCKS, PAGES, PAGE = 8, 2, 1024, 256, 4096
READ_US, PROGRAM_US, ERASE_US, CHANNEL_MB = 75, 750, 3800, 333
DEPTH = 16
SPARE = 0.127
"""Share of the physical pages beyond the exported size."""
KEPT_FREE = 0.05
"""Share of free blocks below which a plane collects; these blocks hold no data."""


@dataclass(frozen=True)
class Load:
    """A closed loop of random requests of 4 KiB."""

    name: str
    cache: int
    """Bytes of the write cache."""
    reads: int
    """Number of reads in a hundred requests."""
    requests: int
    occupied: int = 100
    """Number of pages with data in a hundred. If reads and writes meet on a drive that collects,
    MQSim ends with an error."""
    longer: int = 1
    """Factor on the requests of FlashAtlas, because a difference of a tenth of a second is
    noise."""

    def hand(self, waf: float | None) -> float | None:
        """Return requests a second if all dies are busy, or ``None`` for a load with reads."""
        if self.reads or waf is None:
            return None
        move = PAGE / CHANNEL_MB
        copies = waf - 1
        busy = waf * (PROGRAM_US + move) + copies * (READ_US + move) + waf / PAGES * ERASE_US
        return DIES / busy * 1e6


LOADS = (
    Load("writes, 16 MiB of cache", 16 * MIB, 0, 1_000_000),
    Load("writes, 256 MiB of cache", 256 * MIB, 0, 1_000_000),
    Load("reads", 16 * MIB, 100, 400_000, longer=10),
    Load("70 % reads, not collecting", 16 * MIB, 70, 300_000, occupied=30),
)


@dataclass(frozen=True)
class Run:
    """Time and memory of one run, and its counts."""

    seconds: float
    memory: int
    flash: int
    """Page reads, page programs and block erases."""
    programs: int
    iops: float
    requests: int


def element(tag: str, body: dict | object) -> ET.Element:
    """Return an XML element, with elements in it if ``body`` is a dictionary."""
    made = ET.Element(tag)
    if isinstance(body, dict):
        made.extend(element(name, value) for name, value in body.items())
    else:
        made.text = str(body)
    return made


def drive(cache: int) -> ET.Element:
    """Return the drive for MQSim: the whole map in memory, greedy victims, no suspension."""
    levels = ("LSB", "CSB", "MSB")
    return element(
        "Execution_Parameter_Set",
        {
            "Host_Parameter_Set": {"PCIe_Lane_Bandwidth": 1.0, "PCIe_Lane_Count": 4},
            "Device_Parameter_Set": {
                "Seed": 321,
                "Enabled_Preconditioning": "true",
                "HostInterface_Type": "NVME",
                "IO_Queue_Depth": 1024,
                "Caching_Mechanism": "ADVANCED",
                "Data_Cache_Capacity": cache,
                "Data_Cache_DRAM_Data_Rate": 800,
                "Data_Cache_DRAM_Data_Busrt_Size": 4,
                "Address_Mapping": "PAGE_LEVEL",
                "Ideal_Mapping_Table": "true",
                "Plane_Allocation_Scheme": "CWDP",
                "Transaction_Scheduling_Policy": "PRIORITY_OUT_OF_ORDER",
                "Overprovisioning_Ratio": SPARE,
                "GC_Exec_Threshold": KEPT_FREE,
                "GC_Hard_Threshold": 0.005,
                "GC_Block_Selection_Policy": "GREEDY",
                "Preemptible_GC_Enabled": "false",
                "Dynamic_Wearleveling_Enabled": "true",
                "Static_Wearleveling_Enabled": "false",
                "Flash_Channel_Count": DIES,
                "Flash_Channel_Width": 1,
                "Channel_Transfer_Rate": CHANNEL_MB,
                "Chip_No_Per_Channel": 1,
                "Flash_Comm_Protocol": "NVDDR2",
                "Flash_Parameter_Set": {
                    "Flash_Technology": "MLC",
                    "CMD_Suspension_Support": "NONE",
                    **{f"Page_Read_Latency_{level}": READ_US * 1000 for level in levels},
                    **{f"Page_Program_Latency_{level}": PROGRAM_US * 1000 for level in levels},
                    "Block_Erase_Latency": ERASE_US * 1000,
                    "Block_PE_Cycles_Limit": 1_000_000,
                    "Die_No_Per_Chip": 1,
                    "Plane_No_Per_Die": PLANES,
                    "Block_No_Per_Plane": BLOCKS,
                    "Page_No_Per_Block": PAGES,
                    "Page_Capacity": PAGE,
                    "Page_Metadat_Capacity": 128,
                },
            },
        },
    )


def scenario(load: Load, requests: int) -> ET.Element:
    """Return a scenario of one flow over the pages that hold data."""
    flow = {
        "Priority_Class": "HIGH",
        "Device_Level_Data_Caching_Mode": "WRITE_CACHE",
        "Channel_IDs": ",".join(map(str, range(DIES))),
        "Chip_IDs": 0,
        "Die_IDs": 0,
        "Plane_IDs": ",".join(map(str, range(PLANES))),
        "Initial_Occupancy_Percentage": load.occupied,
        "Working_Set_Percentage": load.occupied,
        "Synthetic_Generator_Type": "QUEUE_DEPTH",
        "Read_Percentage": load.reads,
        "Address_Distribution": "RANDOM_UNIFORM",
        "Percentage_of_Hot_Region": 0,
        "Generated_Aligned_Addresses": "true",
        "Address_Alignment_Unit": PAGE // 512,
        "Request_Size_Distribution": "FIXED",
        "Average_Request_Size": PAGE // 512,
        "Variance_Request_Size": 0,
        "Seed": 798,
        "Average_No_of_Reqs_in_Queue": DEPTH,
        "Stop_Time": 0,
        "Total_Requests_To_Generate": requests,
    }
    flows = {"IO_Scenario": {"IO_Flow_Parameter_Set_Synthetic": flow}}
    return element("MQSim_IO_Scenarios", flows)


def write(where: Path, root: ET.Element) -> None:
    """Write XML in the form that MQSim reads, with one element in a line."""
    ET.indent(root, "\t")
    ET.ElementTree(root).write(where, encoding="us-ascii", xml_declaration=True)


def timed(command: list[str], folder: Path) -> tuple[float, int]:
    """Return the CPU seconds in user mode and the bytes of memory of a command.

    Raises:
        RuntimeError: The command failed.

    """
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=out)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        why = said[-1] if said else "no word"
        raise RuntimeError(f"{command[0]}: status {process.returncode}: {why}")
    return used.ru_utime, used.ru_maxrss * 1024


def theirs(binary: str, load: Load, requests: int, folder: Path) -> Run:
    """Run MQSim, and return the run."""
    write(folder / "load.xml", scenario(load, requests))
    seconds, memory = timed([binary, "-i", "ssd.xml", "-w", "load.xml"], folder)
    root = ET.parse(folder / "load_scenario_1.xml").getroot()
    counted = {
        name: int(value)
        for each in root.iter()
        for name, value in each.attrib.items()
        if name.startswith("Issued_Flash_")
    }
    # a multi-plane command counts once for each plane
    pages = {
        kind: counted[f"Issued_Flash_{kind}_CMD"]
        + PLANES * counted[f"Issued_Flash_Multiplane_{kind}_CMD"]
        for kind in ("Read", "Program", "Erase")
    }
    done, served = root.findtext(".//IOPS"), root.findtext(".//Request_Count")
    if done is None or served is None:
        raise RuntimeError("MQSim: its result has no IOPS; is it of another version?")
    if int(served) < 0.99 * requests:
        raise RuntimeError(f"MQSim: {int(served):,} requests of {requests:,} were served")
    return Run(seconds, memory, sum(pages.values()), pages["Program"], float(done), requests)


def ours(load: Load, requests: int, folder: Path) -> Run:
    """Run FlashAtlas with the same drive file, and return the run."""
    share = f"read={load.reads / 100},range={load.occupied / 100}"
    kind = f"uniform:requests={requests},size={PAGE},{share}"
    # writes need the steady state: after `fill`, a drive does not collect until its spare pages are
    # written
    before = "fill" if load.reads else "steady"
    command = [sys.executable, "-m", "flashatlas", "run", "--drive", "mqsim:ssd.xml", "-w", kind]
    command += ["--depth", str(DEPTH), "--precondition", before, "--json", "run.json"]
    seconds, memory = timed(command, folder)
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    nand = {kind: sum(record["nand"][kind].values()) for kind in ("reads", "programs", "erases")}
    return Run(seconds, memory, sum(nand.values()), nand["programs"], record["iops"], requests)


def rows(load: Load, name: str, once: Run, twice: Run) -> tuple[float | None, tuple[str, ...]]:
    """Return microseconds a request, and the cells of the table.

    The results are ``None`` and dashes if twice the number of requests took no longer, because then
    the time depended on other programs.
    """
    seconds, requests = twice.seconds - once.seconds, twice.requests - once.requests
    each = seconds / requests * 1e6 if seconds > 0 else None
    speed = ("–",) * 4
    if each is not None:
        speed = (
            f"{each:.2f}",
            f"{requests / seconds:,.0f}",
            f"{(twice.flash - once.flash) / seconds:,.0f}",
            f"{max(once.seconds - seconds, 0.0):.1f} s",
        )
    writes = requests * (100 - load.reads) / 100
    waf = (twice.programs - once.programs) / writes if writes else None
    hand = load.hand(waf)
    return each, (
        load.name,
        name,
        *speed,
        f"{twice.memory / MIB:,.0f} MiB",
        f"{waf:.2f}" if waf is not None else "–",
        f"{twice.iops:,.0f}",
        f"{hand:,.0f}" if hand is not None else "–",
    )


HEAD = (
    "load",
    "",
    "µs/request",
    "requests/CPU-s",
    "flash ops/CPU-s",
    "set-up",
    "memory",
    "WAF",
    "IOPS",
    "by hand",
)


def main() -> None:
    """Run every load on both simulators, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--rounds", type=int, default=2, help="number of rounds; the fastest counts"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the number of requests")
    parser.add_argument("--only", default="", help="loads whose names contain this text")
    given = parser.parse_args()
    binary = os.environ.get("FLASHATLAS_MQSIM")
    if not binary:
        print("bench-peers: FLASHATLAS_MQSIM names no binary of MQSim: nothing was compared")
        return
    if not os.access(binary, os.X_OK):
        sys.exit(f"FLASHATLAS_MQSIM: {binary}: not a program that can be run")
    loads = [
        replace(each, requests=int(each.requests * given.scale))
        for each in LOADS
        if given.only in each.name
    ]
    table, faster, failed = [], [], []
    with Bars([each.name for each in loads]) as bars:
        for number, load in enumerate(loads):
            try:
                found = compared(os.path.abspath(binary), load, given.rounds, bars, number)
            except RuntimeError as error:
                failed.append(f"{load.name}: {error}")
                continue
            pairs = {name: rows(load, name, *runs) for name, runs in found.items()}
            table += [cells for _, cells in pairs.values()]
            mqsim, atlas = (pairs[who][0] for who in ("MQSim", "FlashAtlas"))
            if mqsim and atlas:
                faster.append((load.name, mqsim / atlas))
            else:
                why = "twice as many requests took no longer: a quieter machine, --rounds, --scale"
                failed.append(f"{load.name}: {why}")
    out = Console(width=140)
    out.print(listing(list(HEAD), table))
    out.print(f"FlashAtlas: {where()}", soft_wrap=True)
    for name, ratio in faster:
        out.print(f"{name}: {ratio:.1f} times as many requests in a second of CPU time")
    for why in failed:
        out.print(f"not compared: {why}", soft_wrap=True)
    model = greedy((1 - SPARE) / (1 - KEPT_FREE), PAGES)
    out.print(
        f"WAF of uniform random writes in the steady state, by the model of greedy: {model:.2f}. "
        f"By hand: the rate of {DIES} dies with the WAF of the row."
    )


def where() -> str:
    """Return the path of the package that runs import when they start in a temporary folder."""
    command = [sys.executable, "-c", "import flashatlas; print(flashatlas.__file__)"]
    return subprocess.run(
        command, cwd=tempfile.gettempdir(), capture_output=True, text=True, check=True
    ).stdout.strip()


def compared(
    binary: str, load: Load, rounds: int, bars: Bars, number: int
) -> dict[str, tuple[Run, Run]]:
    """Return the fastest runs of both simulators: with a load's requests, and with twice these."""
    found: dict[str, tuple[Run, Run]] = {}
    with tempfile.TemporaryDirectory(prefix="flashatlas-peers-") as scratch:
        folder = Path(scratch)
        write(folder / "ssd.xml", drive(load.cache))
        runs: dict[tuple[str, int], list[Run]] = {}
        for done in range(rounds):
            for times in (1, 2):
                count = times * load.requests
                runs.setdefault(("MQSim", times), []).append(theirs(binary, load, count, folder))
                longer = count * load.longer
                runs.setdefault(("FlashAtlas", times), []).append(ours(load, longer, folder))
                share = (2 * done + times) / (2 * rounds)
                bars.update(number, "run", count, share)
    for name in ("MQSim", "FlashAtlas"):
        once, twice = (min(runs[name, times], key=lambda r: r.seconds) for times in (1, 2))
        found[name] = (once, twice)
    return found


if __name__ == "__main__":
    main()
