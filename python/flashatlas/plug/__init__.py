"""A real kernel's file system on a served drive, with the plug pulled under it."""

from __future__ import annotations

from flashatlas.plug.client import Client
from flashatlas.plug.guest import Guest, Machine
from flashatlas.plug.kernel import Kernel
from flashatlas.plug.mounted import Mounted, missing
from flashatlas.plug.pulling import CLIENTS, KERNELS, Pull, client_of, pull

__all__ = [
    "CLIENTS",
    "KERNELS",
    "Client",
    "Guest",
    "Kernel",
    "Machine",
    "Mounted",
    "Pull",
    "client_of",
    "missing",
    "pull",
]
