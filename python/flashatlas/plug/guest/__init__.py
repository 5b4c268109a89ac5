"""A separate kernel in QEMU, with the served drive as its disk."""

from __future__ import annotations

from flashatlas.plug.guest.machine import ATTACHED, Guest, Machine

__all__ = ["ATTACHED", "Guest", "Machine"]
