"""Drives that other simulators and emulators describe, as drive files of ours.

A description is named ``KIND:WHAT``: ``mqsim:ssdconfig.xml``, ``femu:femu,devsz_mb=12288`` or
``nvmevirt:ssd_config.h,capacity=60GiB``. Each kind is a file here and a line in :data:`KINDS`.
What a description says and ours has no counterpart for is in the drive's summary.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

from flashatlas.foreign import femu, mqsim, mqsim_flows, nvmevirt
from flashatlas.foreign.description import DriveFile
from flashatlas.foreign.mqsim_flows import JobFile, TraceText

KINDS: dict[str, Callable[[str], DriveFile]] = {
    "mqsim": mqsim.described,
    "femu": femu.described,
    "nvmevirt": nvmevirt.described,
}
"""What reads each kind of description."""


JOBS: dict[str, Callable[[str], JobFile]] = {"mqsim": mqsim_flows.job_file}
"""What writes the workloads of each kind as a job file."""


TRACES: dict[str, Callable[[str], TraceText]] = {"mqsim": mqsim_flows.trace_name}
"""What names the trace that a workload of each kind plays."""


class NoCounterpart(UserWarning):
    """A description says what ours has nothing for."""


def drive_file(name: str) -> str | None:
    """The text of the drive file that a description stands for.

    ``None`` if ``name`` is not one.

    Warns:
        NoCounterpart: It says what ours has nothing for.

    Raises:
        InputError: A file that cannot be read, a value that makes no sense.

    """
    kind, colon, what = name.partition(":")
    if not colon or kind not in KINDS:
        return None
    drive = KINDS[kind](what)
    if drive.left:
        without = f"{name}: these have no counterpart: {', '.join(drive.left)}"
        warnings.warn(without, NoCounterpart, stacklevel=1)
    return drive.text()


def job_file(name: str) -> JobFile | None:
    """The fio job file that a workload stands for: ``mqsim:workload.xml,scenario=2``.

    ``None`` if ``name`` is not one.

    Raises:
        InputError: A file that cannot be read, a workload that no job can be.

    """
    kind, colon, what = name.partition(":")
    return JOBS[kind](what) if colon and kind in JOBS else None


def trace_name(name: str) -> str:
    """The name of the trace that a workload plays: ``mqsim:workload.xml,scenario=2``.

    ``name`` itself if it is none of another program.

    Warns:
        NoCounterpart: It says what ours has nothing for.

    Raises:
        InputError: A file that cannot be read, a workload that plays no traces.

    """
    kind, colon, what = name.partition(":")
    if not colon or kind not in TRACES:
        return name
    trace = TRACES[kind](what)
    if trace.left:
        without = f"{name}: these have no counterpart: {', '.join(trace.left)}"
        warnings.warn(without, NoCounterpart, stacklevel=1)
    return trace.text
