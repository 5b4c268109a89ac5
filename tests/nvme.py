"""A host of an NVMe drive over TCP: the initiator of the crate `nvme-tcp`, one command a line."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

BLOCK = 512
"""Bytes of a logical block."""


class Gone(OSError):
    """The connection has failed."""


class Status(Exception):
    """A command failed; the text is its status code type and code."""


@functools.cache
def initiator() -> Path:
    """Build the initiator, and return its path."""
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed: it builds the initiator")
    command = ["cargo", "build", "--release", "--quiet", "--message-format=json"]
    command += ["-p", "flashatlas-nvme-tcp", "--example", "initiator"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    artifacts = [json.loads(line) for line in done.stdout.splitlines()]
    (path,) = (x["executable"] for x in artifacts if x.get("executable"))
    return Path(path)


class Host:
    """A host with an admin queue and an I/O queue, connected to a served drive.

    Raises:
        Gone: The drive does not answer.
        Status: The drive refuses the host.

    """

    def __init__(self, drive, number: int = 1, nqn: str | None = None) -> None:
        at = drive.variables
        name = nqn or f"nqn.2026-11.example:host-{number}"
        address = f"{at['traddr']}:{at['trsvcid']}"
        self.process = subprocess.Popen(
            [initiator(), address, at["nqn"], name, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ},
        )
        try:
            self._answer()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, *words: object) -> bytes:
        """Send a command, and return the bytes that it returns."""
        try:
            self.process.stdin.write(" ".join(map(str, words)) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError as error:
            raise Gone(str(error)) from None
        return self._answer()

    def _answer(self) -> bytes:
        kind, _, rest = self.process.stdout.readline().strip().partition(" ")
        if kind == "status":
            raise Status(rest)
        if kind != "ok":
            raise Gone(rest or "the initiator has ended")
        return bytes.fromhex(rest)

    def read(self, first: int, blocks: int) -> bytes:
        return self.ask("read", first, blocks)

    def write(self, first: int, data: bytes, fua: bool = False) -> None:
        self.ask("fua" if fua else "write", first, data.hex())

    def flush(self) -> None:
        self.ask("flush")

    def smart(self) -> dict[str, int]:
        """Return fields of SMART / Health Information (Base 5.1.12.1.3)."""
        page = self.ask("log", 2, 512)
        fields = {
            "units_read": 32,
            "units_written": 48,
            "reads": 64,
            "writes": 80,
            "power_cycles": 112,
            "hours": 128,
            "unsafe_shutdowns": 144,
            "media_errors": 160,
        }
        numbers = {
            name: int.from_bytes(page[at : at + 16], "little") for name, at in fields.items()
        }
        return {**numbers, "used": page[5], "spare": page[3]}

    def close(self) -> None:
        """End the connection without a shutdown."""
        self.process.stdin.close()
        self.process.wait(timeout=30)
        self.process.stdout.close()
