"""The process that serves a drive as an NVMe drive over TCP.

For NBD, nbdkit with our plugin has this part. :func:`flashatlas.serve` begins the process. The
process reads its plan, and answers with files in the folder of the plan
(:mod:`flashatlas.serving.folder`). SIGTERM and SIGINT end it in order, SIGUSR1 lets the power fail.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from flashatlas._core import FlashAtlasError, NvmeServer, PowerLost
from flashatlas.serving.folder import OURS, PID, PLACE, POWER_LOST

PROGRAM = "import sys; sys.path.pop(0); from flashatlas.serving.door import main; main()"
"""The program of the process, without the current folder on its path."""

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)
"""The signals that the process waits for; they are blocked in all its threads."""

LISTEN_S = 0.05
"""Seconds between two checks that the drive is still served."""

LOOK_S = 0.5
"""Seconds between two writes of the drive's state into the folder."""


def main() -> NoReturn:
    """Serve the drive of the plan ``sys.argv[1]`` until its end."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    with suppress(OSError):  # threads wake up at the requested time, not 50 us later
        Path("/proc/self/timerslack_ns").write_text("1", encoding="ascii")
    path = Path(sys.argv[1])
    told = path.read_text(encoding="utf-8")
    try:
        server = NvmeServer(told)
    except PowerLost:
        _power_lost()
    except FlashAtlasError as error:
        _leave(1, str(error))
    frames, blocks = server.damage()
    for frame in frames:
        _say(f"the image holds no readable page in frame {frame}")
    for block in blocks:
        _say(f"the image's record of block {block} is damaged")
    plan = json.loads(told)
    _announce(server, path.parent)
    _wait(server, plan)
    record, complaint = server.end()
    if complaint is not None:
        gone = server.gone()
        if gone is not None and gone[0]:
            _power_lost()  # the power failed in the last FLUSH
        _say(complaint)
    if record is not None:
        Path(plan["record"]).write_text(record, encoding="utf-8")
    _leave(0)


def _announce(server: NvmeServer, folder: Path) -> None:
    traddr, port, nqn = server.place()
    place = {"traddr": traddr, "trsvcid": str(port), "nqn": nqn}
    (folder / PLACE).write_text(json.dumps(place), encoding="utf-8")
    (folder / PID).write_text(f"{os.getpid()}\n", encoding="ascii")


def _wait(server: NvmeServer, plan: dict[str, object]) -> None:
    """Wait for the end of serving; it also ends when the process that began it is gone."""
    next_look, parent = time.monotonic(), os.getppid()
    while os.getppid() == parent:
        if plan["live"] is not None and time.monotonic() >= next_look:
            _look(server, Path(str(plan["live"])))
            next_look = time.monotonic() + LOOK_S
        got = signal.sigtimedwait(SIGNALS, LISTEN_S)
        if got is not None and got.si_signo == signal.SIGUSR1:
            server.cut()
        elif got is not None:
            return
        gone = server.gone()
        if gone is not None:
            if gone[0]:
                _power_lost()
            return
        so_far, now = server.associations()
        if plan["once"] and so_far > 0 and now == 0:
            return


def _look(server: NvmeServer, path: Path) -> None:
    seen = server.look()
    if seen is not None:
        part = path.with_suffix(".part")
        part.write_text(seen, encoding="utf-8")
        part.replace(path)


def _say(why: str) -> None:
    print(f"{OURS}{why}", file=sys.stderr, flush=True)


def _power_lost() -> NoReturn:
    _leave(POWER_LOST, "the power has failed")


def _leave(status: int, why: str | None = None) -> NoReturn:
    """End the process immediately: nothing waits for threads of a drive without power."""
    if why is not None:
        _say(why)
    os._exit(status)
