"""Records appended to files, each with fsync."""

from __future__ import annotations

import os
import random
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from flashatlas.plug.client import GONE, Client

FILES = 8
"""Number of files to which records are appended."""

HEAD = struct.Struct("<QII")
"""Head of a record: its number, the length of its body, the body's CRC-32."""


class Records(Client):
    """Appender of numbered records with checksums to eight files, each with fsync."""

    name = "records"
    summary = "records appended to eight files, each with fsync"

    def prepare(self, folder: Path) -> None:
        """Make the files."""
        for i in range(FILES):
            (folder / str(i)).touch()

    def write(
        self, folder: Path, first: int, rng: random.Random, acknowledge: Callable[[int], None]
    ) -> None:
        """Append records, each with fsync, until the drive no longer answers."""
        number = first
        try:
            files = [(folder / str(i)).open("ab", buffering=0) for i in range(FILES)]
        except OSError as error:
            if error.errno not in GONE:
                raise
            return
        try:
            descriptor = os.open(folder, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
            while True:
                file = files[number % FILES]
                file.write(record(number, rng))
                os.fsync(file.fileno())
                acknowledge(number)
                number += 1
        except OSError as error:
            if error.errno not in GONE:
                raise
        finally:
            for file in files:
                file.close()

    def found(self, folder: Path) -> tuple[set[int], str]:
        """Return the whole records at the beginning of each file."""
        there: set[int] = set()
        for i in range(FILES):
            try:
                there.update(records((folder / str(i)).read_bytes()))
            except OSError:
                continue  # the records of a file that cannot be read are lost
        return there, ""


def record(number: int, rng: random.Random) -> bytes:
    """Return a record to append."""
    body = rng.randbytes(rng.randrange(16, 6000))
    return HEAD.pack(number, len(body), zlib.crc32(body)) + body


def records(content: bytes) -> Iterator[int]:
    """Yield the numbers of the whole records at the beginning of a file."""
    at = 0
    while at + HEAD.size <= len(content):
        number, length, crc = HEAD.unpack_from(content, at)
        body = content[at + HEAD.size : at + HEAD.size + length]
        if number == 0 or len(body) < length or zlib.crc32(body) != crc:
            return
        yield number
        at += HEAD.size + length
