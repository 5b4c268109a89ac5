"""Use a drive through Python's ctypes, without a package: write, read, and print its record.

Run it with the library: ``python3 ctypes_drive.py out/capi/lib/libflashatlas.so``.
"""

from __future__ import annotations

import ctypes
import json
import sys

SECTOR = 512
NEVER = 2**64 - 1
READ, WRITE, FLUSH, TRIM = 1, 2, 3, 4


class Command(ctypes.Structure):
    """`fa_command`."""

    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("op", "fua")),
        ("lba", ctypes.c_uint64),
        *((name, ctypes.c_uint32) for name in ("sectors", "namespace_id", "stream")),
        *((name, ctypes.c_uint32) for name in ("placement", "zone_command", "reserved")),
        ("content", ctypes.c_uint64),
        ("data", ctypes.c_void_p),
        ("data_bytes", ctypes.c_size_t),
        ("more", ctypes.c_uint64 * 4),
    )


class Reply(ctypes.Structure):
    """`fa_reply`."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("data_room", ctypes.c_size_t),
        ("data_bytes", ctypes.c_size_t),
        ("stamps", ctypes.POINTER(ctypes.c_uint32)),
        ("stamp_room", ctypes.c_size_t),
        ("stamp_count", ctypes.c_size_t),
    )


class Done(ctypes.Structure):
    """`fa_done`."""

    _fields_ = (("tag", ctypes.c_uint64), ("at_ps", ctypes.c_uint64))


class Drive:
    """A drive that carries out one command at a time."""

    def __init__(self, library: str, preset: str, *settings: str, seed: int = 1) -> None:
        self.fa = ctypes.CDLL(library)
        self.fa.fa_drive_create.restype = ctypes.c_void_p
        self.fa.fa_drive_error.restype = ctypes.c_char_p
        if self.fa.fa_drive_abi() != 1:
            raise RuntimeError("the library has another ABI than this file")
        texts = (ctypes.c_char_p * len(settings))(*(s.encode() for s in settings))
        why = ctypes.create_string_buffer(512)
        made = self.fa.fa_drive_create(
            preset.encode(),
            None,
            texts,
            ctypes.c_size_t(len(settings)),
            ctypes.c_uint64(seed),
            why,
            ctypes.c_size_t(len(why)),
        )
        if made is None:
            raise ValueError(why.value.decode())
        self.drive = ctypes.c_void_p(made)
        self.now = 0

    def call(self, name: str, *arguments: object) -> None:
        """Call a function that returns a code."""
        code = getattr(self.fa, name)(self.drive, *arguments)
        if code != 0:
            raise RuntimeError(f"{name}: {code}: {self.fa.fa_drive_error(self.drive).decode()}")

    def carry_out(self, command: Command, reply: Reply | None = None) -> None:
        """Submit a command, and let time pass until it is complete."""
        place = ctypes.byref(reply) if reply else None
        now, tag = ctypes.c_uint64(self.now), ctypes.c_uint64(0)
        self.call("fa_submit", now, tag, ctypes.byref(command), place)
        at, done, count = ctypes.c_uint64(), Done(), ctypes.c_size_t()
        while count.value == 0:
            self.call("fa_next_event", ctypes.byref(at))
            if at.value == NEVER:
                raise RuntimeError("a command is in flight, and nothing happens")
            one = ctypes.c_size_t(1)
            self.call("fa_advance", at, ctypes.byref(done), one, ctypes.byref(count))
        self.now = done.at_ps

    def write(self, lba: int, data: bytes) -> None:
        """Write bytes of whole sectors."""
        kept = ctypes.create_string_buffer(data, len(data))
        address = ctypes.cast(kept, ctypes.c_void_p)
        self.carry_out(
            Command(
                op=WRITE,
                lba=lba,
                sectors=len(data) // SECTOR,
                data=address,
                data_bytes=len(data),
            )
        )

    def read(self, lba: int, sectors: int) -> bytes:
        """Read whole sectors."""
        room = ctypes.create_string_buffer(sectors * SECTOR)
        reply = Reply(data=ctypes.cast(room, ctypes.c_void_p), data_room=len(room))
        self.carry_out(Command(op=READ, lba=lba, sectors=sectors), reply)
        return room.raw

    def flush(self) -> None:
        """Make all writes durable."""
        self.carry_out(Command(op=FLUSH))

    def record(self) -> dict[str, object]:
        """Return the counters of the drive."""
        text = ctypes.c_char_p()
        self.call("fa_record_json", ctypes.byref(text))
        try:
            return json.loads(text.value or b"{}")
        finally:
            self.fa.fa_string_free(text)

    def close(self) -> None:
        """Free the drive."""
        self.fa.fa_drive_free(self.drive)
        self.drive = ctypes.c_void_p()


def main(library: str) -> None:
    """Write 100 pages of a small drive, read them back, and print the record of the drive."""
    drive = Drive(library, "tiny", "nand.data=ram", "cache.mode=write-through")
    pages = {lba: bytes([lba % 251]) * (4 * SECTOR) for lba in range(0, 400, 4)}
    for lba, data in pages.items():
        drive.write(lba, data)
    drive.flush()
    wrong = sum(drive.read(lba, 4) != data for lba, data in pages.items())
    record = drive.record()
    drive.close()
    print(json.dumps({"wrong": wrong, "time_ps": drive.now, "record": record}))
    try:
        Drive(library, "tinny")
    except ValueError as error:
        print(error)
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main(sys.argv[1])
