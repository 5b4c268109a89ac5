#!/usr/bin/python3
"""The first process of a guest. It carries out the host's requests on the drive.

A question is a line of JSON on the virtual serial port, and so is each answer. The drive is
``/dev/vda``, or ``/dev/nbd0`` or ``/dev/nvme0n1`` if the guest's own kernel speaks NBD or NVMe.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flashatlas.plug.client import Client
from flashatlas.plug.records import Records
from flashatlas.plug.sqlite import Sqlite

MODULES = Path("/modules")
"""Folder of the kernel's modules. By name, they are in an order in which they can be loaded."""

PORT = Path("/dev/vport0p1")
AT = Path("/at")
NVME = Path("/dev/nvme0n1")
SCAN_S = 60
"""Seconds that the kernel has to find an NVMe drive's namespace."""
RECONNECT_S = 1
"""Seconds between the kernel's tries to connect to an NVMe drive that went away."""

CLIENTS: dict[str, Client] = {client.name: client for client in (Records(), Sqlite())}
"""The clients that need nothing but Python."""

Answer = Callable[..., None]


def do(*command: str, hear: Callable[[str], None] = lambda _: None) -> str:
    """Return the output of a command; ``hear`` gets each line immediately. Raise if it fails."""
    said = []
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as program:
        assert program.stdout is not None
        for line in program.stdout:
            said.append(line)
            hear(line)
    output = "".join(said)
    if program.returncode != 0:
        raise OSError(f"{' '.join(command)}: {output.strip() or program.returncode}")
    return output


def tool(*command: str) -> str:
    """Run a command with the tools of busybox."""
    return do("/bin/busybox", *command)


def begin() -> None:
    """Mount the kernel's file systems, and load its modules."""
    for kind, at in (("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/tmp")):
        os.makedirs(at, exist_ok=True)
        tool("mount", "-t", kind, kind, at)
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    for module in sorted(MODULES.iterdir()):
        tool("insmod", str(module))
    AT.mkdir()


def network() -> None:
    """Give the guest its address on QEMU's network."""
    tool("ip", "link", "set", "eth0", "up")
    tool("ip", "address", "add", "10.0.2.15/24", "dev", "eth0")


def attached(how: str, address: dict[str, str]) -> str:
    """Return the drive's device; ``address`` is the address of an NVMe drive."""
    if how == "nbd":
        network()
        do("nbd-client", "10.0.2.100", "10809", "/dev/nbd0", "-N", "", "-nofork", "-b", "512")
        return "/dev/nbd0"
    if how == "nvme":
        if not NVME.exists():
            network()
            connect(address)
        return str(NVME)
    return "/dev/vda"


def connect(address: dict[str, str]) -> None:
    """Connect the kernel to an NVMe drive, and wait until it has found the namespace."""
    options = {"transport": "tcp", **address, "reconnect_delay": RECONNECT_S}
    with Path("/dev/nvme-fabrics").open("r+b", buffering=0) as fabrics:
        fabrics.write(",".join(f"{name}={value}" for name, value in options.items()).encode())
    give_up = time.monotonic() + SCAN_S
    while not NVME.exists():
        if time.monotonic() > give_up:
            raise OSError(f"{NVME}: the kernel has not found it within {SCAN_S} s")
        time.sleep(0.01)


def prepare(device: str, asked: dict[str, Any], _: Answer) -> dict[str, Any]:
    """Make a file system with the client's files."""
    do("mkfs.ext4", "-q", "-F", device)
    tool("mount", "-t", "ext4", device, str(AT))
    CLIENTS[asked["client"]].prepare(AT)
    tool("umount", str(AT))
    return {}


def write(device: str, asked: dict[str, Any], answer: Answer) -> dict[str, Any]:
    """Let the client write until the drive no longer answers."""
    tool("mount", "-t", "ext4", device, str(AT))
    CLIENTS[asked["client"]].write(
        AT, asked["first"], random.Random(asked["seed"]), lambda n: answer(acknowledged=n)
    )
    return {}


def found(device: str, asked: dict[str, Any], _: Answer) -> dict[str, Any]:
    """Return the numbers that are there, and the faults that the client and e2fsck find."""
    tool("mount", "-t", "ext4", device, str(AT))
    there, wrong = CLIENTS[asked["client"]].found(AT)
    tool("umount", str(AT))
    try:
        do("e2fsck", "-f", "-n", device)
    except OSError as error:
        wrong = "; ".join(filter(None, (wrong, str(error))))
    return {"there": sorted(there), "wrong": wrong}


def run(device: str, asked: dict[str, Any], answer: Answer) -> dict[str, Any]:
    """Run shell commands with the device in ``$DRIVE``; answer with each line, and return all."""
    os.environ["DRIVE"] = device
    command = ("/bin/busybox", "sh", "-e", "-c", asked["commands"])
    return {"said": do(*command, hear=lambda line: answer(line=line))}


def main() -> None:
    """Carry out requests until the machine is switched off."""
    begin()
    while not PORT.exists():
        time.sleep(0.01)
    with PORT.open("r+b", buffering=0) as port:

        def answer(**said: Any) -> None:
            left = json.dumps(said).encode() + b"\n"
            while left:  # the kernel takes at most 32 KiB at a time
                left = left[port.write(left) :]

        while line := port.readline():
            asked = json.loads(line)
            try:
                device = attached(asked["attach"], asked["address"])
                done = {"prepare": prepare, "write": write, "found": found, "run": run}
                answer(end=done[asked["do"]](device, asked, answer))
            except Exception as error:  # report any error to the host
                answer(error=f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
