"""A client of NBD in a few lines, for requests that no program sends."""

from __future__ import annotations

import socket
import struct

READ, WRITE, FLUSH, TRIM, ZEROES = 0, 1, 3, 4, 6
FUA = 1


class Client:
    """One connection to the Unix socket of a server."""

    def __init__(self, uri: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(30)
        self.socket.connect(uri.partition("socket=")[2])
        magic, option, _ = struct.unpack(">8s8sH", self.take(18))
        assert (magic, option) == (b"NBDMAGIC", b"IHAVEOPT")
        # fixed newstyle, without the zeros behind the answer; the export has no name
        self.socket.sendall(struct.pack(">I8sII", 3, b"IHAVEOPT", 1, 0))
        self.size, self.flags = struct.unpack(">QH", self.take(10))

    def take(self, count: int) -> bytes:
        """Return the next ``count`` bytes from the server."""
        got = b""
        while len(got) < count:
            more = self.socket.recv(count - len(got))
            if not more:
                raise ConnectionError("the server closed the connection")
            got += more
        return got

    def ask(self, kind: int, offset: int = 0, length: int = 0, data: bytes = b"", flags: int = 0):
        """Return the error of a request (0: none), and the bytes that it read."""
        length = len(data) or length
        head = struct.pack(">IHHQQI", 0x25609513, flags, kind, 7, offset, length)
        self.socket.sendall(head + data)
        magic, error, handle = struct.unpack(">IIQ", self.take(16))
        assert (magic, handle) == (0x67446698, 7)
        return error, self.take(length) if kind == READ and not error else b""

    def close(self) -> None:
        """Close the connection without NBD's request to disconnect."""
        self.socket.close()
