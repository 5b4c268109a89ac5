"""The NVMe side of a served drive: its options, and its address for hosts."""

from __future__ import annotations

import ipaddress
import json
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flashatlas._core import InputError
from flashatlas.serving.folder import PLACE

SCHEME = "tcp://"
"""Beginning of an address: the transport."""

OPEN = (
    "nvme: {} answers every host that reaches this machine, without a password and without TLS, "
    "and --allow compares only the name that a host gives itself; 127.0.0.1 answers only this "
    "machine"
)
"""The message if other machines can connect."""


@dataclass(frozen=True)
class Place:
    """The place at which hosts find an NVMe drive, in the words of ``nvme connect``.

    Attributes:
        traddr: The IP address.
        trsvcid: The TCP port.
        nqn: The name of the subsystem.

    """

    traddr: str
    trsvcid: str
    nqn: str

    @classmethod
    def of(cls, folder: Path) -> Place:
        """Return the place that a server has written into its folder."""
        return cls(**json.loads((folder / PLACE).read_text(encoding="utf-8")))

    @property
    def uri(self) -> str:
        """The address as one text."""
        host = f"[{self.traddr}]" if ":" in self.traddr else self.traddr
        return f"nvme+tcp://{host}:{self.trsvcid}/{self.nqn}"

    @property
    def variables(self) -> dict[str, str]:
        """Variables for the environment of a client."""
        named = {"traddr": self.traddr, "trsvcid": self.trsvcid, "nqn": self.nqn}
        return {**named, "uri": self.uri}


def spec(
    address: str, nqn: str | None, allow: Sequence[str], poll: float, threads: int
) -> dict[str, Any]:
    """Return the controller's part of a plan (``NvmeSpec`` of the crate ``serve``), checked.

    Raises:
        InputError: The address or a name cannot be used.

    """
    host, port = _address(address)
    network = not host.is_loopback
    if network:
        warnings.warn(OPEN.format(host), stacklevel=3)
    for option, name in [("nqn", nqn), *(("allow", name) for name in allow)]:
        if name is not None and not name.startswith("nqn."):
            raise InputError(f"{option}: `{name}` is not a name that begins with `nqn.`")
    shown = f"[{host}]" if host.version == 6 else str(host)
    return {
        "address": f"{shown}:{port}",
        "network": network,
        "nqn": nqn,
        "allow": list(allow),
        "threads": threads,
        "poll_ns": round(poll * 1e9),
        "fresh": list(os.urandom(16)),
    }


def _address(text: str) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]:
    host, colon, port = text.removeprefix(SCHEME).rstrip("/").rpartition(":")
    named = {"": "127.0.0.1", "localhost": "127.0.0.1"}.get(host, host.strip("[]"))
    try:
        if not colon or not port.isdigit() or int(port) > 65535:
            raise ValueError
        return ipaddress.ip_address(named), int(port)
    except ValueError:
        raise InputError(
            f"nvme: `{text}` is not an address; give {SCHEME}ADDRESS:PORT, such as "
            f"{SCHEME}127.0.0.1:4420 "
            "(port 0: any free port)"
        ) from None
