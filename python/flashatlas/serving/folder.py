"""The folder and the exit status of a server, by which it reports to the process that began it."""

from __future__ import annotations

POWER_LOST = 9
"""Exit status of a server whose drive lost its power."""

OURS = "flashatlas: "
"""Beginning of the lines of our servers in the log."""

PID = "pid"
"""File that appears, with a line end, once clients are answered."""

LIVE = "live.json"
"""File with the visible state of the drive, renewed every half second."""

PLACE = "place.json"
"""File with the address of an NVMe drive and the name of its subsystem."""
