"""Signals that end a command while its modules are loaded."""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

ENDED_BY = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


def end_at_once(number: int, frame: FrameType | None) -> None:
    """End the process at a signal, while modules are loaded and no file is open.

    An exception would not work here, because some modules catch or print any exception during their
    import.
    """
    os.write(2, f"error: {ENDED_BY[signal.Signals(number)]}; nothing was written\n".encode())
    os._exit(128 + number)
