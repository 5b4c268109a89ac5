"""`make bench-doors`: read a served drive through NVMe/TCP and through NBD, on loopback.

Four servers run from the beginning to the end: nbdkit's plugin and the NVMe door, each with a new
`tlc-small` in memory, and the NVMe door over plain memory, which is the floor. All have 32 threads
and TCP ports of 127.0.0.1. Each client writes 256 MiB once. Then come rounds: every load runs once
in each round, so that a busy moment of the machine affects all loads.

- **4 KiB random reads, depth 32** (`--time none`). `benches/src/doors` has the clients: the native
  initiator for NVMe, and a client of NBD with the same structure. Each client is one thread with
  one connection and blocking calls. fio's NBD client, which `make bench-served` uses, reads in each
  round, too. Our clients compare each read with the data that they wrote.
- **depth 1, `--time real`**, through both doors, with a client that polls for the answer and with a
  client that sleeps. The client's latencies stand beside the latencies of the simulated drive in
  its record. A client that sleeps adds the time in which it wakes up, so the goal is about the
  client that polls.

The printed numbers are medians of the rounds, with the least and the greatest in brackets. The
table also has the processor time that the server takes for a read. This time depends less on other
programs of the machine. The machine should be quiet. This is not a test.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path

from flashatlas import serve
from flashatlas.drawing.tables import listing
from flashatlas.serving.serve import MALLOC, Serving
from rich.console import Console

ROOT = Path(__file__).parents[1]
BYTES = 256 << 20
"""Bytes that are written once, and then read."""

GOALS = {"NBD": 1.0, "NBD, fio": 1.0, "memory": 0.5}
"""Goals: least ratio of the NVMe drive's reads a second to the reads a second of a server."""

LATE_US = 20
"""Greatest distance of the client's median from the drive's, on an idle machine."""


def built() -> Path:
    """Build the clients and the floor, and return their program."""
    command = ["cargo", "build", "--release", "--quiet", "--message-format=json"]
    command += ["-p", "flashatlas-benches", "--bin", "doors"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    artifacts = [json.loads(line) for line in done.stdout.splitlines()]
    (path,) = (one["executable"] for one in artifacts if one.get("executable"))
    return Path(path)


def told(program: Path, *words: object) -> str:
    """Return the output of a client; end with its message if it fails."""
    command = [str(program), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def cpu(pid: int) -> float:
    """Return the processor time of a process, in microseconds."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1e6 / os.sysconf("SC_CLK_TCK")


@contextmanager
def memory(program: Path) -> Iterator[tuple[int, list[str]]]:
    """Serve memory through the NVMe door; yield its process and the words that name it."""
    server = subprocess.Popen(
        [str(program), "memory", str(BYTES)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**MALLOC, **os.environ},
    )
    try:
        yield server.pid, ["nvme", *server.stdout.readline().split()]
    finally:
        server.stdin.close()
        server.wait()


def nvme(drive: Serving) -> list[str]:
    """Return the words that name a served NVMe drive to a client."""
    at = drive.variables
    return ["nvme", f"{at['traddr']}:{at['trsvcid']}", at["nqn"]]


def by_fio(port: int, seconds: float, folder: Path) -> float:
    """Return the reads a second of fio's NBD client at depth 32."""
    job, out = folder / "load.fio", folder / "fio.json"
    job.write_text(
        f"[a]\nioengine=nbd\nuri=nbd://127.0.0.1:{port}\nsize={BYTES}\nrw=randread\nbs=4k\n"
        f"iodepth=32\nrandrepeat=1\ntime_based=1\nruntime={seconds}\nramp_time=200ms\n"
    )
    command = ["fio", "--output-format=json", f"--output={out}", str(job)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"fio: {done.stderr.strip()}")
    (said,) = json.loads(out.read_text())["jobs"]
    return said["read"]["iops"]


def of_rounds(values: list[float], digits: int = 2) -> str:
    """Return the median, the least and the greatest of the rounds."""
    middle, least, most = statistics.median(values), min(values), max(values)
    return f"{middle:,.{digits}f} ({least:,.{digits}f} to {most:,.{digits}f})"


def throughput(program: Path, port: int, rounds: int, seconds: float, console: Console) -> None:
    """Measure reads at depth 32, and print them with their shares."""
    found: dict[str, list[float]] = {name: [] for name in ("NVMe", *GOALS)}
    taken: dict[str, list[float]] = {name: [] for name in found}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        nbd = stack.enter_context(serve("tlc-small", port=port))
        drive = stack.enter_context(serve("tlc-small", nvme="tcp://127.0.0.1:0"))
        places = {
            "NVMe": (drive.pid, nvme(drive)),
            "NBD": (nbd.pid, ["nbd", f"127.0.0.1:{port}"]),
            "memory": stack.enter_context(memory(program)),
        }
        for _, place in places.values():
            told(program, "fill", *place, BYTES)
        for _ in range(rounds):
            for name, (pid, place) in places.items():
                before = cpu(pid)
                said = json.loads(told(program, "read", *place, BYTES, 32, seconds))
                found[name].append(said["reads_a_second"])
                taken[name].append((cpu(pid) - before) / said["reads"])
            found["NBD, fio"].append(by_fio(port, seconds, folder))
    rows = [
        (
            name,
            of_rounds(found[name], 0),
            of_rounds([a / b for a, b in zip(found["NVMe"], found[name], strict=True)]),
            str(GOALS.get(name, "")),
            of_rounds(taken[name], 1) if taken[name] else "",
        )
        for name in found
    ]
    head = ("4 KiB reads, depth 32", "a second", "NVMe's share of them", "goal", "server, us each")
    console.print(listing(head, rows))


def latency(program: Path, port: int, rounds: int, seconds: float, console: Console) -> None:
    """Measure reads at depth 1 in the drive's own time, and print both latencies."""
    names = ["drive p50", "client p50", "distance"]
    names += ["drive p99", "client p99", "late p50", "late p99"]
    rows = []
    for door, client in product(("NVMe", "NBD"), ("polls", "sleeps")):
        found: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(rounds):
            at = {"nvme": "tcp://127.0.0.1:0"} if door == "NVMe" else {"port": port}
            with serve("tlc-small", time="real", **at) as drive:
                place = nvme(drive) if door == "NVMe" else ["nbd", f"127.0.0.1:{port}"]
                told(program, "fill", *place, BYTES // 8)
                words = ["polls"] if client == "polls" else []
                said = json.loads(told(program, "read", *place, BYTES // 8, 1, seconds, *words))
            own = drive.result.record["latency_ns"]["read"]
            late = drive.result.record["served"]["late_ns"]
            for percentile in ("p50", "p99"):
                found[f"drive {percentile}"].append(own[percentile] / 1000)
                found[f"client {percentile}"].append(said[f"{percentile}_us"])
                found[f"late {percentile}"].append(late[percentile] / 1000)
            found["distance"].append(found["client p50"][-1] - found["drive p50"][-1])
        medians = (of_rounds(values, 1) for values in found.values())
        rows.append((f"{door}, client {client}", *medians))
    turned = [(name, *(row[1 + at] for row in rows)) for at, name in enumerate(names)]
    console.print(listing(("depth 1, --time real, us", *(row[0] for row in rows)), turned))
    console.print(
        f"goal: over NVMe the distance of a client that polls is at most {LATE_US} us on an idle "
        "machine"
    )


def machine() -> str:
    """Return the name of the processor, the number of cores, and the load before the run."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    load = os.getloadavg()[0]
    return f"{names[0] if names else 'processor'}, {os.cpu_count()} cores, load before: {load:.2f}"


def main() -> None:
    """Measure round after round, and print medians."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="duration of each load")
    parser.add_argument("--port", type=int, default=10809, help="TCP port of NBD")
    parser.add_argument("--only", choices=("depth-32", "depth-1"), help="one of the two tables")
    asked = parser.parse_args()
    program, console = built(), Console(width=130)
    console.print(machine(), highlight=False)
    for name, measure in (("depth-32", throughput), ("depth-1", latency)):
        if asked.only in (None, name):
            measure(program, asked.port, asked.rounds, asked.seconds, console)


if __name__ == "__main__":
    main()
