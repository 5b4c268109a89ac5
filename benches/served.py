"""`make bench-served`: run fio over NBD on a served drive, and on nbdkit's memory plugin.

Each round serves three devices in turn: nbdkit's own `memory` plugin, a new `tlc-small` in memory,
and a new `tlc-small` with an image. The same loads run on each device. They write a gigabyte once
(so that memory is touched for the first time), read it, and then read and write at random. The
printed numbers are shares of the memory plugin's numbers in the same round. The machine should be
quiet. This is not a test.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import flashatlas
from flashatlas import serve
from flashatlas.drawing.tables import listing
from rich.console import Console

LOADS = {
    "1 MiB writes, depth 8": "rw=write\nbs=1M\niodepth=8",
    "1 MiB reads, depth 8": "rw=read\nbs=1M\niodepth=8",
    "4 KiB random reads, depth 32": "rw=randread\nbs=4k\niodepth=32",
    "4 KiB random writes, depth 32": "rw=randwrite\nbs=4k\niodepth=32",
}
"""The loads in their order; the first writes everything once, the others run for some seconds."""


@contextmanager
def memory(folder: Path) -> Iterator[str]:
    """Serve nbdkit's memory plugin with the size of the drive; yield its URI."""
    size = flashatlas.Drive("tlc-small").capacity_bytes
    socket = folder / "memory"
    command = ["nbdkit", "--foreground", "--threads", "32", "--unix", str(socket), "memory"]
    server = subprocess.Popen([*command, str(size)])
    try:
        while not socket.exists():
            time.sleep(0.01)
        yield f"nbd+unix:///?socket={socket}"
    finally:
        server.terminate()
        server.wait()
        socket.unlink(missing_ok=True)


@contextmanager
def ours(image: Path | None) -> Iterator[str]:
    """Serve the drive, in memory or with an image; yield its URI."""
    with serve("tlc-small", image=image) as drive:
        yield drive.uri
    if image is not None:
        image.unlink()


def measured(uri: str, seconds: int, folder: Path) -> dict[str, float]:
    """Return the requests a second of each load."""
    found = {}
    for number, (name, load) in enumerate(LOADS.items()):
        long = "" if number == 0 else f"time_based=1\nruntime={seconds}\n"
        job = folder / "load.fio"
        job.write_text(f"[a]\nioengine=nbd\nuri={uri}\nsize=1G\nrandrepeat=1\n{load}\n{long}")
        out = folder / "fio.json"
        command = ["fio", "--output-format=json", f"--output={out}", str(job)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"fio: {done.stderr.strip()}")
        (said,) = json.loads(out.read_text())["jobs"]
        found[name] = said["read"]["iops"] + said["write"]["iops"]
    return found


def main() -> None:
    """Measure round after round, and print shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--seconds", type=int, default=3, help="duration of each load except the first"
    )
    parser.add_argument("--folder", type=Path, help="folder of the image")
    asked = parser.parse_args()
    shares: dict[str, list[list[float]]] = {name: [[], []] for name in LOADS}
    with tempfile.TemporaryDirectory(dir=asked.folder) as scratch:
        folder = Path(scratch)
        for _ in range(asked.rounds):
            with memory(folder) as uri:
                base = measured(uri, asked.seconds, folder)
            for column, image in enumerate((None, folder / "drive.img")):
                with ours(image) as uri:
                    for name, iops in measured(uri, asked.seconds, folder).items():
                        shares[name][column].append(iops / base[name])
    rows = [
        (name, *(", ".join(f"{share:.2f}" for share in column) for column in columns))
        for name, columns in shares.items()
    ]
    Console().print(listing(("", "in memory", "with an image"), rows))


if __name__ == "__main__":
    main()
